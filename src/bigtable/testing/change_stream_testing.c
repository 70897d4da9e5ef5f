/* See change_stream_testing.h. */
#include "bigtable/testing/change_stream_testing.h"

#include "bigtable/data_methods.h"
#include "bigtable/stream_profile.h"
#include "bigtable/stream_sources.h"

#include <stdio.h>

typedef Bt__ReadChangeStreamResponse__DataChange data_change;
typedef Bt__ReadChangeStreamResponse__MutationChunk mutation_chunk;

enum { MOST_TEXT = CLIENT_TEXT };

/* --- the client --- */

struct client client;

static void add_text(const char *format, ...)
{
    char *text = client.changes[client.change_count].text;
    size_t size = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + size, MOST_TEXT - size, format, arguments);
    va_end(arguments);
}

static int64_t time_of(const Pb__Timestamp *timestamp)
{
    assert_non_null(timestamp);
    assert_int_equal(timestamp->nanos % 1000, 0);
    return timestamp->seconds * 1000000 + timestamp->nanos / 1000;
}

static void take_watermark(const Pb__Timestamp *timestamp)
{
    assert_true(time_of(timestamp) >= client.watermark_us);
    client.watermark_us = time_of(timestamp);
}

static void take_bytes(bytes value)
{
    for (size_t i = 0; i < value.size; i += 4099)
        assert_int_equal(value.data[i], fake_stream_byte(client.value_sum + i));
    client.value_sum += value.size;
}

static void take_piece(const mutation_chunk *chunk, bool is_first, bool is_last)
{
    size_t size = (size_t)chunk->chunk_info->chunked_value_size;
    size_t offset = (size_t)chunk->chunk_info->chunked_value_offset;
    assert_int_equal(chunk->mutation->mutation_case, BT__MUTATION__MUTATION_SET_CELL);
    bytes value = proto_bytes(chunk->mutation->set_cell->value);
    if (client.value_size == 0) {
        assert_int_equal(offset, 0);
        client.value_size = size;
        client.value_sum = 0;
    } else {
        assert_true(is_first);
    }
    assert_int_equal(size, client.value_size);
    assert_int_equal(offset, client.value_sum);
    take_bytes(value);
    if (!chunk->chunk_info->last_chunk) {
        assert_true(is_last);
        return;
    }
    assert_int_equal(client.value_sum, size);
    client.value_size = 0;
    add_text("set(%s,%zu bytes) ", chunk->mutation->set_cell->family_name, size);
}

static int as_text(ProtobufCBinaryData b)
{
    return (int)b.len;
}

static void take_add(const char *name, const Bt__Value *qualifier, const Bt__Value *timestamp,
                     const Bt__Value *input)
{
    assert_int_equal(qualifier->kind_case, BT__VALUE__KIND_RAW_VALUE);
    assert_int_equal(timestamp->kind_case, BT__VALUE__KIND_RAW_TIMESTAMP_MICROS);
    add_text("%s(%.*s,%lld,", name, as_text(qualifier->raw_value),
             (const char *)qualifier->raw_value.data, (long long)timestamp->raw_timestamp_micros);
    if (input->kind_case == BT__VALUE__KIND_INT_VALUE) {
        add_text("%lld) ", (long long)input->int_value);
        return;
    }
    assert_int_equal(input->kind_case, BT__VALUE__KIND_RAW_VALUE);
    add_text("'%.*s') ", as_text(input->raw_value), (const char *)input->raw_value.data);
}

static void take_mutation(const Bt__Mutation *mutation)
{
    switch (mutation->mutation_case) {
    case BT__MUTATION__MUTATION_SET_CELL:
        if (mutation->set_cell->value.len <= 100)
            add_text("set(%s,%.*s,%lld,%.*s) ", mutation->set_cell->family_name,
                     as_text(mutation->set_cell->column_qualifier),
                     (const char *)mutation->set_cell->column_qualifier.data,
                     (long long)mutation->set_cell->timestamp_micros,
                     as_text(mutation->set_cell->value),
                     (const char *)mutation->set_cell->value.data);
        break;
    case BT__MUTATION__MUTATION_DELETE_FROM_COLUMN: {
        const Bt__TimestampRange *range = mutation->delete_from_column->time_range;
        add_text("column(%s,%.*s,%lld,%lld) ", mutation->delete_from_column->family_name,
                 as_text(mutation->delete_from_column->column_qualifier),
                 (const char *)mutation->delete_from_column->column_qualifier.data,
                 (long long)(range == NULL ? 0 : range->start_timestamp_micros),
                 (long long)(range == NULL ? 0 : range->end_timestamp_micros));
        break;
    }
    case BT__MUTATION__MUTATION_DELETE_FROM_FAMILY:
        add_text("family(%s) ", mutation->delete_from_family->family_name);
        break;
    case BT__MUTATION__MUTATION_ADD_TO_CELL:
        take_add("add", mutation->add_to_cell->column_qualifier, mutation->add_to_cell->timestamp,
                 mutation->add_to_cell->input);
        break;
    case BT__MUTATION__MUTATION_MERGE_TO_CELL:
        take_add("merge", mutation->merge_to_cell->column_qualifier,
                 mutation->merge_to_cell->timestamp, mutation->merge_to_cell->input);
        break;
    default:
        fail();
    }
}

static void take_head(const data_change *message)
{
    struct change *change = &client.changes[client.change_count];
    assert_true(client.change_count < MOST_CHANGES);
    *change = (struct change){.head = *message};
    assert_true(message->row_key.len > 0 && message->row_key.len < sizeof change->row_key);
    assert_true(message->n_chunks > 0);
    bool is_user = message->type == BT__READ_CHANGE_STREAM_RESPONSE__DATA_CHANGE__TYPE__USER;
    assert_true(is_user ||
                message->type ==
                    BT__READ_CHANGE_STREAM_RESPONSE__DATA_CHANGE__TYPE__GARBAGE_COLLECTION);
    assert_string_equal(message->source_cluster_id, is_user ? "c1" : "");
    memcpy(change->row_key, message->row_key.data, message->row_key.len);
    change->time_us = time_of(message->commit_timestamp);
    assert_int_equal(message->tiebreaker, 5 << 18); /* the first row of the version's commit */
}

static void take_change(const data_change *message)
{
    struct change *change = &client.changes[client.change_count];
    if (!client.is_inside)
        take_head(message);
    else
        assert_int_equal(message->type,
                         BT__READ_CHANGE_STREAM_RESPONSE__DATA_CHANGE__TYPE__CONTINUATION);
    for (size_t i = 0; i < message->n_chunks; i++) {
        const mutation_chunk *chunk = message->chunks[i];
        if (chunk->chunk_info != NULL) {
            take_piece(chunk, i == 0, i + 1 == message->n_chunks);
            continue;
        }
        assert_int_equal(client.value_size, 0);
        take_mutation(chunk->mutation);
    }
    client.is_inside = !message->done;
    assert_true(message->n_chunks > 0);
    if (!message->done)
        return;
    assert_int_equal(client.value_size, 0);
    assert_true(message->token[0] != '\0');
    snprintf(change->token, sizeof change->token, "%s", message->token);
    take_watermark(message->estimated_low_watermark);
    change->watermark_us = client.watermark_us;
    client.change_count++;
}

static void receive(struct grpc_call *call, bytes wire)
{
    ProtobufCMessage *message;
    assert_ok(
        proto_decode(&bt__read_change_stream_response__descriptor, wire, call->arena, &message));
    const Bt__ReadChangeStreamResponse *response = (const void *)message;
    assert_null(client.close);
    if (response->stream_record_case ==
        BT__READ_CHANGE_STREAM_RESPONSE__STREAM_RECORD_DATA_CHANGE) {
        take_change(response->data_change);
        return;
    }
    assert_false(client.is_inside);
    if (response->stream_record_case == BT__READ_CHANGE_STREAM_RESPONSE__STREAM_RECORD_HEARTBEAT) {
        client.heartbeats++;
        take_watermark(response->heartbeat->estimated_low_watermark);
        snprintf(client.heartbeat_token, MOST_TEXT, "%s",
                 response->heartbeat->continuation_token->token);
        return;
    }
    client.close = response->close_stream;
}

status stream_profile_check(const struct bigtable *bigtable, const char *table, const char *profile,
                            struct arena *arena, const char **cluster_id)
{
    (void)bigtable, (void)table, (void)profile, (void)arena;
    *cluster_id = "c1";
    return client.profile_fails == STATUS_OK ? status_ok()
                                             : status_make(client.profile_fails, "no profile");
}

/* --- requests --- */

static const struct family family = {.id = 1, .name = {(const uint8_t *)"f", 1}};
static const struct schema schema = {.families = &family, .family_count = 1};
uint8_t *large_value;

int client_setup(void **state)
{
    (void)state;
    fake_reset(&schema);
    fake.now_us = NOW_US;
    fake.call.receive = receive;
    fake_stream_reset();
    client = (struct client){.change_count = 0};
    return 0;
}

int client_teardown(void **state)
{
    (void)state;
    fake_stream_free();
    fake_free();
    return 0;
}

static void set_range(Bt__StreamPartition *partition, Bt__RowRange *range, const char *start,
                      const char *end)
{
    *partition = (Bt__StreamPartition)BT__STREAM_PARTITION__INIT;
    *range = (Bt__RowRange)BT__ROW_RANGE__INIT;
    range->start_key_case = BT__ROW_RANGE__START_KEY_START_KEY_CLOSED;
    range->start_key_closed = proto_data(bytes_of(start));
    range->end_key_case = BT__ROW_RANGE__END_KEY_END_KEY_OPEN;
    range->end_key_open = proto_data(bytes_of(end));
    partition->row_range = range;
}

void ask(struct request *request, const char *start, const char *end)
{
    request->message = (Bt__ReadChangeStreamRequest)BT__READ_CHANGE_STREAM_REQUEST__INIT;
    request->message.table_name = TABLE_NAME;
    request->message.partition = &request->partition;
    set_range(&request->partition, &request->range, start, end);
    request->tokens = (Bt__StreamContinuationTokens)BT__STREAM_CONTINUATION_TOKENS__INIT;
    request->tokens.tokens = request->token_pointers;
}

static Pb__Timestamp timestamp(int64_t us)
{
    Pb__Timestamp timestamp = PB__TIMESTAMP__INIT;
    timestamp.seconds = us / 1000000;
    timestamp.nanos = (int32_t)(us % 1000000 * 1000);
    return timestamp;
}

void from_time(struct request *request, int64_t us)
{
    request->start = timestamp(us);
    request->message.start_from_case = BT__READ_CHANGE_STREAM_REQUEST__START_FROM_START_TIME;
    request->message.start_time = &request->start;
}

void until(struct request *request, int64_t us)
{
    request->end = timestamp(us);
    request->message.end_time = &request->end;
}

void from_token(struct request *request, const char *start, const char *end, const char *token)
{
    size_t at = request->tokens.n_tokens++;
    request->token[at] = (Bt__StreamContinuationToken)BT__STREAM_CONTINUATION_TOKEN__INIT;
    request->token[at].token = token;
    request->token[at].partition = &request->token_partition[at];
    set_range(&request->token_partition[at], &request->token_range[at], start, end);
    request->token_pointers[at] = &request->token[at];
    request->message.start_from_case =
        BT__READ_CHANGE_STREAM_REQUEST__START_FROM_CONTINUATION_TOKENS;
    request->message.continuation_tokens = &request->tokens;
}

void call(const struct request *request)
{
    client.close = NULL;
    client.is_inside = false;
    client.value_size = 0;
    client.watermark_us = 0;
    fake_call(read_change_stream, &request->message.base);
    fake_run();
}

void let_go(void)
{
    fake.call.is_cancelled = true;
    if (!fake.call.is_finished)
        fake.call.on_cancel(fake.call.context);
    fake_run();
    assert_true(fake.call.is_finished);
    fake.call.is_cancelled = false;
}

void set_cell(struct change_list *list, const char *qualifier, int64_t timestamp_us, bytes value)
{
    change_list_add(list, &(const struct list_mutation){.kind = LIST_SET,
                                                        .family = bytes_of("f"),
                                                        .qualifier = bytes_of(qualifier),
                                                        .timestamp_us = timestamp_us,
                                                        .value = value});
}

void put(const char *key, int64_t time_us)
{
    set_cell(fake_stream_record(key, time_us), "q", 1000, bytes_of(key));
}

/* A stream of one partition with a record each second from NOW_US - 10 s on. */
void put_ten(void)
{
    static const char *const keys[] = {"a", "m", "b", "n", "c", "o", "d", "p", "e", "q"};
    fake_stream_partition("", "");
    for (size_t i = 0; i < 10; i++)
        put(keys[i], NOW_US - 10000000 + (int64_t)i * 1000000);
    stream.watermark_us = NOW_US;
}

void assert_keys(size_t from, const char *keys)
{
    assert_int_equal(client.change_count - from, strlen(keys));
    for (size_t i = 0; keys[i] != '\0'; i++)
        assert_int_equal(client.changes[from + i].row_key[0], keys[i]);
}

int client_make_large_value(void **state)
{
    (void)state;
    large_value = malloc(LARGE_BYTES);
    for (size_t i = 0; large_value != NULL && i < LARGE_BYTES; i++)
        large_value[i] = fake_stream_byte(i);
    return large_value == NULL ? -1 : 0;
}

int client_free_large_value(void **state)
{
    (void)state;
    free(large_value);
    return 0;
}

status stream_sources_find(const struct bigtable *bigtable, const char *table, struct arena *arena,
                           struct stream_sources *out)
{
    (void)bigtable, (void)table, (void)arena, (void)out;
    return status_ok(); /* no peers */
}
