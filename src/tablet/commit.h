/* The commit queue: where a change becomes durable. One queue and one thread per store.
 *
 *     commit_submit ──► waiting ──► one batch, one store_write ──► acknowledged, in order
 *
 * Invariants
 *  1. Commit versions rise in queue order: under the queue's lock a change gets its version and its
 *     place together. What is submitted later has a greater version and is never durable earlier.
 *  2. `done` is called after store_write has returned OK for the batch that holds the change, or
 *     with why not. No change is acknowledged after the store was fenced.
 *  3. All versions that were ever acknowledged are below a ceiling that is itself durable (written
 * in the batch that needs it); after a restart versions begin above the ceiling, so a clock set
 *     back never makes a new write lose to an old cell.
 *  4. The queue is bounded in bytes: beyond it commit_submit refuses with RESOURCE_EXHAUSTED and
 *     RetryInfo. */
#ifndef TRESTLE_TABLET_COMMIT_H
#define TRESTLE_TABLET_COMMIT_H

#include "base/clock.h"
#include "os/loop.h"
#include "row/fragment.h"
#include "store/store.h"

struct commit_queue;

/* Why a commit's owner is told: on its own loop if it named one, else on the commit thread, where
 * it must be quick and must not block. */
struct commit {
    struct link link;
    struct keyspace *keyspace;
    bytes row_key;
    uint64_t row_hash; /* of table and row key: see row_locks.h */
    /* The change of one row; NULL: this commit only marks a place (a barrier). */
    struct packed_change *change;
    /* Anything else that goes into the same batch, after the change; may be NULL. Called on the
     * commit thread. */
    void (*extend)(struct commit *commit, struct store_batch *batch);
    struct loop *loop;
    struct task done;
    uint64_t version; /* set by commit_submit */
    status result;    /* set before `done` runs; the owner frees it */
};

struct commit_options {
    struct store *store;
    struct keyspace *catalog; /* keeps the version ceiling */
    struct clock *clock;
    enum store_durability durability;
    size_t queue_limit_bytes;
    /* Asked before each batch with something in it: not OK refuses the whole batch (disk reserve).
     */
    status (*admit)(void *context);
    void *admit_context;
};

status commit_queue_create(const struct commit_options *options, struct commit_queue **out);
/* Commits what waits, then ends the thread. */
void commit_queue_destroy(struct commit_queue *queue);

/* Takes the commit, which must stay until `done`. On failure it was not taken and `done` is not
 * called. Any thread. */
status commit_submit(struct commit_queue *queue, struct commit *commit);

/* For work on pool threads: submits and waits. */
status commit_and_wait(struct commit_queue *queue, struct commit *commit);

/* The clock behind versions: microseconds in the upper 52 bits, a counter in the lower 12. */
enum { VERSION_COUNTER_BITS = 12 };

/* The wall clock, but never behind a version already given: cell timestamps that the server sets
 * come from here, so that they, too, do not go back with the clock. */
int64_t commit_now_us(struct commit_queue *queue);

/* The newest version whose commit has been applied to the store. */
uint64_t commit_applied_version(struct commit_queue *queue);

#endif
