/* Requests, their calls, and their answers. See rest.h.
 *
 * Invariants
 *  1. A call lives until on_end. `request` is NULL once the client has gone, and its answer is then
 *     of no interest; otherwise the request waits until on_end has ended its answer.
 *  2. The link is made for the first request, and again when it has broken. */
#include "wire/rest_private.h"

#include "base/check.h"
#include "base/limits.h"
#include "wire/grpc_text.h"

#include <stdlib.h>

#define JSON_TYPE   "application/json; charset=UTF-8"
#define BINARY_TYPE "application/x-protobuf"

enum { PAYLOAD_TOO_LARGE = 413 };

struct rest {
    struct grpc_server *grpc;
    void *peer;
    const struct http_router *router;
    struct loop *loop;
    struct grpc_spares *spares;
    struct rest_link *link;
    bool is_closed;
};

struct rest_call {
    struct http_request *request;
    struct client_call *call;
    const struct http_route *route;
    bool is_binary;
    struct json_style style;
    struct json_fields *fields; /* that `style` points to */
    status failure;             /* of the answer's way to JSON */
    bool has_begun;             /* a stream's first message has been written */
    struct buffer answer;       /* of a method with one */
};

/* --- answers --- */

/* Before the answer begins: those of the call's headers that clients measure by. */
static void add_headers(const struct rest_call *call)
{
    static const char *const names[] = {"server-timing", "x-goog-ext-425905942-bin"};
    struct buffer text = {0};
    bytes value;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!client_call_metadata(call->call, names[i], &value))
            continue;
        buffer_clear(&text);
        buffer_append_bytes(&text, value);
        buffer_append_byte(&text, '\0');
        if (!text.failed)
            http_answer_header(call->request, names[i], (const char *)text.data);
    }
    buffer_free(&text);
}

static void answer_binary_error(struct http_request *request, unsigned http_status, status s,
                                bytes details)
{
    struct buffer message = {0};
    rest_write_status(s, details, &message);
    http_answer_begin(request, http_status, BINARY_TYPE);
    http_answer_add(request, buffer_bytes(&message));
    http_answer_end(request);
    buffer_free(&message);
}

static void answer_error(struct http_request *request, const struct json_style *style,
                         bool is_stream, unsigned http_status, status s, bytes details)
{
    struct buffer text = {0};
    if (is_stream)
        buffer_append_byte(&text, '[');
    rest_write_error(http_status, s, details, style, &text);
    buffer_append_bytes(&text, bytes_of(is_stream ? "]\n" : "\n"));
    http_answer_begin(request, http_status, JSON_TYPE);
    http_answer_add(request, buffer_bytes(&text));
    http_answer_end(request);
    buffer_free(&text);
}

/* One answer's message, as JSON or as it is. */
static status write_message(const struct rest_call *call, bytes message, struct buffer *out)
{
    if (call->is_binary) {
        buffer_append_bytes(out, message);
        return out->failed ? status_out_of_memory() : status_ok();
    }
    size_t more = message.size * (size_t)LIMIT_ARENA_FACTOR;
    if (more > LIMIT_ARENA_EXTRA_BYTES)
        more = LIMIT_ARENA_EXTRA_BYTES;
    struct arena *arena = arena_create(LIMIT_ARENA_BASE_BYTES + more);
    ProtobufCMessage *decoded;
    status s = arena == NULL ? status_out_of_memory()
                             : proto_decode(call->route->response, message, arena, &decoded);
    if (status_is_ok(s))
        json_encode(decoded, &call->style, out);
    if (status_is_ok(s) && out->failed)
        s = status_out_of_memory();
    arena_destroy(arena);
    return s;
}

/* Writes an element of a stream's array. */
static void add_element(struct rest_call *call, bytes text)
{
    if (!call->has_begun) {
        add_headers(call);
        http_answer_begin(call->request, 200, JSON_TYPE);
    }
    http_answer_add(call->request, bytes_of(call->has_begun ? ",\n" : "["));
    http_answer_add(call->request, text);
    call->has_begun = true;
}

static void on_message(void *context, struct client_call *client_call, bytes message)
{
    struct rest_call *call = context;
    if (call->request == NULL || !status_is_ok(call->failure))
        return;
    struct buffer text = {0};
    call->failure = write_message(call, message, &text);
    if (!call->route->rule->streams) {
        buffer_free(&call->answer);
        call->answer = text;
        return;
    }
    if (status_is_ok(call->failure))
        add_element(call, buffer_bytes(&text));
    buffer_free(&text);
    if (http_answer_is_congested(call->request))
        client_call_pause(client_call, true);
}

/* The serialised google.rpc.Status that came with the trailers, if any. */
static void find_details(const struct client_call *call, struct buffer *out)
{
    bytes text;
    size_t size;
    if (!client_call_metadata(call, "grpc-status-details-bin", &text))
        return;
    uint8_t *to = buffer_reserve(out, base64_decoded_most(text.size));
    if (to != NULL && base64_decode(text, to, &size))
        out->size = size;
}

static void end_with_error(struct rest_call *call, status s, bytes details)
{
    unsigned http_status = rest_http_status(s.code);
    if (call->is_binary) {
        answer_binary_error(call->request, http_status, s, details);
        return;
    }
    if (!call->has_begun) {
        answer_error(call->request, &call->style, call->route->rule->streams, http_status, s,
                     details);
        return;
    }
    struct buffer text = {0};
    rest_write_error(http_status, s, details, &call->style, &text);
    add_element(call, buffer_bytes(&text));
    http_answer_add(call->request, bytes_of("]\n"));
    http_answer_end(call->request);
    buffer_free(&text);
}

static void end_well(struct rest_call *call)
{
    struct http_request *request = call->request;
    if (!call->has_begun)
        http_answer_begin(request, 200, call->is_binary ? BINARY_TYPE : JSON_TYPE);
    if (call->route->rule->streams) {
        http_answer_add(request, bytes_of(call->has_begun ? "]\n" : "[]\n"));
    } else {
        http_answer_add(request, buffer_bytes(&call->answer));
        http_answer_add(request, bytes_of(call->is_binary ? "" : "\n"));
    }
    http_answer_end(request);
}

static void free_call(struct rest_call *call)
{
    status_free(call->failure);
    buffer_free(&call->answer);
    json_fields_destroy(call->fields);
    free(call);
}

static void on_end(void *context, struct client_call *client_call, status s)
{
    struct rest_call *call = context;
    struct buffer details = {0};
    if (status_is_ok(s) && !status_is_ok(call->failure)) {
        s = call->failure;
        call->failure = status_ok();
    }
    if (call->request != NULL && !call->has_begun)
        add_headers(call);
    if (call->request == NULL) {
        status_ignore(s); /* the client has gone */
    } else if (status_is_ok(s)) {
        end_well(call);
    } else {
        find_details(client_call, &details);
        end_with_error(call, s, buffer_bytes(&details));
        status_free(s);
    }
    buffer_free(&details);
    free_call(call);
}

/* --- requests --- */

static void on_writable(void *context)
{
    struct rest_call *call = context;
    client_call_pause(call->call, false);
}

static void on_gone(void *context)
{
    struct rest_call *call = context;
    call->request = NULL;
    client_call_cancel(call->call);
}

static status find_client(struct rest *rest, struct grpc_client **out)
{
    if (rest->is_closed)
        return status_make(STATUS_UNAVAILABLE, "the server stops");
    if (rest->link != NULL && rest_link_is_broken(rest->link)) {
        rest_link_destroy(rest->link);
        rest->link = NULL;
    }
    if (rest->link == NULL)
        TRY(rest_link_create(rest->grpc, rest->peer, rest->loop, rest->spares, &rest->link));
    *out = rest_link_client(rest->link);
    return status_ok();
}

static status start(struct rest *rest, struct http_request *request, struct rest_request *asked)
{
    struct grpc_client *client;
    TRY(rest_request_read(rest->router, request, asked));
    TRY(find_client(rest, &client));
    struct rest_call *call = calloc(1, sizeof *call);
    if (call == NULL)
        return status_out_of_memory();
    call->request = request;
    call->route = asked->route;
    call->is_binary = asked->is_binary;
    call->style = asked->style;
    call->fields = asked->fields;
    asked->fields = NULL;
    const struct client_call_options options = {
        .path = asked->route->rule->method,
        .timeout_us = INT64_MAX,
        .metadata = asked->metadata,
        .metadata_count = asked->metadata_count,
        .context = call,
        .on_message = on_message,
        .on_end = on_end,
    };
    status s = grpc_client_start(client, &options, &asked->message, &call->call);
    if (status_is_ok(s))
        http_request_set_callbacks(request, call, on_writable, on_gone);
    else
        free_call(call);
    return s;
}

bool rest_is_for(const char *target)
{
    return strncmp(target, "/v1/", strlen("/v1/")) == 0 ||
           strncmp(target, "/v2/", strlen("/v2/")) == 0;
}

void rest_handle(struct rest *rest, struct http_request *request)
{
    struct rest_request asked = {0};
    status s = start(rest, request, &asked);
    if (!status_is_ok(s)) {
        unsigned http_status =
            http_request_is_too_large(request) ? PAYLOAD_TOO_LARGE : rest_http_status(s.code);
        bool is_stream = asked.route != NULL && asked.route->rule->streams;
        if (asked.is_binary)
            answer_binary_error(request, http_status, s, bytes_make(NULL, 0));
        else
            answer_error(request, &asked.style, is_stream, http_status, s, bytes_make(NULL, 0));
        status_free(s);
    }
    rest_request_free(&asked);
}

/* --- life --- */

status rest_create(struct grpc_server *grpc, void *peer, const struct http_router *router,
                   struct loop *loop, struct rest **out)
{
    *out = NULL;
    struct rest *rest = calloc(1, sizeof *rest);
    if (rest == NULL)
        return status_out_of_memory();
    rest->grpc = grpc;
    rest->peer = peer;
    rest->router = router;
    rest->loop = loop;
    status s = grpc_spares_create(&rest->spares);
    if (!status_is_ok(s)) {
        rest_destroy(rest);
        return s;
    }
    *out = rest;
    return s;
}

struct grpc_connection *rest_connection(const struct rest *rest)
{
    return rest->link == NULL ? NULL : rest_link_connection(rest->link);
}

void rest_close(struct rest *rest)
{
    rest->is_closed = true;
    rest_link_destroy(rest->link);
    rest->link = NULL;
}

void rest_destroy(struct rest *rest)
{
    if (rest == NULL)
        return;
    CHECK(rest->link == NULL);
    grpc_spares_destroy(rest->spares);
    free(rest);
}
