/* See telling_records.h. */
#include "tablet/telling_records.h"

#include "base/big_endian.h"

#include <endian.h>

enum { VERSION_AT = 0, LIFE_AT = 8, END_AT = 16, SIZES_AT = 24, HEAD_SIZE = 32 /* of a value */ };

/* --- keys --- */

struct telling_key {
    uint8_t data[TELLING_KEY_SIZE];
};

static struct telling_key make_key(uint8_t kind, uint64_t keyspace_id, uint64_t sequence)
{
    const uint64_t numbers[] = {htobe64(keyspace_id), htobe64(sequence)};
    struct telling_key key = {.data = {kind}};
    memcpy(key.data + 1, numbers, sizeof numbers);
    return key;
}

static bytes key_bytes(const struct telling_key *key)
{
    return bytes_make(key->data, sizeof key->data);
}

void told_row_key(uint8_t out[TELLING_KEY_SIZE], uint64_t keyspace_id, uint64_t sequence)
{
    struct telling_key key = make_key(TOLD_ROW, keyspace_id, sequence);
    memcpy(out, key.data, sizeof key.data);
}

bool telling_record_is_of(bytes key, uint64_t keyspace_id, uint64_t sequence)
{
    struct telling_key expected = make_key(TELLING_RECORD, keyspace_id, sequence);
    return bytes_equal(key, key_bytes(&expected));
}

static size_t size_at(bytes from, size_t at)
{
    uint32_t word;
    memcpy(&word, from.data + at, sizeof word);
    return be32toh(word);
}

/* --- writing --- */

static void write_value(struct buffer *out, const struct telling_record *record)
{
    const uint64_t numbers[] = {htobe64(record->version), htobe64(record->life),
                                htobe64(record->end)};
    const uint32_t sizes[] = {htobe32((uint32_t)record->from.size),
                              htobe32((uint32_t)record->to.size)};
    buffer_append(out, numbers, sizeof numbers);
    buffer_append(out, sizes, sizeof sizes);
    buffer_append_bytes(out, record->from);
    buffer_append_bytes(out, record->to);
    buffer_append_bytes(out, record->next);
}

void telling_record_put(struct store_batch *batch, struct keyspace *system,
                        const struct telling_record *record)
{
    struct telling_key key = make_key(TELLING_RECORD, record->keyspace_id, record->sequence);
    struct buffer value = {0};
    write_value(&value, record);
    if (value.failed)
        store_batch_fail(batch);
    else
        store_batch_put(batch, system, key_bytes(&key), buffer_bytes(&value));
    buffer_free(&value);
}

void telling_record_delete(struct store_batch *batch, struct keyspace *system, uint64_t keyspace_id,
                           uint64_t sequence)
{
    struct telling_key key = make_key(TELLING_RECORD, keyspace_id, sequence);
    store_batch_delete(batch, system, key_bytes(&key));
}

static void delete_between(struct store_batch *batch, struct keyspace *system,
                           const struct telling_key *from, const struct telling_key *to)
{
    store_batch_delete_range(batch, system, key_bytes(from), key_bytes(to));
}

void told_rows_delete(struct store_batch *batch, struct keyspace *system, uint64_t keyspace_id,
                      uint64_t sequence)
{
    struct telling_key from = make_key(TOLD_ROW, keyspace_id, sequence);
    struct telling_key to = make_key(TOLD_ROW, keyspace_id, sequence + 1);
    delete_between(batch, system, &from, &to);
}

void tellings_delete(struct store_batch *batch, struct keyspace *system, uint64_t keyspace_id)
{
    struct telling_key from = make_key(TELLING_RECORD, keyspace_id, 0);
    struct telling_key to = make_key(TELLING_RECORD, keyspace_id + 1, 0);
    delete_between(batch, system, &from, &to);
    from = make_key(TOLD_ROW, keyspace_id, 0);
    to = make_key(TOLD_ROW, keyspace_id + 1, 0);
    delete_between(batch, system, &from, &to);
}

/* --- reading --- */

static bool parse_value(bytes value, struct telling_record *out)
{
    if (value.size < HEAD_SIZE)
        return false;
    size_t from_size = size_at(value, SIZES_AT);
    size_t to_size = size_at(value, SIZES_AT + sizeof(uint32_t));
    bytes keys = bytes_from(value, HEAD_SIZE);
    if (from_size > keys.size || to_size > keys.size - from_size)
        return false;
    out->version = big_endian_read(value.data + VERSION_AT);
    out->life = big_endian_read(value.data + LIFE_AT);
    out->end = big_endian_read(value.data + END_AT);
    out->from = bytes_make(keys.data, from_size);
    out->to = bytes_make(keys.data + from_size, to_size);
    out->next = bytes_from(keys, from_size + to_size);
    return out->version != 0 && out->sequence != 0;
}

status telling_record_parse(bytes key, bytes value, struct telling_record *out)
{
    *out = (struct telling_record){.version = 0};
    if (key.size == TELLING_KEY_SIZE) {
        out->keyspace_id = big_endian_read(key.data + 1);
        out->sequence = big_endian_read(key.data + 1 + sizeof(uint64_t));
        if (parse_value(value, out))
            return status_ok();
    }
    return status_make(STATUS_DATA_LOSS, "how far a drop of rows was told does not parse");
}

/* Calls `visit` with each record from one key to another, until it fails. */
static status visit_between(struct keyspace *system, const struct telling_key *from,
                            const struct telling_key *to,
                            status (*visit)(void *context, bytes key, bytes value), void *context)
{
    const struct store_cursor_options options = {
        .lower = key_bytes(from), .upper = key_bytes(to), .read_tier = STORE_READ_ANY};
    struct store_cursor *cursor;
    TRY(store_cursor_create(system, &options, &cursor));
    status s = status_ok();
    store_cursor_first(cursor);
    for (; status_is_ok(s) && store_cursor_valid(cursor); store_cursor_next(cursor))
        s = visit(context, store_cursor_key(cursor), store_cursor_value(cursor));
    if (status_is_ok(s))
        s = store_cursor_status(cursor);
    store_cursor_destroy(cursor);
    return s;
}

struct record_visit {
    status (*visit)(void *context, const struct telling_record *record);
    void *context;
};

static status visit_record(void *context, bytes key, bytes value)
{
    const struct record_visit *records = context;
    struct telling_record record;
    TRY(telling_record_parse(key, value, &record));
    return records->visit(records->context, &record);
}

status telling_records_visit(struct keyspace *system, uint64_t keyspace_id,
                             status (*visit)(void *context, const struct telling_record *record),
                             void *context)
{
    struct telling_key from = make_key(TELLING_RECORD, keyspace_id, 0);
    struct telling_key to = make_key(TELLING_RECORD, keyspace_id + 1, 0);
    struct record_visit records = {.visit = visit, .context = context};
    return visit_between(system, &from, &to, visit_record, &records);
}

struct row_visit {
    status (*visit)(void *context, bytes row_key);
    void *context;
};

static status visit_row(void *context, bytes key, bytes value)
{
    const struct row_visit *rows = context;
    (void)value;
    return rows->visit(rows->context, bytes_from(key, TELLING_KEY_SIZE));
}

status told_rows_visit(struct keyspace *system, uint64_t keyspace_id, uint64_t sequence,
                       status (*visit)(void *context, bytes row_key), void *context)
{
    struct telling_key from = make_key(TOLD_ROW, keyspace_id, sequence);
    struct telling_key to = make_key(TOLD_ROW, keyspace_id, sequence + 1);
    struct row_visit rows = {.visit = visit, .context = context};
    return visit_between(system, &from, &to, visit_row, &rows);
}
