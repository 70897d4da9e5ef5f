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
    struct metric_observed *latency; /* from a change's commit to here; may be NULL */
    unsigned number;                 /* the peer's */
    /* Called when the peer has given up what was to come next: before all of it is looked for
     * elsewhere (replication.h). May block. */
    status (*lose)(void *context, unsigned number);
    void *context;
    bool is_held; /* at first: puller_release lets it begin */
};

/* Begins; what the options point to outlives it. */
status puller_start(const struct puller_options *options, struct puller **out);
/* Ends it, and waits for that. NULL is fine. */
void puller_stop(struct puller *puller);

/* Ends what it has under way, waits for that, and lets it begin nothing; and lets it go on, from
 * where it is recorded then. Not both at once. */
void puller_hold(struct puller *puller);
void puller_release(struct puller *puller);

unsigned puller_number(const struct puller *puller);

/* How often its changes began to wait for each reason, since it was started. Any thread. */
void puller_parks(struct puller *puller, uint64_t out[PARK_REASONS]);

/* Fills in what is known of the peer's changes; strings are literals. Any thread. */
void puller_state(struct puller *puller, Replica__PeerState *out);

/* No change of the peer that was applied here has a greater version. Any thread. */
uint64_t puller_greatest(struct puller *puller);

#endif
