/* Clocks that a test turns, from any thread. */
#ifndef TRESTLE_BASE_TESTING_TESTING_CLOCK_H
#define TRESTLE_BASE_TESTING_TESTING_CLOCK_H

#include "base/clock.h"

/* Both hands are one: time passes only when the test says so. `{.clock = TURNED_CLOCK}` begins one
 * at 0. */
struct turned_clock {
    struct clock clock;
    _Atomic int64_t now_us;
};

#define TURNED_CLOCK                                                                               \
    {                                                                                              \
        .wall_us = turned_clock_us, .steady_us = turned_clock_us                                   \
    }

static inline int64_t turned_clock_us(struct clock *clock)
{
    return ((struct turned_clock *)(void *)clock)->now_us;
}

/* The system's clocks, but that each may be ahead or, below 0, behind. `{.clock = AHEAD_CLOCK}`
 * begins with none. */
struct ahead_clock {
    struct clock clock;
    _Atomic int64_t wall_ahead_us;
    _Atomic int64_t steady_ahead_us;
};

#define AHEAD_CLOCK                                                                                \
    {                                                                                              \
        .wall_us = ahead_clock_wall_us, .steady_us = ahead_clock_steady_us                         \
    }

static inline int64_t ahead_clock_wall_us(struct clock *clock)
{
    return clock_wall_us(clock_system()) + ((struct ahead_clock *)(void *)clock)->wall_ahead_us;
}

static inline int64_t ahead_clock_steady_us(struct clock *clock)
{
    return clock_steady_us(clock_system()) + ((struct ahead_clock *)(void *)clock)->steady_ahead_us;
}

/* The wall clock is what the test sets; the other hand is the system's, and may be put forward. */
struct set_clock {
    struct clock clock;
    _Atomic int64_t wall_us;
    _Atomic int64_t ahead_us;
};

#define SET_CLOCK                                                                                  \
    {                                                                                              \
        .wall_us = set_clock_wall_us, .steady_us = set_clock_steady_us                             \
    }

static inline int64_t set_clock_wall_us(struct clock *clock)
{
    return ((struct set_clock *)(void *)clock)->wall_us;
}

static inline int64_t set_clock_steady_us(struct clock *clock)
{
    return clock_steady_us(clock_system()) + ((struct set_clock *)(void *)clock)->ahead_us;
}

/* Both hands are what the test sets, each for itself. */
struct hands_clock {
    struct clock clock;
    _Atomic int64_t wall_us;
    _Atomic int64_t steady_us;
};

#define HANDS_CLOCK                                                                                \
    {                                                                                              \
        .wall_us = hands_clock_wall_us, .steady_us = hands_clock_steady_us                         \
    }

static inline int64_t hands_clock_wall_us(struct clock *clock)
{
    return ((struct hands_clock *)(void *)clock)->wall_us;
}

static inline int64_t hands_clock_steady_us(struct clock *clock)
{
    return ((struct hands_clock *)(void *)clock)->steady_us;
}

#endif
