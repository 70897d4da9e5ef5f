/* Asks a peer for a copy of an instance's rows, or for the places alone from which on one goes on,
 * and applies the rows here as they come. What is to become of it is the caller's: where they stand
 * (placed.h), and that what was here before has gone. */
#ifndef TRESTLE_REPLICA_COPIER_H
#define TRESTLE_REPLICA_COPIER_H

#include "replica/peers.h"
#include "replica/pull_apply.h"

struct copier_options {
    struct pull_apply_options apply; /* with `placed` NULL */
    struct peers *peers;
    unsigned from;        /* the peer's number */
    const char *instance; /* "": places alone */
    int64_t timeout_us;   /* of all of it; INT64_MAX: none */
    /* Whether to give up; asked ten times a second at least. */
    bool (*is_stopping)(void *context);
    /* The session of the call under way, to be cancelled by others; NULL: it is over. False: it is
     * not to begin. */
    bool (*hold_session)(void *context, struct client_session *session);
    /* With the first answer, which has the places and names the tables: before any row is applied.
     * Its failure ends the copy. */
    status (*begin)(void *context, const Replica__PullChangesResponse *first);
    /* With each later one, once it has been applied; NULL: nobody wants to know. */
    void (*note)(void *context, const Replica__PullChangesResponse *answer);
    void *context;
};

/* OK: all is here. UNAVAILABLE, and what the call may end with: some may be. Blocks. */
status copier_run(const struct copier_options *options);

#endif
