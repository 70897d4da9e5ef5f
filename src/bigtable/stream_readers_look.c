/* Who reads change streams: looking at them, and their metrics. See stream_readers.h. */
#include "bigtable/stream_readers.h"

#include "base/limits.h"
#include "base/metrics.h"
#include "cluster/stream/table_stream.h"

#include <stdlib.h>

#define SECOND_US INT64_C(1000000)

/* --- looking --- */

static status copy_bounds(const struct stream_reader *reader, struct arena *arena,
                          struct stream_reader_view *out)
{
    out->start = arena_copy(arena, reader->start);
    out->end = arena_copy(arena, reader->end);
    out->profile = arena_string(arena, bytes_of(reader->profile));
    bool is_whole = out->start.data != NULL && out->end.data != NULL && out->profile != NULL;
    return is_whole ? status_ok() : status_out_of_memory();
}

static status look_at(const struct stream_reader *reader, struct arena *arena,
                      struct stream_reader_view *out)
{
    *out = (struct stream_reader_view){.since_us = reader->since_us,
                                       .position_us = atomic_load(&reader->position_us),
                                       .has_all = atomic_load(&reader->has_all),
                                       .records = atomic_load(&reader->records)};
    TRY(copy_bounds(reader, arena, out));
    table_retain(reader->table);
    out->table = reader->table;
    return status_ok();
}

/* With the lock held. */
static status look_at_all(const struct stream_readers *readers, struct arena *arena,
                          struct stream_reader_list *out)
{
    out->all = arena_alloc(arena, (readers->count + 1) * sizeof *out->all);
    if (out->all == NULL)
        return status_out_of_memory();
    for (struct link *at = readers->readers.first; at != NULL; at = at->next) {
        TRY(look_at(LIST_ENTRY(at, struct stream_reader, link), arena, &out->all[out->count]));
        out->count++;
    }
    return status_ok();
}

/* Without the lock: the present is the commit queue's to say. */
static void hold_against_present(struct stream_reader_view *view)
{
    int64_t now_us = cluster_version_us(table_cluster(view->table));
    if (view->has_all || view->position_us > now_us)
        view->position_us = now_us;
    view->behind_us = now_us - view->position_us;
}

status stream_readers_look(struct stream_readers *readers, struct arena *arena,
                           struct stream_reader_list *out)
{
    *out = (struct stream_reader_list){0};
    pthread_mutex_lock(&readers->lock);
    status s = look_at_all(readers, arena, out);
    pthread_mutex_unlock(&readers->lock);
    for (size_t i = 0; i < out->count; i++)
        hold_against_present(&out->all[i]);
    return s;
}

void stream_readers_release(struct stream_reader_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        table_release(list->all[i].table);
    *list = (struct stream_reader_list){0};
}

/* --- metrics: tables --- */

/* Those who read one table. */
struct table_readers {
    struct table *table;
    int64_t count;
    int64_t behind_us; /* the slowest */
    int64_t left_us;   /* until the table's retention reaches it; 0: it has */
};

static int by_table(const void *a, const void *b)
{
    uint64_t one = table_id(((const struct stream_reader_view *)a)->table);
    uint64_t other = table_id(((const struct stream_reader_view *)b)->table);
    return (one > other) - (one < other);
}

static int by_lag(const void *a, const void *b)
{
    int64_t one = ((const struct table_readers *)a)->behind_us;
    int64_t other = ((const struct table_readers *)b)->behind_us;
    return (one < other) - (one > other); /* the slowest first */
}

static void note_left(struct table_readers *of)
{
    const struct stream_facts facts = table_stream_facts(of->table);
    int64_t left_us = facts.retention_us - of->behind_us;
    of->left_us = left_us > 0 ? left_us : 0;
}

/* Into `tables`, which has room for as many as there are readers; returns how many. */
static size_t sum_up(struct stream_reader_list *list, struct table_readers *tables)
{
    size_t count = 0;
    qsort(list->all, list->count, sizeof *list->all, by_table);
    for (size_t i = 0; i < list->count; i++) {
        const struct stream_reader_view *reader = &list->all[i];
        if (count == 0 || tables[count - 1].table != reader->table)
            tables[count++] = (struct table_readers){.table = reader->table};
        struct table_readers *of = &tables[count - 1];
        of->count++;
        of->behind_us = reader->behind_us > of->behind_us ? reader->behind_us : of->behind_us;
    }
    for (size_t i = 0; i < count; i++)
        note_left(&tables[i]);
    qsort(tables, count, sizeof *tables, by_lag);
    return count;
}

/* --- metrics: series --- */

enum told { TOLD_READERS, TOLD_LAG, TOLD_LEFT, TOLD_COUNT };

static const enum metric_family families[TOLD_COUNT] = {
    [TOLD_READERS] = METRIC_BY_table_change_stream_readers,
    [TOLD_LAG] = METRIC_BY_table_change_stream_lag_seconds,
    [TOLD_LEFT] = METRIC_BY_table_change_stream_left_seconds,
};

static int64_t number_of(const struct table_readers *of, enum told told)
{
    if (told == TOLD_READERS)
        return of->count;
    return (told == TOLD_LAG ? of->behind_us : of->left_us) / SECOND_US;
}

/* Of several tables the readers together, the greatest lag, the least that is left. */
static int64_t join(int64_t one, int64_t other, enum told told)
{
    if (told == TOLD_READERS)
        return one + other;
    return (one > other) == (told == TOLD_LAG) ? one : other;
}

static void tell(struct metrics *metrics, const struct table_readers *tables, size_t count,
                 enum told told)
{
    struct metric_series series[LIMIT_TABLE_METRICS + 1];
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        int64_t number = number_of(&tables[i], told);
        if (i > LIMIT_TABLE_METRICS)
            series[LIMIT_TABLE_METRICS].value =
                join(series[LIMIT_TABLE_METRICS].value, number, told);
        else
            series[used++] = (struct metric_series){
                .labels = {i < LIMIT_TABLE_METRICS ? table_name(tables[i].table) : "other"},
                .value = number};
    }
    status_ignore(metrics_replace(metrics, families[told], series, used));
}

static status measure(struct stream_readers *readers, struct metrics *metrics, struct arena *arena,
                      struct stream_reader_list *list)
{
    TRY(stream_readers_look(readers, arena, list));
    struct table_readers *tables = arena_alloc(arena, (list->count + 1) * sizeof *tables);
    if (tables == NULL)
        return status_out_of_memory();
    size_t count = sum_up(list, tables);
    metrics_set(metrics, METRIC_change_streams, (int64_t)list->count);
    metrics_set(metrics, METRIC_change_stream_lag_seconds, count == 0 ? 0 : tables[0].behind_us);
    for (unsigned told = 0; told < TOLD_COUNT; told++)
        tell(metrics, tables, count, told);
    return status_ok();
}

void stream_readers_measure(struct stream_readers *readers, struct metrics *metrics)
{
    struct arena *arena = arena_create(SIZE_MAX / 2);
    struct stream_reader_list list = {0};
    if (arena == NULL)
        return; /* what was last told stays */
    status_ignore(measure(readers, metrics, arena, &list));
    stream_readers_release(&list);
    arena_destroy(arena);
}
