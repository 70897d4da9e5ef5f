/* From a status to an HTTP status and Google's envelope. See rest_private.h. */
#include "wire/rest_private.h"

#include "base/limits.h"

#include "google/rpc/status.pb-c.h"

unsigned rest_http_status(enum status_code code)
{
    static const unsigned codes[] = {
        [STATUS_OK] = 200,
        [STATUS_CANCELLED] = 499,
        [STATUS_UNKNOWN] = 500,
        [STATUS_INVALID_ARGUMENT] = 400,
        [STATUS_DEADLINE_EXCEEDED] = 504,
        [STATUS_NOT_FOUND] = 404,
        [STATUS_ALREADY_EXISTS] = 409,
        [STATUS_PERMISSION_DENIED] = 403,
        [STATUS_RESOURCE_EXHAUSTED] = 429,
        [STATUS_FAILED_PRECONDITION] = 400,
        [STATUS_ABORTED] = 409,
        [STATUS_OUT_OF_RANGE] = 400,
        [STATUS_UNIMPLEMENTED] = 501,
        [STATUS_INTERNAL] = 500,
        [STATUS_UNAVAILABLE] = 503,
        [STATUS_DATA_LOSS] = 500,
        [STATUS_UNAUTHENTICATED] = 401,
    };
    return codes[code];
}

/* Its `details`, each with its type; nothing without any. */
static void write_details(bytes details, const struct json_style *style, struct buffer *out)
{
    struct arena *arena = arena_create(LIMIT_ARENA_BASE_BYTES);
    ProtobufCMessage *message = NULL;
    status s = arena == NULL ? status_out_of_memory()
                             : proto_decode(&rpc__status__descriptor, details, arena, &message);
    if (status_is_ok(s)) {
        const Rpc__Status *given = (const Rpc__Status *)message;
        for (size_t i = 0; i < given->n_details; i++) {
            const struct json_style inner = {style->compact, style->enum_numbers, 3, NULL};
            const char *before = style->compact ? (i == 0 ? ",\"details\":[" : ",")
                                 : i == 0       ? ",\n    \"details\": [\n      "
                                                : ",\n      ";
            buffer_append_bytes(out, bytes_of(before));
            json_encode(&given->details[i]->base, &inner, out);
        }
        if (given->n_details > 0)
            buffer_append_bytes(out, bytes_of(style->compact ? "]" : "\n    ]"));
    }
    status_ignore(s); /* without details, code and message stand alone */
    arena_destroy(arena);
}

void rest_write_error(unsigned http_status, status s, bytes details, const struct json_style *style,
                      struct buffer *out)
{
    if (style->compact)
        buffer_append_format(out, "{\"error\":{\"code\":%u,\"message\":", http_status);
    else
        buffer_append_format(
            out, "{\n  \"error\": {\n    \"code\": %u,\n    \"message\": ", http_status);
    json_encode_shown(bytes_of(status_message(s)), out);
    buffer_append_bytes(out, bytes_of(style->compact ? ",\"status\":" : ",\n    \"status\": "));
    json_encode_string(bytes_of(status_code_name(s.code)), out);
    write_details(details, style, out);
    buffer_append_bytes(out, bytes_of(style->compact ? "}}" : "\n  }\n}"));
}

void rest_write_status(status s, bytes details, struct buffer *out)
{
    Rpc__Status message = RPC__STATUS__INIT;
    message.code = (int32_t)s.code;
    message.message = status_message(s);
    proto_encode(&message.base, out);
    buffer_append_bytes(out, details); /* parts of a message add up */
}
