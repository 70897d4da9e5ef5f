/* Observers of the commit queue: each sees every commit, in the order of the queue, before it is
 * acknowledged, and may put what follows from it into the same batch. A change log hangs here; a
 * snapshot's feed or an index can.
 *
 * Invariants
 *  1. Of a commit that changes anything `see` is called once, after those of all commits before it,
 *     and only if the commit is in the batch. Barriers and rewrites (commit.h) change nothing, and
 *     are not seen.
 *  2. What `see` puts into the batch is written with the commit, or neither is: a kill between the
 *     two cannot be.
 *  3. Observers are asked in the order of the list. What one cannot have memory for is refused as a
 *     whole: those that had prepared for it are told to take that back.
 *
 * All of it is called on the commit thread: it must be quick, and must not block. A function that
 * is NULL is not asked for. */
#ifndef TRESTLE_TABLET_COMMIT_OBSERVER_H
#define TRESTLE_TABLET_COMMIT_OBSERVER_H

#include "tablet/commit.h"

struct commit_observer {
    void *context;
    /* A batch is going to be filled. True: something was put into it, which is to be written even
     * if nothing else is. */
    bool (*begin)(void *context, struct store_batch *batch);
    /* The commit is about to be added; its change, and those of `others`, have its version.
     * `records`: what its `extend` writes, NULL for one that changes rows, and for an internal one.
     * Claims what `see` needs. False: there is no memory for it, and nothing has changed. */
    bool (*prepare)(void *context, const struct commit *commit, const struct store_batch *records);
    /* Takes `prepare` back, which was called last: another observer has no memory. */
    void (*cancel)(void *context, const struct commit *commit);
    /* The commit is in the batch, or its records are going to be, behind what this puts there. */
    void (*see)(void *context, const struct commit *commit, const struct store_batch *records,
                struct store_batch *batch);
    /* Nothing more comes into the batch. */
    void (*end)(void *context, struct store_batch *batch);
    /* The batch is in the store, or is not. */
    void (*written)(void *context, bool is_written);
    /* The commit, one of rows, has been applied; its owner does not know yet. */
    void (*applied)(void *context, const struct commit *commit);
};

#endif
