/* Keeps the process within the setting `memory` when its parts together would pass it: what
 * base/sizing.h divides is what each part may take, but what requests do with their share is only
 * known when it is done.
 *
 *     from 15/16 on, or in the last 64 MB   calls for data are refused, until it is a sixteenth
 *                                           less; and as long as the store waits for more than
 *                                           there is
 *     from a sixteenth before that on       the cache of blocks is made smaller, by half at each
 *                                           look and to an eighth at most, and what the allocator
 *                                           keeps is given back, without waiting for its turn.
 *                                           Likewise when somebody waits for memory
 *                                           (server/large_work.h)
 *
 * What is under way may still take what it has begun to, for a twentieth of a second, and that is
 * not less with less memory: hence the 64 MB. The cache grows again when there is room for all of
 * it and the store has no large work.
 *
 * Of one thread, but for `is_short`, which any may read, and memory_guard_tend, which another may
 * call. */
#ifndef TRESTLE_SERVER_MEMORY_GUARD_H
#define TRESTLE_SERVER_MEMORY_GUARD_H

#include "base/log.h"
#include "base/metrics.h"
#include "os/allocator.h"
#include "server/large_work.h"

#include <stdatomic.h>

struct memory_guard {
    uint64_t limit_bytes; /* 0: none */
    struct clock *clock;
    const struct log *log;
    struct metrics *metrics;
    struct allocator_upkeep upkeep;
    atomic_bool is_short;
    /* Sets how much the cache of blocks may have; NULL: there is none. */
    void (*limit_cache)(void *context, uint64_t bytes);
    void *context;
    uint64_t cache_bytes;   /* that it has when there is room */
    uint64_t given_up;      /* of these, at present */
    int64_t press_us;       /* when memory may be had given back again, */
    int64_t press_pause_us; /* and how long after the last time that is */
    int64_t told_us;        /* when the log last told of it; 0: never */
    uint64_t peak_bytes;
};

/* Looks at what the process takes: twenty times a second if there is a limit, else once. */
void memory_guard_look(struct memory_guard *guard, const struct memory_wishes *wishes);

/* The same, of so many bytes. */
void memory_guard_judge(struct memory_guard *guard, uint64_t bytes,
                        const struct memory_wishes *wishes);

/* Gives back what has come free unasked: about once a second. */
void memory_guard_tend(struct memory_guard *guard);

#endif
