/* See traffic.h. */
#include "cluster/traffic.h"

#include "base/check.h"
#include "base/limits.h"
#include "cluster/cluster_private.h"
#include "cluster/index.h"
#include "cluster/live_size.h"
#include "cluster/stream/table_stream.h"

#include <stdlib.h>

#define SECOND_US INT64_C(1000000)
#define HOUR_US   (3600 * SECOND_US)

/* --- counting --- */

static uint64_t now(const atomic_ullong *number)
{
    return atomic_load_explicit(number, memory_order_relaxed);
}

void traffic_add_tablet(struct traffic_counts *to, const struct tablet *tablet)
{
    to->numbers[TRAFFIC_ROWS_READ] += now(&tablet->rows_read);
    to->numbers[TRAFFIC_ROWS_WRITTEN] += now(&tablet->rows_written);
    to->numbers[TRAFFIC_READ_BYTES] += now(&tablet->bytes_read);
    to->numbers[TRAFFIC_WRITTEN_BYTES] += now(&tablet->bytes_written);
}

static struct traffic_counts counts_of(struct table *table)
{
    pthread_mutex_lock(&table->map_lock);
    struct traffic_counts counts = table->traffic.gone;
    for (size_t i = 0; i < table->tablet_count; i++)
        traffic_add_tablet(&counts, table->tablets[i]);
    pthread_mutex_unlock(&table->map_lock);
    return counts;
}

/* Adds what has come since the last look, under the name that the table has now. */
static void look(struct cluster *cluster, struct table *table)
{
    struct table_traffic *traffic = &table->traffic;
    const struct traffic_counts counts = counts_of(table);
    struct traffic_counts *to = traffic->is_named ? &traffic->own : &cluster->traffic.others;
    for (unsigned i = 0; i < TRAFFIC_NUMBERS; i++) {
        uint64_t more = counts.numbers[i] - traffic->seen.numbers[i];
        to->numbers[i] += more;
        traffic->lately += i == TRAFFIC_READ_BYTES || i == TRAFFIC_WRITTEN_BYTES ? more : 0;
    }
    traffic->seen = counts;
}

/* --- names --- */

static uint64_t weight(const struct table_traffic *table)
{
    return table->bytes + table->lately;
}

uint64_t traffic_fade(uint64_t lately, int64_t passed_us)
{
    if (passed_us >= HOUR_US)
        return 0;
    return lately - (uint64_t)((double)lately * (double)passed_us / (double)HOUR_US);
}

/* The lightest of those with a name, or the heaviest of those without; NULL: there is none. */
static struct table_traffic *extreme(struct table_traffic *const *tables, size_t count,
                                     bool is_named)
{
    struct table_traffic *found = NULL;
    for (size_t i = 0; i < count; i++) {
        if (tables[i]->is_named != is_named)
            continue;
        uint64_t own = weight(tables[i]), best = found == NULL ? 0 : weight(found);
        if (found == NULL || (is_named ? own < best : own > best))
            found = tables[i];
    }
    return found;
}

static bool exchange(struct table_traffic *const *tables, size_t count)
{
    struct table_traffic *lightest = extreme(tables, count, true);
    struct table_traffic *heaviest = extreme(tables, count, false);
    if (lightest == NULL || heaviest == NULL ||
        weight(heaviest) / 2 <= weight(lightest) + TRAFFIC_MARGIN_BYTES / 2)
        return false;
    lightest->is_named = false;
    heaviest->is_named = true;
    return true;
}

static size_t count_named(struct table_traffic *const *tables, size_t count)
{
    size_t named = 0;
    for (size_t i = 0; i < count; i++)
        named += tables[i]->is_named;
    return named;
}

/* Each exchange makes the lightest heavier, so there is an end. */
void traffic_choose(struct table_traffic *const *tables, size_t count, size_t most)
{
    for (size_t named = count_named(tables, count); named < most && named < count; named++)
        extreme(tables, count, false)->is_named = true;
    while (exchange(tables, count))
        ;
}

/* --- all tables --- */

struct tables {
    struct table **items;
    struct table_traffic **traffic;
    size_t count;
};

static void release(struct tables *tables)
{
    for (size_t i = 0; i < tables->count; i++)
        table_release(tables->items[i]);
    free(tables->items);
    free(tables->traffic);
}

/* Leaves the tables of users. */
static void leave_out_own(struct tables *tables, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        DCHECK(tables->count <= i);
        if (index_is_users(tables->items[i]))
            tables->items[tables->count++] = tables->items[i];
        else
            table_release(tables->items[i]);
    }
}

static status hold(struct cluster *cluster, struct tables *tables)
{
    size_t count;
    *tables = (struct tables){0};
    TRY(index_find_all(cluster, bytes_make(NULL, 0), &tables->items, &count));
    leave_out_own(tables, count);
    DCHECK(tables->count <= count);
    tables->traffic = malloc((tables->count + 1) * sizeof(struct table_traffic *));
    if (tables->traffic == NULL) {
        release(tables);
        return status_out_of_memory();
    }
    for (size_t i = 0; i < tables->count; i++)
        tables->traffic[i] = &tables->items[i]->traffic;
    return status_ok();
}

/* With the lock held. New ones get names first: what they have counted is told under these. */
static void look_at_all(struct cluster *cluster, const struct tables *tables)
{
    DCHECK(check_is_held(&cluster->traffic.lock));
    traffic_choose(tables->traffic, tables->count, LIMIT_TABLE_METRICS);
    for (size_t i = 0; i < tables->count; i++)
        look(cluster, tables->items[i]);
}

/* --- maintenance --- */

/* Whether sizes are due: one costs some microseconds, and may read an index from the disk. */
static bool is_due(const struct cluster_traffic *traffic, size_t tables, int64_t now_us)
{
    int64_t every_us = 10 * SECOND_US + (int64_t)tables * SECOND_US / 100;
    return traffic->measured_us == 0 || now_us - traffic->measured_us >= every_us;
}

static void measure_one(struct cluster *cluster, struct table *table, int64_t passed_us)
{
    DCHECK(passed_us >= 0);
    struct cluster_traffic *traffic = &cluster->traffic;
    uint64_t bytes = live_table_size(table); /* without the lock */
    uint64_t log_bytes = table_stream_log_bytes(table);
    pthread_mutex_lock(&traffic->lock);
    table->traffic.bytes = bytes;
    table->traffic.log_bytes = log_bytes;
    table->traffic.lately = traffic_fade(table->traffic.lately, passed_us);
    pthread_mutex_unlock(&traffic->lock);
}

static void measure_sizes(struct cluster *cluster, const struct tables *tables, int64_t now_us)
{
    struct cluster_traffic *traffic = &cluster->traffic;
    int64_t passed_us = traffic->measured_us == 0 ? 0 : now_us - traffic->measured_us;
    for (size_t i = 0; i < tables->count && !maintenance_is_stopping(cluster->maintenance); i++)
        measure_one(cluster, tables->items[i], passed_us);
    traffic->measured_us = now_us;
}

void traffic_run(struct cluster *cluster)
{
    struct tables tables;
    struct cluster_traffic *traffic = &cluster->traffic;
    int64_t now_us = clock_steady_us(cluster->options.clock);
    status s = hold(cluster, &tables);
    if (!status_is_ok(s)) { /* the next round will do */
        status_ignore(s);
        return;
    }
    if (is_due(traffic, tables.count, now_us))
        measure_sizes(cluster, &tables, now_us);
    pthread_mutex_lock(&traffic->lock);
    look_at_all(cluster, &tables);
    traffic_choose(tables.traffic, tables.count, LIMIT_TABLE_METRICS);
    pthread_mutex_unlock(&traffic->lock);
    release(&tables);
}

/* --- metrics --- */

struct telling {
    struct metrics *metrics;
    struct metric_series series[LIMIT_TABLE_METRICS + 1];
    size_t count;
};

static void tell(struct telling *telling, enum metric_family family, uint64_t others)
{
    telling->series[telling->count++] =
        (struct metric_series){.labels = {"other"}, .value = (int64_t)others};
    status_ignore(metrics_replace(telling->metrics, family, telling->series, telling->count));
    telling->count = 0;
}

static void add(struct telling *telling, const struct table *table, uint64_t value)
{
    CHECK(telling->count < LIMIT_TABLE_METRICS);
    telling->series[telling->count++] =
        (struct metric_series){.labels = {table->name}, .value = (int64_t)value};
}

/* Tables without a stream have no series. */
static void tell_log_sizes(struct telling *telling, const struct tables *tables)
{
    uint64_t others = 0;
    bool has_any = false;
    for (size_t i = 0; i < tables->count; i++) {
        if (!table_has_stream(tables->items[i]))
            continue;
        has_any = true;
        if (tables->traffic[i]->is_named)
            add(telling, tables->items[i], tables->traffic[i]->log_bytes);
        else
            others += tables->traffic[i]->log_bytes;
    }
    if (has_any)
        tell(telling, METRIC_BY_table_change_log_bytes, others);
    else
        status_ignore(metrics_replace(telling->metrics, METRIC_BY_table_change_log_bytes, NULL, 0));
}

static void tell_sizes(struct telling *telling, const struct tables *tables)
{
    uint64_t others = 0;
    for (size_t i = 0; i < tables->count; i++) {
        if (tables->traffic[i]->is_named)
            add(telling, tables->items[i], tables->traffic[i]->bytes);
        else
            others += tables->traffic[i]->bytes;
    }
    tell(telling, METRIC_BY_table_bytes, others);
}

static void tell_counts(struct telling *telling, const struct tables *tables,
                        const struct traffic_counts *others)
{
    static const enum metric_family families[TRAFFIC_NUMBERS] = {
        [TRAFFIC_ROWS_READ] = METRIC_BY_table_rows_read_total,
        [TRAFFIC_ROWS_WRITTEN] = METRIC_BY_table_rows_written_total,
        [TRAFFIC_READ_BYTES] = METRIC_BY_table_read_bytes_total,
        [TRAFFIC_WRITTEN_BYTES] = METRIC_BY_table_written_bytes_total,
    };
    for (unsigned number = 0; number < TRAFFIC_NUMBERS; number++) {
        for (size_t i = 0; i < tables->count; i++)
            if (tables->traffic[i]->is_named)
                add(telling, tables->items[i], tables->traffic[i]->own.numbers[number]);
        tell(telling, families[number], others->numbers[number]);
    }
}

/* Two that look at once tell one after the other: what a counter shows never falls. */
void traffic_measure(struct cluster *cluster)
{
    struct tables tables;
    struct telling telling = {.metrics = cluster->options.metrics};
    status s = hold(cluster, &tables);
    if (!status_is_ok(s)) { /* what was last told stays */
        status_ignore(s);
        return;
    }
    pthread_mutex_lock(&cluster->traffic.lock);
    look_at_all(cluster, &tables);
    tell_sizes(&telling, &tables);
    tell_log_sizes(&telling, &tables);
    tell_counts(&telling, &tables, &cluster->traffic.others);
    pthread_mutex_unlock(&cluster->traffic.lock);
    release(&tables);
}
