/* See proto.h. The decoder walks the wire bytes once, driven by protobuf-c's descriptors, and puts
 * each field where its descriptor says it is in the struct.
 *
 * Repeated fields grow by doubling, in the arena. Their capacity is not stored: it follows from
 * their count (array_slot), so that an array can be added to at any time, as merging demands. */
#include "wire/proto.h"

#include "base/limits.h"
#include "base/utf8.h"
#include "base/varint.h"

struct decoder {
    struct arena *arena;
    unsigned depth; /* of the message that is being read; the outermost has 1 */
};

/* A field as it stands on the wire. */
struct wire_field {
    uint32_t id;
    ProtobufCWireType type;
    uint64_t number; /* varint and fixed types */
    bytes content;   /* length-prefixed */
};

/* Of what each field of each message passes through. */
#define ALWAYS_INLINE inline __attribute__((always_inline))

enum { TAG_TYPE_BITS = 3, TAG_TYPE_MASK = 7 };

static status malformed(const ProtobufCMessage *message)
{
    return status_make(STATUS_INVALID_ARGUMENT,
                       "The request is not a valid message: cannot parse %s",
                       message->descriptor->name);
}

static const uint8_t *read_fixed(const uint8_t *at, const uint8_t *end, size_t size,
                                 uint64_t *value)
{
    if ((size_t)(end - at) < size)
        return NULL;
    *value = 0;
    for (size_t i = 0; i < size; i++)
        *value |= (uint64_t)at[i] << (8 * i);
    return at + size;
}

static inline const uint8_t *read_content(const uint8_t *at, const uint8_t *end, bytes *content)
{
    uint64_t size;
    at = varint_read(at, end, &size);
    if (at == NULL || size > (size_t)(end - at))
        return NULL;
    *content = bytes_make(at, (size_t)size);
    return at + size;
}

/* The value of a field of type field->type, into it. Returns its end; NULL if it is malformed. */
static ALWAYS_INLINE const uint8_t *read_value(const uint8_t *at, const uint8_t *end,
                                               struct wire_field *field)
{
    if (field->type == PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED)
        return read_content(at, end, &field->content);
    if (field->type == PROTOBUF_C_WIRE_TYPE_VARINT)
        return varint_read(at, end, &field->number);
    if (field->type == PROTOBUF_C_WIRE_TYPE_64BIT)
        return read_fixed(at, end, sizeof(uint64_t), &field->number);
    if (field->type == PROTOBUF_C_WIRE_TYPE_32BIT)
        return read_fixed(at, end, sizeof(uint32_t), &field->number);
    return NULL; /* groups, and the numbers that mean nothing */
}

static ALWAYS_INLINE const uint8_t *read_field(const uint8_t *at, const uint8_t *end,
                                               struct wire_field *field)
{
    uint64_t tag;
    at = varint_read(at, end, &tag);
    if (at == NULL || tag > UINT32_MAX || tag >> TAG_TYPE_BITS == 0)
        return NULL;
    field->id = (uint32_t)(tag >> TAG_TYPE_BITS);
    field->type = (ProtobufCWireType)(tag & TAG_TYPE_MASK);
    return read_value(at, end, field);
}

bool proto_peek(bytes wire, const uint32_t *path, size_t depth, bytes *value)
{
    const uint8_t *at = wire.data;
    const uint8_t *end = wire.size == 0 ? at : at + wire.size;
    while (at < end) {
        struct wire_field field;
        at = read_field(at, end, &field);
        if (at == NULL)
            return false;
        if (field.id != path[0] || field.type != PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED)
            continue;
        if (depth == 1)
            *value = field.content;
        else if (!proto_peek(field.content, path + 1, depth - 1, value))
            return false;
    }
    return true;
}

static ProtobufCWireType wire_type_of(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
        return PROTOBUF_C_WIRE_TYPE_32BIT;
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return PROTOBUF_C_WIRE_TYPE_64BIT;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE:
        return PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED;
    default:
        return PROTOBUF_C_WIRE_TYPE_VARINT;
    }
}

size_t proto_value_size(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return sizeof(uint64_t);
    case PROTOBUF_C_TYPE_BOOL:
        return sizeof(protobuf_c_boolean);
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE:
        return sizeof(void *);
    case PROTOBUF_C_TYPE_BYTES:
        return sizeof(ProtobufCBinaryData);
    default:
        return sizeof(uint32_t);
    }
}

static status decode_message(struct decoder *decoder, bytes wire, ProtobufCMessage *message);

/* message_init is not called from here: generated functions of another type stand behind it, which
 * clang's sanitizer tells from version 17 on. */
static ProtobufCMessage *new_message(struct arena *arena, const ProtobufCMessageDescriptor *type)
{
    ProtobufCMessage *message = arena_alloc(arena, type->sizeof_message);
    if (message != NULL)
        protobuf_c_message_init(type, message);
    return message;
}

static __attribute__((noinline)) status check_text(const ProtobufCFieldDescriptor *field,
                                                   bytes text)
{
    if (!utf8_is_valid(text))
        return status_make(STATUS_INVALID_ARGUMENT, "Error in field '%s' : invalid UTF-8",
                           field->name);
    if (text.size > 0 && memchr(text.data, '\0', text.size) != NULL)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "Error in field '%s' : contains a NUL character", field->name);
    return status_ok();
}

/* A short name, such as those of families: nothing but ASCII, and no NUL. */
static inline bool is_plain_name(bytes text)
{
    enum { SHORT = 16 };
    if (text.size > SHORT)
        return false;
    for (size_t i = 0; i < text.size; i++)
        if (text.data[i] == 0 || text.data[i] >= 0x80)
            return false;
    return true;
}

static status store_string(struct decoder *decoder, const ProtobufCFieldDescriptor *field,
                           bytes text, char **slot)
{
    if (!is_plain_name(text))
        TRY(check_text(field, text));
    *slot = arena_string(decoder->arena, text);
    return *slot == NULL ? status_out_of_memory() : status_ok();
}

/* Into the message that is there, or into a new one. */
static status store_message(struct decoder *decoder, const ProtobufCFieldDescriptor *field,
                            bytes wire, ProtobufCMessage **slot)
{
    if (decoder->depth == LIMIT_MESSAGE_DEPTH)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "Error in field '%s' : messages are nested more than %d deep",
                           field->name, LIMIT_MESSAGE_DEPTH);
    if (*slot == NULL)
        *slot = new_message(decoder->arena, field->descriptor);
    if (*slot == NULL)
        return status_out_of_memory();
    decoder->depth++;
    status s = decode_message(decoder, wire, *slot);
    decoder->depth--;
    return s;
}

static ALWAYS_INLINE status store_value(struct decoder *decoder,
                                        const ProtobufCFieldDescriptor *field,
                                        const struct wire_field *value, void *slot)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_SINT32:
        *(int32_t *)slot = (int32_t)zigzag_decode((uint32_t)value->number);
        return status_ok();
    case PROTOBUF_C_TYPE_SINT64:
        *(int64_t *)slot = zigzag_decode(value->number);
        return status_ok();
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        memcpy(slot, &value->number, sizeof value->number);
        return status_ok();
    case PROTOBUF_C_TYPE_BOOL:
        *(protobuf_c_boolean *)slot = value->number != 0;
        return status_ok();
    case PROTOBUF_C_TYPE_STRING:
        return store_string(decoder, field, value->content, slot);
    case PROTOBUF_C_TYPE_BYTES:
        *(ProtobufCBinaryData *)slot = proto_data(value->content);
        return status_ok();
    case PROTOBUF_C_TYPE_MESSAGE:
        return store_message(decoder, field, value->content, slot);
    default: /* 32 bits, of which varints may carry more */
        *(uint32_t *)slot = (uint32_t)value->number;
        return status_ok();
    }
}

/* Mostly of a pointer: of a size that the compiler knows. */
static inline void clear_value(void *slot, size_t size)
{
    if (size == sizeof(void *))
        memset(slot, 0, sizeof(void *));
    else
        memset(slot, 0, size);
}

/* Makes `field` the member of its oneof that is set. One that was set already stays as it is, for
 * messages to merge into. */
static void choose_member(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                          void *slot)
{
    uint32_t *chosen = (void *)((uint8_t *)message + field->quantifier_offset);
    if (*chosen != field->id)
        clear_value(slot, proto_value_size(field->type));
    *chosen = field->id;
}

/* Room, cleared, for one more element at the end of an array that has `*count`; NULL without
 * memory. Capacities are the powers of two. */
static void *array_slot(struct arena *arena, size_t *count, uint8_t **array, size_t element)
{
    bool is_full = (*count & (*count - 1)) == 0;
    if (is_full) {
        size_t capacity = *count == 0 ? 1 : *count * 2;
        uint8_t *grown = arena_alloc(arena, capacity * element);
        if (grown == NULL)
            return NULL;
        if (*count > 0)
            memcpy(grown, *array, *count * element);
        *array = grown;
    }
    void *slot = *array + *count * element;
    clear_value(slot, element);
    ++*count;
    return slot;
}

static status append_value(struct decoder *decoder, ProtobufCMessage *message,
                           const ProtobufCFieldDescriptor *field, const struct wire_field *value)
{
    size_t *count = (void *)((uint8_t *)message + field->quantifier_offset);
    uint8_t **array = (void *)((uint8_t *)message + field->offset);
    void *slot = array_slot(decoder->arena, count, array, proto_value_size(field->type));
    if (slot == NULL)
        return status_out_of_memory();
    return store_value(decoder, field, value, slot);
}

static __attribute__((noinline)) status append_packed(struct decoder *decoder,
                                                      ProtobufCMessage *message,
                                                      const ProtobufCFieldDescriptor *field,
                                                      bytes packed)
{
    struct wire_field value = {.id = field->id, .type = wire_type_of(field->type)};
    const uint8_t *end = packed.data + packed.size;
    for (const uint8_t *at = packed.data; at != end;) {
        at = read_value(at, end, &value);
        if (at == NULL)
            return malformed(message);
        TRY(append_value(decoder, message, field, &value));
    }
    return status_ok();
}

static status store_field(struct decoder *decoder, ProtobufCMessage *message,
                          const ProtobufCFieldDescriptor *field, const struct wire_field *value)
{
    ProtobufCWireType expected = wire_type_of(field->type);
    bool is_repeated = field->label == PROTOBUF_C_LABEL_REPEATED;
    if (value->type != expected) {
        if (is_repeated && value->type == PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED)
            return append_packed(decoder, message, field, value->content);
        return status_ok();
    }
    if (is_repeated)
        return append_value(decoder, message, field, value);
    void *slot = (uint8_t *)message + field->offset;
    if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
        choose_member(message, field, slot);
    return store_value(decoder, field, value, slot);
}

/* Fields are sorted by their ids, which in most messages count from 1. */
static const ProtobufCFieldDescriptor *find_field(const ProtobufCMessageDescriptor *type,
                                                  uint32_t id)
{
    if (id <= type->n_fields && type->fields[id - 1].id == id)
        return &type->fields[id - 1];
    return protobuf_c_message_descriptor_get_field(type, id);
}

static status decode_message(struct decoder *decoder, bytes wire, ProtobufCMessage *message)
{
    const ProtobufCMessageDescriptor *type = message->descriptor;
    if (wire.size == 0)
        return status_ok();
    const uint8_t *end = wire.data + wire.size;
    for (const uint8_t *at = wire.data; at != end;) {
        struct wire_field value;
        at = read_field(at, end, &value);
        if (at == NULL)
            return malformed(message);
        const ProtobufCFieldDescriptor *field = find_field(type, value.id);
        if (field != NULL)
            TRY(store_field(decoder, message, field, &value));
    }
    return status_ok();
}

status proto_decode(const ProtobufCMessageDescriptor *type, bytes wire, struct arena *arena,
                    ProtobufCMessage **out)
{
    *out = NULL;
    ProtobufCMessage *message = new_message(arena, type);
    if (message == NULL)
        return status_out_of_memory();
    struct decoder decoder = {.arena = arena, .depth = 1};
    TRY(decode_message(&decoder, wire, message));
    *out = message;
    return status_ok();
}

/* --- fields, by descriptor --- */

static void *field_at(const ProtobufCMessage *message, unsigned offset)
{
    union {
        const void *given;
        void *wanted;
    } pointer = {.given = (const uint8_t *)message + offset};
    return pointer.wanted;
}

static bool is_in_oneof(const ProtobufCFieldDescriptor *field)
{
    return (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0;
}

static bool is_chosen(const ProtobufCFieldDescriptor *field, const ProtobufCMessage *message)
{
    return !is_in_oneof(field) ||
           *(const uint32_t *)field_at(message, field->quantifier_offset) == field->id;
}

static void copy_oneof_member(const ProtobufCFieldDescriptor *field, const ProtobufCMessage *source,
                              ProtobufCMessage *target)
{
    void *slot = field_at(target, field->offset);
    if (source != NULL && is_chosen(field, source)) {
        choose_member(target, field, slot);
        memcpy(slot, field_at(source, field->offset), proto_value_size(field->type));
    } else if (is_chosen(field, target)) {
        *(uint32_t *)field_at(target, field->quantifier_offset) = 0;
    }
}

static void copy_repeated(const ProtobufCFieldDescriptor *field, const ProtobufCMessage *source,
                          ProtobufCMessage *target)
{
    size_t *count = field_at(target, field->quantifier_offset);
    void **array = field_at(target, field->offset);
    *count = source == NULL ? 0 : *(size_t *)field_at(source, field->quantifier_offset);
    *array = source == NULL ? NULL : *(void **)field_at(source, field->offset);
}

static void copy_singular(const ProtobufCFieldDescriptor *field, const ProtobufCMessage *source,
                          ProtobufCMessage *target)
{
    void *slot = field_at(target, field->offset);
    if (source != NULL)
        memcpy(slot, field_at(source, field->offset), proto_value_size(field->type));
    else if (field->type == PROTOBUF_C_TYPE_STRING)
        *(const char **)slot = protobuf_c_empty_string;
    else
        memset(slot, 0, proto_value_size(field->type));
}

void proto_copy_field(const ProtobufCFieldDescriptor *field, const ProtobufCMessage *source,
                      ProtobufCMessage *target)
{
    if (is_in_oneof(field))
        copy_oneof_member(field, source, target);
    else if (field->label == PROTOBUF_C_LABEL_REPEATED)
        copy_repeated(field, source, target);
    else
        copy_singular(field, source, target);
}

ProtobufCMessage *proto_sub_message(const ProtobufCFieldDescriptor *field,
                                    const ProtobufCMessage *message)
{
    if (!is_chosen(field, message))
        return NULL;
    return *(ProtobufCMessage **)field_at(message, field->offset);
}

ProtobufCMessage *proto_set_sub_message(const ProtobufCFieldDescriptor *field,
                                        ProtobufCMessage *message, struct arena *arena)
{
    ProtobufCMessage *standing = proto_sub_message(field, message);
    if (standing != NULL)
        return standing;
    ProtobufCMessage *fresh = new_message(arena, field->descriptor);
    if (fresh == NULL)
        return NULL;
    void *slot = field_at(message, field->offset);
    if (is_in_oneof(field))
        choose_member(message, field, slot);
    *(ProtobufCMessage **)slot = fresh;
    return fresh;
}

/* --- encoding --- */

void proto_encode(const ProtobufCMessage *message, struct buffer *out)
{
    size_t size = protobuf_c_message_get_packed_size(message);
    uint8_t *to = buffer_reserve(out, size);
    if (to != NULL)
        out->size += protobuf_c_message_pack(message, to);
}
