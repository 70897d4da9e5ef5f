/* Encoding messages of a few KB in one pass: see proto.h.
 *
 * protobuf-c measures a message before it writes it, and each message within once more for every
 * one around it. Here a message is written from its end to its beginning, so that the size of what
 * is within is known when it is to be written. The bytes are protobuf-c's, which does what does not
 * fit, and what no message of ours has that is encoded often: required fields, packed ones, fields
 * that were not known, and the other number types. */
#include "base/arena.h"
#include "base/check.h"
#include "base/varint.h"
#include "wire/proto.h"

#include <string.h>

enum { SMALL = 4 << 10 };

enum wire_type { VARINT = 0, EIGHT_BYTES = 1, SIZED = 2 };

/* What is written lies from `at` on; before it there is room from `start` on. */
struct encoder {
    uint8_t *start;
    uint8_t *at;
};

/* Functions return false for what protobuf-c has to do. */

static bool put(struct encoder *encoder, const void *data, size_t size)
{
    if ((size_t)(encoder->at - encoder->start) < size)
        return false;
    encoder->at -= size;
    if (size > 0)
        memcpy(encoder->at, data, size);
    return true;
}

static bool put_varint(struct encoder *encoder, uint64_t value)
{
    size_t size = varint_size(value);
    if ((size_t)(encoder->at - encoder->start) < size)
        return false;
    encoder->at -= size;
    varint_write(encoder->at, value);
    return true;
}

static bool put_tag(struct encoder *encoder, const ProtobufCFieldDescriptor *field,
                    enum wire_type type)
{
    return put_varint(encoder, (uint64_t)field->id << 3 | type);
}

static bool put_number(struct encoder *encoder, const ProtobufCFieldDescriptor *field,
                       uint64_t value)
{
    return put_varint(encoder, value) && put_tag(encoder, field, VARINT);
}

static bool put_sized(struct encoder *encoder, const ProtobufCFieldDescriptor *field,
                      const void *data, size_t size)
{
    return put(encoder, data, size) && put_varint(encoder, size) && put_tag(encoder, field, SIZED);
}

static bool put_message(struct encoder *encoder, const ProtobufCMessage *message);

static bool put_within(struct encoder *encoder, const ProtobufCFieldDescriptor *field,
                       const ProtobufCMessage *message)
{
    const uint8_t *end = encoder->at;
    return (message == NULL || put_message(encoder, message)) &&
           put_varint(encoder, (uint64_t)(end - encoder->at)) && put_tag(encoder, field, SIZED);
}

static bool put_value(struct encoder *encoder, const ProtobufCFieldDescriptor *field,
                      const void *member)
{
    const ProtobufCBinaryData *data = member;
    const char *const *text = member;
    switch (field->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_ENUM:
        return put_number(encoder, field, (uint64_t)(int64_t) * (const int32_t *)member);
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_UINT64:
        return put_number(encoder, field, *(const uint64_t *)member);
    case PROTOBUF_C_TYPE_BOOL:
        return put_number(encoder, field, *(const protobuf_c_boolean *)member != 0);
    case PROTOBUF_C_TYPE_DOUBLE: /* little-endian, as we are */
        return put(encoder, member, sizeof(double)) && put_tag(encoder, field, EIGHT_BYTES);
    case PROTOBUF_C_TYPE_STRING:
        return put_sized(encoder, field, *text, *text == NULL ? 0 : strlen(*text));
    case PROTOBUF_C_TYPE_BYTES:
        return put_sized(encoder, field, data->data, data->len);
    case PROTOBUF_C_TYPE_MESSAGE:
        return put_within(encoder, field, *(const ProtobufCMessage *const *)member);
    default:
        return false;
    }
}

/* Of a field without presence: what is nothing is not written. */
static bool is_nothing(const ProtobufCFieldDescriptor *field, const void *member)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_ENUM:
    case PROTOBUF_C_TYPE_BOOL:
        return *(const int32_t *)member == 0;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_UINT64:
        return *(const uint64_t *)member == 0;
    case PROTOBUF_C_TYPE_DOUBLE:
        return *(const double *)member == 0;
    case PROTOBUF_C_TYPE_STRING:
        return *(const char *const *)member == NULL || **(const char *const *)member == '\0';
    case PROTOBUF_C_TYPE_BYTES:
        return ((const ProtobufCBinaryData *)member)->len == 0;
    case PROTOBUF_C_TYPE_MESSAGE:
        return *(const void *const *)member == NULL;
    default:
        return false; /* put_value leaves it to protobuf-c */
    }
}

static bool is_set(const ProtobufCFieldDescriptor *field, const ProtobufCMessage *message)
{
    const uint8_t *base = (const uint8_t *)message;
    const void *member = base + field->offset;
    bool is_pointer =
        field->type == PROTOBUF_C_TYPE_MESSAGE || field->type == PROTOBUF_C_TYPE_STRING;
    bool is_of_union = (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0;
    if (field->label == PROTOBUF_C_LABEL_NONE && !is_of_union)
        return !is_nothing(field, member);
    if (is_of_union &&
        *(const uint32_t *)(const void *)(base + field->quantifier_offset) != field->id)
        return false;
    if (is_pointer)
        return *(const void *const *)member != NULL &&
               *(const void *const *)member != field->default_value;
    return is_of_union ||
           *(const protobuf_c_boolean *)(const void *)(base + field->quantifier_offset) != 0;
}

static bool put_repeated(struct encoder *encoder, const ProtobufCFieldDescriptor *field,
                         const ProtobufCMessage *message)
{
    const uint8_t *base = (const uint8_t *)message;
    size_t left = *(const size_t *)(const void *)(base + field->quantifier_offset);
    const uint8_t *items = *(const uint8_t *const *)(const void *)(base + field->offset);
    size_t size = proto_value_size(field->type);
    if (left > 0 && (field->flags & PROTOBUF_C_FIELD_FLAG_PACKED) != 0)
        return false;
    while (left-- > 0)
        if (!put_value(encoder, field, items + left * size))
            return false;
    return true;
}

static bool put_field(struct encoder *encoder, const ProtobufCFieldDescriptor *field,
                      const ProtobufCMessage *message)
{
    if (field->label == PROTOBUF_C_LABEL_REQUIRED)
        return false;
    if (field->label == PROTOBUF_C_LABEL_REPEATED)
        return put_repeated(encoder, field, message);
    return !is_set(field, message) ||
           put_value(encoder, field, (const uint8_t *)message + field->offset);
}

static bool put_message(struct encoder *encoder, const ProtobufCMessage *message)
{
    const ProtobufCMessageDescriptor *type = message->descriptor;
    if (message->n_unknown_fields > 0)
        return false;
    for (unsigned i = type->n_fields; i-- > 0;)
        if (!put_field(encoder, &type->fields[i], message))
            return false;
    return true;
}

/* --- for callers --- */

void proto_encode_small(const ProtobufCMessage *message, struct buffer *out)
{
    uint8_t room[SMALL];
    struct encoder encoder = {.start = room, .at = room + SMALL};
    if (!put_message(&encoder, message)) {
        proto_encode(message, out);
        return;
    }
    DCHECK(protobuf_c_message_get_packed_size(message) == (size_t)(room + SMALL - encoder.at));
    buffer_append(out, encoder.at, (size_t)(room + SMALL - encoder.at));
}

bytes proto_encode_in(struct arena *arena, const ProtobufCMessage *message)
{
    uint8_t room[SMALL];
    struct encoder encoder = {.start = room, .at = room + SMALL};
    if (put_message(&encoder, message))
        return arena_copy(arena, bytes_make(encoder.at, (size_t)(room + SMALL - encoder.at)));
    bytes encoded = {.size = protobuf_c_message_get_packed_size(message)};
    uint8_t *to = arena_alloc(arena, encoded.size);
    if (to != NULL)
        protobuf_c_message_pack(message, to);
    encoded.data = to;
    return encoded;
}
