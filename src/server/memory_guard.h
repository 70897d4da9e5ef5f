/* Keeps the process within the setting `memory` when its parts together would pass it: what
 * base/sizing.h divides is what each part may take, but what requests do with their share is only
 * known when it is done.
 *
 *     from 7/8 of it on    what the allocator keeps is given back, without waiting for its turn
 *     from 15/16 on        calls for data are refused, until it is under 7/8 again; and as long as
 *                          the store waits for more than there is (server/large_work.h)
 *
 * Of one thread, but for `is_short`, which any may read. */
#ifndef TRESTLE_SERVER_MEMORY_GUARD_H
#define TRESTLE_SERVER_MEMORY_GUARD_H

#include "base/log.h"
#include "base/metrics.h"
#include "os/allocator.h"

#include <stdatomic.h>

struct memory_guard {
    uint64_t limit_bytes; /* 0: none */
    struct clock *clock;
    const struct log *log;
    struct metrics *metrics;
    struct allocator_care care;
    atomic_bool is_short;
    int64_t press_us;       /* when memory may be had given back again, */
    int64_t press_pause_us; /* and how long after the last time that is */
    int64_t told_us;        /* when the log last told of it; 0: never */
    uint64_t peak_bytes;
};

/* Looks at what the process takes: ten times a second if there is a limit, else once. `wanted`:
 * bytes that the store waits for. */
void memory_guard_look(struct memory_guard *guard, uint64_t wanted);

/* The same, of so many bytes. */
void memory_guard_judge(struct memory_guard *guard, uint64_t bytes, uint64_t wanted);

/* Gives back what has come free unasked: about once a second. */
void memory_guard_tend(struct memory_guard *guard);

#endif
