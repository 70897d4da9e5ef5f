/* The client side of gRPC: see grpc_client.h.
 *
 * Invariants
 *  1. A call is freed when it has ended (on_end has been called), its stream is closed, and no
 *     function of ours needs it (`pins` is 0). Ended calls whose stream still exists for nghttp2
 *     stay on the client's list.
 *  2. on_end is called once, by end_call. */
#include "wire/grpc_client.h"

#include "base/check.h"
#include "base/limits.h"
#include "wire/grpc_text.h"
#include "wire/h2_memory.h"
#include "wire/h2_output.h"
#include "wire/metadata.h"

#include <stdlib.h>

enum {
    STREAM_WINDOW = 4 * LIMIT_MB,
    CONNECTION_WINDOW = 64 * LIMIT_MB,
    MAX_ANSWER = 2 * LIMIT_ROW_BYTES,
};

#define CLIENT_MAGIC      0x47434c49u
#define CLIENT_CALL_MAGIC 0x4743434cu

struct header {
    nghttp2_rcbuf *name;
    nghttp2_rcbuf *value;
};

struct client_call {
    uint32_t magic;
    int32_t stream_id;
    struct grpc_client *client;
    struct client_call *previous;
    struct client_call *next;
    unsigned pins;
    bool ended;
    bool closed;
    bool was_sent;    /* false: the request never left */
    bool was_refused; /* by the server, which has not looked at it */
    bool is_paused;
    size_t unconsumed;                  /* bytes received whose credit is held back while paused */
    struct client_call_options options; /* of its pointers only context and callbacks are used */
    struct timer deadline;
    struct message_queue queue;
    struct message_reader reader;
    size_t header_count;
    struct header headers[LIMIT_METADATA_FIELDS];
};

struct grpc_client {
    uint32_t magic;
    struct loop *loop;
    void *context;
    void (*output_ready)(void *context);
    char *authority;
    struct h2_memory memory;
    nghttp2_session *session;
    bool is_broken;
    bool is_signalled;
    bool speaks_tls;
    struct client_call *calls;
    size_t open_count; /* of calls that have not ended */
    struct h2_batches batches;
    struct h2_output output;
};

static void signal_output(struct grpc_client *client)
{
    if (client->is_signalled || (!client->is_broken && client->output.size > 0))
        return;
    if (!grpc_client_is_finished(client) && !nghttp2_session_want_write(client->session))
        return;
    client->is_signalled = true;
    client->output_ready(client->context);
}

/* --- a call's life --- */

static void free_call(struct client_call *call)
{
    for (size_t i = 0; i < call->header_count; i++) {
        nghttp2_rcbuf_decref(call->headers[i].name);
        nghttp2_rcbuf_decref(call->headers[i].value);
    }
    if (call->previous != NULL)
        call->previous->next = call->next;
    else
        call->client->calls = call->next;
    if (call->next != NULL)
        call->next->previous = call->previous;
    message_queue_clear(&call->queue, &call->client->output);
    message_reader_reset(&call->reader, 0);
    call->magic = 0;
    free(call);
}

static void unpin(struct client_call *call)
{
    if (--call->pins == 0 && call->ended && call->closed)
        free_call(call);
}

/* Takes the status. */
static void end_call(struct client_call *call, status s)
{
    if (call->ended) {
        status_ignore(s); /* it ended before, for another reason */
        return;
    }
    call->ended = true;
    call->client->open_count--;
    loop_timer_clear(call->client->loop, &call->deadline);
    call->options.on_end(call->options.context, call, s);
}

/* Ends a call whose stream still exists, and tells the server. */
static void abort_call(struct client_call *call, status s)
{
    struct grpc_client *client = call->client;
    call->pins++;
    if (!call->ended && !call->closed &&
        nghttp2_submit_rst_stream(client->session, NGHTTP2_FLAG_NONE, call->stream_id,
                                  NGHTTP2_CANCEL) != 0)
        client->is_broken = true;
    end_call(call, s);
    unpin(call);
    signal_output(client);
}

void client_call_cancel(struct client_call *call)
{
    CHECK_MAGIC(call, CLIENT_CALL_MAGIC);
    abort_call(call, status_make(STATUS_CANCELLED, "the call has been cancelled"));
}

static void run_deadline(struct timer *timer)
{
    struct client_call *call = (void *)((char *)timer - offsetof(struct client_call, deadline));
    abort_call(call, status_make(STATUS_DEADLINE_EXCEEDED, "the deadline has passed"));
}

/* --- starting --- */

static struct client_call *make_call(struct grpc_client *client,
                                     const struct client_call_options *options)
{
    struct client_call *call = calloc(1, sizeof *call);
    if (call == NULL)
        return NULL;
    call->magic = CLIENT_CALL_MAGIC;
    call->client = client;
    call->options = *options;
    call->deadline.run = run_deadline;
    call->reader.limit = MAX_ANSWER;
    call->next = client->calls;
    if (call->next != NULL)
        call->next->previous = call;
    client->calls = call;
    return call;
}

static ssize_t read_request(nghttp2_session *session, int32_t stream_id, uint8_t *to, size_t length,
                            uint32_t *flags, nghttp2_data_source *source, void *user_data)
{
    (void)session;
    (void)stream_id;
    (void)to; /* on_send_data takes the bytes from the queue instead */
    (void)user_data;
    struct client_call *call = source->ptr;
    *flags = NGHTTP2_DATA_FLAG_NO_COPY;
    if (call->queue.size > length)
        return (ssize_t)length;
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)call->queue.size;
}

static void add_request_headers(struct fields *fields, const struct client_call *call,
                                const struct metadata *metadata, const char *timeout)
{
    const struct client_call_options *options = &call->options;
    fields_add_fixed(fields, ":method", "POST");
    fields_add_fixed(fields, ":scheme", call->client->speaks_tls ? "https" : "http");
    fields_add(fields, ":path", bytes_of(options->path));
    fields_add(fields, ":authority", bytes_of(call->client->authority));
    fields_add_fixed(fields, "te", "trailers");
    fields_add_fixed(fields, "content-type", "application/grpc");
    if (options->gzip) {
        fields_add_fixed(fields, "grpc-encoding", "gzip");
        fields_add_fixed(fields, "grpc-accept-encoding", "gzip");
    }
    if (options->timeout_us != INT64_MAX)
        fields_add(fields, "grpc-timeout", bytes_of(timeout));
    fields_add_metadata(fields, metadata);
}

static status submit_call(struct client_call *call)
{
    struct grpc_client *client = call->client;
    const struct client_call_options *options = &call->options;
    struct metadata metadata = {.count = 0};
    struct fields fields;
    char timeout[GRPC_TIMEOUT_TEXT_SIZE] = "";
    fields_start(&fields);
    if (options->timeout_us != INT64_MAX) {
        grpc_timeout_format(options->timeout_us, timeout);
        int64_t now = clock_steady_us(loop_clock(client->loop));
        TRY(loop_timer_set(client->loop, &call->deadline, now + options->timeout_us));
    }
    for (size_t i = 0; i < options->metadata_count; i++)
        metadata_add(&metadata, options->metadata[i].name, options->metadata[i].value);
    add_request_headers(&fields, call, &metadata, timeout);
    nghttp2_data_provider provider = {.source.ptr = call, .read_callback = read_request};
    call->stream_id =
        nghttp2_submit_request(client->session, NULL, fields.list, fields.count, &provider, call);
    metadata_free(&metadata);
    if (call->stream_id < 0)
        return status_make(STATUS_UNAVAILABLE, "cannot start a call: %s",
                           nghttp2_strerror(call->stream_id));
    return status_ok();
}

status grpc_client_start(struct grpc_client *client, const struct client_call_options *options,
                         struct buffer *buffer, struct client_call **out)
{
    CHECK_MAGIC(client, CLIENT_MAGIC);
    *out = NULL;
    struct message *message = message_seal(buffer, options->gzip);
    if (message == NULL)
        return status_out_of_memory();
    if (client->is_broken || !nghttp2_session_check_request_allowed(client->session)) {
        message_free(message);
        return status_make(STATUS_UNAVAILABLE, "the connection takes no more calls");
    }
    struct client_call *call = make_call(client, options);
    if (call == NULL) {
        message_free(message);
        return status_out_of_memory();
    }
    message_queue_append(&call->queue, message);
    status s = submit_call(call);
    if (!status_is_ok(s)) {
        loop_timer_clear(client->loop, &call->deadline);
        free_call(call);
        return s;
    }
    client->open_count++;
    *out = call;
    signal_output(client);
    return s;
}

/* --- what nghttp2 tells us of --- */

static struct client_call *find_call(nghttp2_session *session, int32_t stream_id)
{
    return nghttp2_session_get_stream_user_data(session, stream_id);
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, nghttp2_rcbuf *name,
                     nghttp2_rcbuf *value, uint8_t flags, void *user_data)
{
    (void)flags;
    (void)user_data;
    struct client_call *call = find_call(session, frame->hd.stream_id);
    if (call == NULL || call->header_count == LIMIT_METADATA_FIELDS)
        return 0;
    nghttp2_rcbuf_incref(name);
    nghttp2_rcbuf_incref(value);
    call->headers[call->header_count++] = (struct header){.name = name, .value = value};
    return 0;
}

bool client_call_metadata(const struct client_call *call, const char *name, bytes *value)
{
    bytes wanted = bytes_of(name);
    *value = bytes_make(NULL, 0);
    for (size_t i = 0; i < call->header_count; i++) {
        nghttp2_vec found = nghttp2_rcbuf_get_buf(call->headers[i].name);
        if (!bytes_equal(bytes_make(found.base, found.len), wanted))
            continue;
        nghttp2_vec text = nghttp2_rcbuf_get_buf(call->headers[i].value);
        *value = bytes_make(text.base, text.len);
        return true;
    }
    return false;
}

bool client_call_was_taken(const struct client_call *call)
{
    return call->was_sent && !call->was_refused;
}

static int on_frame_received(nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
    (void)user_data;
    if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_RESPONSE)
        return 0;
    struct client_call *call = find_call(session, frame->hd.stream_id);
    bytes encoding;
    if (call != NULL && client_call_metadata(call, "grpc-encoding", &encoding))
        call->reader.gzip = bytes_equal(encoding, bytes_of("gzip"));
    return 0;
}

/* Of an answer whose prefix has come. */
static status check_size(const struct client_call *call)
{
    const struct client_call_options *options = &call->options;
    if (options->message_limit == 0 || call->reader.left <= options->message_limit)
        return status_ok();
    *options->refused = call->reader.left;
    return status_make(STATUS_RESOURCE_EXHAUSTED, "a message has %llu bytes, more than is wanted",
                       (unsigned long long)call->reader.left);
}

static status read_answers(struct client_call *call, bytes data)
{
    enum reader_event event;
    do {
        TRY(message_reader_step(&call->reader, &data, &event));
        if (event == READER_BEGIN)
            TRY(check_size(call));
        if (event == READER_MESSAGE && call->options.on_message != NULL)
            call->options.on_message(call->options.context, call, buffer_bytes(&call->reader.body));
    } while (event != READER_MORE && !call->ended);
    return status_ok();
}

static int give_credit(struct client_call *call, size_t size)
{
    if (call->is_paused && !call->ended) {
        call->unconsumed += size;
        return 0;
    }
    size += call->unconsumed;
    call->unconsumed = 0;
    return nghttp2_session_consume_stream(call->client->session, call->stream_id, size);
}

static int on_data_chunk(nghttp2_session *session, uint8_t flags, int32_t stream_id,
                         const uint8_t *data, size_t size, void *user_data)
{
    (void)flags;
    (void)user_data;
    struct client_call *call = find_call(session, stream_id);
    if (call == NULL)
        return nghttp2_session_consume(session, stream_id, size);
    call->pins++;
    bytes http_status;
    bool is_grpc = client_call_metadata(call, ":status", &http_status) &&
                   bytes_equal(http_status, bytes_of("200"));
    if (is_grpc && !call->ended) {
        status s = read_answers(call, bytes_make(data, size));
        if (!status_is_ok(s))
            abort_call(call, s);
    }
    int error = nghttp2_session_consume_connection(session, size);
    if (error == 0)
        error = give_credit(call, size);
    unpin(call);
    return error;
}

void client_call_pause(struct client_call *call, bool paused)
{
    CHECK_MAGIC(call, CLIENT_CALL_MAGIC);
    call->is_paused = paused;
    if (paused)
        return;
    if (give_credit(call, 0) != 0)
        call->client->is_broken = true;
    signal_output(call->client);
}

static enum status_code code_of_reset(uint32_t error_code)
{
    switch (error_code) {
    case NGHTTP2_REFUSED_STREAM:
        return STATUS_UNAVAILABLE;
    case NGHTTP2_CANCEL:
        return STATUS_CANCELLED;
    case NGHTTP2_ENHANCE_YOUR_CALM:
        return STATUS_RESOURCE_EXHAUSTED;
    case NGHTTP2_INADEQUATE_SECURITY:
        return STATUS_PERMISSION_DENIED;
    default:
        return STATUS_INTERNAL;
    }
}

/* What an answer that is not gRPC's means ("HTTP to gRPC Status Code Mapping"). */
static enum status_code code_of_http(bytes http_status)
{
    static const struct {
        const char *http;
        enum status_code code;
    } map[] = {
        {"400", STATUS_INTERNAL},          {"401", STATUS_UNAUTHENTICATED},
        {"403", STATUS_PERMISSION_DENIED}, {"404", STATUS_UNIMPLEMENTED},
        {"429", STATUS_UNAVAILABLE},       {"502", STATUS_UNAVAILABLE},
        {"503", STATUS_UNAVAILABLE},       {"504", STATUS_UNAVAILABLE},
    };
    for (size_t i = 0; i < sizeof map / sizeof *map; i++)
        if (bytes_equal(http_status, bytes_of(map[i].http)))
            return map[i].code;
    return STATUS_UNKNOWN;
}

/* grpc-status; UNKNOWN if it is no number that gRPC knows. */
static enum status_code parse_code(bytes text)
{
    unsigned code = 0;
    if (text.size == 0 || text.size > 2)
        return STATUS_UNKNOWN;
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return STATUS_UNKNOWN;
        code = code * 10 + (unsigned)(text.data[i] - '0');
    }
    return code > STATUS_UNAUTHENTICATED ? STATUS_UNKNOWN : (enum status_code)code;
}

static status status_from_trailers(const struct client_call *call, enum status_code code)
{
    bytes text;
    struct buffer message = {0};
    if (code == STATUS_OK)
        return status_ok();
    if (client_call_metadata(call, "grpc-message", &text))
        grpc_percent_decode(text, &message);
    status s = status_make(code, "%.*s", (int)message.size, (const char *)message.data);
    buffer_free(&message);
    return s;
}

static status final_status(const struct client_call *call, uint32_t error_code)
{
    bytes text;
    if (!call->was_sent)
        return status_make(STATUS_UNAVAILABLE, "the connection took no more calls");
    if (client_call_metadata(call, "grpc-status", &text)) {
        enum status_code code = parse_code(text);
        if (code == STATUS_OK && !message_reader_is_between(&call->reader))
            return status_make(STATUS_INTERNAL, "the answer ends within a message");
        return status_from_trailers(call, code);
    }
    if (error_code != NGHTTP2_NO_ERROR)
        return status_make(code_of_reset(error_code), "the stream was reset: %s",
                           nghttp2_http2_strerror(error_code));
    if (client_call_metadata(call, ":status", &text) && !bytes_equal(text, bytes_of("200")))
        return status_make(code_of_http(text), "HTTP status %.*s", (int)text.size,
                           (const char *)text.data);
    return status_make(STATUS_INTERNAL, "the answer has no grpc-status");
}

static int on_stream_close(nghttp2_session *session, int32_t stream_id, uint32_t error_code,
                           void *user_data)
{
    (void)user_data;
    struct client_call *call = find_call(session, stream_id);
    if (call == NULL)
        return 0;
    call->pins++;
    call->closed = true;
    call->was_refused = error_code == NGHTTP2_REFUSED_STREAM;
    if (!call->ended)
        end_call(call, final_status(call, error_code));
    unpin(call);
    return 0;
}

static int on_frame_sent(nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
    (void)user_data;
    struct client_call *call = find_call(session, frame->hd.stream_id);
    if (frame->hd.type == NGHTTP2_HEADERS && call != NULL)
        call->was_sent = true;
    return 0;
}

static int on_send_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *header,
                        size_t length, nghttp2_data_source *source, void *user_data)
{
    (void)session;
    (void)frame;
    struct grpc_client *client = user_data;
    struct client_call *call = source->ptr;
    return h2_output_frame(&client->output, header, &call->queue, length) ? 0
                                                                          : NGHTTP2_ERR_WOULDBLOCK;
}

/* --- the client's life --- */

static void set_callbacks(nghttp2_session_callbacks *callbacks)
{
    nghttp2_session_callbacks_set_on_header_callback2(callbacks, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame_received);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data_chunk);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_sent);
    nghttp2_session_callbacks_set_send_data_callback(callbacks, on_send_data);
}

static bool submit_preface(nghttp2_session *session)
{
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW},
    };
    return nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings,
                                   sizeof settings / sizeof *settings) == 0 &&
           nghttp2_session_set_local_window_size(session, NGHTTP2_FLAG_NONE, 0,
                                                 CONNECTION_WINDOW) == 0;
}

static status open_session(struct grpc_client *client)
{
    nghttp2_session_callbacks *callbacks = NULL;
    nghttp2_option *option = NULL;
    status s = status_out_of_memory();
    if (nghttp2_session_callbacks_new(&callbacks) != 0 || nghttp2_option_new(&option) != 0)
        goto done;
    set_callbacks(callbacks);
    nghttp2_option_set_no_auto_window_update(option, 1);
    if (nghttp2_session_client_new3(&client->session, callbacks, client, option,
                                    &client->memory.functions) == 0 &&
        submit_preface(client->session))
        s = status_ok();
done:
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_option_del(option);
    return s;
}

status grpc_client_create(struct loop *loop, const char *authority, void *context,
                          void (*output_ready)(void *context), struct grpc_client **out)
{
    *out = NULL;
    struct grpc_client *client = calloc(1, sizeof *client);
    if (client == NULL)
        return status_out_of_memory();
    client->magic = CLIENT_MAGIC;
    client->loop = loop;
    client->context = context;
    client->output_ready = output_ready;
    h2_memory_init(&client->memory);
    client->output.batches = &client->batches;
    client->authority = strdup(authority);
    status s = client->authority == NULL ? status_out_of_memory() : open_session(client);
    if (!status_is_ok(s)) {
        grpc_client_destroy(client);
        return s;
    }
    *out = client;
    return s;
}

void grpc_client_speaks_tls(struct grpc_client *client)
{
    client->speaks_tls = true;
}

void grpc_client_narrow(struct grpc_client *client, uint32_t window)
{
    const nghttp2_settings_entry setting = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, window};
    if (nghttp2_submit_settings(client->session, NGHTTP2_FLAG_NONE, &setting, 1) != 0)
        client->is_broken = true;
    signal_output(client);
}

void grpc_client_destroy(struct grpc_client *client)
{
    if (client == NULL)
        return;
    CHECK_MAGIC(client, CLIENT_MAGIC);
    client->is_signalled = true; /* output_ready is not called any more */
    for (struct client_call *call = client->calls, *next; call != NULL; call = next) {
        next = call->next; /* stays: on_end frees only calls whose stream is closed */
        call->pins++;
        call->closed = true;
        end_call(call, status_make(STATUS_UNAVAILABLE, "the connection has been closed"));
        unpin(call);
    }
    h2_output_abandon(&client->output);
    nghttp2_session_del(client->session);
    h2_batches_free(&client->batches);
    h2_memory_free(&client->memory);
    free(client->authority);
    client->magic = 0;
    free(client);
}

size_t grpc_client_call_count(const struct grpc_client *client)
{
    return client->open_count;
}

/* --- bytes --- */

void grpc_client_receive(struct grpc_client *client, bytes input)
{
    CHECK_MAGIC(client, CLIENT_MAGIC);
    if (client->is_broken)
        return;
    if (nghttp2_session_mem_recv(client->session, input.data, input.size) < 0)
        client->is_broken = true;
    signal_output(client);
}

size_t grpc_client_output(struct grpc_client *client, struct iovec *vectors, size_t capacity)
{
    CHECK_MAGIC(client, CLIENT_MAGIC);
    client->is_signalled = true; /* the caller need not be told */
    if (!client->is_broken && !h2_output_fill(&client->output, client->session))
        client->is_broken = true;
    client->is_signalled = false;
    if (client->is_broken)
        return 0;
    return h2_output_vectors(&client->output, vectors, capacity);
}

void grpc_client_sent(struct grpc_client *client, size_t size)
{
    CHECK_MAGIC(client, CLIENT_MAGIC);
    if (size > 0)
        h2_output_sent(&client->output, size);
}

bool grpc_client_is_finished(const struct grpc_client *client)
{
    if (client->is_broken)
        return true;
    return client->output.size == 0 && !nghttp2_session_want_read(client->session) &&
           !nghttp2_session_want_write(client->session);
}
