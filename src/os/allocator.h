/* The C library's allocator: what it keeps of what was freed, and how that goes back to the system.
 *
 * It keeps freed memory for later allocations, in an arena for each few threads, and gives back by
 * itself only what lies at an arena's end. Ten thousand connections that have gone leave hundreds
 * of megabytes so, between what is still in use. */
#ifndef TRESTLE_OS_ALLOCATOR_H
#define TRESTLE_OS_ALLOCATOR_H

#include "base/clock.h"

#include <stdbool.h>
#include <stdint.h>

/* Fixes what the allocator would adapt: from which size on memory is mapped on its own, and goes
 * back when it is freed, and how much may lie unused at an arena's end. Once, before threads are
 * started; it is the whole process's. */
void allocator_set_up(void);

struct allocator_use {
    uint64_t resident_bytes; /* memory of the process that is no file's; 0 if /proc does not tell */
    uint64_t used_bytes;     /* allocated, and not freed */
};

uint64_t allocator_resident(void); /* `resident_bytes` alone */

/* Holds up threads that allocate for as long as it takes to walk over what is free. */
struct allocator_use allocator_use(void);

/* Gives back whole pages that are free; holds up threads likewise. */
void allocator_give_back(void);

/* --- unasked --- */

/* Gives back what is free when that is much. It looks every few seconds, and less often where a
 * look takes long or gains little: it takes a hundredth of the time at most. All zeroes is one
 * that has not looked yet. Of one thread. */
struct allocator_upkeep {
    int64_t next_us; /* of the steady clock: when it looks next */
    int64_t pause_us;
    uint64_t given_back_bytes; /* so far */
};

/* To be called about once a second. */
void allocator_tend(struct allocator_upkeep *upkeep, struct clock *clock);

/* Whether so much is free that it is worth giving back. */
bool allocator_has_idle(const struct allocator_use *use);

/* Time from a look to the next, after one that took so much processor time: longer than the last
 * pause if it gained little. */
int64_t allocator_pause_us(int64_t pause_us, bool is_worth_it, int64_t took_us);

#endif
