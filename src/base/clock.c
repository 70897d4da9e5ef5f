/* See clock.h. */
#include "base/clock.h"

#include <time.h>

static int64_t read_us(clockid_t id)
{
    struct timespec now;
    clock_gettime(id, &now); /* cannot fail: both clocks exist on every Linux */
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static int64_t system_wall_us(struct clock *clock)
{
    (void)clock;
    return read_us(CLOCK_REALTIME);
}

static int64_t system_steady_us(struct clock *clock)
{
    (void)clock;
    return read_us(CLOCK_MONOTONIC);
}

struct clock *clock_system(void)
{
    static struct clock system = {.wall_us = system_wall_us, .steady_us = system_steady_us};
    return &system;
}

const char *clock_date(int64_t us, char text[CLOCK_DATE_SIZE])
{
    time_t seconds = (time_t)(us / 1000000);
    struct tm utc;
    if (gmtime_r(&seconds, &utc) == NULL ||
        strftime(text, CLOCK_DATE_SIZE, "%Y-%m-%dT%H:%M:%SZ", &utc) == 0)
        text[0] = '\0';
    return text;
}
