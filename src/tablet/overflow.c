/* Overflowing: see overflow.h. */
#include "tablet/overflow.h"

#include "base/check.h"
#include "tablet/overflow_private.h"

/* --- moving cells out --- */

struct overflowing {
    bytes row_key;
    struct deferred_batch *out;
    struct buffer key;
};

static status move_cell(void *context, const struct entry *cell, bytes operand)
{
    DCHECK(fragment_is_sound(operand));
    DCHECK(entry_is_cell(cell->kind) && cell->family != 0);
    struct overflowing *overflowing = context;
    buffer_clear(&overflowing->key);
    overflow_cell_key(&overflowing->key, overflowing->row_key, cell->family, cell->qualifier,
                      cell->timestamp_us);
    if (overflowing->key.failed)
        return status_out_of_memory();
    deferred_merge(overflowing->out, buffer_bytes(&overflowing->key), operand);
    return overflowing->out->changes.failed ? status_out_of_memory() : status_ok();
}

status move_to_overflow(bytes row_key, bytes record, struct deferred_batch *out, uint64_t *moved)
{
    struct overflowing overflowing = {.row_key = row_key, .out = out};
    status s = row_overflow_cells(record, move_cell, &overflowing, moved);
    buffer_free(&overflowing.key);
    return s;
}

/* --- the overflow cells of a row --- */

status overflow_exists(struct keyspace *keyspace, bytes row_key, bool *exists)
{
    struct store_cursor *cursor;
    TRY(overflow_cursor_create(keyspace, row_key, false, &cursor));
    store_cursor_first(cursor);
    *exists = store_cursor_valid(cursor);
    status s = *exists ? status_ok() : store_cursor_status(cursor);
    store_cursor_destroy(cursor);
    return s;
}

/* --- purging --- */

struct purge {
    bytes row_key;
    struct store_cursor *cursor;
    uint64_t newest_mark; /* no overflow cell is newer */
    struct buffer lower;  /* the range of one tombstone */
    struct buffer upper;
    struct buffer scratch;
    struct buffer operand;
    struct overflow_run run;
};

static void free_purge(struct purge *purge)
{
    store_cursor_destroy(purge->cursor);
    buffer_free(&purge->lower);
    buffer_free(&purge->upper);
    buffer_free(&purge->scratch);
    buffer_free(&purge->operand);
    overflow_run_free(&purge->run);
}

static status is_covered(struct purge *purge, uint64_t version, bool *covered)
{
    struct overflow_key key;
    struct entry cell;
    bool found = false;
    if (!overflow_key_parse(store_cursor_key(purge->cursor), &purge->scratch, &key))
        return purge->scratch.failed
                   ? status_out_of_memory()
                   : status_make(STATUS_DATA_LOSS, "The key of an overflow cell does not parse");
    if (!overflow_cell_read(&key, store_cursor_value(purge->cursor), &cell, &found))
        return status_make(STATUS_DATA_LOSS, "An overflow cell does not parse");
    *covered = !found || cell.version < version;
    return status_ok();
}

/* Adds that are kept apart may be on both sides of the version: the older ones go by an operand
 * that has the tombstone alone. */
static status cut_adds(struct purge *purge, uint64_t version)
{
    const struct entry tombstone = {.kind = ENTRY_ROW_TOMBSTONE, .version = version};
    struct fragment_writer writer;
    if (!fragment_has_apart(store_cursor_value(purge->cursor)))
        return status_ok();
    buffer_clear(&purge->operand);
    fragment_writer_start(&writer, &purge->operand, version);
    fragment_writer_add(&writer, &tombstone);
    fragment_writer_finish(&writer);
    if (!purge->operand.failed)
        deferred_merge(purge->run.out, store_cursor_key(purge->cursor),
                       buffer_bytes(&purge->operand));
    bool failed = purge->operand.failed || purge->run.out->changes.failed;
    return failed ? status_out_of_memory() : status_ok();
}

static status keep_or_cut(struct purge *purge, uint64_t version)
{
    TRY(overflow_run_end(&purge->run, bytes_make(NULL, 0)));
    return cut_adds(purge, version);
}

/* Deletes what is older than `version` in the range [lower, upper). */
static status purge_range(struct purge *purge, uint64_t version)
{
    DCHECK(version > 0);
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
            overflow_run_extend(&purge->run, store_cursor_key(purge->cursor));
        else
            TRY(keep_or_cut(purge, version));
        if (overflow_run_is_long(&purge->run) && purge->newest_mark < version)
            return overflow_run_end(&purge->run, upper);
        store_cursor_next(purge->cursor);
    }
    if (!store_cursor_valid(purge->cursor))
        TRY(store_cursor_status(purge->cursor));
    return overflow_run_end(&purge->run, here);
}

/* The range of overflow keys that a tombstone looks at. A column's keys come newest first. */
static void bound_tombstone(struct purge *purge, const struct entry *tombstone)
{
    DCHECK(tombstone->kind <= ENTRY_COLUMN_TOMBSTONE);
    buffer_clear(&purge->lower);
    buffer_clear(&purge->upper);
    if (tombstone->kind == ENTRY_COLUMN_TOMBSTONE) {
        overflow_cell_key(&purge->lower, purge->row_key, tombstone->family, tombstone->qualifier,
                          tombstone->end_us == INT64_MAX ? INT64_MAX : tombstone->end_us - 1);
        overflow_cell_key(&purge->upper, purge->row_key, tombstone->family, tombstone->qualifier,
                          tombstone->timestamp_us);
        buffer_append_byte(&purge->upper, 0);
        return;
    }
    if (tombstone->kind == ENTRY_FAMILY_TOMBSTONE)
        overflow_family_prefix(&purge->lower, purge->row_key, tombstone->family);
    else
        overflow_row_prefix(&purge->lower, purge->row_key);
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
        if (entry.kind == ENTRY_OVERFLOW_MARK) {
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

status overflow_purge(struct keyspace *keyspace, bytes row_key, bytes record,
                      struct deferred_batch *out, uint64_t *purged)
{
    struct purge purge = {.row_key = row_key, .run.out = out};
    *purged = 0;
    if (!fragment_has_overflow(record) || !fragment_has_tombstones(record))
        return status_ok();
    status s = overflow_cursor_create(keyspace, row_key, false, &purge.cursor);
    if (status_is_ok(s))
        s = purge_tombstones(&purge, record, purged);
    free_purge(&purge);
    return s;
}

/* The record's mark says nothing of these: cells of other clusters may be newer. */
static status purge_all_under(struct purge *purge, bytes tombstones)
{
    struct fragment_reader reader;
    struct entry entry;
    fragment_reader_start(&reader, tombstones);
    while (fragment_reader_next(&reader, &entry)) {
        DCHECK(entry.kind <= ENTRY_COLUMN_TOMBSTONE);
        bound_tombstone(purge, &entry);
        TRY(purge_range(purge, entry.version));
    }
    return status_ok();
}

status overflow_purge_under(struct keyspace *keyspace, bytes row_key, bytes tombstones,
                            struct deferred_batch *out)
{
    struct purge purge = {.row_key = row_key, .newest_mark = UINT64_MAX, .run.out = out};
    if (fragment_is_empty(tombstones))
        return status_ok();
    status s = overflow_cursor_create(keyspace, row_key, false, &purge.cursor);
    if (status_is_ok(s))
        s = purge_all_under(&purge, tombstones);
    free_purge(&purge);
    return s;
}

/* --- collecting: see also overflow_collect.c --- */

static status collect_range(void *context, const struct entry *range)
{
    struct purge *purge = context;
    bound_tombstone(purge, range);
    return purge_range(purge, range->version);
}

status overflow_collect_by_record(struct keyspace *keyspace, bytes row_key, bytes record,
                                  const struct row_rules *rules, struct deferred_batch *out)
{
    struct purge purge = {.row_key = row_key, .run.out = out};
    if (!rules->schema->has_count_rules || !fragment_has_overflow(record))
        return status_ok();
    status s = overflow_cursor_create(keyspace, row_key, false, &purge.cursor);
    if (status_is_ok(s))
        s = row_overflow_condemned(record, rules->schema, clock_wall_us(rules->clock),
                                   collect_range, &purge);
    free_purge(&purge);
    return s;
}
