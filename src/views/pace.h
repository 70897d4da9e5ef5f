/* How much of a processor a thread of upkeep takes: what is idle, and at least a tenth.
 *
 * After each piece the thread says how much processor time it took, and is told how long to rest.
 * Its share grows while the process leaves processors idle, and halves while it does not: so
 * requests that come get what they need within some tens of milliseconds. Until then, and where
 * other processes want the processors, the kernel prefers them: the thread gives way
 * (thread_give_way). */
#ifndef TRESTLE_VIEWS_PACE_H
#define TRESTLE_VIEWS_PACE_H

#include <stdbool.h>
#include <stdint.h>

/* Of a moment. */
struct view_pace_sample {
    int64_t steady_us;
    int64_t process_us; /* processor time of the whole process so far */
    int64_t thread_us;  /* of the thread that is paced */
};

/* All zeroes is one that has not begun. */
struct view_pace {
    double share; /* of one processor */
    struct view_pace_sample window;
    struct view_pace_sample last;
};

#define VIEW_PACE_LEAST 0.1

/* How long to rest now, microseconds. `is_pressed`: requests wait for more than a processor (the
 * commit queue fills). */
int64_t view_pace_rest_us(struct view_pace *pace, const struct view_pace_sample *now,
                          unsigned processors, bool is_pressed);

/* The rest is over, or there was nothing to do: what comes now is measured from here. */
void view_pace_begin(struct view_pace *pace, const struct view_pace_sample *now);

#endif
