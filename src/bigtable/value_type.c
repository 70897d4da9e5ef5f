/* See value_type.h. The decoder bounds how deep types nest, so the recursion below is bounded. */
#include "bigtable/value_type.h"

#include "wire/proto.h"

/* --- types of values --- */

enum { LONGEST_DELIMITER = 50 /* bytes */ };

static status check_type(const BtAdmin__Type *type, const char *of_what);

static bool is_kind(const BtAdmin__Type *type, BtAdmin__Type__KindCase kind)
{
    return type != NULL && type->kind_case == kind;
}

static status check_array(const BtAdmin__Type__Array *array)
{
    if (is_kind(array->element_type, BT_ADMIN__TYPE__KIND_ARRAY_TYPE))
        return status_make(STATUS_INVALID_ARGUMENT, "The elements of an ARRAY must not be arrays");
    return check_type(array->element_type, "the elements of an ARRAY");
}

static status check_map(const BtAdmin__Type__Map *map)
{
    if (!is_kind(map->key_type, BT_ADMIN__TYPE__KIND_BYTES_TYPE) &&
        !is_kind(map->key_type, BT_ADMIN__TYPE__KIND_STRING_TYPE) &&
        !is_kind(map->key_type, BT_ADMIN__TYPE__KIND_INT64_TYPE))
        return status_make(STATUS_INVALID_ARGUMENT,
                           "The keys of a MAP must be BYTES, STRING or INT64");
    return check_type(map->value_type, "the values of a MAP");
}

status struct_encoding_check(const BtAdmin__Type__Struct *type)
{
    const BtAdmin__Type__Struct__Encoding *encoding = type->encoding;
    if (encoding == NULL ||
        encoding->encoding_case == BT_ADMIN__TYPE__STRUCT__ENCODING__ENCODING__NOT_SET)
        return status_make(STATUS_INVALID_ARGUMENT, "Missing encoding for STRUCT");
    if (encoding->encoding_case == BT_ADMIN__TYPE__STRUCT__ENCODING__ENCODING_SINGLETON &&
        type->n_fields != 1)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "A STRUCT encoded as a singleton must have one field, not %zu",
                           type->n_fields);
    if (encoding->encoding_case == BT_ADMIN__TYPE__STRUCT__ENCODING__ENCODING_DELIMITED_BYTES) {
        size_t size = encoding->delimited_bytes->delimiter.len;
        if (size == 0 || size > LONGEST_DELIMITER)
            return status_make(STATUS_INVALID_ARGUMENT,
                               "The delimiter of a STRUCT must have 1 to %d bytes, not %zu",
                               LONGEST_DELIMITER, size);
    }
    return status_ok();
}

static status check_struct(const BtAdmin__Type__Struct *type)
{
    for (size_t i = 0; i < type->n_fields; i++)
        TRY(check_type(type->fields[i]->type, "the fields of a STRUCT"));
    return struct_encoding_check(type);
}

static status check_type(const BtAdmin__Type *type, const char *of_what)
{
    switch (type == NULL ? BT_ADMIN__TYPE__KIND__NOT_SET : type->kind_case) {
    case BT_ADMIN__TYPE__KIND__NOT_SET:
        return status_make(STATUS_INVALID_ARGUMENT, "Missing type of %s", of_what);
    case BT_ADMIN__TYPE__KIND_AGGREGATE_TYPE:
        return status_make(STATUS_INVALID_ARGUMENT, "An aggregate cannot be the type of %s",
                           of_what);
    case BT_ADMIN__TYPE__KIND_PROTO_TYPE:
    case BT_ADMIN__TYPE__KIND_ENUM_TYPE:
        return status_make(STATUS_UNIMPLEMENTED, "Types of schema bundles are not implemented");
    case BT_ADMIN__TYPE__KIND_ARRAY_TYPE:
        return check_array(type->array_type);
    case BT_ADMIN__TYPE__KIND_MAP_TYPE:
        return check_map(type->map_type);
    case BT_ADMIN__TYPE__KIND_STRUCT_TYPE:
        return check_struct(type->struct_type);
    default:
        return status_ok();
    }
}

/* --- aggregates --- */

static bool is_big_endian(const BtAdmin__Type__Int64 *type)
{
    return type->encoding == NULL ||
           type->encoding->encoding_case !=
               BT_ADMIN__TYPE__INT64__ENCODING__ENCODING_ORDERED_CODE_BYTES;
}

/* Reads return 8 bytes, big-endian, so no other encoding will do. */
static status number_input(const BtAdmin__Type *input, enum aggregate_input *out)
{
    *out = INPUT_INT64;
    if (input == NULL ||
        (input->kind_case == BT_ADMIN__TYPE__KIND_INT64_TYPE && is_big_endian(input->int64_type)))
        return status_ok();
    return status_make(STATUS_INVALID_ARGUMENT, "The input_type of a sum, min or max aggregate "
                                                "must be Int64, encoded as big_endian_bytes");
}

/* The input of a unique count, which the library does not take of all types. Without a type, raw
 * bytes are counted. */
static status counted_input(const BtAdmin__Type *input, enum aggregate_input *out)
{
    *out = INPUT_BYTES;
    if (input == NULL)
        return status_ok();
    switch (input->kind_case) {
    case BT_ADMIN__TYPE__KIND__NOT_SET:
    case BT_ADMIN__TYPE__KIND_BYTES_TYPE:
        return status_ok();
    case BT_ADMIN__TYPE__KIND_STRING_TYPE:
        *out = INPUT_STRING;
        return status_ok();
    case BT_ADMIN__TYPE__KIND_INT64_TYPE:
        *out = INPUT_INT64;
        return status_ok();
    default:
        return status_make(
            STATUS_INVALID_ARGUMENT,
            "The input_type of an hllpp_unique_count aggregate must be Int64, Bytes or String");
    }
}

static status aggregate_from_message(const BtAdmin__Type__Aggregate *message, struct family *family)
{
    switch (message->aggregator_case) {
    case BT_ADMIN__TYPE__AGGREGATE__AGGREGATOR_SUM:
        family->aggregate = AGGREGATE_SUM;
        return number_input(message->input_type, &family->input);
    case BT_ADMIN__TYPE__AGGREGATE__AGGREGATOR_MIN:
        family->aggregate = AGGREGATE_MIN;
        return number_input(message->input_type, &family->input);
    case BT_ADMIN__TYPE__AGGREGATE__AGGREGATOR_MAX:
        family->aggregate = AGGREGATE_MAX;
        return number_input(message->input_type, &family->input);
    case BT_ADMIN__TYPE__AGGREGATE__AGGREGATOR_HLLPP_UNIQUE_COUNT:
        family->aggregate = AGGREGATE_HLL;
        return counted_input(message->input_type, &family->input);
    default:
        return status_make(STATUS_INVALID_ARGUMENT, "An aggregate type must name its aggregator");
    }
}

/* --- from messages --- */

/* The message as bytes in the arena. */
static status keep_encoded(const BtAdmin__Type *message, struct arena *arena, bytes *out)
{
    size_t size = protobuf_c_message_get_packed_size(&message->base);
    uint8_t *data = arena_alloc(arena, size);
    if (data == NULL)
        return status_out_of_memory();
    *out = bytes_make(data, protobuf_c_message_pack(&message->base, data));
    return status_ok();
}

/* The state's type is not for clients to say: it is left out. */
static status keep_aggregate(const BtAdmin__Type *message, struct arena *arena, bytes *out)
{
    BtAdmin__Type__Aggregate aggregate = *message->aggregate_type;
    BtAdmin__Type type = *message;
    aggregate.state_type = NULL;
    type.aggregate_type = &aggregate;
    return keep_encoded(&type, arena, out);
}

status value_type_from_message(const BtAdmin__Type *message, struct arena *arena,
                               struct family *family)
{
    family->aggregate = AGGREGATE_NONE;
    family->input = INPUT_INT64;
    family->value_type = bytes_make(NULL, 0);
    if (message == NULL || message->kind_case == BT_ADMIN__TYPE__KIND__NOT_SET)
        return status_ok();
    if (message->kind_case == BT_ADMIN__TYPE__KIND_AGGREGATE_TYPE) {
        TRY(aggregate_from_message(message->aggregate_type, family));
        return keep_aggregate(message, arena, &family->value_type);
    }
    TRY(check_type(message, "a family"));
    return keep_encoded(message, arena, &family->value_type);
}

/* --- to messages --- */

static status make_int64(struct arena *arena, BtAdmin__Type **out)
{
    BtAdmin__Type *type;
    BtAdmin__Type__Int64__Encoding *encoding;
    PROTO_NEW(arena, type, BT_ADMIN__TYPE__INIT);
    PROTO_NEW(arena, encoding, BT_ADMIN__TYPE__INT64__ENCODING__INIT);
    PROTO_NEW(arena, type->int64_type, BT_ADMIN__TYPE__INT64__INIT);
    PROTO_NEW(arena, encoding->big_endian_bytes,
              BT_ADMIN__TYPE__INT64__ENCODING__BIG_ENDIAN_BYTES__INIT);
    encoding->encoding_case = BT_ADMIN__TYPE__INT64__ENCODING__ENCODING_BIG_ENDIAN_BYTES;
    type->kind_case = BT_ADMIN__TYPE__KIND_INT64_TYPE;
    type->int64_type->encoding = encoding;
    *out = type;
    return status_ok();
}

static status make_raw_bytes(struct arena *arena, BtAdmin__Type **out)
{
    BtAdmin__Type *type;
    BtAdmin__Type__Bytes__Encoding *encoding;
    PROTO_NEW(arena, type, BT_ADMIN__TYPE__INIT);
    PROTO_NEW(arena, encoding, BT_ADMIN__TYPE__BYTES__ENCODING__INIT);
    PROTO_NEW(arena, type->bytes_type, BT_ADMIN__TYPE__BYTES__INIT);
    PROTO_NEW(arena, encoding->raw, BT_ADMIN__TYPE__BYTES__ENCODING__RAW__INIT);
    encoding->encoding_case = BT_ADMIN__TYPE__BYTES__ENCODING__ENCODING_RAW;
    type->kind_case = BT_ADMIN__TYPE__KIND_BYTES_TYPE;
    type->bytes_type->encoding = encoding;
    *out = type;
    return status_ok();
}

/* Sets the type that reads return: a sketch's bytes, or a number like those that went in. */
static status fill_aggregate(const struct family *family, struct arena *arena,
                             BtAdmin__Type__Aggregate *aggregate)
{
    if (family->aggregate == AGGREGATE_HLL)
        return make_raw_bytes(arena, &aggregate->state_type);
    TRY(make_int64(arena, &aggregate->state_type));
    if (aggregate->input_type == NULL)
        aggregate->input_type = aggregate->state_type;
    return status_ok();
}

status value_type_to_message(const struct family *family, struct arena *arena, BtAdmin__Type **out)
{
    ProtobufCMessage *message;
    TRY(proto_decode(&bt_admin__type__descriptor, family->value_type, arena, &message));
    *out = (BtAdmin__Type *)(void *)message;
    if (family->aggregate == AGGREGATE_NONE)
        return status_ok();
    return fill_aggregate(family, arena, (*out)->aggregate_type);
}
