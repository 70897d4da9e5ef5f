/* See segment_records.h. Values are catalog.StreamSegment (proto/trestle/catalog.proto). */
#include "stream/segment_records.h"

#include "trestle/catalog.pb-c.h"
#include "wire/proto.h"

#include <endian.h>

enum { RECORD_MEMORY = 64 << 10 };

struct segment_key {
    uint8_t data[1 + 8];
};

static struct segment_key make_key(uint64_t number)
{
    struct segment_key key = {.data = {STREAM_SEGMENT_RECORD}};
    uint64_t word = htobe64(number);
    memcpy(key.data + 1, &word, sizeof word);
    return key;
}

void stream_segment_put(struct store_batch *batch, struct keyspace *system,
                        const struct stream_segment_record *record)
{
    Catalog__StreamSegment message = CATALOG__STREAM_SEGMENT__INIT;
    struct segment_key key = make_key(record->number);
    struct buffer value = {0};
    message.keyspace = record->keyspace;
    message.from_sequence = record->from;
    message.from_us = record->from_us;
    proto_encode(&message.base, &value);
    if (value.failed)
        store_batch_fail(batch);
    else
        store_batch_put(batch, system, bytes_make(key.data, sizeof key.data), buffer_bytes(&value));
    buffer_free(&value);
}

void stream_segment_delete(struct store_batch *batch, struct keyspace *system, uint64_t number)
{
    struct segment_key key = make_key(number);
    store_batch_delete(batch, system, bytes_make(key.data, sizeof key.data));
}

static status read_record(bytes key, bytes value, struct arena *arena,
                          struct stream_segment_record *out)
{
    ProtobufCMessage *message;
    uint64_t number;
    if (key.size != sizeof(struct segment_key))
        return status_make(STATUS_DATA_LOSS, "a record of a segment has a key of %zu bytes",
                           key.size);
    memcpy(&number, key.data + 1, sizeof number);
    status s = proto_decode(&catalog__stream_segment__descriptor, value, arena, &message);
    if (s.code == STATUS_INVALID_ARGUMENT) {
        status_free(s);
        s = status_make(STATUS_DATA_LOSS, "the record of segment %llu does not parse",
                        (unsigned long long)be64toh(number));
    }
    TRY(s);
    const Catalog__StreamSegment *segment = (const Catalog__StreamSegment *)(const void *)message;
    *out = (struct stream_segment_record){.number = be64toh(number),
                                          .keyspace = segment->keyspace,
                                          .from = segment->from_sequence,
                                          .from_us = segment->from_us};
    return status_ok();
}

static status visit_all(struct store_cursor *cursor, struct arena *arena,
                        status (*visit)(void *context, const struct stream_segment_record *record),
                        void *context)
{
    struct stream_segment_record record;
    for (store_cursor_first(cursor); store_cursor_valid(cursor); store_cursor_next(cursor)) {
        TRY(read_record(store_cursor_key(cursor), store_cursor_value(cursor), arena, &record));
        arena_reset(arena);
        TRY(visit(context, &record));
    }
    return store_cursor_status(cursor);
}

status stream_segments_visit(struct keyspace *system,
                             status (*visit)(void *context,
                                             const struct stream_segment_record *record),
                             void *context)
{
    static const uint8_t first = STREAM_SEGMENT_RECORD, behind = STREAM_SEGMENT_RECORD + 1;
    const struct store_cursor_options options = {.lower = bytes_make(&first, 1),
                                                 .upper = bytes_make(&behind, 1),
                                                 .read_tier = STORE_READ_ANY};
    struct store_cursor *cursor;
    TRY(store_cursor_create(system, &options, &cursor));
    struct arena *arena = arena_create(RECORD_MEMORY);
    status s = arena == NULL ? status_out_of_memory() : visit_all(cursor, arena, visit, context);
    arena_destroy(arena);
    store_cursor_destroy(cursor);
    return s;
}
