/* When a server makes whole backups of itself, or of a part of it: one each period, of which the
 * newest are kept.
 *
 *     due       the newest is as old as the period, by the wall clock, or is of a time to come, or
 *               there is none
 *     failed    is tried again after an hour, or a period, by the steady clock
 *     overdue   the last attempt has failed, or the newest is an hour, or a period, late
 *
 * The newest is what the place has, so a restart neither forgets nor repeats one. Pure; one thread
 * at a time. All schedules of a server: whole_schedules.h. */
#ifndef TRESTLE_BACKUP_WHOLE_SCHEDULE_H
#define TRESTLE_BACKUP_WHOLE_SCHEDULE_H

#include "backup/whole.h"

struct whole_schedule {
    int64_t period_us; /* 0: nothing is made */
    uint64_t keep;     /* how many of the scheduled ones stay; 0: all */
    /* Its state. All zeroes at first. */
    bool is_known;             /* `newest_us` was learnt */
    int64_t newest_us;         /* instant of the newest that is there; 0: none is */
    int64_t tried_us;          /* when the last attempt ended, by the steady clock */
    enum status_code last_try; /* how; OK before the first */
};

/* How long until the next attempt; 0: now. */
int64_t whole_schedule_wait_us(const struct whole_schedule *schedule, int64_t wall_us,
                               int64_t steady_us);

bool whole_schedule_is_overdue(const struct whole_schedule *schedule, int64_t wall_us);

/* An attempt has ended; `instant_us` is the backup's if it is OK. */
void whole_schedule_note(struct whole_schedule *schedule, enum status_code code, int64_t instant_us,
                         int64_t steady_us);

#endif
