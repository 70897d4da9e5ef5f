/* See heat.h. Looks are maintenance's alone. */
#include "cluster/heat/heat.h"

#include "cluster/cluster_private.h"
#include "cluster/heat/heat_allot.h"
#include "cluster/heat/heat_hot.h"
#include "cluster/index.h"
#include "os/process.h"
#include "os/thread.h"

#include <stdlib.h>

#define KEEP_US      (INT64_C(24) * 3600 * 1000000)
#define LONG_LOOK_US (INT64_C(15) * 1000000) /* between two looks at most */

enum { LOOKS_A_WINDOW = 4 }; /* at least */

struct heat {
    int64_t began_us; /* the window, by the steady clock */
    _Atomic int64_t began_wall_us;
    int64_t looked_us; /* the last look, or the window's beginning */
    int64_t looked_wall_us;
    int64_t cpu_us;     /* what the process had taken at the last look */
    bool has_caught_up; /* with what was kept before the start */
    struct hot_list hot;
};

/* --- life --- */

static void note_kept_hot(void *context, const struct hot_tablet *hot)
{
    hot_list_put(context, hot);
}

status heat_create(struct cluster *cluster, struct heat **out)
{
    struct heat *heat = *out = calloc(1, sizeof *heat);
    if (heat == NULL)
        return status_out_of_memory();
    hot_list_init(&heat->hot);
    heat->began_us = heat->looked_us = clock_steady_us(cluster->options.clock);
    heat->began_wall_us = heat->looked_wall_us = clock_wall_us(cluster->options.clock);
    heat->cpu_us = process_usage().cpu_us;
    return heat_store_hot(cluster, note_kept_hot, &heat->hot);
}

void heat_destroy(struct heat *heat)
{
    if (heat == NULL)
        return;
    hot_list_free(&heat->hot);
    free(heat);
}

/* --- counting --- */

bool heat_counts_table(const struct cluster *cluster, const char *name)
{
    return cluster->options.heat && !bytes_start_with(bytes_of(name), bytes_of(CLUSTER_OWN_TABLES));
}

/* The first request of a table makes its counts. NULL without memory. */
static struct heat_counts *make_counts(struct table *table)
{
    struct heat_counts *counts = heat_counts_create(), *others = NULL;
    if (counts == NULL || atomic_compare_exchange_strong(&table->heat.counts, &others, counts))
        return counts;
    heat_counts_destroy(counts);
    return others;
}

static struct heat_counts *counts_of(struct table *table)
{
    if (!table->heat.is_counted)
        return NULL;
    struct heat_counts *counts = atomic_load_explicit(&table->heat.counts, memory_order_acquire);
    return counts != NULL ? counts : make_counts(table);
}

struct heat_mark heat_begin(struct table *table)
{
    struct heat_counts *counts = counts_of(table);
    struct heat_mark mark = {.weight = counts == NULL ? 0 : heat_counts_choose(counts)};
    if (mark.weight > 0)
        mark.began_us = clock_steady_us(table->cluster->options.clock);
    return mark;
}

static void end(struct table *table, struct heat_mark mark, bool is_write, bytes row_key,
                uint64_t bytes)
{
    struct heat_counts *counts = mark.weight == 0 ? NULL : counts_of(table);
    if (counts == NULL)
        return;
    int64_t us = clock_steady_us(table->cluster->options.clock) - mark.began_us;
    heat_counts_add(counts, &(struct heat_event){.key = row_key,
                                                 .is_write = is_write,
                                                 .weight = mark.weight,
                                                 .rows = 1,
                                                 .bytes = bytes,
                                                 .us = us > 0 ? (uint64_t)us : 1,
                                                 .largest_row = is_write ? 0 : bytes});
}

void heat_end_read(struct table *table, struct heat_mark mark, bytes row_key, uint64_t bytes)
{
    end(table, mark, false, row_key, bytes);
}

void heat_end_write(struct table *table, struct heat_mark mark, bytes row_key, uint64_t bytes)
{
    end(table, mark, true, row_key, bytes);
}

void heat_note_passed(struct table *table, bytes row_key, const struct heat_passed *passed)
{
    struct heat_counts *counts = counts_of(table);
    if (counts != NULL)
        heat_counts_add(counts, &(struct heat_event){.key = row_key,
                                                     .weight = 1,
                                                     .rows = passed->rows,
                                                     .bytes = passed->bytes,
                                                     .largest_row = passed->largest_row});
}

int64_t heat_window_begin_us(const struct cluster *cluster)
{
    return atomic_load(&cluster->heat->began_wall_us);
}

int64_t heat_unwritten_us(const struct table *table)
{
    return heat_table_unwritten_us(table);
}

/* --- all tables --- */

struct tables {
    struct table **items;
    size_t count;
};

/* Holds all tables except the one that heat is kept in. */
static status hold_tables(struct cluster *cluster, struct tables *tables)
{
    size_t count, kept = 0;
    TRY(index_find_all(cluster, bytes_make(NULL, 0), &tables->items, &count));
    for (size_t i = 0; i < count; i++) {
        if (index_is_users(tables->items[i]))
            tables->items[kept++] = tables->items[i];
        else
            table_release(tables->items[i]);
    }
    tables->count = kept;
    return status_ok();
}

static void release_tables(struct tables *tables)
{
    for (size_t i = 0; i < tables->count; i++)
        table_release(tables->items[i]);
    free(tables->items);
}

static void report(const struct cluster *cluster, status s, const char *what)
{
    if (!status_is_ok(s))
        log_warn(cluster->options.log, what, LOG_STR("cause", status_message(s)));
    status_free(s);
}

/* --- a look --- */

/* Once in a quarter of a window, a quarter of a minute at most, and when the window ends. */
struct look {
    struct cluster *cluster;
    int64_t from_us; /* since 1970 */
    int64_t until_us;
    int64_t begins_us; /* since the window began, by the steady clock */
    int64_t ends_us;
    bool ends_window;
    bool is_whole;             /* and not cut short by a stop */
    double percent;            /* of all processors, that the process took */
    uint64_t rows;             /* that all tablets served */
    struct heat_record record; /* of the table that is looked at */
    struct buffer hot;         /* struct hot_tablet; their keys are in the batch's arena */
    struct own_batch batch;
};

static double percent_of(const struct look *look, uint64_t rows)
{
    return look->rows == 0 ? 0 : look->percent * (double)rows / (double)look->rows;
}

static void count_rows(struct look *look, struct table *table, struct tablet *tablet)
{
    uint64_t rows = atomic_load_explicit(&tablet->rows_read, memory_order_relaxed) +
                    atomic_load_explicit(&tablet->rows_written, memory_order_relaxed);
    tablet->heat.rows = rows - tablet->heat.rows_before;
    tablet->heat.rows_before = rows;
    table->heat.rows += tablet->heat.rows;
    look->rows += tablet->heat.rows;
}

/* The hot tablet is written with the rest of the look, and told when that is done. Without memory
 * it goes unnoticed. */
static void note_hot(struct look *look, struct hot_tablet *hot)
{
    hot->start = arena_copy(look->batch.arena, hot->start);
    hot->end = arena_copy(look->batch.arena, hot->end);
    if (hot->start.data == NULL || hot->end.data == NULL)
        return;
    buffer_append(&look->hot, hot, sizeof *hot);
    report(look->cluster, heat_batch_put_hot(&look->batch, hot), "a hot tablet is not kept");
}

/* Tells once of a tablet that several looks in a row found hot in one window. */
static void tell_of(struct look *look, const struct table *table, struct tablet *tablet,
                    double percent)
{
    struct tablet_heat *heat = &tablet->heat;
    int64_t took_us = look->ends_us - look->begins_us;
    if (heat->hot_id == 0) {
        heat->hot_id = hot_list_new_id(&look->cluster->heat->hot);
        heat->hot_from_us = look->from_us;
        heat->hot_for_us = 0;
        heat->hot_percent = 0;
    }
    heat->hot_percent = heat_mean(heat->hot_percent, heat->hot_for_us, percent, took_us);
    heat->hot_for_us += took_us;
    struct hot_tablet hot = {.id = heat->hot_id,
                             .table = table->name,
                             .start = tablet->start,
                             .end = tablet->end,
                             .from_us = heat->hot_from_us,
                             .until_us = look->until_us,
                             .cpu_percent = heat->hot_percent};
    const struct heat_counts *counts = atomic_load(&table->heat.counts);
    if (counts != NULL)
        heat_record_narrow(&look->record, heat_counts_ranges(counts), &hot.start, &hot.end);
    note_hot(look, &hot);
}

static void note_if_hot(struct look *look, struct table *table, struct tablet *tablet)
{
    double percent = percent_of(look, tablet->heat.rows);
    bool is_hot = percent >= HEAT_LEAST_PERCENT;
    if (is_hot)
        tell_of(look, table, tablet, percent);
    if (!is_hot || look->ends_window)
        tablet->heat.hot_id = 0;
}

static status for_tablets_of(struct table *table, struct look *look,
                             void (*visit)(struct look *, struct table *, struct tablet *))
{
    struct tablet **tablets;
    size_t count;
    TRY(table_tablets(table, &tablets, &count));
    for (size_t i = 0; i < count; i++) {
        visit(look, table, tablets[i]);
        tablet_release(tablets[i]);
    }
    free(tablets);
    return status_ok();
}

static status keep_window(struct table *table, struct look *look)
{
    struct heat_record record;
    TRY(heat_table_take(table, &record));
    if (record.count == 0)
        return status_ok();
    record.from_us = heat_window_begin_us(look->cluster);
    record.until_us = look->until_us;
    heat_table_kept(table, record.from_us);
    return heat_batch_put(&look->batch, table->id, HEAT_WINDOWS, &record);
}

static status look_at(struct table *table, struct look *look)
{
    heat_table_note_cpu(table, percent_of(look, table->heat.rows), look->begins_us, look->ends_us);
    TRY(heat_table_take_recent(table, look->batch.arena, &look->record));
    if (look->is_whole)
        TRY(for_tablets_of(table, look, note_if_hot));
    return look->ends_window ? keep_window(table, look) : status_ok();
}

/* What is told has been kept, if it could be; what could not is known until the end of the
 * process. */
static status write_and_tell(struct look *look)
{
    const struct hot_tablet *hot = (const void *)look->hot.data;
    status s = heat_batch_write(&look->batch, look->cluster);
    for (size_t i = 0; i < look->hot.size / sizeof *hot; i++)
        hot_list_put(&look->cluster->heat->hot, &hot[i]);
    return s;
}

static status look_around(const struct tables *tables, struct look *look)
{
    for (size_t i = 0; i < tables->count; i++) {
        tables->items[i]->heat.rows = 0;
        TRY(for_tablets_of(tables->items[i], look, count_rows));
    }
    for (size_t i = 0; i < tables->count; i++)
        TRY(look_at(tables->items[i], look));
    return write_and_tell(look);
}

/* Lets levels decay from fine to coarse, since each is made of what was kept of the one before. */
static status let_decay(const struct tables *tables, struct look *look)
{
    for (enum heat_level level = HEAT_TEN_MINUTES; level < HEAT_LEVELS; level++) {
        for (size_t i = 0; i < tables->count; i++)
            TRY(heat_table_decay(tables->items[i], level, look->until_us, &look->batch));
        TRY(heat_batch_write(&look->batch, look->cluster));
    }
    return status_ok();
}

static status catch_up(struct cluster *cluster, const struct tables *tables, int64_t now_us)
{
    for (size_t i = 0; i < tables->count && !cluster->heat->has_caught_up; i++)
        TRY(heat_table_catch_up(tables->items[i], now_us));
    cluster->heat->has_caught_up = true;
    return status_ok();
}

static status keep_usage(const struct tables *tables, struct look *look)
{
    TRY(usage_store_sweep(look->cluster, &look->batch));
    if (!look->ends_window)
        return status_ok();
    for (size_t i = 0; i < tables->count; i++)
        TRY(usage_keep(tables->items[i]));
    return usage_store_write(tables->items, tables->count, &look->batch);
}

/* Keeps the window; a little later if writes are refused for a while: the window goes on. */
static void carry_out(const struct tables *tables, struct look *look)
{
    enum { LOOK_MEMORY = 512 << 20 };
    look->batch.arena = arena_create(LOOK_MEMORY);
    status s = look->batch.arena == NULL ? status_out_of_memory() : look_around(tables, look);
    look->ends_window &= status_is_ok(s);
    if (look->ends_window)
        s = let_decay(tables, look);
    if (status_is_ok(s))
        s = keep_usage(tables, look);
    buffer_free(&look->hot);
    own_batch_drop(&look->batch);
    arena_destroy(look->batch.arena);
    report(look->cluster, s, "what is hot is not kept for now");
}

static void begin_look(struct heat *heat, const struct look *look, int64_t now_us, int64_t cpu_us)
{
    heat->looked_us = now_us;
    heat->looked_wall_us = look->until_us;
    heat->cpu_us = cpu_us;
    if (!look->ends_window)
        return;
    heat->began_us = now_us;
    heat->began_wall_us = look->until_us;
}

/* Whether the window ended with it, which it is to. */
static bool take_look(struct cluster *cluster, const struct tables *tables, int64_t now_us,
                      bool ends_window, bool is_whole)
{
    struct heat *heat = cluster->heat;
    int64_t cpu_us = process_usage().cpu_us;
    double could_us = (double)(now_us - heat->looked_us) * thread_processors();
    struct look look = {.cluster = cluster,
                        .from_us = heat->looked_wall_us,
                        .until_us = clock_wall_us(cluster->options.clock),
                        .begins_us = heat->looked_us - heat->began_us,
                        .ends_us = now_us - heat->began_us,
                        .ends_window = ends_window,
                        .is_whole = is_whole,
                        .percent =
                            could_us > 0 ? 100 * (double)(cpu_us - heat->cpu_us) / could_us : 0};
    hot_list_forget(&heat->hot, look.until_us - KEEP_US);
    report(cluster, catch_up(cluster, tables, look.until_us), "kept heat may decay too late");
    carry_out(tables, &look);
    begin_look(heat, &look, now_us, cpu_us);
    return look.ends_window;
}

static int64_t look_every_us(const struct cluster *cluster)
{
    int64_t part_us = (cluster->options.heat_window_us + LOOKS_A_WINDOW - 1) / LOOKS_A_WINDOW;
    return part_us < LONG_LOOK_US ? part_us : LONG_LOOK_US;
}

void heat_run(struct cluster *cluster)
{
    struct tables tables;
    const struct heat *heat = cluster->heat;
    int64_t now_us = clock_steady_us(cluster->options.clock);
    bool is_over = now_us - heat->began_us >= cluster->options.heat_window_us;
    status s = hold_tables(cluster, &tables);
    if (!status_is_ok(s)) {
        report(cluster, s, "what is hot goes unnoticed for now");
        return;
    }
    bool is_due = is_over || now_us - heat->looked_us >= look_every_us(cluster);
    bool has_ended = is_due && take_look(cluster, &tables, now_us, is_over, true);
    size_t ranges = heat_allot(tables.items, tables.count, has_ended);
    metrics_set(cluster->options.metrics, METRIC_heat_ranges, (int64_t)ranges);
    release_tables(&tables);
}

static bool is_kept_before(struct cluster *cluster)
{
    struct table *table;
    status s = cluster_table(cluster, bytes_of(HEAT_TABLE), &table);
    bool was_kept = status_is_ok(s);
    status_free(s);
    if (was_kept)
        table_release(table);
    return was_kept;
}

/* Puts what was counted of requests where the look finds it, as the end of a window does. */
static void put_counted(struct cluster *cluster, const struct tables *tables)
{
    for (size_t i = 0; i < tables->count; i++)
        report(cluster, usage_keep(tables->items[i]), "what requests did is not kept");
}

void heat_stop(struct cluster *cluster)
{
    struct tables tables;
    status s = hold_tables(cluster, &tables);
    if (status_is_ok(s)) {
        put_counted(cluster, &tables);
        if (is_kept_before(cluster) || usage_store_waits(tables.items, tables.count))
            take_look(cluster, &tables, clock_steady_us(cluster->options.clock), true, false);
        release_tables(&tables);
    }
    status_free(s);
}

void cluster_hot_tablets(struct cluster *cluster,
                         bool (*visit)(void *context, const struct hot_tablet *hot), void *context)
{
    hot_list_visit(&cluster->heat->hot, visit, context);
}

size_t heat_hot_count(struct cluster *cluster)
{
    return hot_list_count(&cluster->heat->hot);
}

size_t heat_hot_range_count(struct cluster *cluster)
{
    return hot_list_range_count(&cluster->heat->hot);
}
