/* Garbage collection without traffic.
 *
 * Rules are applied when fragments fold: in reads, for the reader alone, and in compactions, for
 * good. A row that is neither written nor near one that is would keep its expired cells; so once
 * every gc_interval each table that has rules is compacted from end to end. That rewrites the table
 * once an interval. A table whose rules only count versions, and that was neither written to nor
 * given new rules, is passed over.
 *
 * Folds cannot count the versions of a row that has overflow cells, nor delete overflow cells that
 * a tombstone covers. So before a piece is compacted its records are walked, and each row that has
 * overflow cells is looked after (row_jobs_maintain). Tables without rules are walked, too, if they
 * have overflow cells and were written to: something may have been deleted.
 *
 * Where a table's deletions are recorded (docs/internals/deletions.md) folds drop nothing that
 * rules condemn. Each record is looked at, and a row that has such cells gets a commit that deletes
 * them (row_jobs_collect), whereupon the compaction takes them away.
 *
 * A table in whose files ranges of keys are deleted (by DropRowRange before it made records, and
 * where something is damaged, by repairs, of rows with many overflow cells) is compacted where they
 * are, whatever its rules: each reader of such a file pays for them. DropRowRange asks for that at
 * once (gc_pass_hurry).
 *
 * A pass is a job of maintenance (maintenance.h), one piece of 64 MiB a table and round, hence
 * the bound: what is condemned is gone from the disk an interval, and a second for each 64 MiB
 * of the table, later, if the disk keeps up. */
#include "cluster/gc_pass.h"

#include "base/check.h"
#include "cluster/cluster_private.h"
#include "cluster/midpoint.h"
#include "cluster/row_jobs.h"
#include "row/resolve.h"
#include "row/row_key.h"
#include "tablet/key_bounds.h"

#include <stdlib.h>

enum { AT_ONCE_US = 1 /* past, and known */ };

static uint64_t rows_written_to(struct table *table)
{
    struct tablet **tablets;
    size_t count;
    uint64_t rows = 0;
    status s = table_tablets(table, &tablets, &count);
    if (!status_is_ok(s)) {
        status_ignore(s);
        return table->gc.rows_written_before + 1; /* in doubt there were some */
    }
    for (size_t i = 0; i < count; i++) {
        rows += atomic_load_explicit(&tablets[i]->rows_written, memory_order_relaxed);
        tablet_release(tablets[i]);
    }
    free(tablets);
    return rows;
}

/* --- rows with overflow cells --- */

static status has_overflow_cells(struct keyspace *keyspace, bool *has)
{
    const bytes all = bytes_make(NULL, 0);
    struct key_bounds bounds;
    struct store_cursor *cursor = NULL;
    status s = overflow_bounds(all, all, &bounds) ? status_ok() : status_out_of_memory();
    struct store_cursor_options options = {.lower = buffer_bytes(&bounds.lower),
                                           .upper = buffer_bytes(&bounds.upper),
                                           .read_tier = STORE_READ_ANY};
    if (status_is_ok(s))
        s = store_cursor_create(keyspace, &options, &cursor);
    if (status_is_ok(s)) {
        store_cursor_first(cursor);
        *has = store_cursor_valid(cursor);
        s = store_cursor_status(cursor);
    }
    store_cursor_destroy(cursor);
    key_bounds_free(&bounds);
    return s;
}

static status look_for_overflow_cells(const struct table *table, bool *has)
{
    for (size_t i = 0; i < table->space_count && !*has; i++)
        TRY(has_overflow_cells(table->spaces[i].keyspace, has));
    return status_ok();
}

static status collect_current(struct table *table, const struct store_cursor *cursor)
{
    DCHECK(table->gc.records);
    bytes record = store_cursor_value(cursor);
    bool is_due = fragment_has_overflow(record);
    if (!is_due)
        TRY(row_find_condemned(record, table_schema(table),
                               clock_wall_us(table->cluster->options.clock), &is_due));
    return is_due ? row_jobs_collect(table, bytes_from(store_cursor_key(cursor), 1)) : status_ok();
}

static status tend_current(struct table *table, const struct store_cursor *cursor)
{
    if (table->gc.records)
        return collect_current(table, cursor);
    if (!fragment_has_overflow(store_cursor_value(cursor)))
        return status_ok();
    return row_jobs_maintain(table, bytes_from(store_cursor_key(cursor), 1));
}

/* Looks after each row of the piece that has overflow cells, or condemned ones that are recorded.
 */
static status tend_rows(struct table *table, struct keyspace *keyspace, bytes from, bytes to)
{
    struct store_cursor *cursor;
    TRY(record_cursor_create(keyspace, from, to, &cursor));
    status s = status_ok();
    store_cursor_first(cursor);
    while (status_is_ok(s) && store_cursor_valid(cursor) &&
           !maintenance_is_stopping(table->cluster->maintenance)) {
        s = tend_current(table, cursor);
        store_cursor_next(cursor);
    }
    if (status_is_ok(s))
        s = store_cursor_status(cursor);
    store_cursor_destroy(cursor);
    return s;
}

/* --- pieces --- */

/* The end of a piece of at most `most` bytes that starts at `from`: halves what is left up to
 * `*end` until it is small enough. Empty: the table's end. Where no rows are to be seen, since they
 * were dropped or deleted, it is cut by their sizes alone. */
static status piece_end(struct keyspace *keyspace, bytes from, uint64_t most, struct buffer *end)
{
    bool found = true;
    struct buffer middle = {0};
    status s = status_ok();
    while (status_is_ok(s) && found && rows_size(keyspace, from, buffer_bytes(end)) > most) {
        s = rows_midpoint(keyspace, from, buffer_bytes(end), &middle, &found);
        found = found && !bytes_equal(buffer_bytes(&middle), buffer_bytes(end));
        if (status_is_ok(s) && found) {
            buffer_clear(end);
            buffer_append_bytes(end, buffer_bytes(&middle));
        }
    }
    buffer_free(&middle);
    return status_is_ok(s) ? rows_piece_end(keyspace, from, most, end) : s;
}

/* Among the records of these rows or among their overflow cells. */
static status deletes_ranges(struct keyspace *keyspace, bytes from, bytes to, bool *out)
{
    struct key_bounds records;
    struct key_bounds overflow;
    *out = false;
    bool is_bounded = record_bounds(from, to, &records);
    is_bounded = overflow_bounds(from, to, &overflow) && is_bounded;
    status s = is_bounded ? keyspace_deletes_ranges(keyspace, buffer_bytes(&records.lower),
                                                    buffer_bytes(&records.upper), out)
                          : status_out_of_memory();
    if (status_is_ok(s) && !*out)
        s = keyspace_deletes_ranges(keyspace, buffer_bytes(&overflow.lower),
                                    buffer_bytes(&overflow.upper), out);
    key_bounds_free(&records);
    key_bounds_free(&overflow);
    return s;
}

static status collect_rows(struct table *table, struct keyspace *keyspace, bytes from, bytes to)
{
    DCHECK(to.size == 0 || bytes_compare(from, to) < 0);
    bool compacts = table->gc.compacts;
    if (table->gc.tends_rows)
        TRY(tend_rows(table, keyspace, from, to));
    if (!compacts)
        TRY(deletes_ranges(keyspace, from, to, &compacts));
    return compacts ? rows_compact(keyspace, from, to) : status_ok();
}

/* After this pass; at once if somebody hurries, who says so before he says when. */
static void set_due(struct table *table, int64_t now_us)
{
    struct table_gc *gc = &table->gc;
    atomic_store(&gc->due_us, now_us + table->cluster->options.gc_interval_us);
    if (atomic_load(&gc->is_hurried))
        atomic_store(&gc->due_us, AT_ONCE_US);
}

static void end_pass(struct table *table, int64_t now_us, bool is_whole)
{
    struct table_gc *gc = &table->gc;
    DCHECK(gc->is_under_way);
    gc->is_under_way = false;
    buffer_clear(&gc->next);
    set_due(table, now_us);
    if (!is_whole)
        return;
    gc->rows_written_before = gc->rows_written;
    gc->generation_before = gc->generation;
    metrics_add(table->cluster->options.metrics, METRIC_gc_passes_total, 1);
}

/* Collects the next piece; the pass is over when it reaches the table's end. */
static status collect_piece(struct table *table, int64_t now_us)
{
    struct table_gc *gc = &table->gc;
    DCHECK(gc->is_under_way && (gc->compacts || gc->tends_rows || gc->deletes_ranges));
    struct buffer end = {0};
    struct table_space space;
    status s = table_find_part(table, buffer_bytes(&gc->next), &space, &end);
    if (status_is_ok(s))
        s = piece_end(space.keyspace, buffer_bytes(&gc->next),
                      maintenance_piece_bytes(table->cluster), &end);
    if (status_is_ok(s))
        s = collect_rows(table, space.keyspace, buffer_bytes(&gc->next), buffer_bytes(&end));
    buffer_clear(&gc->next);
    buffer_append_bytes(&gc->next, buffer_bytes(&end));
    if (status_is_ok(s) && gc->next.failed)
        s = status_out_of_memory();
    if (!status_is_ok(s) || end.size == 0)
        end_pass(table, now_us, status_is_ok(s));
    buffer_free(&end);
    return s;
}

/* --- passes --- */

/* What was deleted just now is in write buffers: of files it is known whether they have any. */
static status write_deleted_ranges(struct table *table)
{
    bool is_hurried = atomic_exchange(&table->gc.is_hurried, false);
    for (size_t i = 0; i < table->space_count && is_hurried; i++)
        TRY(keyspace_flush(table->spaces[i].keyspace));
    return status_ok();
}

static status look_for_deleted_ranges(struct table *table, bool *out)
{
    const bytes all = bytes_make(NULL, 0);
    *out = false;
    TRY(write_deleted_ranges(table));
    for (size_t i = 0; i < table->space_count && !*out; i++)
        TRY(keyspace_deletes_ranges(table->spaces[i].keyspace, all, all, out));
    return status_ok();
}

/* What there can be to do: an age that passes; versions, cells of dropped families or deleted ones
 * that came with writes; rules that are new; ranges of keys that are deleted. */
static status plan_pass(struct table *table)
{
    struct table_gc *gc = &table->gc;
    DCHECK(!gc->is_under_way && gc->next.size == 0);
    const struct description *description =
        atomic_load_explicit(&table->description, memory_order_acquire);
    const struct schema *schema = description->schema;
    gc->rows_written = rows_written_to(table);
    gc->generation = description->generation;
    bool is_new =
        gc->rows_written != gc->rows_written_before || gc->generation != gc->generation_before;
    bool has_rules = schema->has_count_rules || schema->has_lost_families;
    gc->compacts = schema->has_age_rules || (is_new && has_rules);
    gc->records = gc->compacts && description->without_rules != NULL;
    gc->tends_rows = gc->records || (gc->compacts && schema->has_count_rules);
    if (is_new && !gc->tends_rows)
        TRY(look_for_overflow_cells(table, &gc->tends_rows));
    TRY(look_for_deleted_ranges(table, &gc->deletes_ranges));
    gc->is_under_way = gc->compacts || gc->tends_rows || gc->deletes_ranges;
    return status_ok();
}

/* Begins a pass if none is under way, and there may be something to find. */
static status begin(struct table *table, int64_t now_us)
{
    struct table_gc *gc = &table->gc;
    if (gc->is_under_way)
        return status_ok();
    status s = plan_pass(table);
    if (!gc->is_under_way)
        set_due(table, now_us);
    return s;
}

/* --- the job --- */

/* One piece, whatever is left: the next round asks for the next. */
static bool collect(struct pool_job *job)
{
    struct table *table = LIST_ENTRY(job, struct table, gc.job);
    int64_t now_us = clock_steady_us(table->cluster->options.clock);
    if (table->is_dropped)
        return false;
    status s = begin(table, now_us);
    if (status_is_ok(s) && table->gc.is_under_way)
        s = collect_piece(table, now_us);
    maintenance_tell_failure(table, s, "garbage collection is put off");
    return false;
}

static void end_collecting(struct pool_job *job)
{
    table_release(LIST_ENTRY(job, struct table, gc.job));
}

void gc_pass_init(struct table *table)
{
    table->gc.job = (struct pool_job){.kind = MAINTENANCE_GARBAGE_COLLECTION,
                                      .owner = table,
                                      .run = collect,
                                      .ended = end_collecting};
}

void gc_pass_hurry(struct table *table)
{
    atomic_store(&table->gc.is_hurried, true);
    atomic_store(&table->gc.due_us, AT_ONCE_US);
}

static bool visit(void *context, struct table *table)
{
    struct cluster *cluster = context;
    int64_t now_us = clock_steady_us(cluster->options.clock);
    int64_t first_us = now_us + cluster->options.gc_interval_us, due_us = 0;
    /* Unknown when first seen: the server has just started, or it is new. */
    if (!atomic_compare_exchange_strong(&table->gc.due_us, &due_us, first_us) && now_us >= due_us)
        maintenance_submit(cluster->maintenance, table, &table->gc.job);
    return !maintenance_is_stopping(cluster->maintenance);
}

void gc_pass_run(struct cluster *cluster)
{
    const bytes all = bytes_make(NULL, 0);
    status_ignore(cluster_list_tables(cluster, all, all, visit, cluster));
}
