/* Spilling: see spill.h. */
#include "tablet/spill.h"

#include <stdlib.h>

/* --- moving cells out --- */

struct spilling {
    bytes row_key;
    struct deferred_batch *out;
    struct buffer key;
};

static status move_cell(void *context, const struct entry *cell, bytes operand)
{
    struct spilling *spilling = context;
    buffer_clear(&spilling->key);
    spill_cell_key(&spilling->key, spilling->row_key, cell->family, cell->qualifier,
                   cell->timestamp_us);
    if (spilling->key.failed)
        return status_out_of_memory();
    deferred_merge(spilling->out, buffer_bytes(&spilling->key), operand);
    return spilling->out->changes.failed ? status_out_of_memory() : status_ok();
}

status spill_cells(bytes row_key, bytes record, struct deferred_batch *out, uint64_t *moved)
{
    struct spilling spilling = {.row_key = row_key, .out = out};
    status s = row_spill_cells(record, move_cell, &spilling, moved);
    buffer_free(&spilling.key);
    return s;
}

/* --- the spilled cells of a row --- */

static status open_cursor(struct keyspace *keyspace, bytes row_key, struct store_cursor **out)
{
    struct buffer lower = {0};
    struct buffer upper = {0};
    *out = NULL;
    spill_row_prefix(&lower, row_key);
    if (!lower.failed)
        key_after_prefix(&upper, buffer_bytes(&lower));
    struct store_cursor_options options = {
        .lower = buffer_bytes(&lower), .upper = buffer_bytes(&upper), .reach = STORE_ANYWHERE};
    status s = lower.failed || upper.failed ? status_out_of_memory()
                                            : store_cursor_create(keyspace, &options, out);
    buffer_free(&lower);
    buffer_free(&upper);
    return s;
}

status spill_exists(struct keyspace *keyspace, bytes row_key, bool *exists)
{
    struct store_cursor *cursor;
    TRY(open_cursor(keyspace, row_key, &cursor));
    store_cursor_first(cursor);
    *exists = store_cursor_valid(cursor);
    status s = *exists ? status_ok() : store_cursor_status(cursor);
    store_cursor_destroy(cursor);
    return s;
}

/* --- purging ---
 *
 * Covered cells that follow one another are a run. A short run is deleted key by key, a long one by
 * one range delete: each range delete costs all later reads nearby a little. */

enum { RUN_KEYS = 64 };

struct purge {
    bytes row_key;
    struct store_cursor *cursor;
    struct deferred_batch *out;
    uint64_t newest_mark; /* no spilled cell is newer */
    struct buffer lower;  /* the range of one tombstone */
    struct buffer upper;
    struct buffer scratch;
    /* The run: its keys while they are few, and always its first and its last. */
    struct deferred_batch run;
    struct buffer run_first;
    struct buffer run_last;
    size_t run_count;
};

static void free_purge(struct purge *purge)
{
    store_cursor_destroy(purge->cursor);
    buffer_free(&purge->lower);
    buffer_free(&purge->upper);
    buffer_free(&purge->scratch);
    deferred_batch_free(&purge->run);
    buffer_free(&purge->run_first);
    buffer_free(&purge->run_last);
}

static void extend_run(struct purge *purge, bytes key)
{
    if (purge->run_count == 0) {
        buffer_clear(&purge->run.changes);
        buffer_clear(&purge->run_first);
        buffer_append_bytes(&purge->run_first, key);
    }
    purge->run_count++;
    buffer_clear(&purge->run_last);
    buffer_append_bytes(&purge->run_last, key);
    if (purge->run_count <= RUN_KEYS)
        deferred_delete(&purge->run, key);
}

/* Deletes the run, up to `end` if that is given, which nothing else lies before. */
static status end_run(struct purge *purge, bytes end)
{
    if (end.size == 0) { /* right after the last */
        buffer_append_byte(&purge->run_last, 0);
        end = buffer_bytes(&purge->run_last);
    }
    if (purge->run_count > RUN_KEYS)
        deferred_delete_range(purge->out, buffer_bytes(&purge->run_first), end);
    else if (purge->run_count > 0)
        buffer_append_bytes(&purge->out->changes, buffer_bytes(&purge->run.changes));
    purge->run_count = 0;
    bool failed = purge->run.changes.failed || purge->run_first.failed || purge->run_last.failed ||
                  purge->out->changes.failed;
    return failed ? status_out_of_memory() : status_ok();
}

static status is_covered(struct purge *purge, uint64_t version, bool *covered)
{
    struct spill_key key;
    struct entry cell;
    bool found = false;
    if (!spill_key_parse(store_cursor_key(purge->cursor), &purge->scratch, &key))
        return purge->scratch.failed
                   ? status_out_of_memory()
                   : status_make(STATUS_DATA_LOSS, "The key of a spilled cell does not parse");
    if (!spilled_cell_read(&key, store_cursor_value(purge->cursor), &cell, &found))
        return status_make(STATUS_DATA_LOSS, "A spilled cell does not parse");
    *covered = !found || cell.version < version;
    return status_ok();
}

/* Deletes what is older than `version` in the range [lower, upper). */
static status purge_range(struct purge *purge, uint64_t version)
{
    const bytes here = bytes_make(NULL, 0);
    bytes upper = buffer_bytes(&purge->upper);
    if (purge->lower.failed || purge->upper.failed)
        return status_out_of_memory();
    store_cursor_seek(purge->cursor, buffer_bytes(&purge->lower));
    while (store_cursor_valid(purge->cursor) &&
           bytes_compare(store_cursor_key(purge->cursor), upper) < 0) {
        bool covered;
        TRY(is_covered(purge, version, &covered));
        if (covered)
            extend_run(purge, store_cursor_key(purge->cursor));
        else
            TRY(end_run(purge, here));
        if (purge->run_count > RUN_KEYS && purge->newest_mark < version)
            return end_run(purge, upper);
        store_cursor_next(purge->cursor);
    }
    if (!store_cursor_valid(purge->cursor))
        TRY(store_cursor_status(purge->cursor));
    return end_run(purge, here);
}

/* The range of spilled keys that a tombstone looks at. A column's keys come newest first. */
static void bound_tombstone(struct purge *purge, const struct entry *tombstone)
{
    buffer_clear(&purge->lower);
    buffer_clear(&purge->upper);
    if (tombstone->kind == ENTRY_COLUMN_TOMBSTONE) {
        spill_cell_key(&purge->lower, purge->row_key, tombstone->family, tombstone->qualifier,
                       tombstone->end_us == INT64_MAX ? INT64_MAX : tombstone->end_us - 1);
        spill_cell_key(&purge->upper, purge->row_key, tombstone->family, tombstone->qualifier,
                       tombstone->timestamp_us);
        buffer_append_byte(&purge->upper, 0);
        return;
    }
    if (tombstone->kind == ENTRY_FAMILY_TOMBSTONE)
        spill_family_prefix(&purge->lower, purge->row_key, tombstone->family);
    else
        spill_row_prefix(&purge->lower, purge->row_key);
    if (!purge->lower.failed)
        key_after_prefix(&purge->upper, buffer_bytes(&purge->lower));
}

static status purge_tombstones(struct purge *purge, bytes record, uint64_t *purged)
{
    struct fragment_reader reader;
    struct entry entry;
    uint64_t done = 0; /* by earlier purges */
    fragment_reader_start(&reader, record);
    while (fragment_reader_next(&reader, &entry) && !reader.is_bad) {
        if (entry.kind == ENTRY_SPILL_MARK) {
            purge->newest_mark = entry.version;
            done = entry.purged;
        } else if (!entry_is_cell(entry.kind) && entry.version > done) {
            bound_tombstone(purge, &entry);
            TRY(purge_range(purge, entry.version));
            *purged = entry.version > *purged ? entry.version : *purged;
        }
    }
    return reader.is_bad ? status_make(STATUS_DATA_LOSS, "The row's record does not parse")
                         : status_ok();
}

status spill_purge(struct keyspace *keyspace, bytes row_key, bytes record,
                   struct deferred_batch *out, uint64_t *purged)
{
    struct purge purge = {.row_key = row_key, .out = out};
    *purged = 0;
    if (!fragment_has_spilled(record) || !fragment_has_tombstones(record))
        return status_ok();
    status s = open_cursor(keyspace, row_key, &purge.cursor);
    if (status_is_ok(s))
        s = purge_tombstones(&purge, record, purged);
    free_purge(&purge);
    return s;
}

/* --- collecting --- */

enum { COLLECT_KEYS = 4096 };

static status collect_range(void *context, const struct entry *range)
{
    struct purge *purge = context;
    bound_tombstone(purge, range);
    return purge_range(purge, range->version);
}

status spill_collect_by_record(struct keyspace *keyspace, bytes row_key, bytes record,
                               const struct row_rules *rules, struct deferred_batch *out)
{
    struct purge purge = {.row_key = row_key, .out = out};
    if (!rules->schema->has_count_rules || !fragment_has_spilled(record))
        return status_ok();
    status s = open_cursor(keyspace, row_key, &purge.cursor);
    if (status_is_ok(s))
        s = row_spill_condemned(record, rules->schema, clock_wall_us(rules->clock), collect_range,
                                &purge);
    free_purge(&purge);
    return s;
}

/* What of a key says which column it is of: all but the timestamp. */
static bytes column_of(bytes key)
{
    return bytes_make(key.data, key.size - sizeof(int64_t));
}

static status collect_keys(struct purge *purge, const struct row_rules *rules,
                           struct buffer *column)
{
    int64_t now_us = clock_wall_us(rules->clock);
    int32_t newer = 0;
    store_cursor_first(purge->cursor);
    for (int i = 0; i < COLLECT_KEYS && store_cursor_valid(purge->cursor); i++) {
        bytes key = store_cursor_key(purge->cursor);
        uint32_t id;
        int64_t timestamp_us;
        if (!spill_key_tail(key, &id, &timestamp_us))
            return status_make(STATUS_DATA_LOSS, "The key of a spilled cell does not parse");
        if (!bytes_equal(column_of(key), buffer_bytes(column))) {
            buffer_clear(column);
            buffer_append_bytes(column, column_of(key));
            newer = 0;
        }
        const struct family *family = schema_family(rules->schema, id);
        if (family != NULL && gc_condemns(family->gc, timestamp_us, newer++, now_us))
            extend_run(purge, key);
        else
            TRY(end_run(purge, bytes_make(NULL, 0)));
        store_cursor_next(purge->cursor);
    }
    if (!store_cursor_valid(purge->cursor))
        TRY(store_cursor_status(purge->cursor));
    return column->failed ? status_out_of_memory() : end_run(purge, bytes_make(NULL, 0));
}

status spill_collect_by_themselves(struct keyspace *keyspace, bytes row_key,
                                   const struct row_rules *rules, struct deferred_batch *out)
{
    struct purge purge = {.row_key = row_key, .out = out};
    struct buffer column = {0};
    if (!rules->schema->has_count_rules)
        return status_ok();
    status s = open_cursor(keyspace, row_key, &purge.cursor);
    if (status_is_ok(s))
        s = collect_keys(&purge, rules, &column);
    buffer_free(&column);
    free_purge(&purge);
    return s;
}
