/* Long-running operations: what google.longrunning.Operations shows, durably.
 *
 * An operation is a resource (RESOURCE_OPERATION) whose body is a google.longrunning.Operation. Its
 * name says whose it is, in the words of its API, and when it began:
 *
 *     operations/projects/P/instances/I/locations/L/operations/<version of the edit>
 *     projects/P/operations/<version of the edit>        Datastore's
 *     projects/P/databases/D/operations/<the same>       of its fields, as Firestore has it
 *
 * A quick change stages its operation, finished, in its own edit: either both are there or neither.
 * Long work (a backup) stages one that runs. It is carried out by its *kind*, on a thread where it
 * may block, and ends in an edit that has both its result and its record. An operation that was
 * running when the process ended is found by operations_start, and goes on or ends as its kind
 * says.
 *
 * A finished operation is kept for OPERATION_DAYS, then forgotten. */
#ifndef TRESTLE_CONTROL_OPERATIONS_H
#define TRESTLE_CONTROL_OPERATIONS_H

#include "control/control.h"

enum { OPERATION_DAYS = 30 };

struct operation_spec {
    const char *parent;               /* what stands before /operations/ */
    const ProtobufCMessage *metadata; /* become Any */
    const ProtobufCMessage *response; /* of one that is finished */
    const char *kind;                 /* of one that is not; see operation_kind */
    bytes argument;                   /* what the kind needs to know, in its own form */
};

/* Stages a finished operation; `*out`, a google.longrunning.Operation, is in the arena. An edit has
 * one operation at most. */
status operation_done(struct edit *edit, const struct operation_spec *spec, struct arena *arena,
                      const ProtobufCMessage **out);

/* Stages one that begins once the edit is durable. RESOURCE_EXHAUSTED if too many run. */
status operation_begin(struct edit *edit, const struct operation_spec *spec, struct arena *arena,
                       const ProtobufCMessage **out);

/* --- kinds of long work --- */

struct operation; /* one that runs */

struct operation_kind {
    const char *name; /* stands in records */
    void *context;
    /* Does the work and ends it by operation_finish; or returns a failure, which becomes the
     * operation's error. Looks at operation_is_cancelled now and then. */
    status (*run)(void *context, struct operation *operation);
    /* Called at start for one that a crash or a stop cut short, before any client is served: cleans
     * up, and returns OK if `run` shall do it again, or else the operation's error. */
    status (*recover)(void *context, const char *name, bytes argument);
    /* Called in its place for one that is not to go on in any case, see operations_mark_abandoned:
     * leaves what it has made so far so that it can be made again, or removed. May be called
     * several times. NULL: nothing needs to be done. */
    status (*abandon)(void *context, const char *name, bytes argument);
    /* Its work is done elsewhere and only waited for: `run` does not wait, and is called again,
     * twenty times a second, for as long as it succeeds without having ended the operation. Such
     * ones share a thread, however many there are, and keep none from others. */
    bool is_awaited;
};

/* Takes up what the last process left running. Called once, before any is begun; the kinds are
 * the caller's. */
status operations_start(struct control *control, const struct operation_kind *kinds, size_t count);

/* Adds to the transaction that no operation of this catalog goes on: operations_start ends each
 * that is under way with ABORTED. For a catalog that was restored from a backup. */
void operations_mark_abandoned(struct catalog_txn *txn);

const char *operation_name(const struct operation *operation);
bytes operation_argument(const struct operation *operation);
struct control *operation_control(const struct operation *operation);

/* The client has cancelled it, or the server is stopping: `run` had better return CANCELLED. */
bool operation_is_cancelled(const struct operation *operation);

/* The server is stopping: the operation will go on after it, as its kind says. */
bool operation_is_stopping(const struct operation *operation);

/* Sets the name of what the operation makes or changes, for the log should it fail. On its own
 * thread. Without memory nothing is set. */
void operation_set_subject(struct operation *operation, const char *name);

/* Whether one that has not ended is what is looked for, by its kind and its argument; `is_it` is
 * called with a lock held, and asks for nothing here. */
bool operation_is_under_way(struct control *control,
                            bool (*is_it)(void *context, const char *kind, bytes argument),
                            void *context);

size_t operations_running(struct control *control); /* how many have not ended; any thread */

/* Replaces the metadata: progress that clients see, durably. Not more than once a second. */
status operation_report(struct operation *operation, const ProtobufCMessage *metadata);

/* Stages the end, beside the result, in an edit of the operation's own. */
status operation_finish(struct operation *operation, struct edit *edit,
                        const ProtobufCMessage *metadata, const ProtobufCMessage *response);

/* --- what clients ask --- */

/* Waits until it is done, or until clock_steady_us says `until_us`, or not at all if too many wait
 * already; a caller that wants to know how it stands asks then. */
void operation_wait(struct control *control, const char *name, int64_t until_us);

/* NOT_FOUND; fine if it is done. */
status operation_cancel(struct control *control, const char *name);

/* Forgets a finished one. FAILED_PRECONDITION while it runs. */
status operation_forget(struct control *control, const char *name);

/* --- for control.c --- */
status operations_open(struct control *control);
void operations_close(struct control *control); /* whatever is open */

#endif
