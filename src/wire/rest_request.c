/* From an HTTP request to the message of the call that it stands for. See rest_private.h.
 *
 * Query, body and path are appended to the message in turn, so that the path has the last word. */
#include "wire/json_private.h"
#include "wire/rest_private.h"

#include "base/check.h"
#include "base/limits.h"

#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <strings.h>

enum { MOST_VERB = 16 };

/* --- headers --- */

static bool is_named(bytes name, const char *wanted)
{
    return name.size == strlen(wanted) &&
           strncasecmp((const char *)name.data, wanted, name.size) == 0;
}

static bool is_blank(uint8_t byte)
{
    return byte == ' ' || byte == '\t';
}

/* Header fields that say who asks and how, and that gRPC's clients send as metadata. */
static bool is_metadata(bytes name)
{
    static const char prefix[] = "x-goog-";
    return is_named(name, "authorization") || is_named(name, "bigtable-features") ||
           is_named(name, "trestle-explain") ||
           (name.size >= strlen(prefix) &&
            strncasecmp((const char *)name.data, prefix, strlen(prefix)) == 0);
}

/* Name and value wait in the text, each with a NUL after it, until all are there. */
static void note_metadata(struct rest_request *out, bytes name, bytes value)
{
    if (out->metadata_count == REST_MOST_METADATA)
        return;
    for (size_t i = 0; i < name.size; i++) {
        bool is_capital = name.data[i] >= 'A' && name.data[i] <= 'Z';
        buffer_append_byte(&out->metadata_text, is_capital ? name.data[i] | 0x20 : name.data[i]);
    }
    buffer_append_byte(&out->metadata_text, '\0');
    buffer_append_bytes(&out->metadata_text, value);
    buffer_append_byte(&out->metadata_text, '\0');
    out->metadata_count++;
}

/* HTTP/1.1 lets blanks stand around a value, and bytes in it that HTTP/2 does not have: a field
 * with those is left out. */
static void note_header(void *context, bytes name, bytes value)
{
    while (value.size > 0 && is_blank(value.data[value.size - 1]))
        value.size--;
    while (value.size > 0 && is_blank(value.data[0]))
        value = bytes_from(value, 1);
    if (is_metadata(name) && nghttp2_check_header_value(value.data, value.size))
        note_metadata(context, name, value);
}

static void note_client(struct rest_request *out, const struct http_client *client)
{
    if (client->address != NULL)
        note_metadata(out, bytes_of(REST_CLIENT_ADDRESS), bytes_of(client->address));
    if (client->subject != NULL)
        note_metadata(out, bytes_of(REST_CLIENT_SUBJECT), bytes_of(client->subject));
}

/* Now that the text moves no more. */
static void find_metadata(struct rest_request *out)
{
    const char *at = (const char *)out->metadata_text.data;
    for (size_t i = 0; i < out->metadata_count; i++) {
        out->metadata[i].name = at;
        at += strlen(at) + 1;
        out->metadata[i].value = bytes_of(at);
        at += strlen(at) + 1;
    }
}

/* --- the query --- */

/* Part of all Google's interfaces, and of no message: accepted, and without effect. */
static bool is_ignored(bytes name)
{
    static const char *const names[] = {"$.xgafv",    "callback",        "key",        "quotaUser",
                                        "uploadType", "upload_protocol", "userProject"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (bytes_equal(name, bytes_of(names[i])))
            return true;
    return false;
}

/* Production has `view` for materialized views, whose messages have no such field. */
static bool is_beside_message(const struct http_route *route, bytes name)
{
    const char *request = route->request->name;
    return bytes_equal(name, bytes_of("view")) &&
           (strcmp(request, "google.bigtable.admin.v2.GetMaterializedViewRequest") == 0 ||
            strcmp(request, "google.bigtable.admin.v2.ListMaterializedViewsRequest") == 0);
}

/* "json", or "json;enum-encoding=int". No method has media to download. */
static status set_format(bytes value, struct json_style *style)
{
    if (bytes_equal(value, bytes_of("media")))
        return status_ok();
    static const char format[] = "json", numbers[] = ";enum-encoding=int";
    bytes rest = bytes_start_with(value, bytes_of(format)) ? bytes_from(value, strlen(format))
                                                           : bytes_of("?");
    style->enum_numbers = bytes_equal(rest, bytes_of(numbers));
    if (rest.size == 0 || style->enum_numbers)
        return status_ok();
    return status_make(STATUS_INVALID_ARGUMENT, "Invalid value for the query parameter 'alt': "
                                                "answers are JSON.");
}

static bool is_false(bytes value)
{
    return value.size == strlen("false") &&
           strncasecmp((const char *)value.data, "false", value.size) == 0;
}

/* A method that is not there has no answer to take parts of. */
static status set_fields(struct rest_request *out, bytes value)
{
    json_fields_destroy(out->fields);
    out->fields = NULL;
    if (value.size > 0 && out->route != NULL)
        TRY(json_fields_parse(out->route->response, value, &out->fields));
    out->style.fields = out->fields;
    return status_ok();
}

static status set_parameter(struct rest_request *out, const struct http_request *request,
                            bytes name, bytes value)
{
    bytes plain =
        name.size > 1 && name.data[0] == '$' && name.data[1] != '.' ? bytes_from(name, 1) : name;
    if (bytes_equal(plain, bytes_of("alt")))
        return set_format(value, &out->style);
    if (bytes_equal(plain, bytes_of("prettyPrint"))) {
        out->style.compact = is_false(value);
        return status_ok();
    }
    if (bytes_equal(plain, bytes_of("fields")))
        return set_fields(out, value);
    if (bytes_equal(plain, bytes_of("access_token")) ||
        bytes_equal(plain, bytes_of("oauth_token"))) {
        struct buffer bearer = {0};
        bytes given;
        buffer_append_bytes(&bearer, bytes_of("Bearer "));
        buffer_append_bytes(&bearer, value);
        if (!http_request_header(request, "authorization", &given))
            note_metadata(out, bytes_of("authorization"), buffer_bytes(&bearer));
        buffer_free(&bearer);
        return status_ok();
    }
    if (is_ignored(plain))
        return status_ok();
    if (out->route == NULL)
        return status_ok(); /* without a route it has no meaning */
    if (is_beside_message(out->route, plain))
        return status_ok();
    return json_decode_text(out->route->request, name, value, &out->message);
}

static status read_parameter(struct rest_request *out, const struct http_request *request,
                             bytes text)
{
    const uint8_t *equals = text.size == 0 ? NULL : memchr(text.data, '=', text.size);
    bytes name = bytes_make(text.data, equals == NULL ? text.size : (size_t)(equals - text.data));
    bytes value = bytes_from(text, equals == NULL ? text.size : name.size + 1);
    struct buffer decoded = {0};
    status s;
    if (!http_percent_decode(name, true, &decoded)) {
        s = status_make(STATUS_INVALID_ARGUMENT, "The query is not well encoded.");
    } else {
        size_t name_size = decoded.size;
        if (!http_percent_decode(value, true, &decoded))
            s = status_make(STATUS_INVALID_ARGUMENT, "The query is not well encoded.");
        else if (decoded.failed)
            s = status_out_of_memory();
        else
            s = set_parameter(out, request, bytes_make(decoded.data, name_size),
                              bytes_from(buffer_bytes(&decoded), name_size));
    }
    buffer_free(&decoded);
    return s;
}

/* All of it, so that the style is known whatever is wrong: the first mistake counts. */
static status read_query(struct rest_request *out, const struct http_request *request, bytes query)
{
    status first = status_ok();
    while (query.size > 0) {
        const uint8_t *end = memchr(query.data, '&', query.size);
        size_t size = end == NULL ? query.size : (size_t)(end - query.data);
        status s =
            size == 0 ? status_ok() : read_parameter(out, request, bytes_make(query.data, size));
        if (status_is_ok(first))
            first = s;
        else
            status_ignore(s); /* another was found before */
        query = bytes_from(query, end == NULL ? size : size + 1);
    }
    return first;
}

/* --- the method --- */

/* For clients behind what knows only GET and POST. */
static const char *read_verb(const struct http_request *request, char verb[MOST_VERB])
{
    bytes other;
    const char *method = http_request_method(request);
    if (strcmp(method, "POST") != 0 ||
        !http_request_header(request, "x-http-method-override", &other))
        return method;
    snprintf(verb, MOST_VERB, "%.*s", (int)(other.size < MOST_VERB ? other.size : MOST_VERB),
             (const char *)other.data);
    return verb;
}

/* A query that is too long for a URL comes as the body of a POST that stands for GET. */
static bytes read_form(const struct http_request *request, const char *verb)
{
    static const char form[] = "application/x-www-form-urlencoded";
    bytes type;
    if (strcmp(verb, "GET") != 0 || strcmp(http_request_method(request), "POST") != 0 ||
        !http_request_header(request, "content-type", &type) ||
        !bytes_start_with(type, bytes_of(form)))
        return bytes_make(NULL, 0);
    return http_request_body(request);
}

/* --- all together --- */

/* As Datastore's older clients send it. What comes after a ';' says nothing. */
static bool is_protobuf(const struct http_request *request)
{
    static const char *const types[] = {"application/x-protobuf", "application/protobuf"};
    bytes type;
    if (!http_request_header(request, "content-type", &type))
        return false;
    const uint8_t *end = type.size == 0 ? NULL : memchr(type.data, ';', type.size);
    if (end != NULL)
        type.size = (size_t)(end - type.data);
    while (type.size > 0 && is_blank(type.data[type.size - 1]))
        type.size--;
    return is_named(type, types[0]) || is_named(type, types[1]);
}

/* The rule's field, which is a message. */
static void append_field(struct rest_request *out, const char *name, bytes body)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field_by_name(out->route->request, name);
    CHECK(field != NULL && field->type == PROTOBUF_C_TYPE_MESSAGE);
    json_write_bytes(&out->message, field->id, body);
}

/* Appended as it is: what is in its fields is seen when the call's message is decoded. But its last
 * field must end where it does, or that would take in what the path says. */
static status read_binary_body(struct rest_request *out, const char *field, bytes body)
{
    static const uint32_t no_field[] = {0};
    bytes value;
    if (!proto_peek(body, no_field, 1, &value))
        return status_make(STATUS_INVALID_ARGUMENT, "The request's body is not a valid message");
    if (strcmp(field, "*") == 0)
        buffer_append_bytes(&out->message, body);
    else
        append_field(out, field, body);
    return status_ok();
}

static status read_body(struct rest_request *out, const struct http_request *request)
{
    const char *field = out->route->rule->body;
    bytes body = http_request_body(request);
    if (*field == '\0' || body.size == 0)
        return status_ok();
    if (out->is_binary)
        return read_binary_body(out, field, body);
    if (strcmp(field, "*") == 0)
        return json_decode(out->route->request, body, &out->message);
    return json_decode_field(out->route->request, field, body, &out->message);
}

static status read_message(struct rest_request *out, const struct http_request *request, bytes path)
{
    if (http_request_is_too_large(request))
        return status_make(STATUS_INVALID_ARGUMENT,
                           "Request payload size exceeds the limit: %d bytes.",
                           LIMIT_HTTP_BODY_BYTES);
    TRY(read_body(out, request));
    TRY(http_route_bind(out->route, path, &out->message));
    return out->message.failed || out->metadata_text.failed ? status_out_of_memory() : status_ok();
}

status rest_request_read(const struct http_router *router, const struct http_request *request,
                         struct rest_request *out)
{
    const char *target = http_request_target(request);
    size_t size = strcspn(target, "?");
    bytes path = bytes_make(target, size);
    grpc_message_start(&out->message);
    char other[MOST_VERB];
    const char *verb = read_verb(request, other);
    out->is_binary = is_protobuf(request);
    status found = http_router_find(router, verb, path, &out->route);
    status s = read_query(out, request, bytes_of(target[size] == '?' ? target + size + 1 : ""));
    if (status_is_ok(s))
        s = read_query(out, request, read_form(request, verb));
    if (!status_is_ok(found)) {
        status_ignore(s); /* there is nothing that it could be wrong for */
        return found;
    }
    TRY(s);
    if (out->is_binary && out->route->rule->streams) {
        out->is_binary = false;
        return status_make(STATUS_INVALID_ARGUMENT,
                           "A method that streams takes and answers JSON only.");
    }
    note_client(out, http_request_client(request));
    http_request_headers(request, out, note_header);
    TRY(read_message(out, request, path));
    find_metadata(out);
    return status_ok();
}

void rest_request_free(struct rest_request *request)
{
    buffer_free(&request->message);
    buffer_free(&request->metadata_text);
    json_fields_destroy(request->fields);
}
