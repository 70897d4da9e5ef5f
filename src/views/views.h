/* Materialized views: kept up to date with their sources, by themselves, behind the writes
 * (docs/internals/views.md).
 *
 * A view is a resource of the control plane (RESOURCE_MATERIALIZED_VIEW), whose query says what is
 * in it, and a table of the cluster of the same name, which has its rows. The engine hears of
 * resources by a watcher, makes the table of one that has none (after a restore), and then does,
 * for as long as the resource is there:
 *
 *     POPULATING ──► READY ──► RECONCILING ──► READY
 *          └───────────┴────────────┴──► FAILED: what a person must do something about, in words
 *
 * Invariants
 *  1. Rows, what is kept beside them to take a source row's part back, and how far the source's
 * feed was followed are one commit. So a kill, or a failure at any place, loses nothing and does
 *     nothing twice: what was not committed is done again.
 *  2. POPULATING ends once: READY is on record, and a view that was READY can be read ever after.
 * One that reconciles is readable, and may be behind.
 *  3. A failure that may pass (no memory, I/O, rows out of service) ends a round, not a view: it
 *     is tried again, later and later, and the state's words say so.
 *
 * Threads: any, unless said. What blocks says so. */
#ifndef TRESTLE_VIEWS_VIEWS_H
#define TRESTLE_VIEWS_VIEWS_H

#include "control/control.h"
#include "sql/plan/plan.h"

struct views;
struct metrics;

/* What a view's query comes to now. */
struct view_definition {
    const struct sql_plan *plan; /* has passed sql_check_materialized; as analysis makes it */
    const char *source;          /* full name of the table that it reads */
};

struct views_options {
    struct cluster *cluster;
    struct control *control; /* outlives the thread: closed between views_stop and views_free */
    struct metrics *metrics; /* may be NULL */
    const struct log *log;
    /* Plans the query of the view with that full name; all of it is in the arena, and what it
     * points to stays as long as that. Called on the engine's threads; may block. INVALID_ARGUMENT,
     * NOT_FOUND: the view has FAILED, in these words. */
    status (*define)(void *context, const char *name, const char *query, struct arena *arena,
                     struct view_definition *out);
    void *context;
    bool by_hand;      /* no threads: a test says when (views_settle) */
    size_t piece_rows; /* for tests: rows of a commit, at most; 0: as many as go with little time */
};

/* Begins to watch the views that there are and those that come. On failure views_stop and
 * views_free are due if `*out` is not NULL. After operations_start's `recover`s would be too late:
 * their `run` may wait for a view. */
status views_start(const struct views_options *options, struct views **out);
/* Ends the threads, in the midst of what they do: within a piece. Who waits is told. NULL is fine.
 */
void views_stop(struct views *views);
/* When the control plane is closed. NULL is fine. */
void views_free(struct views *views);

/* --- a view's life --- */

/* Makes the table of a view, empty, whose resource is made by the edit of that transaction: both or
 * neither. FAILED_PRECONDITION if the source lies in several shards; INVALID_ARGUMENT for what
 * cannot be kept, in words for the client; NOT_FOUND for the source. Blocks. */
status views_create_table(struct views *views, const char *name,
                          const struct view_definition *definition, struct catalog_txn *txn);

/* The same with the table of a view that is deleted: it is gone with the transaction, and so is
 * what was kept beside it. Fine if there is none. The engine ends its work at the watcher's word.
 * Blocks.
 */
status views_delete_table(struct views *views, const char *name, struct catalog_txn *txn);

enum view_state { VIEW_POPULATING, VIEW_READY, VIEW_RECONCILING, VIEW_FAILED };

/* "populating" and so on. */
const char *view_state_name(enum view_state state);

/* A view that a client wants to read. */
struct view_found {
    enum view_state state;
    bool is_readable;    /* it has been READY once: it has all, if behind */
    struct table *table; /* with a reference for the caller; NULL: it has none yet */
    char words[256];     /* what is the matter; "": nothing is */
};
/* NOT_FOUND `Not found: <name>`. Cheap: on loops, too. */
status views_find(struct views *views, const char *name, struct view_found *out);

/* --- how they are --- */

/* How far the first look at all of the source has come, or one that was begun again since. */
struct view_progress {
    uint64_t rows_done; /* of the source */
    uint64_t rows;      /* of about so many; never less than those done */
    double share;       /* 0 to 1 */
};

/* All counts are since the server's start, unless said. */
struct view_status {
    const char *name;
    const char *source; /* full name; "": not known yet */
    enum view_state state;
    bool is_readable;
    const char *words; /* "": nothing is the matter */
    struct view_progress progress;
    int64_t lag_us;       /* the age of the oldest change that is not in it, about; 0: it has all */
    uint64_t user_errors; /* source rows left out, each counted once: in all of the view's life */
    uint64_t excluded_rows;   /* that are left out now */
    uint64_t excluded_groups; /* the same, as an overflow does */
    uint64_t system_errors;   /* rounds that failed */
    uint64_t changes;         /* source rows evaluated */
    uint64_t bytes;           /* of its rows, on the disk, about */
    uint64_t record_bytes;    /* of what is kept beside them */
    int64_t cpu_us;           /* processor time that its upkeep took */
};
/* Calls `visit` for each view whose name starts with `prefix`, by name, until it returns false.
 * What is visited is valid during the call. May read from the disk. */
void views_visit(struct views *views, bytes prefix,
                 bool (*visit)(void *context, const struct view_status *status), void *context);

/* Sets the metrics of views. May read from the disk. */
void views_measure(struct views *views);

/* --- for tests --- */

/* Upkeep stands still, though the views can be read: for a test of lag. */
void views_hold(struct views *views, bool is_held);

/* Waits until all that was committed before is in all views that have not FAILED; or, by hand,
 * works until it is so. The first failure of a round, by hand. Blocks. */
status views_settle(struct views *views);

#endif
