/* How fast backups go: see struct pace. */
#include "cluster/backup/backup_private.h"

#include "os/thread.h"

struct pace pace_start(const struct backups *backups, struct backup_work *work, bool counts)
{
    struct clock *clock = cluster_clock(backups->cluster);
    return (struct pace){.work = work,
                         .clock = clock,
                         .bytes_per_second = backups->bytes_per_second,
                         .start_us = clock_steady_us(clock),
                         .counts = counts};
}

/* How long the work is ahead of its rate. */
static int64_t ahead_us(const struct pace *pace)
{
    if (pace->bytes_per_second == 0)
        return 0;
    double due_us = (double)pace->bytes / (double)pace->bytes_per_second * 1e6;
    return (int64_t)due_us - (clock_steady_us(pace->clock) - pace->start_us);
}

static bool is_cancelled(void *context)
{
    struct backup_work *work = context;
    return work->goes_on != NULL && !work->goes_on(work);
}

bool pace_go_on(void *context, uint64_t bytes)
{
    struct pace *pace = context;
    pace->bytes += bytes;
    if (pace->counts)
        pace->work->bytes_done += bytes;
    int64_t ahead = ahead_us(pace);
    return !(ahead > 0 ? thread_wait_for(is_cancelled, pace->work, ahead)
                       : is_cancelled(pace->work));
}
