/* Reading overflow cells: see overflow_reader.h. */
#include "tablet/overflow_reader.h"

#include "base/check.h"
#include "row/fold.h"

static status cursor_failure(struct overflow_reader *reader)
{
    reader->is_missed = store_cursor_missed_cache(reader->cursor);
    if (reader->is_missed)
        return (status){.code = STATUS_UNAVAILABLE};
    return store_cursor_status(reader->cursor);
}

static status seek(struct overflow_source *source, uint32_t family, bytes qualifier)
{
    DCHECK(family != 0);
    struct overflow_reader *reader = (struct overflow_reader *)source;
    buffer_clear(&reader->key);
    overflow_column_prefix(&reader->key, reader->row_key, family, qualifier);
    if (reader->key.failed)
        return status_out_of_memory();
    store_cursor_seek(reader->cursor, buffer_bytes(&reader->key));
    reader->is_positioned = true;
    reader->is_started = true;
    reader->has_rest = false;
    return status_ok();
}

static void step(struct overflow_reader *reader)
{
    if (!reader->is_started)
        store_cursor_first(reader->cursor);
    else if (!reader->is_positioned)
        store_cursor_next(reader->cursor);
    reader->is_started = true;
    reader->is_positioned = false;
}

static status bad_cell(void)
{
    return status_make(STATUS_DATA_LOSS, "An overflow cell does not parse");
}

/* Reads a cell: of adds that are kept apart the newest; the others are in `rest`. */
static status read_cell(struct overflow_reader *reader, struct entry *entry, bool *found)
{
    bytes value = store_cursor_value(reader->cursor);
    if (!overflow_key_parse(store_cursor_key(reader->cursor), &reader->scratch, &reader->at))
        return reader->scratch.failed
                   ? status_out_of_memory()
                   : status_make(STATUS_DATA_LOSS, "The key of an overflow cell does not parse");
    if (!overflow_cell_read(&reader->at, value, entry, found))
        return bad_cell();
    reader->has_rest = fragment_has_apart(value);
    struct entry first;
    if (reader->has_rest && !(fragment_reader_start(&reader->rest, value) &&
                              fragment_reader_next(&reader->rest, &first)))
        return bad_cell();
    return status_ok();
}

static status read_rest(struct overflow_reader *reader, struct entry *entry, bool *found)
{
    DCHECK(reader->has_rest);
    *found = fragment_reader_next(&reader->rest, entry);
    if (reader->rest.is_bad || (*found && !entry_is_cell(entry->kind)))
        return bad_cell();
    reader->has_rest = *found;
    entry->family = reader->at.family;
    entry->qualifier = reader->at.qualifier;
    entry->timestamp_us = reader->at.timestamp_us;
    return status_ok();
}

static status next(struct overflow_source *source, struct entry *entry, bool *found)
{
    struct overflow_reader *reader = (struct overflow_reader *)source;
    *found = false;
    if (reader->has_rest)
        TRY(read_rest(reader, entry, found));
    while (!*found) {
        step(reader);
        if (!store_cursor_valid(reader->cursor))
            return cursor_failure(reader);
        TRY(read_cell(reader, entry, found));
    }
    return status_ok();
}

static bool is_at(const struct overflow_reader *reader, bytes key)
{
    return store_cursor_valid(reader->cursor) && bytes_equal(store_cursor_key(reader->cursor), key);
}

/* Cells are mostly looked for in order, one after the other. */
static void move_to(struct overflow_reader *reader, bytes key)
{
    if (reader->is_started && store_cursor_valid(reader->cursor))
        store_cursor_next(reader->cursor);
    if (!is_at(reader, key) && !store_cursor_missed_cache(reader->cursor))
        store_cursor_seek(reader->cursor, key);
    reader->is_started = true;
    reader->is_positioned = false;
    reader->has_rest = false;
}

status overflow_reader_find(struct overflow_reader *reader, uint32_t family, bytes qualifier,
                            int64_t timestamp_us, struct entry *cell, bool *found)
{
    *found = false;
    buffer_clear(&reader->key);
    overflow_cell_key(&reader->key, reader->row_key, family, qualifier, timestamp_us);
    if (reader->key.failed)
        return status_out_of_memory();
    move_to(reader, buffer_bytes(&reader->key));
    if (is_at(reader, buffer_bytes(&reader->key)))
        return read_cell(reader, cell, found);
    return store_cursor_valid(reader->cursor) ? status_ok() : cursor_failure(reader);
}

/* Rules by which nothing goes: of no family, so that each is newer than they are. */
static const struct schema no_families;
static const struct row_rules keep_all = {.schema = &no_families};

status overflow_reader_open(struct overflow_reader *reader, struct keyspace *keyspace,
                            const struct store_snapshot *snapshot, bytes row_key,
                            enum store_read_tier read_tier, enum overflow_reading reading)
{
    *reader = (struct overflow_reader){.source = {.seek = seek, .next = next}, .row_key = row_key};
    struct buffer upper = {0};
    overflow_row_prefix(&reader->key, row_key);
    if (!reader->key.failed)
        key_after_prefix(&upper, buffer_bytes(&reader->key));
    struct store_cursor_options options = {.snapshot = snapshot,
                                           .lower = buffer_bytes(&reader->key),
                                           .upper = buffer_bytes(&upper),
                                           .read_tier = read_tier,
                                           .rules = reading == OVERFLOW_ALL ? &keep_all : NULL};
    status s = reader->key.failed || upper.failed
                   ? status_out_of_memory()
                   : store_cursor_create(keyspace, &options, &reader->cursor);
    buffer_free(&upper);
    return s;
}

void overflow_reader_close(struct overflow_reader *reader)
{
    store_cursor_destroy(reader->cursor);
    buffer_free(&reader->key);
    buffer_free(&reader->scratch);
}
