/* Tells the operator what the wall clock does: when it is set, and when the versions' clock is far
 * ahead of it (docs/internals/clocks.md). */
#ifndef TRESTLE_CLUSTER_CLOCK_WATCH_H
#define TRESTLE_CLUSTER_CLOCK_WATCH_H

#include "base/log.h"

/* What was seen at the last look. All zeroes: none was taken. */
struct clock_watch {
    bool has_looked;
    int64_t wall_us;
    int64_t steady_us;
    bool is_ahead;   /* and has been told so */
    int64_t told_us; /* clock_steady_us */
};

/* One moment by all of them; `lead_us` as commit_clock_lead_us gives it. */
struct clock_look {
    int64_t wall_us;
    int64_t steady_us;
    int64_t lead_us;
};

/* Logs what has changed since the last look, and a lead that stays once an hour. */
void clock_watch_look(struct clock_watch *watch, const struct log *log,
                      const struct clock_look *look);

struct cluster;

/* Takes a look, for maintenance. */
void clock_watch_run(struct cluster *cluster);

#endif
