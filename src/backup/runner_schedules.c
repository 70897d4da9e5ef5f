/* Backups that the server makes by itself: which are due, what is told of them. See schedules.h for
 * when. */
#include "backup/runner_private.h"

#include "base/condition.h"
#include "cluster/checkpoint.h"

/* One that was made by hand may be newer than the schedule's. */
static void tell_newest(struct metrics *metrics, int64_t seconds)
{
    enum metric newest = METRIC_whole_backup_newest_timestamp_seconds;
    if (metrics != NULL && seconds > metrics_value(metrics, newest))
        metrics_set(metrics, newest, seconds);
}

static status learn_from(struct whole_runner *runner, struct place *place)
{
    char identity[STORE_IDENTITY_SIZE];
    const struct whole_scheduled *first = &runner->schedules.all[0];
    TRY(cluster_identity(runner->options.cluster, identity));
    TRY(whole_schedules_learn(&runner->schedules, place, identity));
    if (first->scope[0] == '\0' && first->end_us > 0)
        tell_newest(runner->options.metrics, first->end_us / SECOND_US);
    return status_ok();
}

/* Schedules that cannot be learnt count as an attempt that has failed. */
static void learn(struct whole_runner *runner)
{
    struct place *place;
    status s = runner_open_place(runner, runner->scheduled_place, &place);
    if (status_is_ok(s)) {
        s = learn_from(runner, place);
        place_close(place);
    }
    if (!status_is_ok(s)) {
        whole_schedules_give_up(&runner->schedules, s, clock_steady_us(runner->work.clock));
        metrics_add(runner->options.metrics, METRIC_whole_backup_failures_total, 1);
        log_warn(runner->options.log, "a whole backup has failed",
                 LOG_STR("place", runner->scheduled_place),
                 LOG_STR("code", status_code_name(s.code)), LOG_STR("cause", status_message(s)));
    }
    status_free(s);
}

static void begin_scheduled(struct whole_runner *runner, size_t index)
{
    struct whole_run run;
    const struct whole_wish wish = {
        .name = "", .from = "", .to = "", .scope = runner->schedules.all[index].scope};
    pthread_mutex_lock(&runner->lock);
    if (!runner->is_busy && !runner->is_stopping) {
        runner_add_run(runner, runner->scheduled_place, true, &wish, &run);
        runner->scheduled = index;
    }
    pthread_mutex_unlock(&runner->lock);
}

/* Tells of one overdue schedule or several: the condition has one reason for all, which names them.
 */
static void tell_overdue(struct whole_runner *runner, int64_t now_us)
{
    struct condition *condition = cluster_condition(runner->options.cluster);
    struct buffer words = {0};
    if (whole_schedules_tell_overdue(&runner->schedules, runner->scheduled_place, now_us,
                                     CONDITION_TEXT_SIZE - 1, &words))
        condition_enter(condition, REASON_whole_backup_overdue, "%.*s", (int)words.size,
                        (const char *)words.data);
    else
        condition_leave(condition, REASON_whole_backup_overdue);
    buffer_free(&words);
}

static void tell_family(struct whole_runner *runner, enum metric_family family,
                        int64_t (*value)(const struct whole_schedule_view *view))
{
    struct metric_series series[WHOLE_SCHEDULES_MOST];
    size_t count = runner->schedules.count;
    for (size_t i = 0; i < count; i++) {
        const char *scope = runner->schedules.all[i].scope;
        series[i] = (struct metric_series){.labels = {scope[0] == '\0' ? "all" : scope},
                                           .value = value(&runner->views[i])};
    }
    if (runner->options.metrics != NULL)
        status_ignore(metrics_replace(runner->options.metrics, family, series, count));
}

static int64_t newest_seconds(const struct whole_schedule_view *view)
{
    return view->of.end_us / SECOND_US;
}

static int64_t failures_of(const struct whole_schedule_view *view)
{
    return (int64_t)view->of.failures;
}

static int64_t is_overdue(const struct whole_schedule_view *view)
{
    return view->is_overdue;
}

/* This thread alone writes the views. */
void runner_tell_views(struct whole_runner *runner, int64_t wall_us, int64_t steady_us)
{
    pthread_mutex_lock(&runner->lock);
    for (size_t i = 0; i < runner->schedules.count; i++) {
        const struct whole_scheduled *of = &runner->schedules.all[i];
        runner->views[i] = (struct whole_schedule_view){
            .of = *of,
            .next_us = wall_us + whole_schedule_wait_us(&of->schedule, wall_us, steady_us),
            .is_overdue = whole_schedule_is_overdue(&of->schedule, wall_us)};
    }
    pthread_mutex_unlock(&runner->lock);
    tell_family(runner, METRIC_BY_scheduled_backup_newest_timestamp_seconds, newest_seconds);
    tell_family(runner, METRIC_BY_scheduled_backup_failures_total, failures_of);
    tell_family(runner, METRIC_BY_scheduled_backup_overdue, is_overdue);
}

int64_t runner_attend_schedules(struct whole_runner *runner)
{
    struct clock *clock = runner->work.clock;
    struct whole_schedules *schedules = &runner->schedules;
    size_t index;
    if (schedules->count == 0)
        return RUNNER_WAIT_MOST_US;
    int64_t now_us = clock_wall_us(clock), steady_us = clock_steady_us(clock);
    int64_t wait_us = whole_schedules_wait_us(schedules, now_us, steady_us, &index);
    if (wait_us == 0 && !schedules->all[index].schedule.is_known)
        learn(runner);
    else if (wait_us == 0)
        begin_scheduled(runner, index);
    tell_overdue(runner, now_us);
    runner_tell_views(runner, now_us, steady_us);
    return wait_us < RUNNER_WAIT_MOST_US ? wait_us : RUNNER_WAIT_MOST_US;
}
