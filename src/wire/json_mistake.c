/* What is wrong with a JSON text, in Google's words. See json_private.h. */
#include "wire/json_private.h"

#include "base/utf8.h"

#include <stdio.h>

enum { MOST_EXCERPT = 100 }; /* of what was sent, in a message about it */

static void write_place(const struct json_place *place, struct buffer *out)
{
    if (place->outer != NULL && place->outer->field != NULL) {
        write_place(place->outer, out);
        buffer_append_byte(out, '.');
    }
    buffer_append_bytes(out, bytes_of(place->field->name));
    if (place->index >= 0)
        buffer_append_format(out, "[%d]", place->index);
}

status json_bad_text(void)
{
    return status_make(STATUS_INVALID_ARGUMENT, "Invalid JSON payload received. Unexpected token.");
}

status json_too_deep(void)
{
    return status_make(STATUS_INVALID_ARGUMENT,
                       "Invalid JSON payload received. Message too deep. Max recursion depth "
                       "reached for key.");
}

/* As much of it as goes into a message: whole characters. */
static int excerpt(bytes text)
{
    size_t size = text.size;
    if (size > MOST_EXCERPT)
        for (size = MOST_EXCERPT; size > 0 && (text.data[size] & 0xc0) == 0x80;)
            size--;
    return utf8_is_valid(bytes_make(text.data, size)) ? (int)size : 0;
}

static status bad_name(bytes name, const struct json_place *place, const char *why)
{
    struct buffer where = {0};
    if (place->field != NULL) {
        buffer_append(&where, " at '", 5);
        write_place(place, &where);
        buffer_append_byte(&where, '\'');
    }
    status s = status_make(
        STATUS_INVALID_ARGUMENT, "Invalid JSON payload received. Unknown name \"%.*s\"%.*s: %s",
        excerpt(name), (const char *)name.data, (int)where.size, (const char *)where.data, why);
    buffer_free(&where);
    return s;
}

status json_unknown_name(bytes name, const struct json_place *place)
{
    return bad_name(name, place, "Cannot find field.");
}

status json_repeated_key(bytes key, const struct json_place *place)
{
    char why[MOST_EXCERPT + 50];
    snprintf(why, sizeof why, "Repeated map key: '%.*s' is already set.", excerpt(key),
             (const char *)key.data);
    return bad_name(key, place, why);
}

status json_already_set(const struct json_place *place, const char *other)
{
    struct buffer where = {0};
    write_place(place, &where);
    status s = status_make(STATUS_INVALID_ARGUMENT,
                           "Invalid value at '%.*s' (oneof), field '%s' is already set. "
                           "Cannot set '%s'",
                           (int)where.size, (const char *)where.data, other, place->field->name);
    buffer_free(&where);
    return s;
}

status json_cannot_bind(bytes path)
{
    return status_make(STATUS_INVALID_ARGUMENT,
                       "Invalid JSON payload received. Unknown name \"%.*s\": Cannot bind query "
                       "parameter. Field '%.*s' could not be found in request message.",
                       excerpt(path), (const char *)path.data, excerpt(path),
                       (const char *)path.data);
}

/* As Google's parser calls the type of a field. */
static const char *type_name(const ProtobufCFieldDescriptor *field)
{
    static const char *const names[] = {
        [PROTOBUF_C_TYPE_INT32] = "TYPE_INT32",       [PROTOBUF_C_TYPE_SINT32] = "TYPE_SINT32",
        [PROTOBUF_C_TYPE_SFIXED32] = "TYPE_SFIXED32", [PROTOBUF_C_TYPE_INT64] = "TYPE_INT64",
        [PROTOBUF_C_TYPE_SINT64] = "TYPE_SINT64",     [PROTOBUF_C_TYPE_SFIXED64] = "TYPE_SFIXED64",
        [PROTOBUF_C_TYPE_UINT32] = "TYPE_UINT32",     [PROTOBUF_C_TYPE_FIXED32] = "TYPE_FIXED32",
        [PROTOBUF_C_TYPE_UINT64] = "TYPE_UINT64",     [PROTOBUF_C_TYPE_FIXED64] = "TYPE_FIXED64",
        [PROTOBUF_C_TYPE_FLOAT] = "TYPE_FLOAT",       [PROTOBUF_C_TYPE_DOUBLE] = "TYPE_DOUBLE",
        [PROTOBUF_C_TYPE_BOOL] = "TYPE_BOOL",         [PROTOBUF_C_TYPE_STRING] = "TYPE_STRING",
        [PROTOBUF_C_TYPE_BYTES] = "TYPE_BYTES",
    };
    if (field->type == PROTOBUF_C_TYPE_ENUM)
        return ((const ProtobufCEnumDescriptor *)field->descriptor)->name;
    if (field->type == PROTOBUF_C_TYPE_MESSAGE)
        return ((const ProtobufCMessageDescriptor *)field->descriptor)->name;
    return names[field->type];
}

status json_bad_value(const struct json_place *place, bytes shown)
{
    const ProtobufCFieldDescriptor *field = place->field;
    if (field == NULL) /* the payload itself, asked for as an Any */
        return json_bad_text();
    bool is_named = field->type == PROTOBUF_C_TYPE_ENUM || field->type == PROTOBUF_C_TYPE_MESSAGE;
    struct buffer where = {0};
    write_place(place, &where);
    status s = status_make(STATUS_INVALID_ARGUMENT, "Invalid value at '%.*s' (%s%s), %.*s",
                           (int)where.size, (const char *)where.data,
                           is_named ? "type.googleapis.com/" : "", type_name(field), excerpt(shown),
                           (const char *)shown.data);
    buffer_free(&where);
    return s;
}
