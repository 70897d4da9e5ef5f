/* Moments: the one order of a database's commits.
 *
 * A commit draws a moment, later than all that were drawn, and enters the commit queue in the order
 * of moments; the queue applies what enters in order. So there is always a moment of which all
 * commits up to it are applied, and none after it: the present. A reader as of the present sees
 * every commit that was acknowledged before, each whole.
 *
 *     draw ─► (its rows are packed) ─► ready ─► its turn: enter ─► applied ─► past
 *
 * No thread waits for its turn: one that makes a moment ready whose turn it is enters it, and those
 * behind it that are ready. A moment is past when all before it are, too: only then its commit is
 * acknowledged. Its owner waits for that, or is called.
 *
 * Any thread. */
#ifndef TRESTLE_DATASTORE_COMMIT_SEQUENCER_H
#define TRESTLE_DATASTORE_COMMIT_SEQUENCER_H

#include "base/list.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct ds_sequencer {
    pthread_mutex_t lock;
    pthread_cond_t passed; /* some are past */
    struct list drawn;     /* of struct ds_turn, by time: those that are not past */
    struct link *next;     /* of those the first that has not entered; NULL: all have */
    bool is_entering;      /* a thread is just entering it */
    int64_t last_us;       /* the latest that was drawn, or shown as the present */
};

/* The moment of one commit, its owner's from ds_sequencer_draw until it is past. */
struct ds_turn {
    struct link link;
    int64_t at_us; /* microseconds since 1970 */
    /* Set by the owner before it is ready. `enter` puts the commit into the queue; it is called by
     * any thread that makes one ready, or gives one up, one after the other, and may block for what
     * does not wait for moments. If it fails it calls ds_sequencer_applied. */
    void (*enter)(struct ds_turn *turn);
    /* Called when it is past, on any thread, maybe the commit thread: quick, and without blocking.
     * The moment may be gone when it returns. NULL: the owner calls ds_sequencer_end. */
    void (*past)(struct ds_turn *turn);
    /* Private. */
    bool is_ready;
    bool has_entered;
    bool is_done;
    bool is_past; /* it is off the list */
};

void ds_sequencer_init(struct ds_sequencer *sequencer);
void ds_sequencer_free(struct ds_sequencer *sequencer); /* nothing is drawn */

/* `now_us`: cluster_version_us. */
void ds_sequencer_draw(struct ds_sequencer *sequencer, int64_t now_us, struct ds_turn *turn);

/* Makes the moment ready: its rows are packed. The owner does nothing more with it until it is
 * past: it may be gone. */
void ds_sequencer_ready(struct ds_sequencer *sequencer, struct ds_turn *turn);

/* Instead of the last: it will not enter. */
void ds_sequencer_give_up(struct ds_sequencer *sequencer, struct ds_turn *turn);

/* The queue has applied it, or failed to, or has not taken it. Does not block. */
void ds_sequencer_applied(struct ds_sequencer *sequencer, struct ds_turn *turn);

/* For owners that wait: gives it up if it is not ready, and waits until it is past. Commits that
 * are acknowledged after this are in the present. */
void ds_sequencer_end(struct ds_sequencer *sequencer, struct ds_turn *turn);

/* The present: see above. Moments that are drawn from now on are later. */
int64_t ds_sequencer_read_timestamp(struct ds_sequencer *sequencer, int64_t now_us);

/* Waits until all commits up to the moment are applied. Those that are drawn from now on are later.
 */
void ds_sequencer_wait_until(struct ds_sequencer *sequencer, int64_t at_us);

/* Waits until all that were drawn before this one are past: what it reads now is what it comes
 * after. */
void ds_sequencer_wait_for_earlier(struct ds_sequencer *sequencer, const struct ds_turn *turn);

#endif
