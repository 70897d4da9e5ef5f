/* What makes this server's tables what the peers' are: a thread that looks who they are, copies one
 * of them if this server is new among them, and has a puller for each (puller.h).
 *
 * A server without peers has the thread, which then looks at a number twice a second, and nothing
 * else. */
#ifndef TRESTLE_REPLICA_REPLICATION_H
#define TRESTLE_REPLICA_REPLICATION_H

#include "replica/peers.h"
#include "replica/pull_apply.h"

struct replication;

struct replication_options {
    struct pull_apply_options apply; /* of all pullers */
    struct peers *peers;
    const struct log *log;
    struct metrics *metrics; /* may be NULL */
    /* Called when the peers have changed, and some time after. May be NULL. */
    void (*peers_changed)(void *context);
    void *context;
};

/* After peers_begin; what the options point to outlives it. */
status replication_start(const struct replication_options *options, struct replication **out);
void replication_stop(struct replication *replication); /* NULL is fine */

/* Whether what is here is not whole yet: a copy is being made, or is about to be. Cheap; any
 * thread. */
bool replication_is_copying(const struct replication *replication);

/* For peers_set_progress: what is known of that peer's changes. */
void replication_tell(void *replication, struct arena *arena, Replica__PeerState *state);

#endif
