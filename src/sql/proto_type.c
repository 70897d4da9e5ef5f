/* Messages and enums of schema bundles: see proto_type.h. */
#include "sql/proto_type.h"

#include "base/utf8.h"
#include "base/varint.h"
#include "trestle/descriptors.pb-c.h"
#include "wire/proto.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

/* What a type of a bundle is described by: one of both. */
struct sql_descriptor {
    const Descriptors__Set *set;
    const Descriptors__Message *message;
    const Descriptors__Enum *enum_;
};

/* FieldDescriptorProto.Type and .Label. */
enum {
    TYPE_DOUBLE = 1,
    TYPE_FLOAT,
    TYPE_INT64,
    TYPE_UINT64,
    TYPE_INT32,
    TYPE_FIXED64,
    TYPE_FIXED32,
    TYPE_BOOL,
    TYPE_STRING,
    TYPE_GROUP,
    TYPE_MESSAGE,
    TYPE_BYTES,
    TYPE_UINT32,
    TYPE_ENUM,
    TYPE_SFIXED32,
    TYPE_SFIXED64,
    TYPE_SINT32,
    TYPE_SINT64,
    LABEL_REPEATED = 3,
};

const char *sql_named_type_name(const struct sql_named_type *named)
{
    return named->path;
}

/* --- finding types --- */

/* Whether the name begins with `prefix` and a dot; *rest is what follows them. An empty prefix has
 * no dot. */
static bool begins_with(const char *name, const char *prefix, const char **rest)
{
    size_t size = strlen(prefix);
    *rest = name;
    if (size == 0)
        return true;
    if (strncmp(name, prefix, size) != 0 || name[size] != '.')
        return false;
    *rest = name + size + 1;
    return true;
}

static bool find_enum(Descriptors__Enum *const *enums, size_t count, const char *name,
                      struct sql_descriptor *out)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(enums[i]->name, name) == 0) {
            out->enum_ = enums[i];
            return true;
        }
    return false;
}

/* A loop, not a recursion: each step goes one message deeper. */
static bool find_in(Descriptors__Message *const *messages, size_t message_count,
                    Descriptors__Enum *const *enums, size_t enum_count, const char *name,
                    struct sql_descriptor *out)
{
    for (bool goes_deeper = true; goes_deeper;) {
        if (find_enum(enums, enum_count, name, out))
            return true;
        goes_deeper = false;
        for (size_t i = 0; i < message_count && !goes_deeper; i++) {
            const Descriptors__Message *message = messages[i];
            const char *rest;
            if (strcmp(message->name, name) == 0) {
                out->message = message;
                return true;
            }
            if (!begins_with(name, message->name, &rest))
                continue;
            goes_deeper = true;
            name = rest;
            messages = message->nested_type;
            message_count = message->n_nested_type;
            enums = message->enum_type;
            enum_count = message->n_enum_type;
        }
    }
    return false;
}

static bool find_descriptor(const Descriptors__Set *set, const char *name,
                            struct sql_descriptor *out)
{
    *out = (struct sql_descriptor){.set = set};
    for (size_t i = 0; i < set->n_file; i++) {
        const Descriptors__File *file = set->file[i];
        const char *rest;
        if (begins_with(name, file->package, &rest) &&
            find_in(file->message_type, file->n_message_type, file->enum_type, file->n_enum_type,
                    rest, out))
            return true;
    }
    return false;
}

/* The path as a query has it: "bundle.pkg.Message". */
static char *path_of(struct arena *arena, const char *bundle, const char *name)
{
    size_t size = strlen(bundle) + strlen(name) + 2;
    char *path = arena_alloc(arena, size);
    if (path != NULL)
        snprintf(path, size, "%s.%s", bundle, name);
    return path;
}

static status make_type(const struct sql_descriptor *found, const char *bundle, const char *name,
                        struct arena *arena, const struct sql_type **out)
{
    struct sql_descriptor *descriptor = arena_alloc(arena, sizeof *descriptor);
    struct sql_named_type *named = arena_alloc(arena, sizeof *named);
    struct sql_type *type = arena_zalloc(arena, sizeof *type);
    if (descriptor == NULL || named == NULL || type == NULL)
        return status_out_of_memory();
    *descriptor = *found;
    *named = (struct sql_named_type){.bundle = arena_string(arena, bytes_of(bundle)),
                                     .name = arena_string(arena, bytes_of(name)),
                                     .path = path_of(arena, bundle, name),
                                     .descriptor = descriptor};
    type->kind = found->message != NULL ? SQL_PROTO : SQL_ENUM;
    type->named = named;
    *out = type;
    bool failed = named->bundle == NULL || named->name == NULL || named->path == NULL;
    return failed ? status_out_of_memory() : status_ok();
}

status sql_named_type_find(bytes descriptor_set, const char *bundle, const char *name,
                           struct arena *arena, const struct sql_type **out)
{
    ProtobufCMessage *set;
    struct sql_descriptor found;
    *out = NULL;
    TRY(proto_decode(&descriptors__set__descriptor, descriptor_set, arena, &set));
    if (!find_descriptor((const void *)set, name, &found))
        return status_ok();
    return make_type(&found, bundle, name, arena, out);
}

/* --- finding fields --- */

static const Descriptors__Field *find_field(const Descriptors__Message *message, const char *name)
{
    for (size_t i = 0; i < message->n_field; i++)
        if (strcasecmp(message->field[i]->name, name) == 0)
            return message->field[i];
    return NULL;
}

/* Of one value of the field. */
static status value_type(const struct sql_named_type *message, const Descriptors__Field *field,
                         struct arena *arena, const struct sql_type **out)
{
    struct sql_descriptor found;
    const char *name = field->type_name + (field->type_name[0] == '.');
    *out = &sql_int64;
    switch (field->type) {
    case TYPE_DOUBLE:
        *out = &sql_float64;
        break;
    case TYPE_FLOAT:
        *out = &sql_float32;
        break;
    case TYPE_BOOL:
        *out = &sql_bool;
        break;
    case TYPE_STRING:
        *out = &sql_string;
        break;
    case TYPE_BYTES:
        *out = &sql_bytes;
        break;
    case TYPE_MESSAGE:
    case TYPE_ENUM:
        *out = NULL; /* a bundle has all the types that it needs: it was checked */
        if (find_descriptor(message->descriptor->set, name, &found))
            return make_type(&found, message->bundle, name, arena, out);
        break;
    case TYPE_GROUP:
        *out = NULL;
        break;
    default:
        break;
    }
    return status_ok();
}

status sql_proto_field_find(const struct sql_named_type *message, const char *name,
                            struct arena *arena, const struct sql_proto_field **out)
{
    const Descriptors__Field *field = find_field(message->descriptor->message, name);
    bool tells_presence = field == NULL && strncasecmp(name, "has_", 4) == 0;
    *out = NULL;
    if (tells_presence)
        field = find_field(message->descriptor->message, name + 4);
    if (field == NULL)
        return status_ok();
    struct sql_proto_field *found = arena_zalloc(arena, sizeof *found);
    if (found == NULL)
        return status_out_of_memory();
    found->number = (uint32_t)field->number;
    found->wire_type = field->type;
    found->is_repeated = field->label == LABEL_REPEATED;
    found->tells_presence = tells_presence;
    TRY(value_type(message, field, arena, &found->type));
    if (found->type == NULL)
        return status_ok();
    if (tells_presence)
        found->type = &sql_bool;
    else if (found->is_repeated)
        found->type = sql_array_of(arena, found->type);
    if (found->type == NULL)
        return status_out_of_memory();
    *out = found;
    return status_ok();
}

/* --- reading messages --- */

static status corrupted(void)
{
    return status_make(STATUS_OUT_OF_RANGE, "Corrupted protocol buffer");
}

/* One field as it stands on the wire. */
struct wire_field {
    uint32_t number;
    unsigned kind; /* 0 a varint, 1 eight bytes, 2 a text, 5 four bytes */
    uint64_t number_value;
    bytes text;
};

/* Takes the next field off the message; false if it is broken. Groups are not read. */
static bool take_field(bytes *message, struct wire_field *out)
{
    const uint8_t *end = message->data + message->size;
    uint64_t tag, size;
    const uint8_t *at = varint_read(message->data, end, &tag);
    if (at == NULL || tag >> 3 == 0 || tag >> 3 > UINT32_MAX)
        return false;
    *out = (struct wire_field){.number = (uint32_t)(tag >> 3), .kind = tag & 7};
    size_t left = (size_t)(end - at);
    switch (out->kind) {
    case 0:
        at = varint_read(at, end, &out->number_value);
        break;
    case 1:
    case 5:
        size = out->kind == 1 ? 8 : 4;
        if (left < size)
            return false;
        memcpy(&out->number_value, at, size);
        at += size;
        break;
    case 2:
        at = varint_read(at, end, &size);
        if (at == NULL || size > (size_t)(end - at))
            return false;
        out->text = bytes_make(at, size);
        at += size;
        break;
    default:
        return false;
    }
    if (at == NULL)
        return false;
    *message = bytes_make(at, (size_t)(end - at));
    return true;
}

static int64_t unzigzag(uint64_t value)
{
    return (int64_t)(value >> 1 ^ (0 - (value & 1)));
}

static double float_of(uint64_t bits)
{
    uint32_t low = (uint32_t)bits;
    float value;
    memcpy(&value, &low, sizeof value);
    return value;
}

static double double_of(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static struct sql_value number_value(int32_t type, uint64_t number)
{
    switch (type) {
    case TYPE_DOUBLE:
        return sql_of_float64(double_of(number));
    case TYPE_FLOAT:
        return sql_of_float64(float_of(number));
    case TYPE_BOOL:
        return sql_of_bool(number != 0);
    case TYPE_SINT32:
    case TYPE_SINT64:
        return sql_of_int64(unzigzag(number));
    case TYPE_INT32:
    case TYPE_ENUM:
    case TYPE_SFIXED32:
        return sql_of_int64((int32_t)(uint32_t)number);
    case TYPE_UINT32:
    case TYPE_FIXED32:
        return sql_of_int64((uint32_t)number);
    default:
        return sql_of_int64((int64_t)number);
    }
}

static unsigned wire_kind(int32_t type)
{
    switch (type) {
    case TYPE_DOUBLE:
    case TYPE_FIXED64:
    case TYPE_SFIXED64:
        return 1;
    case TYPE_FLOAT:
    case TYPE_FIXED32:
    case TYPE_SFIXED32:
        return 5;
    case TYPE_STRING:
    case TYPE_BYTES:
    case TYPE_MESSAGE:
        return 2;
    default:
        return 0;
    }
}

/* What has been read of the field so far. */
struct field_reader {
    const struct sql_proto_field *field;
    struct sql_value *items;
    size_t count;
};

static status add_value(struct field_reader *reader, struct sql_value value)
{
    reader->items[reader->field->is_repeated ? reader->count : 0] = value;
    reader->count++;
    return status_ok();
}

/* Numbers one after the other in one text. */
static status add_packed(struct field_reader *reader, bytes text)
{
    unsigned kind = wire_kind(reader->field->wire_type);
    while (text.size > 0) {
        uint64_t number = 0;
        size_t size = kind == 1 ? 8 : 4;
        const uint8_t *at = text.data + size;
        if (kind == 0)
            at = varint_read(text.data, text.data + text.size, &number);
        else if (text.size >= size)
            memcpy(&number, text.data, size);
        else
            at = NULL;
        if (at == NULL)
            return corrupted();
        text = bytes_make(at, (size_t)(text.data + text.size - at));
        TRY(add_value(reader, number_value(reader->field->wire_type, number)));
    }
    return status_ok();
}

static status add_field(struct field_reader *reader, const struct wire_field *found)
{
    int32_t type = reader->field->wire_type;
    unsigned kind = wire_kind(type);
    if (found->kind == 2 && kind != 2)
        return add_packed(reader, found->text);
    if (found->kind != kind)
        return corrupted();
    if (kind != 2)
        return add_value(reader, number_value(type, found->number_value));
    if (type == TYPE_STRING && !utf8_is_valid(found->text))
        return corrupted();
    return add_value(reader, sql_of_text(found->text));
}

static struct sql_value missing_value(int32_t type)
{
    if (type == TYPE_MESSAGE)
        return sql_null();
    return wire_kind(type) == 2 ? sql_of_text(bytes_make(NULL, 0)) : number_value(type, 0);
}

status sql_proto_field_read(const struct sql_proto_field *field, bytes message, struct arena *arena,
                            struct sql_value *out)
{
    struct field_reader reader = {.field = field};
    size_t most = field->is_repeated ? message.size : 1; /* a value has a byte, at least */
    reader.items = arena_alloc(arena, most * sizeof *reader.items);
    if (reader.items == NULL)
        return status_out_of_memory();
    while (message.size > 0) {
        struct wire_field found;
        if (!take_field(&message, &found))
            return corrupted();
        if (found.number == field->number)
            TRY(add_field(&reader, &found));
    }
    if (field->tells_presence)
        *out = sql_of_bool(reader.count > 0);
    else if (field->is_repeated)
        *out = sql_of_items(reader.items, reader.count);
    else
        *out = reader.count > 0 ? reader.items[0] : missing_value(field->wire_type);
    return status_ok();
}

/* --- enums --- */

static const Descriptors__Enum__Value *find_value(const struct sql_named_type *enum_,
                                                  int64_t number)
{
    const Descriptors__Enum *descriptor = enum_->descriptor->enum_;
    for (size_t i = 0; i < descriptor->n_value; i++)
        if (descriptor->value[i]->number == number)
            return descriptor->value[i];
    return NULL;
}

void sql_enum_append(struct buffer *out, const struct sql_named_type *enum_, int64_t value)
{
    const Descriptors__Enum__Value *found = find_value(enum_, value);
    if (found == NULL)
        buffer_append_format(out, "%lld", (long long)value);
    else
        buffer_append_format(out, "%s", found->name);
}

status sql_enum_check(const struct sql_named_type *enum_, int64_t value)
{
    return find_value(enum_, value) != NULL
               ? status_ok()
               : status_make(STATUS_OUT_OF_RANGE,
                             "Out of range cast of integer %lld to enum type %s", (long long)value,
                             enum_->path);
}

status sql_enum_parse(const struct sql_named_type *enum_, bytes name, struct sql_value *out)
{
    const Descriptors__Enum *descriptor = enum_->descriptor->enum_;
    for (size_t i = 0; i < descriptor->n_value; i++)
        if (bytes_equal(bytes_of(descriptor->value[i]->name), name)) {
            *out = sql_of_int64(descriptor->value[i]->number);
            return status_ok();
        }
    return status_make(STATUS_OUT_OF_RANGE, "Out of range cast of string '%.*s' to enum type %s",
                       (int)name.size, name.size == 0 ? "" : (const char *)name.data, enum_->path);
}
