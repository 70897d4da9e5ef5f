/* Makes of this server's shared tables a copy of a peer's, and then knows where to go on with each
 * cluster (cluster/origin/origin_applied.h). What had been copied before, by one that did not end,
 * goes first: it may have rows that the peer has deleted since. */
#ifndef TRESTLE_REPLICA_COPIER_H
#define TRESTLE_REPLICA_COPIER_H

#include "replica/peers.h"
#include "replica/pull_apply.h"

struct copier_options {
    struct pull_apply_options apply;
    struct peers *peers;
    const struct log *log;
    unsigned from; /* the peer's number */
    /* Whether to give up; asked ten times a second at least. */
    bool (*is_stopping)(void *context);
    /* The session of the call under way, to be cancelled by others; NULL: it is over. False: it is
     * not to begin. */
    bool (*hold_session)(void *context, struct client_session *session);
    /* So much more of it has been applied. */
    void (*note_progress)(void *context, size_t changes, size_t bytes);
    void *context;
};

/* UNAVAILABLE, and what the call may end with: it is to be tried again. Blocks. */
status copier_run(const struct copier_options *options);

#endif
