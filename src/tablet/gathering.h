/* Whether the commit thread waits for commits that are about to come, and how long.
 *
 * Who writes again as soon as he is answered finds, as a rule, the next batch under way, and waits
 * for the one behind it. So 64 clients come to be two groups of 32 which take turns: each pays a
 * sync for 32, and each waits for two syncs. If the thread waits for those whom it has just
 * answered, all go in one batch: half the syncs, and as long as the wait is less than a sync, each
 * is answered sooner, too.
 *
 * Invariants
 *  1. It waits only for as many as there were a moment ago, those answered and those that waited
 *     behind them; never where few clients write, nor if enough share the sync already.
 *  2. Never longer than half of what a sync usually takes, and 2 ms.
 *  3. A wait in vain, by clients that think or come at a pace of their own, is followed by batches
 *     without one: by 1, then 3, 7 and so on, up to 255.
 *
 * All of it under the commit queue's lock. */
#ifndef TRESTLE_TABLET_GATHERING_H
#define TRESTLE_TABLET_GATHERING_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Begins with zeros. */
struct gathering {
    size_t wanted;   /* commits that the thread waits for; 0: it is awake */
    size_t expected; /* commits, if all who were answered write again */
    int64_t sync_us; /* what a batch with a sync usually takes; 0: there was none */
    unsigned pause;  /* batches without a wait after the last that was in vain */
    unsigned left;   /* of these */
};

/* A batch was written, which took so long if it was synced, else 0; `answered` are about to hear of
 * it, while `waiting` wait behind it. */
void gathering_note_batch(struct gathering *gathering, int64_t sync_us, size_t answered,
                          size_t waiting);

/* How long to wait, at most, until `expected` commits wait; 0: not at all. Asked once for each
 * batch. */
int64_t gathering_patience_us(struct gathering *gathering, size_t waiting);

/* So many waited at the end of such a wait. */
void gathering_note_wait(struct gathering *gathering, size_t waiting);

/* Waits as these say, for `*waiting` to rise. Whoever adds to that under the lock signals `wake`,
 * of thread_init_steady_wake, when gathering_is_there says so. */
void gathering_wait(struct gathering *gathering, const size_t *waiting, pthread_cond_t *wake,
                    pthread_mutex_t *lock);

static inline bool gathering_is_there(const struct gathering *gathering, size_t waiting)
{
    return gathering->wanted != 0 && waiting >= gathering->wanted;
}

#endif
