/* From messages and a status to HEADERS, DATA and trailers. See grpc_private.h for the whole. */
#include "wire/grpc_private.h"

#include "base/check.h"
#include "base/varint.h"
#include "wire/grpc_text.h"
#include "wire/http_private.h"

#include <stdio.h>

enum { UNAUTHORIZED = 401, SERVICE_UNAVAILABLE = 503 };

/* --- header fields --- */

/* The code's three digits must live until the fields have been submitted. */
static void add_http_headers(struct fields *fields, const struct grpc_call *call, char code[4])
{
    snprintf(code, 4, "%u", call->http_code % 1000);
    fields_add(fields, ":status", bytes_of(code));
    if (call->http_type != NULL)
        fields_add_fixed(fields, "content-type", call->http_type);
    fields_add_fixed(fields, "cache-control",
                     call->http_caching == NULL ? HTTP_NOT_KEPT : call->http_caching);
    fields_add_metadata(fields, &call->header_metadata);
    if (call->http_code == UNAUTHORIZED)
        fields_add_fixed(fields, "www-authenticate", HTTP_CHALLENGE);
}

static void add_headers(struct fields *fields, const struct grpc_call *call)
{
    fields_add_fixed(fields, ":status", "200");
    fields_add_fixed(fields, "content-type", "application/grpc");
    if (call->tells_encodings)
        fields_add_fixed(fields, "grpc-accept-encoding", "identity,gzip");
    if (call->answers_gzip)
        fields_add_fixed(fields, "grpc-encoding", "gzip");
    if (call->server->options.headers != NULL)
        fields_add_shared(fields, call->server->options.headers);
    for (size_t i = 0; i < call->shared_count; i++)
        fields_add_shared(fields, call->shared_headers[i]);
    fields_add_metadata(fields, &call->header_metadata);
}

/* A google.rpc.Status: code in field 1, message in 2; the details are ready as they are. */
static void encode_status(status s, bytes message, struct buffer *out)
{
    enum { CODE = 1 << 3, MESSAGE = 2 << 3 | 2 };
    buffer_append_byte(out, CODE);
    buffer_append_varint(out, (uint64_t)s.code);
    buffer_append_byte(out, MESSAGE);
    buffer_append_varint(out, message.size);
    buffer_append_bytes(out, message);
    buffer_append_bytes(out, status_details(s));
}

static void encode_details(status s, bytes message, struct buffer *out)
{
    bytes details = status_details(s);
    if (details.size == 0 || details.size > LIMIT_STATUS_DETAILS_BYTES)
        return;
    struct buffer plain = {0};
    encode_status(s, message, &plain);
    if (!plain.failed)
        base64_encode(buffer_bytes(&plain), out);
    buffer_free(&plain);
}

static const char *code_text(enum status_code code)
{
    static const char *const texts[] = {"0", "1",  "2",  "3",  "4",  "5",  "6",  "7", "8",
                                        "9", "10", "11", "12", "13", "14", "15", "16"};
    return texts[code];
}

/* The text of an error, which must live until the fields have been submitted. Without memory for
 * it, the client gets the code alone. */
struct error_text {
    struct buffer message;
    struct buffer details;
};

static void add_trailers(struct fields *fields, const struct grpc_call *call,
                         struct error_text *text)
{
    fields_add_fixed(fields, "grpc-status", code_text(call->final.code));
    if (!status_is_ok(call->final)) {
        bytes message = bytes_of(status_message(call->final));
        if (message.size > LIMIT_STATUS_MESSAGE_BYTES)
            message.size = LIMIT_STATUS_MESSAGE_BYTES;
        grpc_percent_encode(message, &text->message);
        encode_details(call->final, message, &text->details);
    }
    if (text->message.size > 0 && !text->message.failed)
        fields_add(fields, "grpc-message", buffer_bytes(&text->message));
    if (text->details.size > 0 && !text->details.failed)
        fields_add(fields, "grpc-status-details-bin", buffer_bytes(&text->details));
    fields_add_metadata(fields, &call->trailer_metadata);
}

static int submit_trailers(struct grpc_call *call)
{
    struct fields fields;
    struct error_text text = {0};
    fields_start(&fields);
    add_trailers(&fields, call, &text);
    if (call->shared_trailers != NULL)
        fields_add_shared(&fields, call->shared_trailers);
    int error = nghttp2_submit_trailer(call->connection->session, call->stream_id, fields.list,
                                       fields.count);
    buffer_free(&text.message);
    buffer_free(&text.details);
    return error;
}

/* What comes after the last byte: trailers, or of HTTP's nothing. False: a reset, in nghttp2's
 * words or for want of the rest. */
static bool end_body(struct grpc_call *call, uint32_t *flags)
{
    if (call->is_http)
        return status_is_ok(call->final);
    *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
    return submit_trailers(call) == 0;
}

/* --- frames --- */

ssize_t grpc_answer_read(nghttp2_session *session, int32_t stream_id, uint8_t *to, size_t length,
                         uint32_t *flags, nghttp2_data_source *source, void *user_data)
{
    (void)session;
    (void)stream_id;
    (void)to; /* on_send_data takes the bytes from the queue instead */
    (void)user_data;
    struct grpc_call *call = source->ptr;
    size_t size = call->queue.size < length ? call->queue.size : length;
    bool is_cut_short = call->ended && call->body_left > 0; /* a reset is on its way */
    if (is_cut_short || (size == 0 && !call->ended))
        return NGHTTP2_ERR_DEFERRED;
    *flags = NGHTTP2_DATA_FLAG_NO_COPY;
    if (call->ended && size == call->queue.size) {
        *flags |= NGHTTP2_DATA_FLAG_EOF;
        if (!end_body(call, flags))
            return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    }
    return (ssize_t)size;
}

/* Without memory for a reset the connection ends. */
static void reset_with(struct grpc_call *call, uint32_t error_code)
{
    if (nghttp2_submit_rst_stream(call->connection->session, NGHTTP2_FLAG_NONE, call->stream_id,
                                  error_code) != 0)
        call->connection->is_broken = true;
}

/* Without memory for an answer, not even its status. */
static void reset(struct grpc_call *call)
{
    reset_with(call, NGHTTP2_INTERNAL_ERROR);
}

/* What gRPC takes for the status ("PROTOCOL-HTTP2", Errors), read the other way. There is none for
 * ABORTED; what clients make of REFUSED_STREAM they try again as well. */
static uint32_t reset_of_code(enum status_code code)
{
    switch (code) {
    case STATUS_UNAVAILABLE:
    case STATUS_ABORTED:
        return NGHTTP2_REFUSED_STREAM;
    case STATUS_CANCELLED:
    case STATUS_DEADLINE_EXCEEDED: /* the client's has passed, too */
        return NGHTTP2_CANCEL;
    case STATUS_RESOURCE_EXHAUSTED:
        return NGHTTP2_ENHANCE_YOUR_CALM;
    case STATUS_PERMISSION_DENIED:
        return NGHTTP2_INADEQUATE_SECURITY;
    default:
        return NGHTTP2_INTERNAL_ERROR;
    }
}

static void submit_headers(struct grpc_call *call)
{
    struct fields fields;
    char code[4];
    fields_start(&fields);
    if (call->is_http)
        add_http_headers(&fields, call, code);
    else
        add_headers(&fields, call);
    nghttp2_session *session = call->connection->session;
    nghttp2_data_provider provider = {.source.ptr = call, .read_callback = grpc_answer_read};
    call->headers_sent = true;
    if (nghttp2_submit_response(session, call->stream_id, fields.list, fields.count, &provider) !=
        0)
        reset(call);
}

static void submit_trailers_only(struct grpc_call *call)
{
    struct fields fields;
    struct error_text text = {0};
    fields_start(&fields);
    add_headers(&fields, call);
    add_trailers(&fields, call, &text);
    call->headers_sent = true;
    if (nghttp2_submit_response(call->connection->session, call->stream_id, fields.list,
                                fields.count, NULL) != 0)
        reset(call);
    buffer_free(&text.message);
    buffer_free(&text.details);
}

/* The whole answer, if nothing went before. */
static void submit_http_end(struct grpc_call *call)
{
    if (!status_is_ok(call->final) || call->http_code == 0) {
        status_free(call->final);
        call->final = status_ok();
        call->http_code = SERVICE_UNAVAILABLE;
        call->http_type = NULL;
        call->http_caching = NULL;
    }
    submit_headers(call);
}

/* Lets nghttp2 ask again, if it has been told that there was nothing. */
static void resume(struct grpc_call *call)
{
    int error = nghttp2_session_resume_data(call->connection->session, call->stream_id);
    if (error != 0 && error != NGHTTP2_ERR_INVALID_ARGUMENT) /* the latter: it will ask anyway */
        call->connection->is_broken = true;
}

/* In the middle of a message. */
static void cut_short(struct grpc_call *call)
{
    CHECK(!status_is_ok(call->final));
    reset_with(call, reset_of_code(call->final.code));
}

/* --- what the call's handler, or we, answer --- */

/* Keeps `body_left`; a message of prefix and body, or an announced one's next part. */
static void count_body(struct grpc_call *call, const struct message *message)
{
    size_t size = message->size;
    if (call->body_left == 0) {
        CHECK(size >= MESSAGE_WIRE_PREFIX);
        call->body_left = message_body_size(message);
        size -= MESSAGE_WIRE_PREFIX;
    }
    CHECK(size <= call->body_left);
    call->body_left -= size;
    call->response_bytes += size;
}

void grpc_answer_message(struct grpc_call *call, struct message *message)
{
    if (!call->open || call->ended) {
        grpc_call_count_sent(call, message->size);
        message_free(message);
        return;
    }
    if (!call->is_http)
        count_body(call, message);
    if (call->queue.size == 0)
        call->idle_sweeps = 0;
    message_queue_append(&call->queue, message);
    if (call->headers_sent)
        resume(call);
    else
        submit_headers(call);
    if (call->fault.after > 0 && call->body_left == 0)
        grpc_fault_count_message(call);
    grpc_connection_signal(call->connection);
}

void grpc_answer_end(struct grpc_call *call, status s)
{
    if (!call->open || call->ended) {
        status_ignore(s); /* the client has gone, or something else was told before */
        return;
    }
    call->ended = true;
    call->final = s;
    call->idle_sweeps = 0;
    if (call->body_left > 0)
        cut_short(call);
    else if (call->headers_sent)
        resume(call);
    else if (call->is_http)
        submit_http_end(call);
    else
        submit_trailers_only(call);
    if (!call->was_held) {
        grpc_call_report(call);
        grpc_request_release(call);
    }
    grpc_connection_signal(call->connection);
}

void grpc_answer_http_error(struct grpc_call *call, const char *http_status)
{
    struct fields fields;
    fields_start(&fields);
    fields_add_fixed(&fields, ":status", http_status);
    call->ended = true;
    call->headers_sent = true;
    call->final = (status){.code = STATUS_INTERNAL, .detail = NULL};
    if (nghttp2_submit_response(call->connection->session, call->stream_id, fields.list,
                                fields.count, NULL) != 0)
        reset(call);
    grpc_call_report(call);
}
