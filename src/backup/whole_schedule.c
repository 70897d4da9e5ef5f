/* See whole_schedule.h. */
#include "backup/whole_schedule.h"

#include "backup/whole_private.h"
#include "backup/whole_scope.h"

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

/* One of a later time than now is of a clock that was set back: nobody knows how old it is. */
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

/* --- learning --- */

static bool is_of(const struct whole_backup *backup, const char *server)
{
    return backup->is_scheduled && strcmp(backup->server, server) == 0 && !whole_is_part(backup);
}

static status find_newest(struct place *place, const char *server, struct arena *of_names,
                          struct arena *of_manifests, struct whole_backup *out)
{
    const char *const *names;
    size_t count;
    *out = (struct whole_backup){0};
    TRY(whole_names(place, of_names, &names, &count));
    for (size_t i = count; i-- > 0;) {
        arena_reset(of_manifests);
        status s = whole_read(place, names[i], of_manifests, out);
        if (status_is_ok(s) && is_of(out, server))
            return s;
        *out = (struct whole_backup){0};
        bool is_damaged = s.code == STATUS_DATA_LOSS || s.code == STATUS_FAILED_PRECONDITION;
        if (!status_is_ok(s) && !is_damaged)
            return s;
        status_free(s);
    }
    return status_ok();
}

status whole_schedule_learn(struct whole_schedule *schedule, struct place *place,
                            const char *server, int64_t *end_us)
{
    struct whole_backup newest;
    struct arena *of_names = arena_create(WHOLE_MEMORY);
    struct arena *of_manifests = arena_create(WHOLE_MEMORY);
    status s = status_out_of_memory();
    if (of_names != NULL && of_manifests != NULL) {
        status_free(s);
        s = find_newest(place, server, of_names, of_manifests, &newest);
    }
    if (s.code == STATUS_NOT_FOUND) { /* a place that has had none yet */
        status_free(s);
        s = status_ok();
    }
    *end_us = 0;
    if (status_is_ok(s)) {
        schedule->is_known = true;
        schedule->newest_us = newest.instant_us;
        *end_us = newest.end_us;
    }
    arena_destroy(of_names);
    arena_destroy(of_manifests);
    return s;
}
