/* From headers and DATA frames to a handler's call. See grpc_private.h for the whole. */
#include "wire/grpc_private.h"

#include "base/check.h"
#include "wire/grpc_text.h"

enum { KEEP_BODY = 16 << 10 }; /* memory that a call keeps for the next request */

/* --- headers --- */

static void refuse(struct grpc_call *call, status cause)
{
    if (status_is_ok(call->refusal))
        call->refusal = cause;
    else
        status_ignore(cause); /* the first cause is told */
}

/* application/grpc, application/grpc+proto, either with parameters. */
static bool is_grpc_type(bytes type)
{
    const bytes plain = bytes_of("application/grpc");
    const bytes proto = bytes_of("+proto");
    if (!bytes_start_with(type, plain))
        return false;
    type = bytes_from(type, plain.size);
    if (bytes_start_with(type, proto))
        type = bytes_from(type, proto.size);
    return type.size == 0 || type.data[0] == ';';
}

/* Whether a comma-separated list has `gzip` in it. */
static bool lists_gzip(bytes list)
{
    const bytes gzip = bytes_of("gzip");
    size_t start = 0;
    for (size_t i = 0; i <= list.size; i++) {
        if (i < list.size && list.data[i] != ',')
            continue;
        while (start < i && list.data[start] == ' ')
            start++;
        if (bytes_equal(bytes_make(list.data + start, i - start), gzip))
            return true;
        start = i + 1;
    }
    return false;
}

/* An answer need not list the encodings that are taken but to one that is not, or may stop to be.
 */
static void take_encoding(struct grpc_call *call, bytes encoding)
{
    call->tells_encodings = !bytes_equal(encoding, bytes_of("identity"));
    if (bytes_equal(encoding, bytes_of("gzip")))
        call->reader.gzip = true;
    else if (call->tells_encodings)
        refuse(call, status_make(STATUS_UNIMPLEMENTED, "grpc-encoding %.*s is not supported",
                                 encoding.size > 32 ? 32 : (int)encoding.size,
                                 (const char *)encoding.data));
}

static void take_timeout(struct grpc_call *call, bytes timeout)
{
    if (!grpc_timeout_parse(timeout, &call->timeout_us))
        refuse(call, status_make(STATUS_INTERNAL, "grpc-timeout is malformed"));
}

static void keep_header(struct grpc_call *call, const struct request_field *field)
{
    if (call->header_count == LIMIT_METADATA_FIELDS) {
        call->is_too_large = true;
        return;
    }
    nghttp2_rcbuf_incref(field->kept.name);
    nghttp2_rcbuf_incref(field->kept.value);
    call->headers[call->header_count++] = field->kept;
}

/* Mostly that of the call before: a connection's calls are alike. */
static const struct grpc_route *find_route(struct grpc_connection *connection, bytes path)
{
    const struct grpc_route *last = connection->last_route;
    if (last == NULL || !bytes_equal(buffer_bytes(&last->path), path))
        connection->last_route = grpc_server_route(connection->server, path);
    return connection->last_route;
}

/* A path that names no method may be one of HTTP's. */
static void take_path(struct grpc_call *call, const struct request_field *field)
{
    enum { SHOWN = 200 };
    bytes path = field->value;
    call->route = find_route(call->connection, path);
    if (call->route != NULL)
        return;
    refuse(call, status_make(STATUS_UNIMPLEMENTED, "unknown method %.*s",
                             path.size > SHOWN ? SHOWN : (int)path.size, (const char *)path.data));
    keep_header(call, field);
}

static void take_method(struct grpc_call *call, const struct request_field *field)
{
    call->is_post = bytes_equal(field->value, bytes_of("POST"));
    if (!call->is_post)
        keep_header(call, field);
}

static void take_type(struct grpc_call *call, const struct request_field *field)
{
    call->is_grpc = is_grpc_type(field->value);
    if (!call->is_grpc)
        keep_header(call, field);
}

/* The first: nghttp2 lets no second pass. */
static void take_authority(struct grpc_call *call, nghttp2_rcbuf *value)
{
    if (call->authority != NULL)
        return;
    nghttp2_rcbuf_incref(value);
    call->authority = value;
}

void grpc_request_header(struct grpc_call *call, const struct request_field *field,
                         size_t list_bytes)
{
    call->is_too_large |= list_bytes > LIMIT_HEADER_LIST_BYTES;
    bytes name = field->name, value = field->value;
    if (bytes_equal(name, bytes_of(":path")))
        take_path(call, field);
    else if (bytes_equal(name, bytes_of(":method")))
        take_method(call, field);
    else if (bytes_equal(name, bytes_of("content-type")))
        take_type(call, field);
    else if (bytes_equal(name, bytes_of("grpc-timeout")))
        take_timeout(call, value);
    else if (bytes_equal(name, bytes_of("grpc-encoding")))
        take_encoding(call, value);
    else if (bytes_equal(name, bytes_of("grpc-accept-encoding")))
        call->takes_gzip = lists_gzip(value);
    else if (bytes_equal(name, bytes_of(":authority")))
        take_authority(call, field->kept.value);
    else if (name.size > 0 && name.data[0] != ':' && !call->is_too_large)
        keep_header(call, field);
}

static status start_deadline(struct grpc_call *call)
{
    if (call->timeout_us == INT64_MAX)
        return status_ok();
    if (call->timeout_us == 0)
        return status_make(STATUS_DEADLINE_EXCEEDED, "the deadline had passed on arrival");
    return loop_timer_set(call->loop, &call->deadline, call->begun_us + call->timeout_us);
}

static void begin_http(struct grpc_call *call);

static bool is_for_http(const struct grpc_call *call)
{
    return !call->is_grpc && call->route == NULL && call->server->options.http != NULL;
}

void grpc_request_headers_end(struct grpc_call *call)
{
    if (is_for_http(call)) {
        begin_http(call);
        return;
    }
    if (!call->is_post) {
        grpc_answer_http_error(call, "405");
        return;
    }
    if (!call->is_grpc) {
        grpc_answer_http_error(call, "415");
        return;
    }
    if (call->is_too_large) {
        grpc_answer_end(call, status_make(STATUS_RESOURCE_EXHAUSTED,
                                          "more than %d bytes or %d fields of metadata",
                                          LIMIT_HEADER_LIST_BYTES, LIMIT_METADATA_FIELDS));
        return;
    }
    status s = call->refusal;
    call->refusal = status_ok();
    if (status_is_ok(s))
        s = start_deadline(call);
    if (!status_is_ok(s)) {
        grpc_answer_end(call, s);
        return;
    }
    call->answers_gzip = call->takes_gzip && call->reader.gzip;
    if (call->route->method->kind == GRPC_BIDI)
        grpc_call_hold(call);
}

void grpc_request_release(struct grpc_call *call)
{
    message_reader_reset(&call->reader, KEEP_BODY);
    grpc_admission_end(call);
}

/* --- messages --- */

static void set_arena_limit(struct grpc_call *call, size_t request_size)
{
    size_t extra = LIMIT_ARENA_EXTRA_BYTES;
    if (request_size < extra / LIMIT_ARENA_FACTOR)
        extra = request_size * LIMIT_ARENA_FACTOR;
    arena_set_limit(call->arena, LIMIT_ARENA_BASE_BYTES + extra);
}

static void handle(struct grpc_call *call, bytes request)
{
    const struct grpc_route *route = call->route;
    const struct grpc_server_options *options = &call->server->options;
    call->request_bytes += request.size;
    if (options->take != NULL && route->method->kind != GRPC_BIDI &&
        options->take(options->context, call, route->service, route->method, request))
        return;
    route->method->handle(route->service->context, call, request);
}

static status admit(struct grpc_call *call, bytes request)
{
    const struct grpc_server_options *options = &call->server->options;
    if (call->connection->is_reserved && call->route->service->is_data) {
        grpc_connection_drain(call->connection);
        return status_make(STATUS_RESOURCE_EXHAUSTED,
                           "The server has as many connections as it may have (max-connections)");
    }
    if (options->is_short != NULL && call->route->service->is_data &&
        atomic_load_explicit(options->is_short, memory_order_relaxed))
        return grpc_admission_refusal("The server has taken the memory that it may");
    if (options->admit == NULL)
        return status_ok();
    return options->admit(options->context, call->connection->peer, call, call->route->index,
                          request);
}

/* A call that has lost its connection has no client left that could be refused. */
status grpc_call_admit_again(struct grpc_call *call)
{
    CHECK_MAGIC(call, GRPC_CALL_MAGIC);
    CHECK(call->held && call->route->method->kind != GRPC_BIDI);
    if (call->connection == NULL)
        return status_ok();
    return admit(call, buffer_bytes(&call->reader.body));
}

void grpc_request_tell_end(struct grpc_call *call)
{
    if (!call->held || call->told_end || call->is_http || call->route->method->kind != GRPC_BIDI)
        return;
    call->told_end = true;
    handle(call, bytes_make(NULL, 0));
}

static status begin_message(struct grpc_call *call)
{
    if (call->has_message && call->route->method->kind != GRPC_BIDI)
        return status_make(STATUS_INTERNAL, "more than one request message");
    return grpc_admission_ask(call, (size_t)call->reader.left);
}

static status end_message(struct grpc_call *call)
{
    call->has_message = true;
    if (call->route->method->kind != GRPC_BIDI)
        return status_ok();
    if (atomic_load(&call->unsent) > LIMIT_BIDI_OUTPUT_BYTES)
        return status_make(STATUS_RESOURCE_EXHAUSTED, "the answers are not being read");
    TRY(admit(call, buffer_bytes(&call->reader.body)));
    handle(call, buffer_bytes(&call->reader.body));
    return status_ok();
}

static status read_messages(struct grpc_call *call, bytes data)
{
    enum reader_event event;
    do {
        TRY(message_reader_step(&call->reader, &data, &event));
        if (event == READER_BEGIN)
            TRY(begin_message(call));
        if (event == READER_MESSAGE)
            TRY(end_message(call));
    } while (event != READER_MORE && !call->ended);
    return call->ended ? status_ok() : grpc_admission_grow(call);
}

/* --- requests that are not gRPC's --- */

static void handle_http(struct grpc_call *call, bytes body)
{
    const struct grpc_server_options *options = &call->server->options;
    grpc_call_hold(call);
    options->http(options->context, call->connection->peer, call, body);
}

static bool says_too_much(struct grpc_call *call)
{
    bytes text;
    size_t size = 0;
    grpc_call_header(call, "content-length", &text);
    for (size_t i = 0; i < text.size && size <= LIMIT_HTTP_BODY_BYTES; i++)
        size = 10 * size + (text.data[i] - '0'); /* nghttp2 has seen that these are digits */
    return size > LIMIT_HTTP_BODY_BYTES;
}

static void begin_http(struct grpc_call *call)
{
    call->is_http = true;
    call->reported = true;
    if (call->is_too_large)
        grpc_answer_http_error(call, "431");
    else if (says_too_much(call))
        handle_http(call, bytes_make(NULL, 0));
}

static status read_http_body(struct grpc_call *call, bytes data)
{
    struct buffer *body = &call->reader.body;
    if (call->was_held)
        return status_ok(); /* it is too large, and that has been said */
    buffer_append_bytes(body, data);
    if (body->failed)
        return status_out_of_memory();
    if (body->size <= LIMIT_HTTP_BODY_BYTES)
        return grpc_admission_grow(call);
    handle_http(call, bytes_make(NULL, 0));
    return status_ok();
}

static void end_http(struct grpc_call *call)
{
    static const uint8_t nothing[1];
    bytes body = buffer_bytes(&call->reader.body);
    if (!call->was_held)
        handle_http(call, body.size > 0 ? body : bytes_make(nothing, 0));
}

/* --- all of them --- */

/* Ends a call whose request is wrong. */
static void fail(struct grpc_call *call, status s)
{
    grpc_answer_end(call, s);
    grpc_call_cancel(call); /* a bidirectional one has its handler already */
}

void grpc_request_data(struct grpc_call *call, bytes data)
{
    struct grpc_connection *connection = call->connection;
    grpc_call_pin(call);
    call->idle_sweeps = 0;
    if (nghttp2_session_consume_connection(connection->session, data.size) != 0)
        connection->is_broken = true;
    if (!call->ended) {
        status s = call->is_http ? read_http_body(call, data) : read_messages(call, data);
        if (!status_is_ok(s))
            fail(call, s);
    }
    grpc_admission_credit(call, data.size);
    grpc_call_unpin(call);
}

static status check_whole(const struct grpc_call *call)
{
    if (!message_reader_is_between(&call->reader))
        return status_make(STATUS_INTERNAL, "the request ends within a message");
    if (!call->has_message && call->route->method->kind != GRPC_BIDI)
        return status_make(STATUS_INTERNAL, "the request has no message");
    return status_ok();
}

void grpc_request_handle(struct grpc_call *call)
{
    grpc_call_hold(call);
    handle(call, buffer_bytes(&call->reader.body));
}

static void begin(struct grpc_call *call, bytes request)
{
    if (call->begun_turn != call->connection->turn)
        call->arriving_us = clock_steady_us(loop_clock(call->loop)) - call->begun_us;
    set_arena_limit(call, request.size);
    status s = admit(call, request);
    if (!status_is_ok(s)) {
        fail(call, s);
        return;
    }
    if (call->server->options.inject == NULL)
        grpc_request_handle(call);
    else
        grpc_fault_begin(call);
}

void grpc_request_end(struct grpc_call *call)
{
    if (call->ended)
        return;
    grpc_call_pin(call);
    status s = call->is_http ? status_ok() : check_whole(call);
    if (!status_is_ok(s))
        fail(call, s);
    else if (call->is_http)
        end_http(call);
    else if (call->route->method->kind == GRPC_BIDI)
        grpc_request_tell_end(call);
    else
        begin(call, buffer_bytes(&call->reader.body));
    grpc_call_unpin(call);
}
