/* A clock: the source of time. Passed as an argument, so that a test can turn the hands. */
#ifndef TRESTLE_BASE_CLOCK_H
#define TRESTLE_BASE_CLOCK_H

#include <stdint.h>

struct clock {
    /* Microseconds since 1970-01-01 UTC. May jump in both directions when an operator sets it. */
    int64_t (*wall_us)(struct clock *clock);
    /* Microseconds since some fixed moment. Never goes back. For deadlines and durations. */
    int64_t (*steady_us)(struct clock *clock);
};

static inline int64_t clock_wall_us(struct clock *clock)
{
    return clock->wall_us(clock);
}

static inline int64_t clock_steady_us(struct clock *clock)
{
    return clock->steady_us(clock);
}

/* The system's clocks; has no state, lives forever, any thread. */
struct clock *clock_system(void);

/* A moment since 1970 as people read it, in UTC: 2026-11-21T22:53:43Z. Returns `text`, which is
 * empty for years of more than four digits. */
enum { CLOCK_DATE_SIZE = sizeof "2026-11-21T22:53:43Z" };
const char *clock_date(int64_t us, char text[CLOCK_DATE_SIZE]);

#endif
