/* See change_assembly.h. A message is decoded in the memory of its change, where its mutations
 * stay. Only within a large value, which takes many messages, is it decoded apart, and its piece
 * copied. */
#include "client/change_assembly.h"

#include "wire/proto.h"
#include "wire/timestamps.h"

enum { CHANGE_LIMIT = 1 << 30, MESSAGE_LIMIT = 256 << 20 }; /* bytes of memory */

typedef Bt__ReadChangeStreamResponse__DataChange data_change;
typedef Bt__ReadChangeStreamResponse__MutationChunk mutation_chunk;

static status bad_message(const char *what)
{
    return status_make(STATUS_DATA_LOSS, "the server's messages make no changes: %s", what);
}

static status check_time(const Pb__Timestamp *time)
{
    status s = time == NULL ? bad_message("a time is missing") : timestamp_check("a time", time);
    if (status_is_ok(s) || s.code == STATUS_DATA_LOSS)
        return s;
    status_free(s);
    return bad_message("a time is none between 1970 and 9999");
}

/* --- making and ending --- */

status change_assembly_init(struct change_assembly *a)
{
    *a = (struct change_assembly){.arena = arena_create(CHANGE_LIMIT),
                                  .piece = arena_create(MESSAGE_LIMIT)};
    if (a->arena != NULL && a->piece != NULL)
        return status_ok();
    change_assembly_free(a);
    return status_out_of_memory();
}

void change_assembly_free(struct change_assembly *a)
{
    arena_destroy(a->arena);
    arena_destroy(a->piece);
    *a = (struct change_assembly){0};
}

void change_assembly_reset(struct change_assembly *a)
{
    arena_reset(a->arena);
    arena_reset(a->piece);
    *a = (struct change_assembly){.arena = a->arena, .piece = a->piece};
}

/* --- mutations --- */

static status check_kind(const Bt__Mutation *mutation)
{
    switch (mutation == NULL ? BT__MUTATION__MUTATION__NOT_SET : mutation->mutation_case) {
    case BT__MUTATION__MUTATION_SET_CELL:
    case BT__MUTATION__MUTATION_DELETE_FROM_COLUMN:
    case BT__MUTATION__MUTATION_DELETE_FROM_FAMILY:
    case BT__MUTATION__MUTATION_ADD_TO_CELL:
    case BT__MUTATION__MUTATION_MERGE_TO_CELL:
        return status_ok();
    default:
        return bad_message("a mutation is of a kind that no stream has");
    }
}

/* The value's memory is taken at once; what of it has come, its length says. */
static status begin_value(struct change_assembly *a, Bt__Mutation *mutation, size_t size)
{
    ProtobufCBinaryData *value = &mutation->set_cell->value;
    uint8_t *whole = arena_alloc(a->arena, size);
    if (whole == NULL)
        return status_out_of_memory();
    if (value->len > 0)
        memcpy(whole, value->data, value->len);
    value->data = whole;
    a->valued = mutation;
    a->value_size = size;
    return vector_add(&a->mutations, a->arena, &mutation, sizeof(Bt__Mutation *));
}

static status end_piece(struct change_assembly *a, const mutation_chunk *chunk, bool is_last)
{
    if (!chunk->chunk_info->last_chunk)
        return is_last ? status_ok() : bad_message("something follows the piece of a value");
    if (a->valued->set_cell->value.len != a->value_size)
        return bad_message("a value does not have its size");
    a->valued = NULL;
    return status_ok();
}

/* The first piece of a value, which may be all of it. */
static status take_first_piece(struct change_assembly *a, const mutation_chunk *chunk, bool is_last)
{
    const Bt__ReadChangeStreamResponse__MutationChunk__ChunkInfo *info = chunk->chunk_info;
    if (chunk->mutation->mutation_case != BT__MUTATION__MUTATION_SET_CELL)
        return bad_message("what is in pieces is no SetCell");
    if (info->chunked_value_offset != 0 || info->chunked_value_size <= 0)
        return bad_message("a value begins in its midst");
    if (chunk->mutation->set_cell->value.len > (size_t)info->chunked_value_size)
        return bad_message("a value does not have its size");
    TRY(begin_value(a, chunk->mutation, (size_t)info->chunked_value_size));
    return end_piece(a, chunk, is_last);
}

static status take_next_piece(struct change_assembly *a, const mutation_chunk *chunk, bool is_last)
{
    ProtobufCBinaryData *value = &a->valued->set_cell->value;
    if (chunk->chunk_info == NULL || chunk->mutation == NULL ||
        chunk->mutation->mutation_case != BT__MUTATION__MUTATION_SET_CELL)
        return bad_message("a value is not gone on with");
    bytes piece = proto_bytes(chunk->mutation->set_cell->value);
    if ((size_t)chunk->chunk_info->chunked_value_size != a->value_size ||
        (size_t)chunk->chunk_info->chunked_value_offset != value->len ||
        piece.size > a->value_size - value->len)
        return bad_message("the pieces of a value do not fit");
    if (piece.size > 0)
        memcpy(value->data + value->len, piece.data, piece.size);
    value->len += piece.size;
    return end_piece(a, chunk, is_last);
}

/* The chunks from the first on that is not of a value that was begun in a message before. */
static status take_chunks(struct change_assembly *a, const data_change *message, size_t first)
{
    for (size_t i = first; i < message->n_chunks; i++) {
        const mutation_chunk *chunk = message->chunks[i];
        TRY(check_kind(chunk->mutation));
        if (chunk->chunk_info != NULL)
            TRY(take_first_piece(a, chunk, i + 1 == message->n_chunks));
        else
            TRY(vector_add(&a->mutations, a->arena, &chunk->mutation, sizeof(Bt__Mutation *)));
    }
    return status_ok();
}

/* --- a change --- */

static status check_first(const data_change *message)
{
    bool is_collection =
        message->type == BT__READ_CHANGE_STREAM_RESPONSE__DATA_CHANGE__TYPE__GARBAGE_COLLECTION;
    if (!is_collection && message->type != BT__READ_CHANGE_STREAM_RESPONSE__DATA_CHANGE__TYPE__USER)
        return bad_message("a change begins with none of the types that one has");
    if (message->row_key.len == 0)
        return bad_message("a change has no row");
    if (message->n_chunks == 0)
        return bad_message("a change has no mutation");
    if (is_collection != (*message->source_cluster_id == '\0'))
        return bad_message("a user's change has a cluster, no other has one");
    return check_time(message->commit_timestamp);
}

static status begin_change(struct change_assembly *a, const data_change *message)
{
    TRY(check_first(message));
    a->is_within = true;
    a->change = (struct feed_change){
        .row_key = proto_bytes(message->row_key),
        .commit_us = timestamp_us(message->commit_timestamp),
        .tiebreaker = message->tiebreaker,
        .is_collection = *message->source_cluster_id == '\0',
        .source_cluster = message->source_cluster_id,
    };
    return take_chunks(a, message, 0);
}

static status end_change(struct change_assembly *a, const data_change *message,
                         enum change_event *event)
{
    if (!message->done)
        return status_ok();
    if (a->valued != NULL)
        return bad_message("a change ends within a value");
    if (*message->token == '\0')
        return bad_message("a change ends without a token");
    TRY(check_time(message->estimated_low_watermark));
    a->token = message->token;
    a->watermark_us = timestamp_us(message->estimated_low_watermark);
    a->change.mutations = a->mutations.items;
    a->change.count = a->mutations.count;
    a->is_within = false;
    *event = CHANGE_WHOLE;
    return status_ok();
}

static status check_continuation(const data_change *message)
{
    return message->type == BT__READ_CHANGE_STREAM_RESPONSE__DATA_CHANGE__TYPE__CONTINUATION
               ? status_ok()
               : bad_message("a change begins within another");
}

static status take_data_change(struct change_assembly *a, const data_change *message, size_t first,
                               enum change_event *event)
{
    if (!a->is_within) {
        TRY(begin_change(a, message));
    } else {
        TRY(check_continuation(message));
        TRY(take_chunks(a, message, first));
    }
    return end_change(a, message, event);
}

/* --- messages --- */

static status decode(bytes message, struct arena *arena, const Bt__ReadChangeStreamResponse **out)
{
    ProtobufCMessage *decoded;
    bytes kept = arena_copy(arena, message);
    if (kept.data == NULL)
        return status_out_of_memory();
    TRY(proto_decode(&bt__read_change_stream_response__descriptor, kept, arena, &decoded));
    *out = (const void *)decoded;
    return status_ok();
}

static status take_heartbeat(struct change_assembly *a,
                             const Bt__ReadChangeStreamResponse__Heartbeat *heartbeat,
                             enum change_event *event)
{
    if (a->is_within)
        return bad_message("a heartbeat is within a change");
    if (heartbeat->continuation_token == NULL || *heartbeat->continuation_token->token == '\0')
        return bad_message("a heartbeat has no token");
    TRY(check_time(heartbeat->estimated_low_watermark));
    a->token = heartbeat->continuation_token->token;
    a->watermark_us = timestamp_us(heartbeat->estimated_low_watermark);
    *event = CHANGE_HEARTBEAT;
    return status_ok();
}

static status take_record(struct change_assembly *a, const Bt__ReadChangeStreamResponse *response,
                          size_t first, enum change_event *event)
{
    switch (response->stream_record_case) {
    case BT__READ_CHANGE_STREAM_RESPONSE__STREAM_RECORD_DATA_CHANGE:
        return take_data_change(a, response->data_change, first, event);
    case BT__READ_CHANGE_STREAM_RESPONSE__STREAM_RECORD_HEARTBEAT:
        return take_heartbeat(a, response->heartbeat, event);
    case BT__READ_CHANGE_STREAM_RESPONSE__STREAM_RECORD_CLOSE_STREAM:
        if (a->is_within)
            return bad_message("a stream is closed within a change");
        a->close = response->close_stream;
        *event = CHANGE_CLOSE;
        return status_ok();
    default:
        return bad_message("a message is empty");
    }
}

/* A message that goes on with a value. `*is_all`: it has nothing else. */
static status take_within_value(struct change_assembly *a, bytes message, bool *is_all)
{
    const Bt__ReadChangeStreamResponse *response;
    arena_reset(a->piece);
    TRY(decode(message, a->piece, &response));
    if (response->stream_record_case != BT__READ_CHANGE_STREAM_RESPONSE__STREAM_RECORD_DATA_CHANGE)
        return bad_message("something else stands within a value");
    const data_change *data = response->data_change;
    TRY(check_continuation(data));
    if (data->n_chunks == 0)
        return bad_message("a value is not gone on with");
    *is_all = data->n_chunks == 1 && !data->done;
    return take_next_piece(a, data->chunks[0], data->n_chunks == 1);
}

status change_assembly_take(struct change_assembly *a, bytes message, enum change_event *event)
{
    const Bt__ReadChangeStreamResponse *response;
    size_t first = 0;
    bool is_all = false;
    *event = CHANGE_PART;
    if (!a->is_within)
        change_assembly_reset(a);
    if (a->valued != NULL) {
        TRY(take_within_value(a, message, &is_all));
        first = 1;
    }
    if (is_all)
        return status_ok();
    TRY(decode(message, a->arena, &response));
    return take_record(a, response, first, event);
}

status change_assembly_end(const struct change_assembly *a)
{
    return a->is_within ? bad_message("the stream ends within a change") : status_ok();
}
