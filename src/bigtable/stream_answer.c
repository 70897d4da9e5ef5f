/* See stream_answer.h. A message's size comes before it in protobuf: room is left for as many bytes
 * as it is thought to take, and what follows is moved where that was wrong. */
#include "bigtable/stream_answer.h"

#include "base/varint.h"
#include "tablet/version.h"
#include "wire/proto.h"

/* Tags: field number and wire type. */
enum {
    NUMBER = 0,
    CONTENT = 2,
    RESPONSE_CHANGE = 1 << 3 | CONTENT,
    CHANGE_TYPE = 1 << 3 | NUMBER,
    CHANGE_CLUSTER = 2 << 3 | CONTENT,
    CHANGE_ROW_KEY = 3 << 3 | CONTENT,
    CHANGE_COMMIT_TIME = 4 << 3 | CONTENT,
    CHANGE_TIEBREAKER = 5 << 3 | NUMBER,
    CHANGE_CHUNK = 6 << 3 | CONTENT,
    CHANGE_DONE = 8 << 3 | NUMBER,
    CHANGE_TOKEN = 9 << 3 | CONTENT,
    CHANGE_WATERMARK = 10 << 3 | CONTENT,
    CHUNK_INFO = 1 << 3 | CONTENT,
    CHUNK_MUTATION = 2 << 3 | CONTENT,
    INFO_SIZE = 1 << 3 | NUMBER,
    INFO_OFFSET = 2 << 3 | NUMBER,
    INFO_IS_LAST = 3 << 3 | NUMBER,
    MUTATION_SET_CELL = 1 << 3 | CONTENT,
    MUTATION_DELETE_FROM_COLUMN = 2 << 3 | CONTENT,
    MUTATION_DELETE_FROM_FAMILY = 3 << 3 | CONTENT,
    MUTATION_ADD_TO_CELL = 5 << 3 | CONTENT,
    MUTATION_MERGE_TO_CELL = 6 << 3 | CONTENT,
    MUTATION_FAMILY = 1 << 3 | CONTENT, /* of all mutations */
    MUTATION_QUALIFIER = 2 << 3 | CONTENT,
    SET_TIMESTAMP = 3 << 3 | NUMBER,
    SET_VALUE = 4 << 3 | CONTENT,
    DELETE_TIME_RANGE = 3 << 3 | CONTENT,
    RANGE_START = 1 << 3 | NUMBER,
    RANGE_END = 2 << 3 | NUMBER,
    ADD_TIMESTAMP = 3 << 3 | CONTENT,
    ADD_INPUT = 4 << 3 | CONTENT,
    VALUE_INT = 6 << 3 | NUMBER,
    VALUE_RAW = 8 << 3 | CONTENT,
    VALUE_RAW_TIMESTAMP = 9 << 3 | NUMBER,
    TIME_SECONDS = 1 << 3 | NUMBER,
    TIME_NANOS = 2 << 3 | NUMBER,
    REST_MOSTLY = 40,  /* of a mutation, beside its contents: tags and sizes, and a timestamp */
    HEAD_MOSTLY = 150, /* of a change, beside its key: times, cluster and token */
};

/* --- fields --- */

static void append_number(struct buffer *out, uint8_t tag, uint64_t number)
{
    uint8_t *to = buffer_reserve(out, 1 + VARINT_MAX_SIZE);
    if (to == NULL)
        return;
    *to = tag;
    out->size += (size_t)(varint_write(to + 1, number) - to);
}

/* What is 0 is not said, save in a oneof. */
static void append_if_set(struct buffer *out, uint8_t tag, uint64_t number)
{
    if (number != 0)
        append_number(out, tag, number);
}

static void append_content(struct buffer *out, uint8_t tag, bytes content)
{
    uint8_t *to = buffer_reserve(out, 1 + VARINT_MAX_SIZE + content.size);
    if (to == NULL)
        return;
    uint8_t *at = to;
    *at++ = tag;
    at = varint_write(at, content.size);
    if (content.size > 0)
        memcpy(at, content.data, content.size);
    out->size += (size_t)(at - to) + content.size;
}

static void append_content_if_set(struct buffer *out, uint8_t tag, bytes content)
{
    if (content.size > 0)
        append_content(out, tag, content);
}

/* Begins a message within a message: where its fields begin. */
static size_t open_field(struct buffer *out, uint8_t tag, size_t about)
{
    size_t size = varint_size(about);
    uint8_t *to = buffer_reserve(out, 1 + VARINT_MAX_SIZE);
    if (to == NULL)
        return 0;
    *to = tag;
    out->size += 1 + size;
    return out->size;
}

static void close_field(struct buffer *out, size_t start, size_t about)
{
    if (out->failed)
        return;
    size_t body = out->size - start, left = varint_size(about), takes = varint_size(body);
    if (takes != left && buffer_reserve(out, VARINT_MAX_SIZE) == NULL)
        return;
    uint8_t *size = out->data + start - left;
    if (takes != left && body > 0)
        memmove(size + takes, size + left, body);
    varint_write(size, body);
    out->size = out->size - left + takes;
}

static void append_time(struct buffer *out, uint8_t tag, int64_t us)
{
    enum { ABOUT = 16 };
    size_t start = open_field(out, tag, ABOUT);
    append_if_set(out, TIME_SECONDS, (uint64_t)(us / 1000000));
    append_if_set(out, TIME_NANOS, (uint64_t)(us % 1000000) * 1000);
    close_field(out, start, ABOUT);
}

/* --- mutations --- */

static size_t content_bytes(const struct list_mutation *mutation)
{
    return mutation->family.size + mutation->qualifier.size + mutation->value.size;
}

static void append_set_cell(struct buffer *out, const struct list_mutation *mutation)
{
    append_content(out, MUTATION_FAMILY, mutation->family);
    append_content_if_set(out, MUTATION_QUALIFIER, mutation->qualifier);
    append_if_set(out, SET_TIMESTAMP, (uint64_t)mutation->timestamp_us);
    append_content_if_set(out, SET_VALUE, mutation->value);
}

static void append_delete_from_column(struct buffer *out, const struct list_mutation *mutation)
{
    enum { ABOUT = 20 };
    append_content(out, MUTATION_FAMILY, mutation->family);
    append_content_if_set(out, MUTATION_QUALIFIER, mutation->qualifier);
    if (mutation->timestamp_us == 0 && mutation->end_us == 0)
        return;
    size_t start = open_field(out, DELETE_TIME_RANGE, ABOUT);
    append_if_set(out, RANGE_START, (uint64_t)mutation->timestamp_us);
    append_if_set(out, RANGE_END, (uint64_t)mutation->end_us);
    close_field(out, start, ABOUT);
}

static void append_raw(struct buffer *out, uint8_t tag, bytes raw)
{
    size_t about = raw.size + 3;
    size_t start = open_field(out, tag, about);
    append_content(out, VALUE_RAW, raw);
    close_field(out, start, about);
}

static void append_value_number(struct buffer *out, uint8_t tag, uint8_t kind, int64_t number)
{
    enum { ABOUT = 9 };
    size_t start = open_field(out, tag, ABOUT);
    append_number(out, kind, (uint64_t)number);
    close_field(out, start, ABOUT);
}

/* In the kinds of values that Google's client in Java reads, and no others. */
static void append_add(struct buffer *out, const struct list_mutation *mutation)
{
    append_content(out, MUTATION_FAMILY, mutation->family);
    append_raw(out, MUTATION_QUALIFIER, mutation->qualifier);
    append_value_number(out, ADD_TIMESTAMP, VALUE_RAW_TIMESTAMP, mutation->timestamp_us);
    if (mutation->kind == LIST_ADD_INT)
        append_value_number(out, ADD_INPUT, VALUE_INT, mutation->number);
    else
        append_raw(out, ADD_INPUT, mutation->value);
}

static uint8_t mutation_tag(enum list_kind kind)
{
    switch (kind) {
    case LIST_SET:
        return MUTATION_SET_CELL;
    case LIST_DELETE_COLUMN:
        return MUTATION_DELETE_FROM_COLUMN;
    case LIST_DELETE_FAMILY:
        return MUTATION_DELETE_FROM_FAMILY;
    case LIST_ADD_INT:
    case LIST_ADD_BYTES:
        return MUTATION_ADD_TO_CELL;
    case LIST_MERGE:
    case LIST_DELETE_ROW: /* not in what is stored */
        break;
    }
    return MUTATION_MERGE_TO_CELL;
}

static void append_fields(struct buffer *out, const struct list_mutation *mutation)
{
    switch (mutation->kind) {
    case LIST_SET:
        append_set_cell(out, mutation);
        break;
    case LIST_DELETE_COLUMN:
        append_delete_from_column(out, mutation);
        break;
    case LIST_DELETE_FAMILY:
        append_content(out, MUTATION_FAMILY, mutation->family);
        break;
    case LIST_ADD_INT:
    case LIST_ADD_BYTES:
    case LIST_MERGE:
    case LIST_DELETE_ROW:
        append_add(out, mutation);
        break;
    }
}

static void append_mutation(struct buffer *out, const struct list_mutation *mutation)
{
    size_t about = content_bytes(mutation) + REST_MOSTLY / 2;
    size_t start = open_field(out, CHUNK_MUTATION, about);
    size_t inner = open_field(out, mutation_tag(mutation->kind), about);
    append_fields(out, mutation);
    close_field(out, inner, about);
    close_field(out, start, about);
}

/* Rises with the changes of a row that have one commit time: those of commits in one microsecond,
 * and of one request that names the row several times. Fits the field's 31 bits. */
static uint64_t tiebreaker_of(const struct stream_record *record)
{
    enum { ORDINAL_BITS = 18 }; /* two records for each entry of a MutateRows */
    uint64_t ordinal = record->position.ordinal % (UINT64_C(1) << ORDINAL_BITS);
    uint64_t low_bits = record->version % (UINT64_C(1) << VERSION_LOW_BITS);
    return low_bits << ORDINAL_BITS | ordinal;
}

/* --- changes --- */

struct change_message change_message_begin(struct buffer *out, const struct change_head *head,
                                           size_t about)
{
    const struct stream_record *record = head == NULL ? NULL : head->record;
    about += head == NULL ? REST_MOSTLY : record->row_key.size + HEAD_MOSTLY;
    struct change_message message = {
        .out = out, .start = open_field(out, RESPONSE_CHANGE, about), .about = about};
    if (head == NULL) {
        append_number(out, CHANGE_TYPE,
                      BT__READ_CHANGE_STREAM_RESPONSE__DATA_CHANGE__TYPE__CONTINUATION);
        return message;
    }
    bool is_user = record->kind != STREAM_COLLECTED;
    append_number(out, CHANGE_TYPE,
                  is_user ? BT__READ_CHANGE_STREAM_RESPONSE__DATA_CHANGE__TYPE__USER
                          : BT__READ_CHANGE_STREAM_RESPONSE__DATA_CHANGE__TYPE__GARBAGE_COLLECTION);
    if (is_user)
        append_content(out, CHANGE_CLUSTER, head->cluster_id);
    append_content(out, CHANGE_ROW_KEY, record->row_key);
    append_time(out, CHANGE_COMMIT_TIME, version_time_us(record->version));
    append_if_set(out, CHANGE_TIEBREAKER, tiebreaker_of(record));
    return message;
}

void change_message_add(struct change_message *message, const struct list_mutation *mutation)
{
    size_t about = content_bytes(mutation) + REST_MOSTLY;
    size_t start = open_field(message->out, CHANGE_CHUNK, about);
    append_mutation(message->out, mutation);
    close_field(message->out, start, about);
}

void change_message_add_piece(struct change_message *message, const struct list_mutation *mutation,
                              size_t size, size_t offset, bytes piece)
{
    enum { ABOUT_INFO = 12 };
    struct list_mutation part = *mutation;
    struct buffer *out = message->out;
    part.value = piece;
    size_t about = content_bytes(&part) + REST_MOSTLY;
    size_t start = open_field(out, CHANGE_CHUNK, about);
    size_t info = open_field(out, CHUNK_INFO, ABOUT_INFO);
    append_number(out, INFO_SIZE, size);
    append_if_set(out, INFO_OFFSET, offset);
    append_if_set(out, INFO_IS_LAST, offset + piece.size == size);
    close_field(out, info, ABOUT_INFO);
    append_mutation(out, &part);
    close_field(out, start, about);
}

void change_message_end(struct change_message *message, const struct change_end *end)
{
    struct buffer *out = message->out;
    if (end != NULL) {
        append_number(out, CHANGE_DONE, true);
        append_content(out, CHANGE_TOKEN, end->token);
        append_time(out, CHANGE_WATERMARK, end->watermark_us);
    }
    close_field(out, message->start, message->about);
}

/* --- the others --- */

void partition_message(bytes start, bytes end, struct partition_message *out)
{
    *out = (struct partition_message){BT__STREAM_PARTITION__INIT, BT__ROW_RANGE__INIT};
    out->range.start_key_case = BT__ROW_RANGE__START_KEY_START_KEY_CLOSED;
    out->range.start_key_closed = proto_data(start);
    out->range.end_key_case = BT__ROW_RANGE__END_KEY_END_KEY_OPEN;
    out->range.end_key_open = proto_data(end);
    out->partition.row_range = &out->range;
}

void heartbeat_append(struct buffer *out, bytes start, bytes end, const char *token,
                      int64_t watermark_us)
{
    struct partition_message partition;
    Bt__StreamContinuationToken continuation = BT__STREAM_CONTINUATION_TOKEN__INIT;
    Bt__ReadChangeStreamResponse__Heartbeat heartbeat =
        BT__READ_CHANGE_STREAM_RESPONSE__HEARTBEAT__INIT;
    Bt__ReadChangeStreamResponse response = BT__READ_CHANGE_STREAM_RESPONSE__INIT;
    Pb__Timestamp watermark = PB__TIMESTAMP__INIT;
    partition_message(start, end, &partition);
    continuation.partition = &partition.partition;
    continuation.token = token;
    watermark.seconds = watermark_us / 1000000;
    watermark.nanos = (int32_t)(watermark_us % 1000000 * 1000);
    heartbeat.continuation_token = &continuation;
    heartbeat.estimated_low_watermark = &watermark;
    response.stream_record_case = BT__READ_CHANGE_STREAM_RESPONSE__STREAM_RECORD_HEARTBEAT;
    response.heartbeat = &heartbeat;
    proto_encode(&response.base, out);
}

static bool list_successors(struct successor *successors, size_t count, struct arena *arena,
                            Bt__ReadChangeStreamResponse__CloseStream *close)
{
    Bt__StreamContinuationToken *tokens = arena_alloc(arena, count * sizeof *tokens);
    close->continuation_tokens = arena_alloc(arena, count * sizeof(*close->continuation_tokens));
    close->new_partitions = arena_alloc(arena, count * sizeof(*close->new_partitions));
    if (tokens == NULL || close->continuation_tokens == NULL || close->new_partitions == NULL)
        return false;
    for (size_t i = 0; i < count; i++) {
        tokens[i] = (Bt__StreamContinuationToken)BT__STREAM_CONTINUATION_TOKEN__INIT;
        tokens[i].partition = &successors[i].part.partition;
        tokens[i].token = successors[i].token;
        close->continuation_tokens[i] = &tokens[i];
        close->new_partitions[i] = &successors[i].newer.partition;
    }
    close->n_continuation_tokens = close->n_new_partitions = count;
    return true;
}

void close_append(struct buffer *out, struct successor *successors, size_t count,
                  struct arena *arena)
{
    Rpc__Status code = RPC__STATUS__INIT;
    Bt__ReadChangeStreamResponse__CloseStream close =
        BT__READ_CHANGE_STREAM_RESPONSE__CLOSE_STREAM__INIT;
    Bt__ReadChangeStreamResponse response = BT__READ_CHANGE_STREAM_RESPONSE__INIT;
    if (count > 0) {
        code.code = STATUS_OUT_OF_RANGE;
        code.message = "Partition boundaries are misaligned.";
    }
    close.status = &code;
    response.stream_record_case = BT__READ_CHANGE_STREAM_RESPONSE__STREAM_RECORD_CLOSE_STREAM;
    response.close_stream = &close;
    if (count > 0 && !list_successors(successors, count, arena, &close))
        out->failed = true;
    else
        proto_encode(&response.base, out);
}
