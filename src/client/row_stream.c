/* Messages wait as they came, and are decoded when their rows are wanted. A call that breaks is
 * made again when the rows it brought have been taken: only then is it known behind which. */
#include "client/row_stream.h"

#include "client/row_assembly.h"

#include <stdlib.h>

#define READ_ROWS "/google.bigtable.v2.Bigtable/ReadRows"

enum {
    MESSAGE_LIMIT = 256 << 20,           /* of memory, for one message */
    GIVE_UP_AFTER_US = 60 * 1000 * 1000, /* without a row */
};

struct message {
    struct link link;
    size_t size;
    uint8_t data[];
};

struct row_stream {
    struct row_stream_options options;
    struct grpc_link *grpc;
    struct client_call *call; /* NULL: none is under way */
    bool is_paused;
    struct list messages; /* of struct message */
    size_t messages_size;
    struct arena *arena;                /* of the message that is being read */
    const Bt__ReadRowsResponse *chunks; /* NULL: none */
    size_t chunk;                       /* the next of it */
    struct row_assembly assembly;
    struct buffer start;  /* of what is left: behind the last row that was given out */
    bool start_is_closed; /* no row has been */
    struct buffer end;
    bool has_ended; /* the last call did, with `result` */
    status result;  /* owned */
    struct timer timer;
    bool is_waiting; /* for the timer */
    bool is_dying;
    int64_t wait_us;
    int64_t progress_us;
};

static struct loop *loop_of(const struct row_stream *stream)
{
    return client_session_loop(stream->options.session);
}

static int64_t now_us(const struct row_stream *stream)
{
    return clock_steady_us(loop_clock(loop_of(stream)));
}

static void notify(struct row_stream *stream)
{
    if (!stream->is_dying)
        stream->options.on_change(stream->options.context);
}

/* --- making and ending --- */

static void wait_is_over(struct timer *timer)
{
    struct row_stream *stream = LIST_ENTRY(timer, struct row_stream, timer);
    stream->is_waiting = false;
    notify(stream);
}

status row_stream_create(const struct row_stream_options *options, struct row_stream **out)
{
    struct row_stream *stream = *out = calloc(1, sizeof *stream);
    if (stream == NULL)
        return status_out_of_memory();
    stream->options = *options;
    stream->timer.run = wait_is_over;
    stream->progress_us = now_us(stream);
    stream->arena = arena_create(MESSAGE_LIMIT);
    stream->start_is_closed = options->start_is_closed;
    buffer_append_bytes(&stream->start, options->start);
    buffer_append_bytes(&stream->end, options->end);
    bool has_memory = stream->arena != NULL && !stream->start.failed && !stream->end.failed;
    status s = has_memory ? row_assembly_init(&stream->assembly) : status_out_of_memory();
    if (status_is_ok(s))
        return s;
    row_stream_destroy(stream);
    *out = NULL;
    return s;
}

void row_stream_destroy(struct row_stream *stream)
{
    if (stream == NULL)
        return;
    stream->is_dying = true;
    if (stream->call != NULL)
        client_call_cancel(stream->call);
    loop_timer_clear(loop_of(stream), &stream->timer);
    while (!list_is_empty(&stream->messages))
        free(LIST_ENTRY(list_take(&stream->messages), struct message, link));
    grpc_link_destroy(stream->grpc);
    row_assembly_free(&stream->assembly);
    arena_destroy(stream->arena);
    buffer_free(&stream->start);
    buffer_free(&stream->end);
    status_free(stream->result);
    free(stream);
}

/* --- a call --- */

static void pause_if_ahead(struct row_stream *stream)
{
    bool is_ahead = stream->messages_size >= ROW_STREAM_AHEAD;
    if (stream->call == NULL || is_ahead == stream->is_paused)
        return;
    stream->is_paused = is_ahead;
    client_call_pause(stream->call, is_ahead);
}

static void call_took(void *context, struct client_call *call, bytes data)
{
    struct row_stream *stream = context;
    struct message *message = malloc(sizeof *message + data.size);
    if (message == NULL) { /* it is asked for again, when there may be memory */
        client_call_cancel(call);
        return;
    }
    message->size = data.size;
    memcpy(message->data, data.data, data.size);
    list_append(&stream->messages, &message->link);
    stream->messages_size += data.size;
    pause_if_ahead(stream);
    notify(stream);
}

static void call_ended(void *context, struct client_call *call, status s)
{
    struct row_stream *stream = context;
    (void)call;
    stream->call = NULL;
    stream->has_ended = true;
    stream->result = s;
    notify(stream);
}

/* Fills in the rest of the range. An empty start is before all keys. */
static void fill_range(const struct row_stream *stream, Bt__RowRange *range)
{
    bytes start = buffer_bytes(&stream->start), end = buffer_bytes(&stream->end);
    if (start.size > 0 && stream->start_is_closed) {
        range->start_key_case = BT__ROW_RANGE__START_KEY_START_KEY_CLOSED;
        range->start_key_closed = proto_data(start);
    } else if (start.size > 0) {
        range->start_key_case = BT__ROW_RANGE__START_KEY_START_KEY_OPEN;
        range->start_key_open = proto_data(start);
    }
    if (end.size > 0) {
        range->end_key_case = BT__ROW_RANGE__END_KEY_END_KEY_OPEN;
        range->end_key_open = proto_data(end);
    }
}

static status encode(const struct row_stream *stream, struct buffer *message)
{
    Bt__ReadRowsRequest request = BT__READ_ROWS_REQUEST__INIT;
    Bt__RowRange range = BT__ROW_RANGE__INIT;
    Bt__RowRange *ranges[] = {&range};
    Bt__RowSet rows = BT__ROW_SET__INIT;
    fill_range(stream, &range);
    rows.n_row_ranges = 1;
    rows.row_ranges = ranges;
    request.table_name = stream->options.table;
    request.app_profile_id = client_session_app_profile(stream->options.session);
    request.rows = &rows;
    request.filter = (Bt__RowFilter *)(uintptr_t)stream->options.filter;
    grpc_message_start(message);
    proto_encode(&request.base, message);
    if (!message->failed)
        return status_ok();
    buffer_free(message);
    return status_out_of_memory();
}

static status start_call(struct row_stream *stream, bytes routing)
{
    const struct client_metadata metadata = {.name = "x-goog-request-params", .value = routing};
    const struct client_call_options options = {.path = READ_ROWS,
                                                .timeout_us = INT64_MAX,
                                                .metadata = &metadata,
                                                .metadata_count = 1,
                                                .context = stream,
                                                .on_message = call_took,
                                                .on_end = call_ended};
    struct buffer message = {0};
    TRY(endpoint_connect(client_session_endpoint(stream->options.session), loop_of(stream),
                         &stream->grpc));
    TRY(encode(stream, &message));
    return grpc_link_call(stream->grpc, &options, &message, &stream->call);
}

status row_stream_begin(struct row_stream *stream)
{
    struct buffer routing = {0};
    row_assembly_reset(&stream->assembly);
    stream->is_paused = stream->has_ended = false;
    endpoint_append_routing(&routing, "table_name", stream->options.table);
    endpoint_append_routing(&routing, "app_profile_id",
                            client_session_app_profile(stream->options.session));
    status s = routing.failed ? status_out_of_memory() : start_call(stream, buffer_bytes(&routing));
    buffer_free(&routing);
    if (s.code != STATUS_UNAVAILABLE)
        return s;
    stream->has_ended = true;
    stream->result = s;
    return status_ok();
}

/* --- failures --- */

/* The call is made again after a while; what is now, is that there is no row. */
static status wait_after_failure(struct row_stream *stream)
{
    status s = stream->result;
    int64_t now = now_us(stream);
    stream->result = status_ok();
    if (!endpoint_failure_may_pass(s) || now - stream->progress_us > GIVE_UP_AFTER_US)
        return s;
    status_free(s);
    stream->has_ended = false;
    stream->is_waiting = true;
    stream->wait_us = endpoint_next_wait(stream->wait_us);
    return loop_timer_set(loop_of(stream), &stream->timer, now + stream->wait_us);
}

/* --- rows --- */

static status open_message(struct row_stream *stream)
{
    struct message *message = LIST_ENTRY(list_take(&stream->messages), struct message, link);
    ProtobufCMessage *decoded;
    arena_reset(stream->arena);
    bytes data = arena_copy(stream->arena, bytes_make(message->data, message->size));
    stream->messages_size -= message->size;
    free(message);
    pause_if_ahead(stream);
    if (data.data == NULL)
        return status_out_of_memory();
    TRY(proto_decode(&bt__read_rows_response__descriptor, data, stream->arena, &decoded));
    stream->chunks = (const void *)decoded;
    stream->chunk = 0;
    return status_ok();
}

static status take_row(struct row_stream *stream, const struct move_change **row)
{
    buffer_clear(&stream->start);
    buffer_append_bytes(&stream->start, stream->assembly.row.row_key);
    stream->start_is_closed = false;
    stream->wait_us = 0;
    stream->progress_us = now_us(stream);
    *row = &stream->assembly.row;
    return stream->start.failed ? status_out_of_memory() : status_ok();
}

/* The next row of what has come. */
static status next_here(struct row_stream *stream, const struct move_change **row)
{
    while (stream->chunks != NULL || !list_is_empty(&stream->messages)) {
        if (stream->chunks == NULL)
            TRY(open_message(stream));
        while (stream->chunk < stream->chunks->n_chunks) {
            TRY(row_assembly_take(&stream->assembly, stream->chunks->chunks[stream->chunk++]));
            if (stream->assembly.is_whole)
                return take_row(stream, row);
        }
        stream->chunks = NULL;
    }
    return status_ok();
}

status row_stream_next(struct row_stream *stream, const struct move_change **row, bool *is_end)
{
    *row = NULL;
    *is_end = false;
    TRY(next_here(stream, row));
    if (*row != NULL || stream->is_waiting)
        return status_ok();
    if (!stream->has_ended && stream->call == NULL)
        TRY(row_stream_begin(stream));
    if (!stream->has_ended)
        return status_ok();
    *is_end = status_is_ok(stream->result);
    return *is_end ? status_ok() : wait_after_failure(stream);
}
