/* A thread that follows one peer: it pulls what that peer's clients have changed, applies it here
 * (pull_apply.h), and records how far it has come (cluster/origin/origin_applied.h). */
#ifndef TRESTLE_REPLICA_PULLER_H
#define TRESTLE_REPLICA_PULLER_H

#include "replica/peers.h"
#include "replica/pull_apply.h"

struct puller;

struct puller_options {
    struct pull_apply_options apply;
    struct peers *peers;
    const struct log *log;
    struct metrics *metrics; /* may be NULL */
    unsigned number;         /* the peer's */
};

/* Begins; what the options point to outlives it. */
status puller_start(const struct puller_options *options, struct puller **out);
/* Ends it, and waits for that. NULL is fine. */
void puller_stop(struct puller *puller);

unsigned puller_number(const struct puller *puller);

/* Fills in what is known of the peer's changes; strings are literals. Any thread. */
void puller_state(struct puller *puller, Replica__PeerState *out);

/* No change of the peer that was applied here has a greater version. Any thread. */
uint64_t puller_greatest(struct puller *puller);

#endif
