/* See whole_schedule.h. */
#include "backup/whole_schedule.h"

static const int64_t HOUR_US = INT64_C(3600) * 1000000;

/* Between attempts that fail, and before a late one is told. */
static int64_t patience_us(const struct whole_schedule *schedule)
{
    return schedule->period_us < HOUR_US ? schedule->period_us : HOUR_US;
}

static int64_t until(int64_t due_us, int64_t now_us)
{
    return due_us > now_us ? due_us - now_us : 0;
}

/* A backup of a later time than now is of a clock that was set back: its age is unknown. */
int64_t whole_schedule_wait_us(const struct whole_schedule *schedule, int64_t wall_us,
                               int64_t steady_us)
{
    if (schedule->last_try != STATUS_OK)
        return until(schedule->tried_us + patience_us(schedule), steady_us);
    if (!schedule->is_known || schedule->newest_us == 0 || schedule->newest_us > wall_us)
        return 0;
    return until(schedule->newest_us + schedule->period_us, wall_us);
}

bool whole_schedule_is_overdue(const struct whole_schedule *schedule, int64_t wall_us)
{
    if (schedule->last_try != STATUS_OK && schedule->last_try != STATUS_CANCELLED)
        return true;
    return schedule->newest_us != 0 &&
           wall_us - schedule->newest_us >= schedule->period_us + patience_us(schedule);
}

void whole_schedule_note(struct whole_schedule *schedule, enum status_code code, int64_t instant_us,
                         int64_t steady_us)
{
    schedule->last_try = code;
    schedule->tried_us = steady_us;
    if (code == STATUS_OK)
        schedule->newest_us = instant_us;
}
