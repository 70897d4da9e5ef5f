/* Reading rows: see row_read.h. */
#include "tablet/row_read.h"

#include "base/check.h"
#include "row/row_key.h"
#include "tablet/key_bounds.h"
#include "tablet/overflow_reader.h"

#include <stdlib.h>

/* --- values that are left in the store --- */

struct left_values {
    struct keyspace *keyspace;
    struct store_snapshot *snapshot; /* the row's instant */
    struct overflow_reader reader;
    bool is_open; /* the reader */
    enum store_read_tier read_tier;
};

static void close_reader(struct left_values *left)
{
    if (left->is_open)
        overflow_reader_close(&left->reader);
    left->is_open = false;
}

static void left_values_destroy(struct left_values *left)
{
    if (left == NULL)
        return;
    close_reader(left);
    store_snapshot_release(left->snapshot);
    free(left);
}

/* A cell whose age condemns it since a moment ago is still one of the row's. */
static status open_left(struct left_values *left, bytes row_key, enum store_read_tier read_tier)
{
    if (left->is_open && left->read_tier == read_tier)
        return status_ok();
    close_reader(left);
    left->is_open = true;
    left->read_tier = read_tier;
    return overflow_reader_open(&left->reader, left->keyspace, left->snapshot, row_key, read_tier,
                                OVERFLOW_ALL);
}

static status find_value(struct left_values *left, const struct cell *cell, bytes *value)
{
    struct entry entry;
    bool found;
    TRY(overflow_reader_find(&left->reader, cell->family->id, cell->qualifier, cell->timestamp_us,
                             &entry, &found));
    if (!found)
        return status_make(STATUS_ABORTED, "A cell of the row was collected while it was read");
    if (entry.value.size != cell->value.size)
        return status_make(STATUS_DATA_LOSS, "An overflow cell does not have the size it had");
    *value = entry.value;
    return status_ok();
}

status row_load_value(struct row *row, const struct cell *cell, enum store_read_tier read_tier,
                      bytes *value, enum row_outcome *outcome)
{
    struct left_values *left = row->left;
    CHECK(left != NULL && cell_is_deferred(cell));
    *outcome = ROW_FOUND;
    status s = open_left(left, row->key, read_tier);
    if (status_is_ok(s))
        s = find_value(left, cell, value);
    if (left->reader.is_missed) {
        status_free(s);
        s = status_ok();
        *outcome = ROW_NOT_CACHED;
    }
    if (*outcome == ROW_NOT_CACHED || !status_is_ok(s))
        close_reader(left);
    return s;
}

void row_release_value(struct row *row)
{
    if (row->left != NULL)
        close_reader(row->left);
}

void row_clear(struct row *row)
{
    store_value_release(&row->value);
    left_values_destroy(row->left);
    row->left = NULL;
    row->key = bytes_make(NULL, 0);
    row->cells.items = NULL;
    row->cells.count = 0;
    row->cells.capacity = 0;
    row->record = bytes_make(NULL, 0);
    row->wants_maintenance = false;
    row->wants_rewrite = false;
}

/* --- one record --- */

/* From so many operands on, what they cost readers is worth a write, if that is cheap: the record
 * is small, or its operands were as large, so that each byte of them is written once more at most.
 */
enum { PIECES = 2, SMALL_RECORD = 2 << 10, LARGEST_RECORD = 64 << 10 };

static bool wants_rewrite(const struct row_read_options *options, struct store_folded folded,
                          bytes record)
{
    return options->commits != NULL && folded.count >= PIECES && record.size <= LARGEST_RECORD &&
           (record.size <= SMALL_RECORD || record.size <= folded.bytes);
}

static uint64_t applied(const struct row_read_options *options)
{
    return options->commits == NULL ? 0 : commit_applied(options->commits);
}

static bool wants_maintenance(const struct row_read_options *options, bytes record)
{
    bool is_large = options->overflow_bytes > 0 && record.size >= options->overflow_bytes;
    return is_large || (fragment_has_overflow(record) && fragment_has_tombstones(record));
}

/* To be asked before the row is read, and then again: see row_drops_over. */
static uint64_t drops_gone(const struct row_read_options *options)
{
    return options->drops == NULL ? 0 : row_drops_gone(options->drops);
}

/* To be asked after the row's record was read. */
static uint64_t drops_over(const struct row_read_options *options, const struct row *row)
{
    return options->drops == NULL ? 0 : row_drops_over(options->drops, row->key);
}

/* What a record, with the cells beside it, comes to. */
static status resolve(const struct row_read_options *options, bytes record,
                      struct store_folded folded, struct overflow_source *overflow,
                      uint64_t dropped, struct row *row, enum row_outcome *outcome)
{
    struct resolve_request request = {.schema = options->schema,
                                      .record = record,
                                      .overflow = overflow,
                                      .dropped = dropped,
                                      .scope = options->scope,
                                      .now_us = options->now_us,
                                      .apply_gc = options->apply_gc,
                                      .size_limit = options->size_limit,
                                      .defer_after = options->defer_after};
    bool too_large = false;
    status s = row_resolve(&request, &row->cells, &too_large);
    row->record = record;
    row->wants_maintenance = wants_maintenance(options, record);
    row->wants_rewrite =
        wants_rewrite(options, folded, record) && !record_has_older(record, dropped);
    if (too_large) {
        status_free(s);
        *outcome = ROW_TOO_LARGE;
        return status_ok();
    }
    *outcome = row->cells.count > 0 ? ROW_FOUND : ROW_ABSENT;
    return s;
}

static status resolve_overflow(struct keyspace *keyspace, const struct row_read_options *options,
                               const struct store_snapshot *snapshot,
                               enum store_read_tier read_tier, uint64_t dropped, struct row *row,
                               enum row_outcome *outcome)
{
    struct overflow_reader overflow;
    status s =
        overflow_reader_open(&overflow, keyspace, snapshot, row->key, read_tier, OVERFLOW_BY_RULES);
    if (status_is_ok(s))
        s = resolve(options, row->value.bytes, row->value.folded, &overflow.source, dropped, row,
                    outcome);
    if (overflow.is_missed) {
        status_free(s);
        s = status_ok();
        *outcome = ROW_NOT_CACHED;
    }
    overflow_reader_close(&overflow);
    return s;
}

/* --- one row --- */

static status get_record(struct keyspace *keyspace, const struct store_snapshot *snapshot,
                         bytes key, enum store_read_tier read_tier, struct row *row,
                         enum row_outcome *outcome)
{
    enum store_presence presence = STORE_ABSENT;
    store_value_release(&row->value);
    TRY(store_get(keyspace, snapshot, key, read_tier, &row->value, &presence));
    *outcome = presence == STORE_FOUND    ? ROW_FOUND
               : presence == STORE_ABSENT ? ROW_ABSENT
                                          : ROW_NOT_CACHED;
    return status_ok();
}

/* Once more, at an instant that is fixed, so that record and overflow cells fit together: between
 * two reads without a snapshot cells could have moved from the one to the other, or been purged.
 * `*over` is by which drop the record was read. */
static status read_at_snapshot(struct keyspace *keyspace, const struct row_read_options *options,
                               const struct store_snapshot *snapshot, bytes key,
                               enum store_read_tier read_tier, uint64_t *over, struct row *row,
                               enum row_outcome *outcome)
{
    TRY(get_record(keyspace, snapshot, key, read_tier, row, outcome));
    *over = drops_over(options, row);
    if (*outcome != ROW_FOUND)
        return status_ok();
    if (!record_has_overflow(row->value.bytes, *over))
        return resolve(options, row->value.bytes, row->value.folded, NULL, *over, row, outcome);
    return resolve_overflow(keyspace, options, snapshot, read_tier, *over, row, outcome);
}

/* Takes the snapshot. */
static status leave_values(struct keyspace *keyspace, struct store_snapshot *snapshot,
                           struct row *row)
{
    struct left_values *left = row->left = calloc(1, sizeof *left);
    if (left == NULL) {
        store_snapshot_release(snapshot);
        return status_out_of_memory();
    }
    left->keyspace = keyspace;
    left->snapshot = snapshot;
    return status_ok();
}

/* The size of the largest value left: values left are read one by one. */
static size_t largest_left(const struct cell_list *cells)
{
    size_t largest = 0;
    for (size_t i = 0; i < cells->count; i++)
        if (cell_is_deferred(&cells->items[i]) && cells->items[i].value.size > largest)
            largest = cells->items[i].value.size;
    return largest;
}

/* A drop that came while the row was read, or was forgotten then, may have been met by a part of it
 * alone: a snapshot holds no fold back. Then the row has no cells, and is to be read again. */
static bool ends_torn(const struct row_read_options *options, uint64_t gone, uint64_t over,
                      struct row *row)
{
    if (drops_gone(options) == gone && drops_over(options, row) == over)
        return false;
    row->cells.count = 0;
    return true;
}

static status read_overflow_once(struct keyspace *keyspace, const struct row_read_options *options,
                                 bytes key, enum store_read_tier read_tier, bool *is_torn,
                                 struct row *row, enum row_outcome *outcome)
{
    uint64_t gone = drops_gone(options), over = 0;
    struct store_snapshot *snapshot = store_snapshot_create(options->store);
    if (snapshot == NULL)
        return status_out_of_memory();
    status s = read_at_snapshot(keyspace, options, snapshot, key, read_tier, &over, row, outcome);
    *is_torn = status_is_ok(s) && ends_torn(options, gone, over, row);
    if (*is_torn) {
        store_snapshot_release(snapshot);
        return s;
    }
    bool leaves = status_is_ok(s) && *outcome == ROW_FOUND && cell_list_has_deferred(&row->cells);
    bool is_refused =
        leaves && options->looks_at_left &&
        (read_tier == STORE_READ_CACHED || !store_bound_covers(largest_left(&row->cells)));
    if (leaves && !is_refused)
        return leave_values(keyspace, snapshot, row);
    if (is_refused)
        *outcome = ROW_NOT_CACHED;
    store_snapshot_release(snapshot);
    return s;
}

static status read_overflow(struct keyspace *keyspace, const struct row_read_options *options,
                            bytes key, enum store_read_tier read_tier, struct row *row,
                            enum row_outcome *outcome)
{
    bool is_torn = false;
    do
        TRY(read_overflow_once(keyspace, options, key, read_tier, &is_torn, row, outcome));
    while (is_torn);
    return status_ok();
}

/* What the record that is in `row->value` comes to. */
static status resolve_record(struct keyspace *keyspace, const struct row_read_options *options,
                             bytes key, enum store_read_tier read_tier, struct row *row,
                             enum row_outcome *outcome)
{
    uint64_t over = drops_over(options, row);
    if (*outcome != ROW_FOUND)
        return status_ok();
    if (record_has_overflow(row->value.bytes, over))
        return read_overflow(keyspace, options, key, read_tier, row, outcome);
    return resolve(options, row->value.bytes, row->value.folded, NULL, over, row, outcome);
}

static status read_record_once(struct keyspace *keyspace, const struct row_read_options *options,
                               bytes key, enum store_read_tier read_tier, struct row *row,
                               enum row_outcome *outcome)
{
    TRY(get_record(keyspace, NULL, key, read_tier, row, outcome));
    return resolve_record(keyspace, options, key, read_tier, row, outcome);
}

/* `key` is the record's: the row's, after the byte of the space. */
static status read_record(struct keyspace *keyspace, const struct row_read_options *options,
                          bytes key, enum store_read_tier read_tier, struct row *row,
                          enum row_outcome *outcome)
{
    row->as_of = applied(options);
    for (;;) {
        uint64_t gone = drops_gone(options);
        TRY(read_record_once(keyspace, options, key, read_tier, row, outcome));
        if (row->left != NULL || drops_gone(options) == gone)
            return status_ok();
        row->cells.count = 0;
    }
}

/* The record's key; the arena's. Its data is NULL without memory. */
static bytes record_key(struct arena *arena, bytes row_key)
{
    uint8_t *key = arena_alloc(arena, row_key.size + 1);
    if (key == NULL)
        return bytes_make(NULL, 0);
    key[0] = ROW_SPACE;
    if (row_key.size > 0) /* no row has none, but SQL may ask for it */
        memcpy(key + 1, row_key.data, row_key.size);
    return bytes_make(key, row_key.size + 1);
}

status row_read(struct keyspace *keyspace, const struct row_read_options *options, bytes row_key,
                enum store_read_tier read_tier, struct row *row, enum row_outcome *outcome)
{
    *outcome = ROW_ABSENT;
    bytes key = record_key(row->cells.arena, row_key);
    if (key.data == NULL)
        return status_out_of_memory();
    row->key = bytes_from(key, 1);
    return read_record(keyspace, options, key, read_tier, row, outcome);
}

/* --- several records at once --- */

static void forget_records(struct row_records *records)
{
    records->count = 0;
    records->bytes = 0;
    if (records->arena != NULL)
        arena_reset(records->arena);
}

void row_records_rest(struct row_records *records)
{
    key_walk_rest(&records->walk);
    forget_records(records);
}

void row_records_free(struct row_records *records)
{
    row_records_rest(records);
    arena_destroy(records->arena);
    records->arena = NULL;
}

static status keep_record(void *context, size_t i, bytes value)
{
    struct row_records *records = context;
    records->records[i] = arena_copy(records->arena, value);
    if (records->records[i].data == NULL)
        return status_out_of_memory();
    records->presences[i] = STORE_FOUND;
    records->bytes += value.size;
    return status_ok();
}

/* What is read is of the moment when the walk's cursor was made, or newer. */
static void note_gone(struct row_records *records, struct keyspace *keyspace,
                      const struct row_read_options *options)
{
    uint64_t gone = drops_gone(options);
    if (records->walk.keyspace != keyspace || records->gone != gone)
        key_walk_rest(&records->walk);
    records->walk.keyspace = keyspace;
    records->gone = gone;
}

static status read_records(struct row_records *records, const bytes *row_keys, size_t count)
{
    bytes keys[ROW_RECORDS_MOST];
    bool are_all;
    for (size_t i = 0; i < count; i++) {
        keys[i] = record_key(records->arena, row_keys[i]);
        if (keys[i].data == NULL)
            return status_out_of_memory();
        records->presences[i] = STORE_ABSENT;
    }
    TRY(key_walk_get(&records->walk, keys, count, keep_record, records, &are_all));
    for (size_t i = 0; i < count && !are_all; i++)
        if (records->presences[i] == STORE_ABSENT)
            records->presences[i] = STORE_NOT_CACHED;
    records->count = count;
    return status_ok();
}

status row_records_read(struct row_records *records, struct keyspace *keyspace,
                        const struct row_read_options *options, const bytes *row_keys, size_t count)
{
    DCHECK(count > 0 && count <= ROW_RECORDS_MOST && options->commits == NULL);
    if (records->arena == NULL)
        records->arena = arena_create(SIZE_MAX / 2);
    if (records->arena == NULL)
        return status_out_of_memory();
    forget_records(records);
    note_gone(records, keyspace, options);
    status s = read_records(records, row_keys, count);
    if (!status_is_ok(s))
        row_records_rest(records);
    return s;
}

bool row_records_has(const struct row_records *records, size_t i)
{
    return i < records->count && records->presences[i] != STORE_NOT_CACHED;
}

status row_records_take(struct row_records *records, size_t i, struct keyspace *keyspace,
                        const struct row_read_options *options, bytes row_key, struct row *row,
                        enum row_outcome *outcome)
{
    DCHECK(row_records_has(records, i));
    bytes key = record_key(row->cells.arena, row_key);
    if (key.data == NULL)
        return status_out_of_memory();
    row->key = bytes_from(key, 1);
    store_value_release(&row->value);
    *outcome = records->presences[i] == STORE_FOUND ? ROW_FOUND : ROW_ABSENT;
    row->value.bytes = *outcome == ROW_FOUND ? records->records[i] : bytes_make(NULL, 0);
    records->presences[i] = STORE_NOT_CACHED;
    TRY(resolve_record(keyspace, options, key, STORE_READ_ANY, row, outcome));
    if (row->left != NULL || drops_gone(options) == records->gone)
        return status_ok();
    row->cells.count = 0; /* a drop was forgotten since: read_record */
    return read_record(keyspace, options, key, STORE_READ_ANY, row, outcome);
}

/* --- ranges ---
 *
 * The cursor stands at the row that was given last, or, while `is_placed`, at one that has not been
 * looked at. What it takes to go on without a cursor is `last`. A row with overflow cells is read
 * again at a snapshot of its own, which lasts no longer than the row: rows are not promised to be
 * of one instant. */

struct row_range_reader {
    struct keyspace *keyspace;
    struct row_read_options options;
    bool reversed;
    struct key_bounds bounds;
    struct store_cursor *cursor;    /* NULL: paused, or not begun */
    uint64_t as_of;                 /* the cursor's */
    uint64_t gone;                  /* the same: drops */
    enum store_read_tier read_tier; /* the cursor's */
    bool is_placed;
    bool is_at_end;
    struct buffer last; /* the record key of the last row looked at; empty: none yet */
};

status row_range_reader_create(struct keyspace *keyspace, const struct row_read_options *options,
                               bytes from, bytes to, bool reversed, struct row_range_reader **out)
{
    *out = NULL;
    struct row_range_reader *reader = calloc(1, sizeof *reader);
    if (reader == NULL)
        return status_out_of_memory();
    reader->keyspace = keyspace;
    reader->options = *options;
    reader->reversed = reversed;
    if (!record_bounds(from, to, &reader->bounds)) {
        row_range_reader_destroy(reader);
        return status_out_of_memory();
    }
    *out = reader;
    return status_ok();
}

void row_range_reader_pause(struct row_range_reader *reader)
{
    store_cursor_destroy(reader->cursor);
    reader->cursor = NULL;
}

void row_range_reader_destroy(struct row_range_reader *reader)
{
    if (reader == NULL)
        return;
    row_range_reader_pause(reader);
    key_bounds_free(&reader->bounds);
    buffer_free(&reader->last);
    free(reader);
}

bytes row_range_reader_last_scanned(const struct row_range_reader *reader)
{
    bytes last = buffer_bytes(&reader->last);
    return last.size == 0 ? last : bytes_from(last, 1);
}

/* A new cursor, at the first row after `last`. */
static status open_cursor(struct row_range_reader *reader, enum store_read_tier read_tier)
{
    row_range_reader_pause(reader);
    struct store_cursor_options options = {.lower = buffer_bytes(&reader->bounds.lower),
                                           .upper = buffer_bytes(&reader->bounds.upper),
                                           .read_tier = read_tier,
                                           .notes_waste = true};
    reader->as_of = applied(&reader->options);
    reader->gone = drops_gone(&reader->options);
    TRY(store_cursor_create(reader->keyspace, &options, &reader->cursor));
    reader->read_tier = read_tier;
    reader->is_placed = true;
    bytes last = buffer_bytes(&reader->last);
    if (last.size == 0) {
        if (reader->reversed)
            store_cursor_last(reader->cursor);
        else
            store_cursor_first(reader->cursor);
    } else if (reader->reversed) {
        store_cursor_seek_before(reader->cursor, last);
    } else {
        store_cursor_seek(reader->cursor, last);
        reader->is_placed = !store_cursor_valid(reader->cursor) ||
                            !bytes_equal(store_cursor_key(reader->cursor), last);
    }
    return status_ok();
}

/* To a row that has not been looked at, or to the end. */
static status advance(struct row_range_reader *reader, enum store_read_tier read_tier)
{
    if (reader->cursor == NULL || reader->read_tier != read_tier)
        TRY(open_cursor(reader, read_tier));
    if (!reader->is_placed && reader->reversed)
        store_cursor_previous(reader->cursor);
    else if (!reader->is_placed)
        store_cursor_next(reader->cursor);
    reader->is_placed = true;
    return status_ok();
}

/* The cursor has no entry: the end, something that is not in memory, or a failure. */
static status stop(struct row_range_reader *reader, enum row_outcome *outcome)
{
    bool is_missed = store_cursor_missed_cache(reader->cursor);
    status s = is_missed ? status_ok() : store_cursor_status(reader->cursor);
    *outcome = is_missed ? ROW_NOT_CACHED : ROW_END;
    reader->is_at_end = !is_missed && status_is_ok(s);
    row_range_reader_pause(reader);
    return s;
}

/* The row under the cursor has been looked at: it is the last. */
static status note_last(struct row_range_reader *reader)
{
    reader->is_placed = false;
    buffer_clear(&reader->last);
    buffer_append_bytes(&reader->last, store_cursor_key(reader->cursor));
    return reader->last.failed ? status_out_of_memory() : status_ok();
}

static status read_current(struct row_range_reader *reader, enum store_read_tier read_tier,
                           struct row *row, enum row_outcome *outcome)
{
    bytes record = store_cursor_value(reader->cursor);
    uint64_t over = drops_over(&reader->options, row);
    row->as_of = reader->as_of;
    if (!record_has_overflow(record, over))
        return resolve(&reader->options, record, store_cursor_folded(reader->cursor), NULL, over,
                       row, outcome);
    return read_overflow(reader->keyspace, &reader->options, store_cursor_key(reader->cursor),
                         read_tier, row, outcome);
}

/* The cursor may show what a drop covered that is gone since: a new one shows what there is now. */
static bool is_outdated(const struct row_range_reader *reader, const struct row *row)
{
    return row->left == NULL && drops_gone(&reader->options) != reader->gone;
}

/* The row under the cursor is to be read again. */
static status start_over(struct row_range_reader *reader, struct row *row,
                         enum row_outcome *outcome)
{
    row_range_reader_pause(reader);
    row->cells.count = 0;
    row->wants_maintenance = false;
    row->wants_rewrite = false;
    *outcome = ROW_ABSENT;
    return status_ok();
}

/* One row: found, absent, too large, not cached, or the end. */
static status look_at_next(struct row_range_reader *reader, enum store_read_tier read_tier,
                           bool (*skip)(void *context, bytes row_key), void *context,
                           struct row *row, enum row_outcome *outcome)
{
    TRY(advance(reader, read_tier));
    if (!store_cursor_valid(reader->cursor))
        return stop(reader, outcome);
    bytes key = store_cursor_key(reader->cursor);
    *outcome = ROW_ABSENT;
    row->key = bytes_from(key, 1);
    if (skip == NULL || !skip(context, row->key))
        TRY(read_current(reader, read_tier, row, outcome));
    if (*outcome == ROW_NOT_CACHED)
        return status_ok();
    if (is_outdated(reader, row))
        return start_over(reader, row, outcome);
    TRY(note_last(reader));
    row->key = row_range_reader_last_scanned(reader);
    return status_ok();
}

status row_range_reader_next(struct row_range_reader *reader, enum store_read_tier read_tier,
                             bool (*skip)(void *context, bytes row_key), void *context,
                             size_t row_budget, struct row *row, enum row_outcome *outcome)
{
    *outcome = reader->is_at_end ? ROW_END : ROW_ABSENT;
    row->wants_maintenance = false;
    row->wants_rewrite = false;
    for (size_t looked = 0; *outcome == ROW_ABSENT && !row->wants_maintenance &&
                            !row->wants_rewrite && looked < row_budget;
         looked++)
        TRY(look_at_next(reader, read_tier, skip, context, row, outcome));
    return status_ok();
}
