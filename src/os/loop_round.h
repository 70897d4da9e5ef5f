/* Something that each of several loops does once, on its own thread, for a thread that waits.
 *
 * A loop may be stuck, and the waiting thread must not be: so it may leave, and the object that
 * they work on lives until the last loop has done its part. */
#ifndef TRESTLE_OS_LOOP_ROUND_H
#define TRESTLE_OS_LOOP_ROUND_H

#include "os/loop.h"

#include <pthread.h>
#include <stdatomic.h>

struct loop_part;

/* A member of the object that it works on. */
struct loop_round {
    /* set by its maker */
    void (*run)(struct loop_round *round, size_t part); /* on that loop's thread */
    void (*destroy)(struct loop_round *round);          /* frees the object; any thread */
    /* private */
    pthread_mutex_t lock;
    pthread_cond_t has_answered;
    size_t answered;
    size_t count;
    atomic_size_t references; /* loops that have not, and the waiting thread */
    struct loop_part *parts;
};

/* Asks the loops: part N is for the loop at N. On failure (RESOURCE_EXHAUSTED) none has been asked,
 * and the object is still its maker's. */
status loop_round_begin(struct loop_round *round, struct loop *const *loops, size_t count);

/* Waits until all have, or so long. The number of those that have. */
size_t loop_round_wait(struct loop_round *round, int64_t most_us);

/* Whether that part is done: what it has made may then be read. */
bool loop_round_is_done(struct loop_round *round, size_t part);

/* Instead of touching it any more; after loop_round_begin. */
void loop_round_release(struct loop_round *round);

#endif
