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
};

/* One moment, by both clocks. */
struct clock_look {
    int64_t wall_us;
    int64_t steady_us;
};

/* Logs whether the wall clock was set since the last look. */
void clock_watch_look(struct clock_watch *watch, const struct log *log,
                      const struct clock_look *look);

struct cluster;
struct shard;

/* Takes a look, for maintenance. */
void clock_watch_run(struct cluster *cluster);

/* Notes whether the versions' clock is so far ahead that the operator should know: a part of the
 * server's condition. Any thread. */
void clock_watch_note_lead(struct shard *shard);

#endif
