/* Messages to JSON. See json.h. */
#include "wire/json_private.h"

#include "base/limits.h"
#include "wire/grpc_text.h"

#include "google/protobuf/any.pb-c.h"
#include "google/protobuf/duration.pb-c.h"
#include "google/protobuf/field_mask.pb-c.h"
#include "google/protobuf/timestamp.pb-c.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct encoder {
    const struct json_style *style;
    struct buffer *out;
    unsigned level;
    unsigned depth; /* messages, those in messages of Any included */
    const struct json_node *wanted;
};

static void encode_message(struct encoder *encoder, const ProtobufCMessage *message);

/* --- the marks between values --- */

static void new_line(struct encoder *encoder)
{
    if (encoder->style->compact)
        return;
    buffer_append_format(encoder->out, "\n%*s", (int)(2 * encoder->level), "");
}

static void open(struct encoder *encoder, char bracket)
{
    buffer_append_byte(encoder->out, (uint8_t)bracket);
    encoder->level++;
}

/* Before each element; `*is_first` becomes false. */
static void separate(struct encoder *encoder, bool *is_first)
{
    if (!*is_first)
        buffer_append_byte(encoder->out, ',');
    *is_first = false;
    new_line(encoder);
}

static void close(struct encoder *encoder, char bracket, bool is_empty)
{
    encoder->level--;
    if (!is_empty)
        new_line(encoder);
    buffer_append_byte(encoder->out, (uint8_t)bracket);
}

static void colon(struct encoder *encoder)
{
    buffer_append_bytes(encoder->out, bytes_of(encoder->style->compact ? ":" : ": "));
}

/* A field's name in lowerCamelCase, without quotes. */
static void write_camel(const char *name, struct buffer *out)
{
    for (bool is_raised = false; *name != '\0'; name++) {
        if (*name == '_') {
            is_raised = true;
            continue;
        }
        bool is_letter = *name >= 'a' && *name <= 'z';
        buffer_append_byte(out, (uint8_t)(is_raised && is_letter ? *name - 'a' + 'A' : *name));
        is_raised = false;
    }
}

static void write_name(struct encoder *encoder, const char *name)
{
    buffer_append_byte(encoder->out, '"');
    write_camel(name, encoder->out);
    buffer_append_byte(encoder->out, '"');
    colon(encoder);
}

/* --- scalars --- */

/* The shortest form that reads back as the same number. */
static void write_double(double value, int most_digits, struct buffer *out)
{
    char text[40];
    if (isnan(value) || isinf(value)) {
        const char *name = isnan(value) ? "\"NaN\"" : value < 0 ? "\"-Infinity\"" : "\"Infinity\"";
        buffer_append_bytes(out, bytes_of(name));
        return;
    }
    for (int digits = most_digits - 3; digits <= most_digits; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        double back = strtod(text, NULL);
        if (most_digits > 9 ? back == value : (float)back == (float)value)
            break;
    }
    buffer_append_bytes(out, bytes_of(text));
}

static void write_base64(ProtobufCBinaryData data, struct buffer *out)
{
    static const char padding[] = "==";
    buffer_append_byte(out, '"');
    base64_encode(proto_bytes(data), out);
    buffer_append_bytes(out, bytes_from(bytes_of(padding), data.len % 3 == 0   ? 2
                                                           : data.len % 3 == 1 ? 0
                                                                               : 1));
    buffer_append_byte(out, '"');
}

static void write_enum(struct encoder *encoder, const ProtobufCEnumDescriptor *type, int value)
{
    const ProtobufCEnumValue *known =
        encoder->style->enum_numbers ? NULL : protobuf_c_enum_descriptor_get_value(type, value);
    if (known == NULL)
        buffer_append_format(encoder->out, "%d", value);
    else
        json_encode_string(bytes_of(known->name), encoder->out);
}

/* `at` is where the value stands in its message or list. */
static void write_value(struct encoder *encoder, const ProtobufCFieldDescriptor *field,
                        const void *at)
{
    struct buffer *out = encoder->out;
    switch (field->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
        buffer_append_format(out, "%d", *(const int32_t *)at);
        return;
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        buffer_append_format(out, "%u", *(const uint32_t *)at);
        return;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        buffer_append_format(out, "\"%lld\"", (long long)*(const int64_t *)at);
        return;
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        buffer_append_format(out, "\"%llu\"", (unsigned long long)*(const uint64_t *)at);
        return;
    case PROTOBUF_C_TYPE_FLOAT:
        write_double((double)*(const float *)at, 9, out);
        return;
    case PROTOBUF_C_TYPE_DOUBLE:
        write_double(*(const double *)at, 17, out);
        return;
    case PROTOBUF_C_TYPE_BOOL:
        buffer_append_bytes(out, bytes_of(*(const protobuf_c_boolean *)at ? "true" : "false"));
        return;
    case PROTOBUF_C_TYPE_ENUM:
        if (json_is_null(field))
            buffer_append_bytes(out, bytes_of("null"));
        else
            write_enum(encoder, field->descriptor, *(const int *)at);
        return;
    case PROTOBUF_C_TYPE_STRING:
        json_encode_string(bytes_of(*(char *const *)at), out);
        return;
    case PROTOBUF_C_TYPE_BYTES:
        write_base64(*(const ProtobufCBinaryData *)at, out);
        return;
    case PROTOBUF_C_TYPE_MESSAGE:
        encode_message(encoder, *(ProtobufCMessage *const *)at);
        return;
    }
}

/* The name of a map's entry: what has no quotes as a value has them here. */
static void write_key(struct encoder *encoder, const ProtobufCFieldDescriptor *field,
                      const void *at)
{
    bool is_bare = proto_value_size(field->type) < sizeof(uint64_t);
    if (is_bare)
        buffer_append_byte(encoder->out, '"');
    write_value(encoder, field, at);
    if (is_bare)
        buffer_append_byte(encoder->out, '"');
    colon(encoder);
}

/* --- fields --- */

static const void *member(const ProtobufCMessage *message, size_t offset)
{
    return (const uint8_t *)message + offset;
}

static bool is_default(const ProtobufCFieldDescriptor *field, const void *at)
{
    static const uint8_t zeroes[sizeof(ProtobufCBinaryData)];
    if (field->type == PROTOBUF_C_TYPE_STRING)
        return **(char *const *)at == '\0';
    if (field->type == PROTOBUF_C_TYPE_BYTES)
        return ((const ProtobufCBinaryData *)at)->len == 0;
    return memcmp(at, zeroes, proto_value_size(field->type)) == 0;
}

static bool is_set(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    const void *at = member(message, field->offset);
    const void *quantifier = member(message, field->quantifier_offset);
    if (field->label == PROTOBUF_C_LABEL_REPEATED)
        return *(const size_t *)quantifier > 0;
    if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF && *(const uint32_t *)quantifier != field->id)
        return false;
    if (field->type == PROTOBUF_C_TYPE_MESSAGE)
        return *(ProtobufCMessage *const *)at != NULL;
    return field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF || !is_default(field, at);
}

/* Strings are the keys of all maps that Google's interfaces have. */
static bytes key_text(const ProtobufCFieldDescriptor *key, const void *at)
{
    return bytes_of(key->type == PROTOBUF_C_TYPE_STRING ? *(char *const *)at : "");
}

static void write_entry(struct encoder *encoder, const ProtobufCMessage *entry, bool *is_first)
{
    const ProtobufCFieldDescriptor *key = &entry->descriptor->fields[0], *value = key + 1;
    const void *at = member(entry, value->offset), *name = member(entry, key->offset);
    const struct json_node *before = encoder->wanted;
    if (!json_wants_key(&encoder->wanted, key_text(key, name)))
        return;
    separate(encoder, is_first);
    write_key(encoder, key, name);
    if (value->type == PROTOBUF_C_TYPE_MESSAGE && *(ProtobufCMessage *const *)at == NULL)
        buffer_append(encoder->out, "{}", 2);
    else
        write_value(encoder, value, at);
    encoder->wanted = before;
}

static void write_list(struct encoder *encoder, const ProtobufCMessage *message,
                       const ProtobufCFieldDescriptor *field)
{
    const bool is_map = json_is_map(field);
    const uint8_t *elements = *(const uint8_t *const *)member(message, field->offset);
    size_t count = *(const size_t *)member(message, field->quantifier_offset);
    bool is_first = true;
    open(encoder, is_map ? '{' : '[');
    for (size_t i = 0; i < count; i++) {
        const void *at = elements + i * proto_value_size(field->type);
        if (is_map) {
            write_entry(encoder, *(ProtobufCMessage *const *)at, &is_first);
            continue;
        }
        separate(encoder, &is_first);
        write_value(encoder, field, at);
    }
    close(encoder, is_map ? '}' : ']', is_first);
}

static void write_fields(struct encoder *encoder, const ProtobufCMessage *message, bool *is_first)
{
    const ProtobufCMessageDescriptor *type = message->descriptor;
    const struct json_node *wanted = encoder->wanted;
    for (unsigned i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &type->fields[i];
        encoder->wanted = wanted;
        if (!is_set(message, field) || !json_wants_field(&encoder->wanted, field->name))
            continue;
        separate(encoder, is_first);
        write_name(encoder, field->name);
        if (field->label == PROTOBUF_C_LABEL_REPEATED)
            write_list(encoder, message, field);
        else
            write_value(encoder, field, member(message, field->offset));
    }
}

/* --- messages with a form of their own --- */

/* Paths may hold anything, if a client says so: even nothing, which this form has no way to say. */
static void write_mask(struct encoder *encoder, const Pb__FieldMask *mask)
{
    struct buffer text = {0};
    for (size_t i = 0; i < mask->n_paths; i++) {
        if (text.size > 0 && mask->paths[i][strspn(mask->paths[i], "_")] != '\0')
            buffer_append_byte(&text, ',');
        write_camel(mask->paths[i], &text);
    }
    encoder->out->failed |= text.failed;
    json_encode_string(buffer_bytes(&text), encoder->out);
    buffer_free(&text);
}

/* What the Any holds, beside its type: nothing if we do not know it. */
static void write_packed(struct encoder *encoder, const Pb__Any *any, bool *is_first)
{
    const ProtobufCMessageDescriptor *type = json_type_of_url(bytes_of(any->type_url));
    struct arena *arena =
        arena_create(LIMIT_ARENA_BASE_BYTES + any->value.len * (size_t)LIMIT_ARENA_FACTOR);
    ProtobufCMessage *message = NULL;
    status s = type == NULL || arena == NULL || encoder->depth >= LIMIT_MESSAGE_DEPTH
                   ? status_out_of_memory()
                   : proto_decode(type, proto_bytes(any->value), arena, &message);
    if (!status_is_ok(s)) {
        status_ignore(s); /* the type alone is what can be said */
    } else if (json_form_of(type) == FORM_OBJECT) {
        write_fields(encoder, message, is_first);
    } else {
        encoder->wanted = NULL;
        separate(encoder, is_first);
        write_name(encoder, "value");
        encode_message(encoder, message);
    }
    arena_destroy(arena);
}

static void write_any(struct encoder *encoder, const Pb__Any *any)
{
    bool is_first = true;
    open(encoder, '{');
    separate(encoder, &is_first);
    write_name(encoder, "@type");
    json_encode_string(bytes_of(any->type_url), encoder->out);
    write_packed(encoder, any, &is_first);
    close(encoder, '}', is_first);
}

/* The one member that a google.protobuf.Value has. */
static void write_any_value(struct encoder *encoder, const ProtobufCMessage *message)
{
    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];
        if (is_set(message, field)) {
            write_value(encoder, field, member(message, field->offset));
            return;
        }
    }
    buffer_append_bytes(encoder->out, bytes_of("null"));
}

static void encode_message(struct encoder *encoder, const ProtobufCMessage *message)
{
    const struct json_node *wanted = encoder->wanted;
    bool is_first = true;
    encoder->depth++;
    switch (json_form_of(message->descriptor)) {
    case FORM_TIMESTAMP: {
        const Pb__Timestamp *time = (const Pb__Timestamp *)message;
        json_write_timestamp(time->seconds, time->nanos, encoder->out);
        break;
    }
    case FORM_DURATION: {
        const Pb__Duration *duration = (const Pb__Duration *)message;
        json_write_duration(duration->seconds, duration->nanos, encoder->out);
        break;
    }
    case FORM_FIELD_MASK:
        write_mask(encoder, (const Pb__FieldMask *)message);
        break;
    case FORM_WRAPPER:
        write_value(encoder, &message->descriptor->fields[0],
                    member(message, message->descriptor->fields[0].offset));
        break;
    case FORM_ANY:
        write_any(encoder, (const Pb__Any *)message);
        break;
    case FORM_STRUCT:
    case FORM_LIST:
        encoder->wanted = NULL;
        write_list(encoder, message, &message->descriptor->fields[0]);
        break;
    case FORM_VALUE:
        encoder->wanted = NULL;
        write_any_value(encoder, message);
        break;
    case FORM_OBJECT:
        open(encoder, '{');
        write_fields(encoder, message, &is_first);
        close(encoder, '}', is_first);
        break;
    }
    encoder->depth--;
    encoder->wanted = wanted;
}

void json_encode(const ProtobufCMessage *message, const struct json_style *style,
                 struct buffer *out)
{
    struct encoder encoder = {.style = style,
                              .out = out,
                              .level = style->level,
                              .wanted = json_fields_root(style->fields)};
    encode_message(&encoder, message);
}
