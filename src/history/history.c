/* See history.h. */
#include "history/history.h"

#include "base/check.h"
#include "base/condition.h"
#include "history/history_keep.h"
#include "history/look.h"
#include "os/thread.h"

#include <stdio.h>
#include <stdlib.h>

#define SECOND_US INT64_C(1000000)
#define SPAN_US   history_level_span_us(HISTORY_TEN_SECONDS)

enum { STEP_MEMORY = 16 << 20, COVERED_MOST_SECONDS = 60 };

struct history {
    struct history_options options;
    struct thread_stop stop;
    pthread_t thread;
    bool has_thread;
    /* The thread's: */
    struct history_look *before; /* NULL: none was taken yet */
    int64_t slot_us;             /* the span that it was taken in, by the versions' clock */
    struct history_keep keep;
    pthread_mutex_t lock; /* of what follows */
    char trouble[HISTORY_TROUBLE_SIZE];
    bool is_full; /* tables are left out */
};

/* --- whether it may --- */

/* Takes the status. */
static void set_trouble(struct history *history, status s)
{
    bool was_well, is_well = status_is_ok(s);
    pthread_mutex_lock(&history->lock);
    was_well = history->trouble[0] == '\0';
    snprintf(history->trouble, sizeof history->trouble, "%s", is_well ? "" : status_message(s));
    pthread_mutex_unlock(&history->lock);
    if (was_well && !is_well)
        log_warn(history->options.log, "metrics are not remembered",
                 LOG_STR("why", status_message(s)));
    if (!was_well && is_well)
        log_info(history->options.log, "metrics are remembered again");
    status_free(s);
}

void history_trouble(struct history *history, char out[HISTORY_TROUBLE_SIZE])
{
    pthread_mutex_lock(&history->lock);
    memcpy(out, history->trouble, HISTORY_TROUBLE_SIZE);
    pthread_mutex_unlock(&history->lock);
}

void history_table_trouble(struct history *history, char out[HISTORY_TROUBLE_SIZE])
{
    pthread_mutex_lock(&history->lock);
    memcpy(out, history->trouble, HISTORY_TROUBLE_SIZE);
    bool is_left_out = history->is_full && out[0] == '\0';
    pthread_mutex_unlock(&history->lock);
    if (is_left_out)
        snprintf(out, HISTORY_TROUBLE_SIZE,
                 "the metrics of %d other tables are remembered, and no more can be",
                 HISTORY_SUBJECTS_MOST - 1);
}

/* Of places for tables. */
static void tell_places(struct history *history)
{
    bool was_full, is_full = history->keep.full_us != 0;
    pthread_mutex_lock(&history->lock);
    was_full = history->is_full;
    history->is_full = is_full;
    pthread_mutex_unlock(&history->lock);
    if (is_full && !was_full)
        log_warn(history->options.log, "metrics of new tables are not remembered",
                 LOG_INT("others", HISTORY_SUBJECTS_MOST - 1));
    if (!is_full && was_full)
        log_info(history->options.log, "metrics of new tables are remembered again");
}

int64_t history_retention_us(const struct history *history)
{
    return history->options.retention_us;
}

static status check_room(const struct history *history, const struct history_look *now)
{
    double least = (double)history->options.disk_reserve_bytes + HISTORY_ROOM;
    double free_bytes = now->values[HISTORY_disk_free_bytes];
    return free_bytes >= least
               ? status_ok()
               : status_make(STATUS_RESOURCE_EXHAUSTED,
                             "%.0f MB are free on the disk, less than the reserve and %d MB",
                             free_bytes / 1e6, HISTORY_ROOM >> 20);
}

static status check_writes(const struct history *history)
{
    struct condition_view view;
    condition_look(cluster_condition(history->options.cluster), &view);
    return view.level != HEALTH_NO_WRITES
               ? status_ok()
               : status_make(STATUS_UNAVAILABLE, "the server takes no writes: %s",
                             view.reasons[0].text);
}

/* --- a point --- */

/* A table of which nothing is to be told has a point once an hour, for its size. */
static bool is_first_of_hour(int64_t from_us)
{
    return from_us % history_level_span_us(HISTORY_HOURS) == 0;
}

static status put_point(struct history *history, struct own_batch *batch, const char *subject,
                        const struct history_point *point)
{
    bool is_kept;
    TRY(history_keep_note(&history->keep, history->options.cluster, subject, point->from_us,
                          &is_kept));
    return is_kept ? history_batch_put(batch, HISTORY_TEN_SECONDS, subject, point) : status_ok();
}

static status put_tables(struct history *history, const struct history_look *now, int64_t from_us,
                         struct own_batch *batch)
{
    const struct looked_table *tables = now->tables.items;
    for (size_t i = 0; i < now->tables.count; i++) {
        struct history_point point;
        bool has_moved = history_look_table(now, history->before, &tables[i], from_us, &point);
        if (has_moved || is_first_of_hour(from_us))
            TRY(put_point(history, batch, tables[i].name, &point));
    }
    return status_ok();
}

static status fill(struct history *history, const struct history_look *now, int64_t from_us,
                   struct own_batch *batch)
{
    struct history_point point;
    TRY(history_look_point(now, history->before, from_us, batch->arena, &point));
    TRY(put_point(history, batch, HISTORY_SERVER_NAME, &point));
    return put_tables(history, now, from_us, batch);
}

static status write_points(struct history *history, const struct history_look *now, int64_t from_us)
{
    struct own_batch batch = {.arena = arena_create(STEP_MEMORY)};
    if (batch.arena == NULL)
        return status_out_of_memory();
    status s = fill(history, now, from_us, &batch);
    if (status_is_ok(s))
        s = history_batch_write(&batch, history->options.cluster);
    own_batch_drop(&batch);
    arena_destroy(batch.arena);
    return s;
}

static status remember(struct history *history, const struct history_look *now, int64_t slot_us)
{
    TRY(check_room(history, now));
    TRY(check_writes(history));
    return write_points(history, now, slot_us - SPAN_US);
}

/* What fails is done with the next point: it takes none away. */
static status tend(struct history *history, int64_t slot_us)
{
    const struct history_options *options = &history->options;
    return history_keep_run(&history->keep, options->cluster, options->retention_us, slot_us);
}

/* The next point is about the time since this look. */
static void begin_at(struct history *history, struct history_look *now)
{
    history_look_destroy(history->before);
    history->before = now;
}

static bool covers_too_much(const struct history *history, const struct history_look *now)
{
    return now->steady_us - history->before->steady_us > COVERED_MOST_SECONDS * SECOND_US;
}

/* Of the time since the look before, if there was one. */
static void take(struct history *history, struct history_look *now, int64_t slot_us)
{
    bool is_first = history->before == NULL;
    status s = is_first ? status_ok() : remember(history, now, slot_us);
    if (status_is_ok(s) || covers_too_much(history, now))
        begin_at(history, now);
    else
        history_look_destroy(now);
    if (status_is_ok(s) && !is_first)
        s = tend(history, slot_us);
    tell_places(history);
    set_trouble(history, s);
}

static void look(struct history *history, int64_t slot_us)
{
    const struct history_options *options = &history->options;
    struct history_look *now;
    options->measure(options->measured);
    status s = history_look_take(options->metrics, clock_steady_us(options->clock), &now);
    if (status_is_ok(s))
        take(history, now, slot_us);
    else
        set_trouble(history, s);
}

void history_step(struct history *history)
{
    int64_t now_us = cluster_version_us(history->options.cluster);
    int64_t slot_us = now_us - now_us % SPAN_US;
    if (history->options.retention_us == 0 || slot_us <= history->slot_us)
        return;
    history->slot_us = slot_us;
    look(history, slot_us);
}

/* --- the thread --- */

/* Until the span ends, by the versions' clock, which may go half as fast. */
static int64_t rest_us(const struct history *history)
{
    int64_t now_us = cluster_version_us(history->options.cluster);
    int64_t left_us = SPAN_US - now_us % SPAN_US;
    return left_us < SECOND_US / 100 ? SECOND_US / 100 : left_us;
}

static void *run(void *argument)
{
    struct history *history = argument;
    do
        history_step(history);
    while (thread_rest(&history->stop, rest_us(history)));
    return NULL;
}

/* A server that takes no writes starts all the same. */
static void forget(struct history *history)
{
    status s = history_store_remove(history->options.cluster);
    if (!status_is_ok(s))
        log_warn(history->options.log, "the metrics that were remembered are still there",
                 LOG_STR("why", status_message(s)));
    status_free(s);
}

static status start(struct history *history)
{
    if (history->options.retention_us == 0) {
        forget(history);
        return status_ok();
    }
    if (history->options.by_hand)
        return status_ok();
    TRY(thread_start(&history->thread, "history", run, history));
    history->has_thread = true;
    return status_ok();
}

status history_open(const struct history_options *options, struct history **out)
{
    struct history *history = calloc(1, sizeof *history);
    *out = NULL;
    if (history == NULL)
        return status_out_of_memory();
    history->options = *options;
    thread_stop_init(&history->stop);
    pthread_mutex_init(&history->lock, NULL);
    status s = start(history);
    if (status_is_ok(s))
        *out = history;
    else
        history_close(history);
    return s;
}

void history_close(struct history *history)
{
    if (history == NULL)
        return;
    thread_stop_now(&history->stop);
    if (history->has_thread)
        pthread_join(history->thread, NULL);
    history_look_destroy(history->before);
    history_keep_free(&history->keep);
    pthread_mutex_destroy(&history->lock);
    thread_stop_destroy(&history->stop);
    free(history);
}
