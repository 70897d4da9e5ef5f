/* What the engine tells of its views: see views.h. */
#include "views/views_private.h"

#include "base/metrics.h"
#include "cluster/view/view_feed.h"
#include "os/thread.h"

#include <stdio.h>
#include <stdlib.h>

const char *view_state_name(enum view_state state)
{
    static const char *const names[] = {[VIEW_POPULATING] = "populating",
                                        [VIEW_READY] = "ready",
                                        [VIEW_RECONCILING] = "reconciling",
                                        [VIEW_FAILED] = "failed"};
    return names[state];
}

static status not_found(const char *name)
{
    return status_make(STATUS_NOT_FOUND, "Not found: %s", name);
}

static struct view_progress progress_of(const struct view_entry *entry)
{
    const struct view_counts *counts = &entry->upkeep.counts;
    uint64_t before = atomic_load(&counts->next_size), all = atomic_load(&counts->source_size);
    struct view_progress progress = {.rows_done = atomic_load(&counts->rows_done), .share = 1};
    if (!atomic_load(&counts->was_ready) || atomic_load(&counts->has_whole_pass))
        progress.share = all == 0 || before >= all ? 0 : (double)before / (double)all;
    if (atomic_load(&counts->was_ready) && !atomic_load(&counts->has_whole_pass))
        progress.share = 1;
    progress.rows = progress.share > 0 ? (uint64_t)((double)progress.rows_done / progress.share)
                                       : progress.rows_done;
    if (progress.rows < progress.rows_done)
        progress.rows = progress.rows_done;
    return progress;
}

status views_find(struct views *views, const char *name, struct view_found *out)
{
    *out = (struct view_found){0};
    pthread_mutex_lock(&views->lock);
    struct view_entry *entry = views_entry(views, name);
    if (entry != NULL) {
        out->state = view_entry_state(entry);
        out->is_readable = atomic_load(&entry->upkeep.counts.was_ready);
        out->table = entry->table;
        if (out->table != NULL)
            table_retain(out->table);
        snprintf(out->words, sizeof out->words, "%s", entry->words);
    }
    pthread_mutex_unlock(&views->lock);
    return entry != NULL ? status_ok() : not_found(name);
}

/* --- a list --- */

/* Copies of what there is, so that nothing is asked of feeds with the lock held. */
struct look {
    struct view_status status;
    struct table *table;
    struct stream_position position;
    int64_t pass_since_us;
};

static void copy_counts(const struct view_entry *entry, struct look *look)
{
    const struct view_counts *counts = &entry->upkeep.counts;
    look->status.user_errors = atomic_load(&counts->user_errors);
    look->status.excluded_rows = atomic_load(&counts->excluded_rows);
    look->status.excluded_groups = atomic_load(&counts->excluded_groups);
    look->status.changes = atomic_load(&counts->changes);
    look->position.sequence = atomic_load(&counts->sequence);
    look->position.ordinal = atomic_load(&counts->ordinal);
    look->pass_since_us = atomic_load(&counts->pass_since_us);
}

static bool copy_entry(const struct view_entry *entry, struct arena *arena, struct look *look)
{
    const char *source = entry->source_name == NULL ? "" : entry->source_name;
    *look = (struct look){.table = entry->table};
    look->status = (struct view_status){.name = arena_string(arena, bytes_of(entry->name)),
                                        .source = arena_string(arena, bytes_of(source)),
                                        .words = arena_string(arena, bytes_of(entry->words)),
                                        .state = view_entry_state(entry),
                                        .is_readable = atomic_load(&entry->upkeep.counts.was_ready),
                                        .progress = progress_of(entry),
                                        .system_errors = entry->system_errors,
                                        .cpu_us = entry->cpu_us};
    copy_counts(entry, look);
    if (look->status.name == NULL || look->status.source == NULL || look->status.words == NULL)
        return false;
    if (look->table != NULL)
        table_retain(look->table);
    return true;
}

/* Those that there is memory for. */
static size_t copy_all(struct views *views, bytes prefix, struct arena *arena, struct look **out)
{
    size_t count = 0;
    pthread_mutex_lock(&views->lock);
    struct look *looks = arena_alloc(arena, views->count * sizeof *looks);
    for (size_t i = 0; looks != NULL && i < views->count; i++)
        if (bytes_start_with(bytes_of(views->entries[i]->name), prefix) &&
            copy_entry(views->entries[i], arena, &looks[count]))
            count++;
    pthread_mutex_unlock(&views->lock);
    *out = looks;
    return count;
}

/* When the oldest change was made that is not in the view; INT64_MAX: all are. What the log has
 * lost, or cannot say, may be as old as what comes first behind the position. */
static int64_t oldest_us(const struct look *look)
{
    struct table *source;
    int64_t first_us = INT64_MAX;
    status s = table_view_source(look->table, &source);
    if (status_is_ok(s)) {
        s = view_feed_first_us(source, look->position, &first_us);
        if (!status_is_ok(s))
            first_us = version_time_us(look->position.sequence);
        table_release(source);
    }
    status_free(s);
    return look->pass_since_us < first_us ? look->pass_since_us : first_us;
}

static void measure(struct views *views, struct look *look)
{
    struct view_status *status = &look->status;
    if (look->table == NULL)
        return;
    struct view_sizes sizes = view_sizes(look->table);
    status->bytes = sizes.rows;
    status->record_bytes = sizes.records;
    int64_t since_us = look->position.sequence == 0 ? INT64_MAX : oldest_us(look);
    int64_t now_us = cluster_version_us(views->options.cluster);
    if (since_us != INT64_MAX && since_us < now_us)
        status->lag_us = now_us - since_us;
}

static void release_looks(struct look *looks, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (looks[i].table != NULL)
            table_release(looks[i].table);
}

void views_visit(struct views *views, bytes prefix,
                 bool (*visit)(void *context, const struct view_status *status), void *context)
{
    struct arena *arena = arena_create(SIZE_MAX / 2);
    struct look *looks = NULL;
    size_t count = arena == NULL ? 0 : copy_all(views, prefix, arena, &looks);
    bool goes_on = true;
    for (size_t i = 0; i < count && goes_on; i++) {
        measure(views, &looks[i]);
        goes_on = visit(context, &looks[i].status);
    }
    release_looks(looks, count);
    arena_destroy(arena);
}

/* --- metrics --- */

enum told {
    TOLD_LAG,
    TOLD_USER_ERRORS,
    TOLD_SYSTEM_ERRORS,
    TOLD_CHANGES,
    TOLD_EXCLUDED,
    TOLD_BYTES,
    TOLD_RECORDS,
    TOLD,
};

struct telling {
    struct arena *arena;
    struct vector series[TOLD]; /* of struct metric_series */
    int64_t not_ready;
    int64_t lag_us;
    int64_t cpu_us;
    bool failed;
};

static void tell_series(struct telling *telling, enum told what, const char *name, uint64_t value)
{
    struct metric_series series = {.labels = {name}, .value = (int64_t)value};
    status s = vector_add(&telling->series[what], telling->arena, &series, sizeof series);
    telling->failed |= !status_is_ok(s);
    status_free(s);
}

static bool tell_view(void *context, const struct view_status *status)
{
    struct telling *telling = context;
    const char *name = arena_string(telling->arena, bytes_of(status->name));
    telling->failed |= name == NULL;
    if (name == NULL)
        return false;
    telling->not_ready += status->state != VIEW_READY;
    telling->cpu_us += status->cpu_us;
    if (status->lag_us > telling->lag_us)
        telling->lag_us = status->lag_us;
    tell_series(telling, TOLD_LAG, name, (uint64_t)status->lag_us);
    tell_series(telling, TOLD_USER_ERRORS, name, status->user_errors);
    tell_series(telling, TOLD_SYSTEM_ERRORS, name, status->system_errors);
    tell_series(telling, TOLD_CHANGES, name, status->changes);
    tell_series(telling, TOLD_EXCLUDED, name, status->excluded_rows);
    tell_series(telling, TOLD_BYTES, name, status->bytes);
    tell_series(telling, TOLD_RECORDS, name, status->record_bytes);
    return !telling->failed;
}

/* Without memory they stay as they were. */
static void set_metrics(struct metrics *metrics, const struct telling *telling)
{
    static const enum metric_family families[TOLD] = {
        [TOLD_LAG] = METRIC_BY_view_lag_seconds,
        [TOLD_USER_ERRORS] = METRIC_BY_view_user_errors_total,
        [TOLD_SYSTEM_ERRORS] = METRIC_BY_view_system_errors_total,
        [TOLD_CHANGES] = METRIC_BY_view_changes_total,
        [TOLD_EXCLUDED] = METRIC_BY_view_excluded_rows,
        [TOLD_BYTES] = METRIC_BY_view_bytes,
        [TOLD_RECORDS] = METRIC_BY_view_intermediate_bytes,
    };
    metrics_set(metrics, METRIC_views, (int64_t)telling->series[TOLD_LAG].count);
    metrics_set(metrics, METRIC_views_not_ready, telling->not_ready);
    metrics_set(metrics, METRIC_views_lag_seconds, telling->lag_us);
    metrics_set(metrics, METRIC_views_cpu_seconds_total, telling->cpu_us);
    for (size_t i = 0; i < TOLD; i++)
        status_ignore(metrics_replace(metrics, families[i], telling->series[i].items,
                                      telling->series[i].count));
}

void views_measure(struct views *views)
{
    struct telling telling = {.arena = arena_create(SIZE_MAX / 2)};
    if (telling.arena != NULL) {
        views_visit(views, bytes_make(NULL, 0), tell_view, &telling);
        if (!telling.failed)
            set_metrics(views->options.metrics, &telling);
    }
    arena_destroy(telling.arena);
}

/* --- for tests --- */

void views_hold(struct views *views, bool is_held)
{
    pthread_mutex_lock(&views->lock);
    views->is_held = is_held;
    views_hurry(views);
    pthread_mutex_unlock(&views->lock);
}

/* Whether the view has all that was in its source's feed up to then. */
struct goal {
    struct table *source;
    struct stream_position position;
};

static status goal_of(struct table *view, struct goal *out)
{
    TRY(table_view_source(view, &out->source));
    status s = view_feed_end(out->source, &out->position);
    if (!status_is_ok(s))
        table_release(out->source);
    return s;
}

static bool has_settled(const struct view_entry *entry, const struct goal *goal)
{
    const struct view_counts *counts = &entry->upkeep.counts;
    const struct stream_position at = {atomic_load(&counts->sequence),
                                       atomic_load(&counts->ordinal)};
    return atomic_load(&counts->was_ready) && atomic_load(&counts->pass_since_us) == INT64_MAX &&
           (stream_position_compare(at, goal->position) >= 0 ||
            !view_feed_may_have(goal->source, at));
}

/* With the lock held, which it gives up: until something has changed, or a moment has gone by. */
static void wait_for_change(struct views *views)
{
    enum { MOMENT_US = 10000 };
    const struct timespec until = thread_time_in(MOMENT_US);
    pthread_cond_clockwait(&views->changed, &views->lock, CLOCK_MONOTONIC, &until);
}

static void settle_one(struct views *views, const char *name, const struct goal *goal)
{
    struct view_pace pace = {0};
    if (views->options.by_hand)
        views_work(views, &pace);
    pthread_mutex_lock(&views->lock);
    const struct view_entry *entry = views_entry(views, name);
    if (!views->options.by_hand && entry != NULL && !has_settled(entry, goal)) {
        views_hurry(views);
        wait_for_change(views);
    }
    pthread_mutex_unlock(&views->lock);
}

/* With the lock held. */
static status look_if_settled(const struct views *views, const char *name, const struct goal *goal,
                              bool *is_over)
{
    const struct view_entry *entry = views_entry(views, name);
    *is_over = entry == NULL || views->is_stopping || entry->has_failed ||
               (goal->source != NULL && has_settled(entry, goal));
    if (entry == NULL || !views->options.by_hand || entry->failures == 0)
        return status_ok();
    *is_over = true;
    return status_make(STATUS_ABORTED, "%s", entry->words);
}

static status settle(struct views *views, const char *name, struct table *view)
{
    struct goal goal = {0};
    bool is_over = false;
    status s = view == NULL ? status_ok() : goal_of(view, &goal);
    while (status_is_ok(s) && !is_over) {
        settle_one(views, name, &goal);
        pthread_mutex_lock(&views->lock);
        s = look_if_settled(views, name, &goal, &is_over);
        const struct view_entry *entry = views_entry(views, name);
        bool is_open_now = view == NULL && entry != NULL && entry->table != NULL;
        pthread_mutex_unlock(&views->lock);
        if (is_open_now)
            break; /* it had no goal yet */
    }
    if (goal.source != NULL)
        table_release(goal.source);
    return s;
}

status views_settle(struct views *views)
{
    struct arena *arena = arena_create(SIZE_MAX / 2);
    struct look *looks = NULL;
    status s = arena == NULL ? status_out_of_memory() : status_ok();
    /* the first time those that are not open yet are opened */
    for (int time = 0; time < 2 && status_is_ok(s); time++) {
        size_t count = copy_all(views, bytes_make(NULL, 0), arena, &looks);
        for (size_t i = 0; i < count && status_is_ok(s); i++)
            s = settle(views, looks[i].status.name, looks[i].table);
        release_looks(looks, count);
    }
    arena_destroy(arena);
    return s;
}
