/* See heat_table.h. */
#include "cluster/heat/heat_table.h"

#include "base/check.h"
#include "cluster/cluster_private.h"
#include "cluster/heat/heat_choice.h"
#include "heat/heat_grid.h"

#include <stdlib.h>

#define SECOND_US INT64_C(1000000)
#define HOUR_US   (3600 * SECOND_US)
#define SPAN_US   (15 * SECOND_US) /* of traffic */
#define RESIZE_US (10 * SECOND_US) /* between two sizes, since a choice costs */
/* Times as long as a choice took is waited for the next within a window. */
#define REST_AFTER_CHOOSING 50

enum { PART_MEMORY = 256 << 20 };

void heat_table_init(struct table_heat *heat)
{
    pthread_mutex_init(&heat->lock, NULL);
}

void heat_table_free(struct table_heat *heat)
{
    heat_counts_destroy(atomic_load(&heat->counts));
    arena_destroy(heat->arena);
    pthread_mutex_destroy(&heat->lock);
}

size_t heat_table_ranges(const struct table *table)
{
    const struct heat_counts *counts = atomic_load(&table->heat.counts);
    return counts == NULL || table->heat.chosen_us == 0 ? 0 : heat_counts_ranges(counts)->count;
}

/* --- processors --- */

void heat_table_note_cpu(struct table *table, double percent, int64_t from_us, int64_t until_us)
{
    struct table_heat *heat = &table->heat;
    pthread_mutex_lock(&heat->lock);
    heat->cpu_percent = heat_mean(heat->cpu_percent, from_us, percent, until_us - from_us);
    pthread_mutex_unlock(&heat->lock);
}

/* --- taking what was counted --- */

/* Copies all of the record into the arena: what it points into may go. */
static status copy_record(const struct heat_record *record, struct arena *arena,
                          struct heat_record *out)
{
    struct buffer encoded = {0};
    heat_record_encode(record, &encoded);
    bytes copy = encoded.failed ? bytes_make(NULL, 0) : arena_copy(arena, buffer_bytes(&encoded));
    buffer_free(&encoded);
    if (copy.data == NULL)
        return status_out_of_memory();
    return heat_record_decode(copy, record->from_us, arena, out);
}

/* Joins parts, so that there is room for more. With the lock held. */
static status join_parts(struct table_heat *heat)
{
    DCHECK(check_is_held(&heat->lock) && heat->part_count == HEAT_PARTS);
    struct heat_record all;
    struct arena *arena = arena_create(PART_MEMORY);
    if (arena == NULL)
        return status_out_of_memory();
    status s = heat_records_combine(heat->parts, heat->part_count, HEAT_MOST_RANGES, arena, &all);
    if (status_is_ok(s))
        s = copy_record(&all, arena, &heat->parts[0]);
    if (!status_is_ok(s)) {
        arena_destroy(arena);
        return s;
    }
    arena_destroy(heat->arena);
    heat->arena = arena;
    heat->part_count = 1;
    heat->parts_looked_at = heat->parts_looked_at > 0;
    return s;
}

/* With the lock held. */
static status keep_part(struct table_heat *heat, int64_t from_us, const struct heat_ranges *ranges,
                        const struct heat_cell *sums)
{
    DCHECK(check_is_held(&heat->lock) && heat->part_count <= HEAT_PARTS);
    struct heat_record record = {.count = 0};
    if (heat->part_count == HEAT_PARTS)
        TRY(join_parts(heat));
    if (heat->arena == NULL)
        heat->arena = arena_create(PART_MEMORY);
    if (heat->arena == NULL)
        return status_out_of_memory();
    TRY(heat_record_of(ranges, sums, heat->arena, &record));
    if (record.count == 0)
        return status_ok();
    record.from_us = record.until_us = from_us;
    TRY(copy_record(&record, heat->arena, &heat->parts[heat->part_count]));
    heat->part_count++;
    return status_ok();
}

/* `next` is taken over; NULL: the ranges stay. */
static status take_part(struct table *table, struct heat_ranges *next)
{
    struct table_heat *heat = &table->heat;
    struct heat_counts *counts = atomic_load(&heat->counts);
    const struct heat_ranges *ranges = heat_counts_ranges(counts);
    struct heat_cell *sums = calloc(ranges->count, sizeof *sums);
    if (sums == NULL) {
        heat_ranges_destroy(next);
        return status_out_of_memory();
    }
    pthread_mutex_lock(&heat->lock);
    struct heat_ranges *former = heat_counts_take(counts, sums, next);
    status s = keep_part(heat, heat_window_begin_us(table->cluster), ranges, sums);
    pthread_mutex_unlock(&heat->lock);
    heat_ranges_destroy(former);
    free(sums);
    return s;
}

status heat_table_take_recent(struct table *table, struct arena *arena, struct heat_record *out)
{
    struct table_heat *heat = &table->heat;
    struct heat_counts *counts = atomic_load(&heat->counts);
    *out = (struct heat_record){.count = 0};
    if (counts == NULL)
        return status_ok();
    if (heat_counts_any(counts))
        TRY(take_part(table, NULL));
    size_t first = heat->parts_looked_at;
    DCHECK(first <= heat->part_count);
    heat->parts_looked_at = heat->part_count;
    if (first == heat->part_count)
        return status_ok();
    return heat_records_combine(&heat->parts[first], heat->part_count - first, HEAT_MOST_RANGES,
                                arena, out);
}

status heat_table_take(struct table *table, struct heat_record *out)
{
    struct table_heat *heat = &table->heat;
    struct heat_counts *counts = atomic_load(&heat->counts);
    *out = (struct heat_record){.count = 0};
    if (counts == NULL)
        return status_ok();
    status s = heat_counts_any(counts) ? take_part(table, NULL) : status_ok();
    if (status_is_ok(s) && heat->part_count == 1)
        *out = heat->parts[0];
    else if (status_is_ok(s) && heat->part_count > 1)
        s = heat_records_combine(heat->parts, heat->part_count, HEAT_MOST_RANGES, heat->arena, out);
    out->cpu_percent = heat->cpu_percent;
    return s;
}

static void begin_window(struct table_heat *heat)
{
    pthread_mutex_lock(&heat->lock);
    heat->cpu_percent = 0;
    heat->part_count = heat->parts_looked_at = 0;
    if (heat->arena != NULL)
        arena_reset(heat->arena);
    pthread_mutex_unlock(&heat->lock);
}

/* --- looking --- */

/* What has been counted by the present ranges. With the lock held. */
static status look_at_counts(struct heat_counts *counts, int64_t from_us, struct arena *arena,
                             struct heat_record *out)
{
    const struct heat_ranges *ranges = heat_counts_ranges(counts);
    struct heat_cell *sums = calloc(ranges->count, sizeof *sums);
    struct heat_record record = {.count = 0};
    if (sums == NULL)
        return status_out_of_memory();
    heat_counts_look(counts, sums);
    status s = heat_record_of(ranges, sums, arena, &record);
    record.from_us = record.until_us = from_us;
    if (status_is_ok(s))
        s = copy_record(&record, arena, out);
    free(sums);
    return s;
}

/* Copies the parts of the window, and what is in none yet; `out` has room for one more than there
 * may be parts. (Parts of the window before are there until maintenance has kept them.) With the
 * lock held. */
static status look_at_parts(const struct table_heat *heat, int64_t from_us, struct arena *arena,
                            struct heat_record *out, size_t *count)
{
    DCHECK(check_is_held(&heat->lock));
    *count = 0;
    for (size_t i = 0; i < heat->part_count; i++)
        if (heat->parts[i].from_us == from_us)
            TRY(copy_record(&heat->parts[i], arena, &out[(*count)++]));
    return look_at_counts(atomic_load(&heat->counts), from_us, arena, &out[(*count)++]);
}

status heat_table_look(struct table *table, struct arena *arena, struct heat_record *out)
{
    struct table_heat *heat = &table->heat;
    struct heat_record parts[HEAT_PARTS + 1];
    int64_t from_us = heat_window_begin_us(table->cluster);
    size_t count;
    *out = (struct heat_record){.count = 0};
    if (atomic_load(&heat->counts) == NULL)
        return status_ok();
    pthread_mutex_lock(&heat->lock);
    status s = look_at_parts(heat, from_us, arena, parts, &count);
    double cpu_percent = heat->cpu_percent;
    pthread_mutex_unlock(&heat->lock);
    TRY(s);
    TRY(heat_records_combine(parts, count, HEAT_MOST_RANGES, arena, out));
    out->cpu_percent = cpu_percent;
    out->from_us = from_us;
    out->until_us = clock_wall_us(table->cluster->options.clock);
    return status_ok();
}

/* --- ranges --- */

static uint64_t rows_of(const struct tablet *tablet)
{
    return atomic_load_explicit(&tablet->rows_read, memory_order_relaxed) +
           atomic_load_explicit(&tablet->rows_written, memory_order_relaxed);
}

static uint64_t rows_written_to(const struct tablet *tablet)
{
    return atomic_load_explicit(&tablet->rows_written, memory_order_relaxed);
}

static uint64_t bytes_of_writes(const struct tablet *tablet)
{
    return atomic_load_explicit(&tablet->bytes_written, memory_order_relaxed);
}

static uint64_t sum_of_tablets(struct table *table, uint64_t (*number)(const struct tablet *tablet))
{
    uint64_t sum = 0;
    struct tablet **tablets;
    size_t count;
    status s = table_tablets(table, &tablets, &count);
    if (!status_is_ok(s)) {
        status_free(s);
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        sum += number(tablets[i]);
        tablet_release(tablets[i]);
    }
    free(tablets);
    return sum;
}

static uint64_t bytes_written_to(struct table *table)
{
    return sum_of_tablets(table, bytes_of_writes);
}

/* --- how many --- */

/* New tablets, of a split or a merge, have served nothing. */
static uint64_t served_since(struct table *table)
{
    struct table_heat *heat = &table->heat;
    uint64_t served = sum_of_tablets(table, rows_of), before = heat->served;
    heat->served = served;
    return served < before ? served : served - before;
}

/* Tablets that were made anew have been written nothing: that is taken for a write. */
static void note_writes(struct table *table)
{
    struct table_heat *heat = &table->heat;
    uint64_t written = sum_of_tablets(table, rows_written_to);
    if (written != heat->rows_written)
        atomic_store(&heat->written_us, clock_steady_us(table->cluster->options.clock));
    heat->rows_written = written;
}

int64_t heat_table_unwritten_us(const struct table *table)
{
    int64_t written_us = atomic_load(&table->heat.written_us);
    return written_us == 0 ? 0 : clock_steady_us(table->cluster->options.clock) - written_us;
}

uint64_t heat_table_traffic(struct table *table)
{
    struct table_heat *heat = &table->heat;
    struct heat_counts *counts = atomic_load(&heat->counts);
    int64_t span = clock_steady_us(table->cluster->options.clock) / SPAN_US;
    if (counts == NULL)
        return 0;
    if (span != heat->traffic_span) {
        heat->traffic[1] = span == heat->traffic_span + 1 ? heat->traffic[0] : 0;
        heat->traffic[0] = 0;
        heat->traffic_span = span;
    }
    if (heat->part_count > 0 || heat_counts_any(counts)) {
        heat->traffic[0] += served_since(table);
        note_writes(table);
    }
    return heat->traffic[0] + heat->traffic[1];
}

/* Whether the table was given few ranges, and has used them: as a rule it has half as many. */
static bool could_use_more(const struct table *table, size_t most)
{
    const struct table_heat *heat = &table->heat;
    return heat->chosen_us == 0 ||
           (most / 2 >= heat->chosen_most && 4 * heat_table_ranges(table) >= heat->chosen_most);
}

size_t heat_table_lacks(const struct table *table, size_t most)
{
    size_t has = heat_table_ranges(table);
    return most > has && could_use_more(table, most) ? most - has : 0;
}

/* Whether more was written since the ranges were chosen than that part of the table's size and so
 * many bytes; or they never were. (To a new tablet, of a split or a merge, nothing has been
 * written.) */
static bool has_outgrown(const struct table_heat *heat, uint64_t written, unsigned part,
                         uint64_t least)
{
    return heat->chosen_us == 0 || written < heat->written_then ||
           written - heat->written_then > heat->chosen_size / part + least;
}

static bool fits_no_more(const struct table_heat *heat, uint64_t written)
{
    return has_outgrown(heat, written, 8, 1 << 10);
}

/* When so much was written that the ranges cannot fit any more, or from time to time. Between two
 * windows that is soon, since it costs no part; but to choose is to go over all rows of a small
 * table, so that it takes a fiftieth of the time at most. */
static bool is_due(const struct table_heat *heat, uint64_t written, int64_t now_us, bool is_end)
{
    if (!is_end)
        return now_us - heat->chosen_us >= REST_AFTER_CHOOSING * heat->choosing_us &&
               has_outgrown(heat, written, 2, 64 << 10);
    return fits_no_more(heat, written) || now_us - heat->chosen_us >= 600 * SECOND_US;
}

static status choose(struct table *table, size_t most, uint64_t written, int64_t now_us)
{
    struct table_heat *heat = &table->heat;
    struct heat_ranges *ranges;
    uint64_t size;
    TRY(heat_choose_ranges(table, most, HEAT_MOST_WALKED, &size, &ranges));
    TRY(take_part(table, ranges));
    pthread_mutex_lock(&heat->lock);
    heat->chosen_us = now_us;
    heat->choosing_us = clock_steady_us(table->cluster->options.clock) - now_us;
    heat->chosen_most = most;
    heat->chosen_size = size;
    heat->written_then = written;
    pthread_mutex_unlock(&heat->lock);
    return status_ok();
}

static void report(const struct table *table, status s)
{
    if (!status_is_ok(s))
        log_warn(table->cluster->options.log, "a table's ranges for counting stay as they are",
                 LOG_STR("table", table->name), LOG_STR("cause", status_message(s)));
    status_free(s);
}

/* A table without requests for long gives its ranges back. */
static status give_up(struct table *table)
{
    struct table_heat *heat = &table->heat;
    struct heat_ranges *whole;
    TRY(heat_ranges_create(NULL, 0, NULL, &whole));
    TRY(take_part(table, whole));
    pthread_mutex_lock(&heat->lock);
    heat->chosen_us = 0;
    if (heat->part_count == 0) { /* else a request has just come */
        arena_destroy(heat->arena);
        heat->arena = NULL;
    }
    pthread_mutex_unlock(&heat->lock);
    return status_ok();
}

void heat_table_give_up(struct table *table)
{
    if (table->heat.part_count < HEAT_PARTS)
        report(table, give_up(table));
}

/* A table that was given one range alone does not wait for others. */
static bool is_to_resize(const struct table *table, size_t most, bool must_fit, int64_t now_us)
{
    const struct table_heat *heat = &table->heat;
    if (heat->chosen_most > 1 && now_us - heat->chosen_us < RESIZE_US)
        return false;
    return could_use_more(table, most) || (must_fit && heat_table_ranges(table) / 2 > most);
}

static status tend(struct table *table, size_t most, bool must_fit, bool is_end, int64_t now_us)
{
    struct table_heat *heat = &table->heat;
    bool is_busy = heat->part_count > 0 || heat_counts_any(atomic_load(&heat->counts));
    if (is_end)
        begin_window(heat);
    if (is_busy)
        heat->counted_us = now_us;
    else if (heat->chosen_us > 0 && now_us - heat->counted_us >= HOUR_US)
        return give_up(table);
    if (!is_busy || heat->part_count + 2 > HEAT_PARTS)
        return status_ok();
    uint64_t written = bytes_written_to(table);
    bool is_wanted =
        is_due(heat, written, now_us, is_end) || is_to_resize(table, most, must_fit, now_us);
    return is_wanted ? choose(table, most, written, now_us) : status_ok();
}

void heat_table_choose(struct table *table, size_t most, bool must_fit, bool is_end)
{
    int64_t now_us = clock_steady_us(table->cluster->options.clock);
    if (atomic_load(&table->heat.counts) != NULL)
        report(table, tend(table, most, must_fit, is_end, now_us));
}

static status copy_fitting(struct table_heat *heat, uint64_t written, size_t most,
                           struct heat_ranges **out)
{
    struct heat_counts *counts = atomic_load(&heat->counts);
    status s = status_ok();
    *out = NULL;
    pthread_mutex_lock(&heat->lock);
    if (counts != NULL && heat->chosen_most >= most / 4 && !fits_no_more(heat, written))
        s = heat_ranges_copy(heat_counts_ranges(counts), out);
    pthread_mutex_unlock(&heat->lock);
    return s;
}

status heat_table_data(struct table *table, size_t most, size_t most_walked,
                       struct heat_ranges **out)
{
    uint64_t size;
    TRY(copy_fitting(&table->heat, bytes_written_to(table), most, out));
    return *out != NULL ? status_ok() : heat_choose_ranges(table, most, most_walked, &size, out);
}

/* --- decay --- */

static int64_t span_begin(int64_t at_us, enum heat_level level)
{
    return at_us - at_us % heat_level_span_us(level);
}

static void note_kept(struct table_heat *heat, enum heat_level level, int64_t from_us)
{
    heat->last_us[level] = from_us;
    if (level + 1 < HEAT_LEVELS && heat->due_us[level + 1] == 0)
        heat->due_us[level + 1] = span_begin(from_us, level + 1);
}

void heat_table_kept(struct table *table, int64_t from_us)
{
    note_kept(&table->heat, HEAT_WINDOWS, from_us);
}

/* The next span that something is due for, after the one that began at `done_us`. */
static int64_t next_due(const struct table_heat *heat, enum heat_level level, int64_t done_us)
{
    int64_t last = span_begin(heat->last_us[level - 1], level);
    return last > done_us ? last : 0;
}

static status put_combined(struct table *table, enum heat_level level, int64_t from_us,
                           struct own_batch *batch)
{
    struct heat_record *records, sum;
    size_t count;
    TRY(heat_store_read(table->cluster, table->id, level - 1, from_us,
                        from_us + heat_level_span_us(level), batch->arena, &records, &count));
    if (count == 0)
        return status_ok();
    TRY(heat_records_combine(records, count, HEAT_MOST_RANGES, batch->arena, &sum));
    TRY(heat_batch_put(batch, table->id, level, &sum));
    note_kept(&table->heat, level, sum.from_us);
    return status_ok();
}

status heat_table_decay(struct table *table, enum heat_level level, int64_t now_us,
                        struct own_batch *batch)
{
    struct table_heat *heat = &table->heat;
    int64_t from_us = heat->due_us[level];
    if (from_us == 0 || from_us + heat_level_span_us(level) > now_us)
        return status_ok();
    TRY(put_combined(table, level, from_us, batch));
    heat->due_us[level] = next_due(heat, level, from_us);
    return status_ok();
}

/* Records that decay again give the same sums, as long as all of them are still there. */
status heat_table_catch_up(struct table *table, int64_t now_us)
{
    for (enum heat_level level = HEAT_WINDOWS; level + 1 < HEAT_LEVELS; level++) {
        int64_t newest_us;
        TRY(heat_store_newest(table->cluster, table->id, level, &newest_us));
        int64_t whole_until_us =
            newest_us + heat_level_kept_us(level) - 2 * heat_level_span_us(level + 1);
        if (newest_us > 0 && now_us < whole_until_us)
            note_kept(&table->heat, level, newest_us);
    }
    return status_ok();
}
