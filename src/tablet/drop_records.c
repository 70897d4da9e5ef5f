/* The records of drops: see drop_records.h. */
#include "tablet/drop_records.h"

#include "base/big_endian.h"

#include <endian.h>

enum { ID_SIZE = 8, BYTES_AT = 8, NEWEST_TABLE_AT = 16, HEAD_SIZE = 28 /* of a value */ };

/* --- keys --- */

struct drop_key {
    uint8_t data[DROP_RECORD_KEY_SIZE];
};

static struct drop_key make_key(uint64_t keyspace_id, uint64_t sequence)
{
    const uint64_t numbers[] = {htobe64(keyspace_id), htobe64(sequence)};
    struct drop_key key = {.data = {DROP_RECORD}};
    memcpy(key.data + 1, numbers, sizeof numbers);
    return key;
}

static bytes key_bytes(const struct drop_key *key)
{
    return bytes_make(key->data, sizeof key->data);
}

/* --- writing --- */

status drop_record_value(const struct row_drop_words *drop, struct buffer *value)
{
    uint32_t from_size = htobe32((uint32_t)drop->from.size);
    big_endian_append(value, 0);
    big_endian_append(value, drop->bytes);
    big_endian_append(value, drop->newest_table);
    buffer_append(value, &from_size, sizeof from_size);
    buffer_append_bytes(value, drop->from);
    buffer_append_bytes(value, drop->to);
    return value->failed ? status_out_of_memory() : status_ok();
}

void drop_record_put(struct store_batch *batch, struct keyspace *system, uint64_t keyspace_id,
                     uint64_t version, uint64_t sequence, struct buffer *value)
{
    struct drop_key key = make_key(keyspace_id, sequence);
    big_endian_write(value->data, version);
    store_batch_put(batch, system, key_bytes(&key), buffer_bytes(value));
}

void drop_record_forget_table(struct buffer *value)
{
    memset(value->data + NEWEST_TABLE_AT, 0, sizeof(uint64_t));
}

void drop_record_delete(struct store_batch *batch, struct keyspace *system, uint64_t keyspace_id,
                        uint64_t sequence)
{
    struct drop_key key = make_key(keyspace_id, sequence);
    store_batch_delete(batch, system, key_bytes(&key));
}

void drop_records_delete(struct store_batch *batch, struct keyspace *system, uint64_t keyspace_id)
{
    struct drop_key from = make_key(keyspace_id, 0), to = make_key(keyspace_id + 1, 0);
    store_batch_delete_range(batch, system, key_bytes(&from), key_bytes(&to));
}

/* --- reading --- */

static bool is_sound(const struct row_drop_words *drop)
{
    bool ends_behind = drop->to.size == 0 || bytes_compare(drop->from, drop->to) < 0;
    return drop->version != 0 && drop->sequence != 0 && ends_behind;
}

static bool parse_value(bytes value, struct row_drop_words *out)
{
    if (value.size < HEAD_SIZE)
        return false;
    bytes keys = bytes_from(value, HEAD_SIZE);
    uint32_t from_size;
    memcpy(&from_size, value.data + HEAD_SIZE - sizeof from_size, sizeof from_size);
    from_size = be32toh(from_size);
    if (from_size > keys.size)
        return false;
    out->version = big_endian_read(value.data);
    out->bytes = big_endian_read(value.data + BYTES_AT);
    out->newest_table = big_endian_read(value.data + NEWEST_TABLE_AT);
    out->from = bytes_make(keys.data, from_size);
    out->to = bytes_from(keys, from_size);
    return true;
}

bool drop_record_is_put(const struct store_change *change)
{
    return change->kind == STORE_PUT && change->key.size == DROP_RECORD_KEY_SIZE &&
           change->key.data[0] == DROP_RECORD;
}

status drop_record_parse(bytes key, bytes value, uint64_t *keyspace_id, struct row_drop_words *out)
{
    *out = (struct row_drop_words){.version = 0};
    if (key.size != DROP_RECORD_KEY_SIZE)
        return status_make(STATUS_DATA_LOSS, "the key of a drop of rows has not its size");
    *keyspace_id = big_endian_read(key.data + 1);
    out->sequence = big_endian_read(key.data + 1 + ID_SIZE);
    return parse_value(value, out) && is_sound(out)
               ? status_ok()
               : status_make(STATUS_DATA_LOSS, "a drop of rows does not parse");
}

static status visit_all(struct store_cursor *cursor,
                        status (*visit)(void *context, uint64_t keyspace_id), void *context)
{
    uint64_t last = 0;
    for (store_cursor_first(cursor); store_cursor_valid(cursor); store_cursor_next(cursor)) {
        bytes key = store_cursor_key(cursor);
        uint64_t id = key.size < 1 + ID_SIZE ? 0 : big_endian_read(key.data + 1);
        if (id != last)
            TRY(visit(context, id));
        last = id;
    }
    return store_cursor_status(cursor);
}

status drop_records_visit(struct keyspace *system,
                          status (*visit)(void *context, uint64_t keyspace_id), void *context)
{
    static const uint8_t from = DROP_RECORD, to = DROP_RECORD + 1;
    const struct store_cursor_options options = {.lower = bytes_make(&from, sizeof from),
                                                 .upper = bytes_make(&to, sizeof to),
                                                 .read_tier = STORE_READ_ANY};
    struct store_cursor *cursor;
    TRY(store_cursor_create(system, &options, &cursor));
    status s = visit_all(cursor, visit, context);
    store_cursor_destroy(cursor);
    return s;
}

static status load_one(bytes key, bytes value, struct row_drops *drops)
{
    uint64_t keyspace_id;
    struct row_drop_words words;
    struct row_drop *drop;
    TRY(drop_record_parse(key, value, &keyspace_id, &words));
    TRY(row_drops_reserve(drops));
    TRY(row_drop_create(words.from, words.to, &drop));
    row_drop_set_bytes(drop, words.bytes);
    row_drop_set_newest_table(drop, words.newest_table);
    row_drops_add(drops, drop, words.version, words.sequence);
    return status_ok();
}

/* Their sequences rise as their keys do. */
static status load_all(struct store_cursor *cursor, struct row_drops *drops)
{
    for (store_cursor_first(cursor); store_cursor_valid(cursor); store_cursor_next(cursor))
        TRY(load_one(store_cursor_key(cursor), store_cursor_value(cursor), drops));
    return store_cursor_status(cursor);
}

status drop_records_load(struct keyspace *system, uint64_t keyspace_id, struct row_drops *drops)
{
    struct drop_key from = make_key(keyspace_id, 0), to = make_key(keyspace_id + 1, 0);
    const struct store_cursor_options options = {
        .lower = key_bytes(&from), .upper = key_bytes(&to), .read_tier = STORE_READ_ANY};
    struct store_cursor *cursor;
    TRY(store_cursor_create(system, &options, &cursor));
    status s = load_all(cursor, drops);
    store_cursor_destroy(cursor);
    return s;
}
