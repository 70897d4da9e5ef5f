/* See table_stream_testing.h. */
#include "bigtable/testing/table_stream_testing.h"

#include "tablet/version.h"

#include <stdlib.h>

struct fake_stream stream;

void fake_stream_reset(void)
{
    stream = (struct fake_stream){.facts = {.retention_us = 1, .life = FAKE_LIFE}};
}

void fake_stream_free(void)
{
    assert_null(stream.waiter);
    for (size_t i = 0; i < stream.record_count; i++)
        change_list_free(&stream.records[i].list);
}

void fake_stream_partition(const char *start, const char *end)
{
    assert_true(stream.partition_count < FAKE_MOST_PARTITIONS);
    stream.partitions[stream.partition_count++] = (struct fake_bounds){start, end};
}

struct change_list *fake_stream_record(const char *key, int64_t time_us)
{
    assert_true(stream.record_count < FAKE_MOST_RECORDS);
    struct fake_record *record = &stream.records[stream.record_count++];
    *record = (struct fake_record){.key = key, .time_us = time_us, .kind = STREAM_USER};
    return &record->list;
}

void fake_stream_wake(void)
{
    struct stream_waiter *waiter = stream.waiter;
    stream.waiter = NULL;
    if (waiter != NULL)
        loop_post(waiter->loop, &waiter->task);
}

uint8_t fake_stream_byte(size_t offset)
{
    return (uint8_t)(offset % 251);
}

/* --- table_stream.h --- */

struct stream_facts table_stream_facts(struct table *table)
{
    (void)table;
    return stream.facts;
}

status table_stream_partitions(struct table *table,
                               status (*visit)(void *context, bytes start, bytes end),
                               void *context)
{
    (void)table;
    for (size_t i = 0; i < stream.partition_count; i++)
        TRY(visit(context, bytes_of(stream.partitions[i].start),
                  bytes_of(stream.partitions[i].end)));
    return status_ok();
}

bool table_stream_is_partition(struct table *table, bytes start, bytes end, uint32_t *shard)
{
    (void)table;
    *shard = 0;
    bool is = false;
    for (size_t i = 0; i < stream.partition_count; i++)
        is = is || (bytes_equal(start, bytes_of(stream.partitions[i].start)) &&
                    bytes_equal(end, bytes_of(stream.partitions[i].end)));
    return is;
}

static uint64_t sequence_before(int64_t time_us)
{
    size_t i = 0;
    while (i < stream.record_count && stream.records[i].time_us < time_us)
        i++;
    return i;
}

/* The last before the time is met again: whoever reads passes it over. */
status table_stream_token_at(struct table *table, int64_t time_us, bytes start, bytes end,
                             struct arena *arena, struct stream_token *out)
{
    (void)table;
    uint64_t sequence = sequence_before(time_us);
    *out = (struct stream_token){
        .life = FAKE_LIFE, .time_us = time_us, .start = start, .part_count = 1};
    out->parts = arena_alloc(arena, sizeof *out->parts);
    assert_non_null(out->parts);
    out->parts[0] = (struct stream_part){end, {sequence == 0 ? 0 : sequence - 1, UINT32_MAX}};
    return status_ok();
}

static bool is_behind(const struct stream_token *token, struct stream_position position, bytes key)
{
    bytes start = token->start;
    for (size_t i = 0; i < token->part_count; i++) {
        bytes end = token->parts[i].end;
        if (bytes_compare(key, start) >= 0 && (end.size == 0 || bytes_compare(key, end) < 0))
            return stream_position_compare(position, token->parts[i].after) > 0;
        start = end;
    }
    return false;
}

static void move_token(struct stream_token *token, struct stream_position position, int64_t time_us)
{
    struct stream_part parts[FAKE_MOST_PARTITIONS];
    struct stream_part *own = token->parts;
    assert_true(token->part_count <= FAKE_MOST_PARTITIONS);
    *token = stream_token_advanced(token, position, time_us, parts);
    token->parts = own;
    memcpy(own, parts, token->part_count * sizeof *parts);
}

status table_stream_adopt(struct table *table, struct stream_token *token)
{
    (void)table;
    return stream_eras_check(&stream.eras, token);
}

status table_stream_read(struct table *table, struct stream_token *token, size_t most_bytes,
                         status (*visit)(void *context, const struct stream_record *record,
                                         bool *enough),
                         void *context, bool *is_at_end)
{
    (void)table;
    const struct stream_token from = *token;
    struct stream_position position = {0, UINT32_MAX};
    bool enough = false;
    stream.reads++;
    if (stream.on_read != NULL)
        stream.on_read();
    assert_true(most_bytes > 0 && from.life == FAKE_LIFE);
    for (size_t i = 0; i < stream.record_count && !enough; i++) {
        const struct fake_record *there = &stream.records[i];
        const struct stream_record record = {.kind = there->kind,
                                             .tablet = 1,
                                             .position = {i + 1, 0},
                                             .version = version_at(there->time_us) + 5,
                                             .row_key = bytes_of(there->key),
                                             .list = buffer_bytes(&there->list.list)};
        position = (struct stream_position){i + 1, UINT32_MAX};
        if (is_behind(&from, record.position, record.row_key))
            TRY(visit(context, &record, &enough));
        if (enough)
            move_token(token, record.position, there->time_us);
    }
    *is_at_end = !enough;
    if (!enough)
        move_token(token, position, stream.watermark_us);
    return status_ok();
}

static size_t pieces_of(bytes value)
{
    return (value.size + STREAM_PIECE_BYTES - 1) / STREAM_PIECE_BYTES;
}

int64_t table_stream_watermark(const struct table *table, uint32_t shard, bytes start, bytes end,
                               struct stream_position position, int64_t time_us)
{
    (void)table, (void)shard, (void)start, (void)end, (void)position;
    return stream.cap_us != 0 && stream.cap_us < time_us ? stream.cap_us : time_us;
}

status table_stream_read_piece(struct table *table, uint32_t shard,
                               const struct stream_record *record, uint32_t piece,
                               struct buffer *out)
{
    (void)table;
    assert_int_equal(shard, 0);
    assert_true(piece > 0);
    stream.pieces++;
    if (stream.piece_fails != STATUS_OK)
        return status_make(stream.piece_fails, "the piece is gone");
    const struct change_list *list = &stream.records[record->position.sequence - 1].list;
    size_t at = 0, number = piece - 1;
    while (at < list->apart_count && number >= pieces_of(list->apart[at]))
        number -= pieces_of(list->apart[at++]);
    assert_true(at < list->apart_count);
    bytes rest = bytes_from(list->apart[at], number * STREAM_PIECE_BYTES);
    buffer_append(out, rest.data, rest.size < STREAM_PIECE_BYTES ? rest.size : STREAM_PIECE_BYTES);
    return status_ok();
}

bool table_stream_wait(struct table *table, bytes start, bytes end, struct stream_waiter *waiter)
{
    uint32_t shard;
    assert_null(stream.waiter);
    if (!table_stream_is_partition(table, start, end, &shard) || stream.facts.retention_us == 0)
        return false;
    stream.waiter = waiter;
    return true;
}

bool table_stream_forget(struct table *table, uint32_t shard, struct stream_waiter *waiter)
{
    (void)table;
    assert_int_equal(shard, 0);
    bool is_in_line = stream.waiter == waiter;
    if (is_in_line)
        stream.waiter = NULL;
    return is_in_line;
}
