/* Moments: the one order of a database's commits.
 *
 * A commit draws a moment, later than all that were drawn, and enters the commit queue in the order
 * of moments; the queue applies what enters in order. So there is always a moment of which all
 * commits up to it are applied, and none after it: the present. Who reads as of the present sees
 * every commit that was acknowledged before, each whole.
 *
 *     draw ─► (its rows are packed) ─► wait for its turn ─► enter the queue ─► applied
 *
 * Any thread. */
#ifndef TRESTLE_DATASTORE_MOMENTS_H
#define TRESTLE_DATASTORE_MOMENTS_H

#include "base/list.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct ds_moments {
    pthread_mutex_t lock;
    pthread_cond_t turned; /* the next may enter the queue */
    struct list drawn;     /* of struct ds_moment, by time: those that are not applied */
    int64_t last_us;       /* the latest that was drawn, or shown as the present */
};

/* Of one commit, its owner's from ds_moment_draw to ds_moment_end. */
struct ds_moment {
    struct link link;
    int64_t at_us; /* microseconds since 1970 */
    /* Private. */
    bool has_entered;
    bool is_done;
    bool is_past; /* it is off the list */
};

void ds_moments_init(struct ds_moments *moments);
void ds_moments_free(struct ds_moments *moments); /* nothing is drawn */

/* `now_us`: cluster_now_us. */
void ds_moment_draw(struct ds_moments *moments, int64_t now_us, struct ds_moment *moment);

/* Waits until all that were drawn before have entered the queue, or have ended. Those do not wait
 * for anything but the disk. */
void ds_moment_wait(struct ds_moments *moments, struct ds_moment *moment);
/* It has: the next may. */
void ds_moment_entered(struct ds_moments *moments, struct ds_moment *moment);

/* It is applied, or will never be. Waits until all before it have ended: what is acknowledged after
 * this is in the present. They wait for nothing but the disk. */
void ds_moment_end(struct ds_moments *moments, struct ds_moment *moment);

/* The present: see above. Moments that are drawn from now on are later. */
int64_t ds_moments_present(struct ds_moments *moments, int64_t now_us);

/* Waits until all commits up to the moment are applied. Those that are drawn from now on are later.
 */
void ds_moments_reach(struct ds_moments *moments, int64_t at_us);

/* Waits until all that were drawn before this one have ended: what it reads now is what it comes
 * after. */
void ds_moment_wait_for_earlier(struct ds_moments *moments, struct ds_moment *moment);

#endif
