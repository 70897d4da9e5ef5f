/* See clock_watch.h. */
#include "cluster/clock_watch.h"

#include "base/check.h"
#include "cluster/cluster_private.h"

#define SECOND_US INT64_C(1000000)

/* Less is what time servers do every day, and what a start may begin ahead by. */
static const int64_t worth_telling_us = 60 * SECOND_US;

static void tell_if_set(const struct clock_watch *watch, const struct log *log,
                        const struct clock_look *look)
{
    int64_t moved_us = (look->wall_us - watch->wall_us) - (look->steady_us - watch->steady_us);
    if (moved_us > worth_telling_us || moved_us < -worth_telling_us)
        log_warn(log, "the wall clock was set", LOG_INT("forward_seconds", moved_us / SECOND_US));
}

void clock_watch_look(struct clock_watch *watch, const struct log *log,
                      const struct clock_look *look)
{
    DCHECK(!watch->has_looked || look->steady_us >= watch->steady_us);
    if (watch->has_looked)
        tell_if_set(watch, log, look);
    watch->has_looked = true;
    watch->wall_us = look->wall_us;
    watch->steady_us = look->steady_us;
}

void clock_watch_run(struct cluster *cluster)
{
    struct clock *clock = cluster->options.clock;
    const struct clock_look look = {.wall_us = clock_wall_us(clock),
                                    .steady_us = clock_steady_us(clock)};
    clock_watch_look(&cluster->clock_watch, cluster->options.log, &look);
    for (size_t i = 0; i < cluster->shard_count; i++)
        clock_watch_note_lead(cluster->shards[i]);
}

void clock_watch_note_lead(struct shard *shard)
{
    int64_t lead_us = commit_clock_lead_us(shard->commits);
    if (lead_us > worth_telling_us)
        condition_enter(shard->condition, REASON_clock_ahead,
                        "server times are %lld minutes ahead of the wall clock",
                        (long long)(lead_us / (60 * SECOND_US)));
    else
        condition_leave(shard->condition, REASON_clock_ahead);
}
