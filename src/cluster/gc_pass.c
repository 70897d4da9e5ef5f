/* Garbage collection without traffic.
 *
 * Rules are applied when fragments fold: in reads, for the reader alone, and in compactions, for
 * good. A row that is neither written nor near one that is would keep its expired cells; so once
 * every gc_interval each table that has rules is compacted from end to end, in pieces of
 * PIECE_BYTES, one piece a call. That rewrites the table once an interval. A table whose rules only
 * count versions, and that was not written to, is passed over. */
#include "cluster/gc_pass.h"

#include "cluster/cluster_private.h"
#include "cluster/midpoint.h"
#include "tablet/key_bounds.h"

#include <stdlib.h>

enum { PIECE_BYTES = 64 << 20 };

/* Whether there can be anything to collect: an age that passes, versions or cells of dropped
 * families that came with writes. */
static bool may_have_garbage(const struct table *table)
{
    const struct schema *schema = table_schema(table);
    bool drops_families = schema->next_family_id > schema->family_count + 1;
    if (schema->has_age_rules)
        return true;
    return (schema->has_count_rules || drops_families) &&
           table->gc.rows_written != table->gc.rows_written_before;
}

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

/* The end of a piece of at most PIECE_BYTES that starts at `from`: halves what is left until it is
 * small enough. Empty: the table's end. */
static status piece_end(struct keyspace *keyspace, bytes from, struct buffer *end)
{
    bool found = true;
    struct buffer middle = {0};
    status s = status_ok();
    while (status_is_ok(s) && found && rows_size(keyspace, from, buffer_bytes(end)) > PIECE_BYTES) {
        s = rows_midpoint(keyspace, from, buffer_bytes(end), &middle, &found);
        found = found && !bytes_equal(buffer_bytes(&middle), buffer_bytes(end));
        if (status_is_ok(s) && found) {
            buffer_clear(end);
            buffer_append_bytes(end, buffer_bytes(&middle));
        }
    }
    buffer_free(&middle);
    return s;
}

static status compact_bounds(struct keyspace *keyspace, const struct key_bounds *bounds)
{
    return keyspace_compact(keyspace, buffer_bytes(&bounds->lower), buffer_bytes(&bounds->upper));
}

static status compact_rows(struct keyspace *keyspace, bytes from, bytes to)
{
    struct key_bounds records;
    struct key_bounds spilled;
    bool is_bounded = record_bounds(from, to, &records);
    is_bounded = spill_bounds(from, to, &spilled) && is_bounded;
    status s = is_bounded ? compact_bounds(keyspace, &records) : status_out_of_memory();
    if (status_is_ok(s))
        s = compact_bounds(keyspace, &spilled);
    key_bounds_free(&records);
    key_bounds_free(&spilled);
    return s;
}

/* Compacts the next piece; the pass is over when it reaches the table's end. */
static status collect_piece(struct table *table, int64_t now_us)
{
    struct table_gc *gc = &table->gc;
    struct buffer end = {0};
    struct tablet *tablet = table_route(table, buffer_bytes(&gc->next));
    status s = piece_end(tablet->keyspace, buffer_bytes(&gc->next), &end);
    if (status_is_ok(s))
        s = compact_rows(tablet->keyspace, buffer_bytes(&gc->next), buffer_bytes(&end));
    tablet_release(tablet);
    buffer_clear(&gc->next);
    buffer_append_bytes(&gc->next, buffer_bytes(&end));
    gc->is_under_way = status_is_ok(s) && end.size > 0 && !gc->next.failed;
    if (!gc->is_under_way) {
        buffer_clear(&gc->next);
        gc->due_us = now_us + table->cluster->options.gc_interval_us;
        metrics_add(table->cluster->options.metrics, METRIC_gc_passes_total, 1);
    }
    buffer_free(&end);
    return s;
}

/* Begins a pass if it is time and there may be something to find. */
static void begin_if_due(struct table *table, int64_t now_us)
{
    struct table_gc *gc = &table->gc;
    if (gc->due_us == 0) /* first seen: the server has just started, or the table is new */
        gc->due_us = now_us + table->cluster->options.gc_interval_us;
    if (gc->is_under_way || now_us < gc->due_us)
        return;
    gc->rows_written = rows_written_to(table);
    gc->is_under_way = may_have_garbage(table);
    gc->rows_written_before = gc->rows_written;
    if (!gc->is_under_way)
        gc->due_us = now_us + table->cluster->options.gc_interval_us;
}

static bool visit(void *context, struct table *table)
{
    struct cluster *cluster = context;
    int64_t now_us = clock_steady_us(cluster->options.clock);
    begin_if_due(table, now_us);
    if (table->gc.is_under_way) {
        status s = collect_piece(table, now_us);
        if (!status_is_ok(s))
            log_warn(cluster->options.log, "garbage collection is put off",
                     LOG_STR("table", table->name), LOG_STR("cause", status_message(s)));
        status_free(s);
    }
    return !maintenance_is_stopping(cluster->maintenance);
}

void gc_pass_run(struct cluster *cluster)
{
    const bytes all = bytes_make(NULL, 0);
    status_ignore(cluster_list_tables(cluster, all, all, visit, cluster));
}
