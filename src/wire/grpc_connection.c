/* A server's connection: its life, its bytes, and what nghttp2 reports of them. See
 * grpc_private.h for the whole. */
#include "wire/grpc_private.h"

#include "base/check.h"

#include <stdlib.h>

enum { SWEEPS_UNTIL_STALLED = 20, SWEEPS_WITHIN_MESSAGE = SWEEPS_UNTIL_STALLED / 5 };

static const uint8_t drain_ping[8] = "draining"; /* its echo means: the client knows */

/* --- signals --- */

void grpc_connection_signal(struct grpc_connection *connection)
{
    if (connection->is_signalled)
        return;
    /* While a batch waits for the socket, its owner comes back anyway. */
    if (!connection->is_broken && connection->output.size > 0)
        return;
    if (!grpc_connection_is_finished(connection) &&
        !nghttp2_session_want_write(connection->session))
        return;
    connection->is_signalled = true;
    connection->output_ready(connection->context);
}

static void give_up(struct grpc_connection *connection)
{
    connection->is_broken = true;
    grpc_connection_signal(connection);
}

void grpc_connection_count_nuisance(struct grpc_connection *connection)
{
    struct token_bucket *bucket = &connection->nuisances;
    int64_t now = clock_steady_us(loop_clock(connection->loop));
    int64_t gained = (now - bucket->refilled_us) * LIMIT_NUISANCES_A_SECOND / 1000000;
    if (gained > 0) {
        bucket->tokens += gained;
        if (bucket->tokens > LIMIT_NUISANCES_AT_ONCE)
            bucket->tokens = LIMIT_NUISANCES_AT_ONCE;
        bucket->refilled_us = now;
    }
    if (bucket->tokens > 0) {
        bucket->tokens--;
        return;
    }
    if (nghttp2_session_terminate_session(connection->session, NGHTTP2_ENHANCE_YOUR_CALM) != 0)
        give_up(connection);
}

/* --- what nghttp2 tells us of --- */

static struct grpc_call *find_call(nghttp2_session *session, int32_t stream_id)
{
    return nghttp2_session_get_stream_user_data(session, stream_id);
}

static int refuse_stream(nghttp2_session *session, int32_t stream_id)
{
    return nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, stream_id, NGHTTP2_REFUSED_STREAM);
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
    struct grpc_connection *connection = user_data;
    connection->header_bytes = 0;
    connection->opened = NULL;
    if (frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    int32_t stream_id = frame->hd.stream_id;
    size_t most_calls =
        (size_t)connection->server->options.max_concurrent_streams * LIMIT_CALLS_A_STREAM;
    if (connection->call_count >= most_calls) {
        grpc_connection_count_nuisance(connection);
        return refuse_stream(session, stream_id);
    }
    struct grpc_call *call = grpc_call_create(connection, stream_id);
    if (call == NULL)
        return refuse_stream(session, stream_id);
    connection->opened = call; /* to be found without a search, for each of its headers */
    return nghttp2_session_set_stream_user_data(session, stream_id, call);
}

static bytes rcbuf_bytes(nghttp2_rcbuf *rcbuf)
{
    nghttp2_vec vec = nghttp2_rcbuf_get_buf(rcbuf);
    return bytes_make(vec.base, vec.len);
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, nghttp2_rcbuf *name,
                     nghttp2_rcbuf *value, uint8_t flags, void *user_data)
{
    enum { FIELD_OVERHEAD = 32 }; /* as HTTP/2 counts */
    (void)flags;
    struct grpc_connection *connection = user_data;
    const struct request_field field = {.name = rcbuf_bytes(name),
                                        .value = rcbuf_bytes(value),
                                        .kept = {.name = name, .value = value}};
    connection->header_bytes += field.name.size + field.value.size + FIELD_OVERHEAD;
    if (connection->header_bytes > LIMIT_HEADER_BOMB_BYTES) {
        if (nghttp2_session_terminate_session(session, NGHTTP2_ENHANCE_YOUR_CALM) != 0)
            return NGHTTP2_ERR_CALLBACK_FAILURE;
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    }
    if (connection->opened != NULL && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
        grpc_request_header(connection->opened, &field, connection->header_bytes);
    return 0;
}

/* nghttp2 would leave out a field with forbidden bytes; HTTP/2 calls such a request malformed. */
static int on_invalid_header(nghttp2_session *session, const nghttp2_frame *frame,
                             nghttp2_rcbuf *name, nghttp2_rcbuf *value, uint8_t flags,
                             void *user_data)
{
    (void)session;
    (void)frame;
    (void)name;
    (void)value;
    (void)flags;
    (void)user_data;
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* a reset with PROTOCOL_ERROR */
}

static int on_data_chunk(nghttp2_session *session, uint8_t flags, int32_t stream_id,
                         const uint8_t *data, size_t size, void *user_data)
{
    (void)flags;
    (void)user_data;
    struct grpc_call *call = find_call(session, stream_id);
    if (call == NULL)
        return nghttp2_session_consume(session, stream_id, size);
    grpc_request_data(call, bytes_make(data, size));
    return 0;
}

/* Drains in two steps, so that calls on their way when the client hears of it are still served: a
 * warning, and when the client has seen it, the last stream that counts. */
static int on_ping(struct grpc_connection *connection, const nghttp2_ping *ping)
{
    bool is_ours = (ping->hd.flags & NGHTTP2_FLAG_ACK) != 0 &&
                   memcmp(ping->opaque_data, drain_ping, sizeof drain_ping) == 0;
    if (!is_ours || !connection->is_draining)
        return 0;
    int32_t last = nghttp2_session_get_last_proc_stream_id(connection->session);
    return nghttp2_submit_goaway(connection->session, NGHTTP2_FLAG_NONE, last, NGHTTP2_NO_ERROR,
                                 NULL, 0);
}

static int on_frame_received(nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
    struct grpc_connection *connection = user_data;
    const bool ends = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    switch (frame->hd.type) {
    case NGHTTP2_SETTINGS:
        if ((frame->hd.flags & NGHTTP2_FLAG_ACK) == 0)
            grpc_connection_count_nuisance(connection);
        return 0;
    case NGHTTP2_PING:
        return on_ping(connection, &frame->ping);
    case NGHTTP2_DATA:
        if (frame->hd.length == 0 && !ends)
            grpc_connection_count_nuisance(connection);
        break;
    case NGHTTP2_HEADERS:
        if (connection->opened != NULL && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
            grpc_request_headers_end(connection->opened);
        break;
    default:
        return 0;
    }
    struct grpc_call *call = ends ? find_call(session, frame->hd.stream_id) : NULL;
    if (call != NULL)
        grpc_request_end(call);
    return 0;
}

static int on_invalid_frame(nghttp2_session *session, const nghttp2_frame *frame, int error,
                            void *user_data)
{
    (void)session;
    (void)frame;
    (void)error;
    grpc_connection_count_nuisance(user_data);
    return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t stream_id, uint32_t error_code,
                           void *user_data)
{
    struct grpc_connection *connection = user_data;
    struct grpc_call *call = find_call(session, stream_id);
    if (call == NULL)
        return 0;
    if (call == connection->opened)
        connection->opened = NULL;
    if (!call->was_held && !call->ended && error_code != NGHTTP2_NO_ERROR)
        grpc_connection_count_nuisance(connection);
    grpc_call_close(call);
    return 0;
}

static int on_send_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *header,
                        size_t length, nghttp2_data_source *source, void *user_data)
{
    (void)session;
    (void)frame;
    struct grpc_connection *connection = user_data;
    struct grpc_call *call = source->ptr;
    if (!h2_output_frame(&connection->output, header, &call->queue, length))
        return NGHTTP2_ERR_WOULDBLOCK;
    call->idle_sweeps = 0;
    grpc_call_count_sent(call, length);
    return 0;
}

/* An answer may end before its request has: the client is then asked not to send the rest. */
static int on_frame_sent(nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
    (void)user_data;
    bool may_end = frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA;
    if (!may_end || (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) == 0 ||
        nghttp2_session_get_stream_remote_close(session, frame->hd.stream_id) != 0)
        return 0;
    return nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id,
                                     NGHTTP2_NO_ERROR);
}

void grpc_connection_set_callbacks(nghttp2_session_callbacks *callbacks)
{
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback2(callbacks, on_header);
    nghttp2_session_callbacks_set_on_invalid_header_callback2(callbacks, on_invalid_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data_chunk);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame_received);
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks, on_invalid_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
    nghttp2_session_callbacks_set_send_data_callback(callbacks, on_send_data);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_sent);
}

/* --- peers that stall --- */

/* Whether the call waits for its client: for the request's rest, or to read the answer. */
static bool waits_for_client(const struct grpc_call *call)
{
    if (!call->open)
        return false;
    return call->ended || call->queue.size > 0 || (!call->was_held && call->admitted);
}

/* The handler is told at once: the reset may wait behind what the client does not read. */
static void abort_message(struct grpc_call *call)
{
    grpc_call_pin(call);
    grpc_answer_end(call, status_make(STATUS_ABORTED, "the client takes nothing of a message"));
    grpc_call_cancel(call);
    grpc_call_unpin(call);
}

static bool waits_for_room(const struct grpc_call *call)
{
    return call->open && !call->ended && !call->admitted;
}

static void reset_if_stalled(struct grpc_call *call)
{
    bool is_within_message = call->body_left > 0 && !call->ended;
    if (!waits_for_client(call))
        call->idle_sweeps = 0;
    else if (++call->idle_sweeps > SWEEPS_WITHIN_MESSAGE && is_within_message)
        abort_message(call);
    else if (call->idle_sweeps > SWEEPS_UNTIL_STALLED &&
             nghttp2_submit_rst_stream(call->connection->session, NGHTTP2_FLAG_NONE,
                                       call->stream_id, NGHTTP2_CANCEL) != 0)
        call->connection->is_broken = true;
}

static void refuse_if_it_waits_long(struct grpc_call *call)
{
    if (++call->idle_sweeps > SWEEPS_UNTIL_STALLED)
        grpc_answer_end(call, grpc_admission_refusal("The request has waited too long for room"));
}

static void reset_stalled_calls(struct grpc_connection *connection)
{
    struct grpc_call *next;
    for (struct grpc_call *call = connection->calls; call != NULL; call = next) {
        grpc_call_pin(call); /* one that ends may admit others, and free those that have gone */
        if (waits_for_room(call))
            refuse_if_it_waits_long(call);
        else
            reset_if_stalled(call);
        next = call->next;
        grpc_call_unpin(call);
    }
}

static status arm_sweep(struct grpc_connection *connection)
{
    int64_t now = clock_steady_us(loop_clock(connection->loop));
    int64_t interval = connection->server->options.stall_timeout_us / SWEEPS_UNTIL_STALLED;
    return loop_timer_set(connection->loop, &connection->sweep, now + interval);
}

static void run_sweep(struct timer *timer)
{
    struct grpc_connection *connection =
        (void *)((char *)timer - offsetof(struct grpc_connection, sweep));
    reset_stalled_calls(connection);
    if (connection->output.size > 0 && ++connection->idle_sweeps > SWEEPS_UNTIL_STALLED)
        connection->is_broken = true;
    status s = arm_sweep(connection);
    if (!status_is_ok(s)) {
        status_ignore(s); /* a connection that is not watched must not stay */
        connection->is_broken = true;
    }
    grpc_connection_signal(connection);
}

/* --- life --- */

static status open_session(struct grpc_connection *connection)
{
    const struct grpc_server *server = connection->server;
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, server->options.max_concurrent_streams},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, (uint32_t)grpc_admission_unasked(server)},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, LIMIT_HEADER_LIST_BYTES},
    };
    if (nghttp2_session_server_new3(&connection->session, server->callbacks, connection,
                                    server->h2_options,
                                    &connection->spares->memory.functions) != 0 ||
        nghttp2_submit_settings(connection->session, NGHTTP2_FLAG_NONE, settings,
                                sizeof settings / sizeof *settings) != 0 ||
        nghttp2_session_set_local_window_size(connection->session, NGHTTP2_FLAG_NONE, 0,
                                              LIMIT_CONNECTION_WINDOW_BYTES) != 0)
        return status_out_of_memory();
    return status_ok();
}

status grpc_connection_create(struct grpc_server *server, struct loop *loop,
                              struct grpc_spares *spares, void *context,
                              void (*output_ready)(void *context), struct grpc_connection **out)
{
    CHECK_MAGIC(server, GRPC_SERVER_MAGIC);
    *out = NULL;
    struct grpc_connection *connection = calloc(1, sizeof *connection);
    if (connection == NULL)
        return status_out_of_memory();
    connection->magic = GRPC_CONNECTION_MAGIC;
    connection->server = server;
    connection->id = atomic_fetch_add_explicit(&server->connections, 1, memory_order_relaxed) + 1;
    connection->loop = loop;
    connection->spares = spares;
    connection->output.batches = &spares->batches;
    connection->context = context;
    connection->output_ready = output_ready;
    connection->sweep.run = run_sweep;
    h2_guard_init(&connection->guard);
    connection->nuisances.tokens = LIMIT_NUISANCES_AT_ONCE;
    connection->nuisances.refilled_us = clock_steady_us(loop_clock(loop));
    status s = open_session(connection);
    if (status_is_ok(s))
        s = arm_sweep(connection);
    if (!status_is_ok(s)) {
        grpc_connection_destroy(connection);
        return s;
    }
    *out = connection;
    return s;
}

/* Ends the waiting of calls on the connection's lists; they are pinned there. */
static void forget_lists(struct grpc_connection *connection)
{
    struct link *link;
    while ((link = list_take(&connection->writable)) != NULL)
        grpc_call_unpin(LIST_ENTRY(link, struct grpc_call, writable_link));
    while ((link = list_take(&connection->waiting)) != NULL)
        grpc_call_unpin(LIST_ENTRY(link, struct grpc_call, admission_link));
}

void grpc_connection_set_peer(struct grpc_connection *connection, void *peer)
{
    connection->peer = peer;
}

void grpc_connection_set_reserved(struct grpc_connection *connection)
{
    connection->is_reserved = true;
}

void grpc_connection_want_small_messages(struct grpc_connection *connection)
{
    connection->wants_small_messages = true;
}

void grpc_connection_destroy(struct grpc_connection *connection)
{
    if (connection == NULL)
        return;
    CHECK_MAGIC(connection, GRPC_CONNECTION_MAGIC);
    connection->is_signalled = true; /* output_ready is not called any more */
    loop_timer_clear(connection->loop, &connection->sweep);
    forget_lists(connection);
    while (connection->calls != NULL)
        grpc_call_detach(connection->calls);
    h2_output_abandon(&connection->output);
    nghttp2_session_del(connection->session);
    connection->magic = 0;
    grpc_spares_count_ended(connection->spares);
    free(connection);
}

void grpc_connection_drain(struct grpc_connection *connection)
{
    CHECK_MAGIC(connection, GRPC_CONNECTION_MAGIC);
    if (connection->is_draining || connection->is_broken)
        return;
    connection->is_draining = true;
    if (nghttp2_submit_shutdown_notice(connection->session) != 0 ||
        nghttp2_submit_ping(connection->session, NGHTTP2_FLAG_NONE, drain_ping) != 0)
        connection->is_broken = true;
    for (struct grpc_call *call = connection->calls, *next; call != NULL; call = next) {
        next = call->next;
        grpc_call_drain(call);
    }
    grpc_connection_signal(connection);
}

bool grpc_connection_is_idle(const struct grpc_connection *connection)
{
    return connection->calls == NULL;
}

bool grpc_connection_is_finished(const struct grpc_connection *connection)
{
    if (connection->is_broken)
        return true;
    return connection->output.size == 0 && !nghttp2_session_want_read(connection->session) &&
           !nghttp2_session_want_write(connection->session);
}

/* --- bytes --- */

/* nghttp2 has given up on the input. One that floods us with CONTINUATION frames is told so; others
 * do not speak HTTP/2, or do not read. */
static void stop_listening(struct grpc_connection *connection, int error)
{
    connection->is_deaf = true;
    if (error != NGHTTP2_ERR_TOO_MANY_CONTINUATIONS ||
        nghttp2_session_terminate_session(connection->session, NGHTTP2_ENHANCE_YOUR_CALM) != 0)
        connection->is_broken = true;
}

/* A frame on a stream that the client had ended, or passed over, of which nghttp2 knows nothing. */
static void punish(struct grpc_connection *connection, const struct h2_offence *offence)
{
    nghttp2_session *session = connection->session;
    int error = 0;
    if (offence->ends_connection) {
        error = nghttp2_session_terminate_session(session, offence->code);
    } else if (offence->code != NGHTTP2_NO_ERROR) {
        error =
            nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, offence->stream, offence->code);
        grpc_connection_count_nuisance(connection);
    }
    if (error != 0)
        connection->is_broken = true;
}

void grpc_connection_receive(struct grpc_connection *connection, bytes input)
{
    CHECK_MAGIC(connection, GRPC_CONNECTION_MAGIC);
    if (connection->is_broken || connection->is_deaf)
        return;
    connection->turn++;
    connection->turn_us = 0;
    while (input.size > 0 && !connection->is_broken && !connection->is_deaf) {
        struct h2_offence offence;
        size_t size = h2_guard_scan(&connection->guard, input, &offence);
        ssize_t taken = nghttp2_session_mem_recv(connection->session, input.data, size);
        if (taken < 0)
            stop_listening(connection, (int)taken);
        punish(connection, &offence);
        input = bytes_from(input, size);
    }
    if (nghttp2_session_get_outbound_queue_size(connection->session) > LIMIT_QUEUED_FRAMES)
        connection->is_broken = true;
    grpc_connection_signal(connection);
}

/* Tells handlers that were too fast for their client to go on. */
static void tell_writable(struct grpc_connection *connection)
{
    struct link *link;
    while ((link = list_take(&connection->writable)) != NULL) {
        struct grpc_call *call = LIST_ENTRY(link, struct grpc_call, writable_link);
        call->is_to_be_told = false;
        if (call->held && call->on_writable != NULL)
            call->on_writable(call->context);
        grpc_call_unpin(call);
    }
}

size_t grpc_connection_output(struct grpc_connection *connection, struct iovec *vectors,
                              size_t capacity)
{
    CHECK_MAGIC(connection, GRPC_CONNECTION_MAGIC);
    connection->is_signalled = true; /* the caller need not be told */
    if (connection->output.size == 0)
        connection->idle_sweeps = 0;
    if (!connection->is_broken && !h2_output_fill(&connection->output, connection->session))
        connection->is_broken = true;
    tell_writable(connection);
    connection->is_signalled = false;
    if (connection->is_broken)
        return 0;
    return h2_output_vectors(&connection->output, vectors, capacity);
}

void grpc_connection_sent(struct grpc_connection *connection, size_t size)
{
    CHECK_MAGIC(connection, GRPC_CONNECTION_MAGIC);
    if (size == 0)
        return;
    connection->idle_sweeps = 0;
    h2_output_sent(&connection->output, size);
}
