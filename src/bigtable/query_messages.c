/* Types and values of SQL as the data API has them: see query_messages.h. */
#include "bigtable/query_messages.h"

#include "base/utf8.h"
#include "base/varint.h"
#include "google/type/date.pb-c.h"
#include "sql/proto_type.h"
#include "sql/time/calendar.h"
#include "wire/proto.h"

#include <stdio.h>

/* --- types to messages --- */

static status type_of_struct(const struct sql_type *type, struct arena *arena, Bt__Type *out)
{
    Bt__Type__Struct *message;
    PROTO_NEW(arena, message, BT__TYPE__STRUCT__INIT);
    message->n_fields = type->field_count;
    message->fields = arena_alloc(arena, type->field_count * sizeof *message->fields);
    if (message->fields == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < type->field_count; i++) {
        Bt__Type__Struct__Field *field;
        PROTO_NEW(arena, field, BT__TYPE__STRUCT__FIELD__INIT);
        field->field_name = type->fields[i].name;
        TRY(query_type_to_message(type->fields[i].type, arena, &field->type));
        message->fields[i] = field;
    }
    out->struct_type = message;
    return status_ok();
}

static status type_of_array(const struct sql_type *type, struct arena *arena, Bt__Type *out)
{
    PROTO_NEW(arena, out->array_type, BT__TYPE__ARRAY__INIT);
    return query_type_to_message(type->element, arena, &out->array_type->element_type);
}

static status type_of_map(const struct sql_type *type, struct arena *arena, Bt__Type *out)
{
    PROTO_NEW(arena, out->map_type, BT__TYPE__MAP__INIT);
    TRY(query_type_to_message(type->key, arena, &out->map_type->key_type));
    return query_type_to_message(type->element, arena, &out->map_type->value_type);
}

static status type_of_named(const struct sql_type *type, struct arena *arena, Bt__Type *out)
{
    if (type->kind == SQL_PROTO) {
        PROTO_NEW(arena, out->proto_type, BT__TYPE__PROTO__INIT);
        out->proto_type->schema_bundle_id = type->named->bundle;
        out->proto_type->message_name = type->named->name;
    } else {
        PROTO_NEW(arena, out->enum_type, BT__TYPE__ENUM__INIT);
        out->enum_type->schema_bundle_id = type->named->bundle;
        out->enum_type->enum_name = type->named->name;
    }
    return status_ok();
}

static const Bt__Type__KindCase type_cases[] = {
    [SQL_BOOL] = BT__TYPE__KIND_BOOL_TYPE,       [SQL_INT64] = BT__TYPE__KIND_INT64_TYPE,
    [SQL_FLOAT32] = BT__TYPE__KIND_FLOAT32_TYPE, [SQL_FLOAT64] = BT__TYPE__KIND_FLOAT64_TYPE,
    [SQL_STRING] = BT__TYPE__KIND_STRING_TYPE,   [SQL_BYTES] = BT__TYPE__KIND_BYTES_TYPE,
    [SQL_DATE] = BT__TYPE__KIND_DATE_TYPE,       [SQL_TIMESTAMP] = BT__TYPE__KIND_TIMESTAMP_TYPE,
    [SQL_ENUM] = BT__TYPE__KIND_ENUM_TYPE,       [SQL_PROTO] = BT__TYPE__KIND_PROTO_TYPE,
    [SQL_ARRAY] = BT__TYPE__KIND_ARRAY_TYPE,     [SQL_STRUCT] = BT__TYPE__KIND_STRUCT_TYPE,
    [SQL_MAP] = BT__TYPE__KIND_MAP_TYPE,
};

status query_type_to_message(const struct sql_type *type, struct arena *arena, Bt__Type **out)
{
    Bt__Type *message;
    PROTO_NEW(arena, message, BT__TYPE__INIT);
    *out = message;
    message->kind_case = type_cases[type->kind];
    switch (type->kind) {
    case SQL_BOOL:
        PROTO_NEW(arena, message->bool_type, BT__TYPE__BOOL__INIT);
        return status_ok();
    case SQL_INT64:
        PROTO_NEW(arena, message->int64_type, BT__TYPE__INT64__INIT);
        return status_ok();
    case SQL_FLOAT32:
        PROTO_NEW(arena, message->float32_type, BT__TYPE__FLOAT32__INIT);
        return status_ok();
    case SQL_FLOAT64:
        PROTO_NEW(arena, message->float64_type, BT__TYPE__FLOAT64__INIT);
        return status_ok();
    case SQL_STRING:
        PROTO_NEW(arena, message->string_type, BT__TYPE__STRING__INIT);
        return status_ok();
    case SQL_BYTES:
        PROTO_NEW(arena, message->bytes_type, BT__TYPE__BYTES__INIT);
        return status_ok();
    case SQL_DATE:
        PROTO_NEW(arena, message->date_type, BT__TYPE__DATE__INIT);
        return status_ok();
    case SQL_TIMESTAMP:
        PROTO_NEW(arena, message->timestamp_type, BT__TYPE__TIMESTAMP__INIT);
        return status_ok();
    case SQL_ARRAY:
        return type_of_array(type, arena, message);
    case SQL_STRUCT:
        return type_of_struct(type, arena, message);
    case SQL_MAP:
        return type_of_map(type, arena, message);
    case SQL_PROTO:
    case SQL_ENUM:
        break;
    }
    return type_of_named(type, arena, message);
}

/* Columns without a name are called `$col1` and so on, by their place. */
static const char *column_name(struct arena *arena, const struct sql_column *column, size_t place)
{
    char name[32];
    if (column->name[0] != '\0')
        return column->name;
    int size = snprintf(name, sizeof name, "$col%zu", place + 1);
    return arena_string(arena, bytes_make(name, (size_t)size));
}

status query_metadata(const struct sql_operator *root, struct arena *arena,
                      Bt__ResultSetMetadata **out)
{
    Bt__ProtoSchema *schema;
    PROTO_NEW(arena, schema, BT__PROTO_SCHEMA__INIT);
    PROTO_NEW(arena, *out, BT__RESULT_SET_METADATA__INIT);
    (*out)->schema_case = BT__RESULT_SET_METADATA__SCHEMA_PROTO_SCHEMA;
    (*out)->proto_schema = schema;
    schema->n_columns = root->column_count;
    schema->columns = arena_alloc(arena, root->column_count * sizeof *schema->columns);
    if (schema->columns == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < root->column_count; i++) {
        Bt__ColumnMetadata *column;
        PROTO_NEW(arena, column, BT__COLUMN_METADATA__INIT);
        column->name = column_name(arena, &root->columns[i], i);
        if (column->name == NULL)
            return status_out_of_memory();
        TRY(query_type_to_message(root->columns[i].type, arena, &column->type));
        schema->columns[i] = column;
    }
    return status_ok();
}

/* --- types from messages --- */

static const struct sql_type *simple_type(Bt__Type__KindCase kind)
{
    static const struct sql_type *const types[] = {&sql_bool,    &sql_int64,    &sql_float32,
                                                   &sql_float64, &sql_string,   &sql_bytes,
                                                   &sql_date,    &sql_timestamp};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (type_cases[types[i]->kind] == kind)
            return types[i];
    return NULL;
}

static status struct_from_message(const Bt__Type__Struct *message, struct arena *arena,
                                  const struct sql_type **out)
{
    struct sql_field *fields = arena_alloc(arena, message->n_fields * sizeof *fields);
    if (fields == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < message->n_fields; i++) {
        fields[i].name = message->fields[i]->field_name;
        TRY(query_type_from_message(message->fields[i]->type, arena, &fields[i].type));
    }
    *out = sql_struct_of(arena, fields, message->n_fields);
    return *out == NULL ? status_out_of_memory() : status_ok();
}

status query_type_from_message(const Bt__Type *message, struct arena *arena,
                               const struct sql_type **out)
{
    const struct sql_type *key, *element;
    if (message == NULL || message->kind_case == BT__TYPE__KIND__NOT_SET)
        return status_make(STATUS_INVALID_ARGUMENT, "A type must have one of its kinds set");
    *out = simple_type(message->kind_case);
    if (*out != NULL)
        return status_ok();
    switch (message->kind_case) {
    case BT__TYPE__KIND_ARRAY_TYPE:
        TRY(query_type_from_message(message->array_type->element_type, arena, &element));
        *out = sql_array_of(arena, element);
        break;
    case BT__TYPE__KIND_MAP_TYPE:
        TRY(query_type_from_message(message->map_type->key_type, arena, &key));
        TRY(query_type_from_message(message->map_type->value_type, arena, &element));
        *out = sql_map_of(arena, key, element);
        break;
    case BT__TYPE__KIND_STRUCT_TYPE:
        return struct_from_message(message->struct_type, arena, out);
    default:
        return status_make(STATUS_INVALID_ARGUMENT, "A parameter cannot have a type of this kind");
    }
    return *out == NULL ? status_out_of_memory() : status_ok();
}

/* --- values to messages --- */

/* Tags of Value's fields, and of ArrayValue's and ProtoRows'. */
enum {
    TAG_VALUES = 2 << 3 | 2, /* ProtoRows.values */
    TAG_ELEMENT = 1 << 3 | 2,
    TAG_BYTES = 2 << 3 | 2,
    TAG_STRING = 3 << 3 | 2,
    TAG_ARRAY = 4 << 3 | 2,
    TAG_INT = 6 << 3,
    TAG_BOOL = 10 << 3,
    TAG_FLOAT = 11 << 3 | 1,
    TAG_TIMESTAMP = 12 << 3 | 2,
    TAG_DATE = 13 << 3 | 2,
    TAG_FIRST = 1 << 3, /* of Timestamp: seconds; of Date: year */
    TAG_SECOND = 2 << 3,
    TAG_THIRD = 3 << 3,
    SMALL = 32, /* bytes of a number, a date, a time with their tags */
};

static void append_varint(struct buffer *out, uint8_t tag, uint64_t value)
{
    uint8_t *at = buffer_reserve(out, 1 + VARINT_MAX_SIZE);
    if (at == NULL)
        return;
    *at = tag;
    out->size += (size_t)(varint_write(at + 1, value) - at);
}

static void append_text(struct buffer *out, uint8_t tag, bytes text)
{
    append_varint(out, tag, text.size);
    buffer_append_bytes(out, text);
}

/* Numbers that are 0 are left out. */
static void append_number(struct buffer *out, uint8_t tag, int64_t value)
{
    if (value != 0)
        append_varint(out, tag, (uint64_t)value);
}

/* The content comes first; then room is made before it for its size. */
static void end_content(struct buffer *out, uint8_t tag, size_t from)
{
    size_t size = out->size - from;
    size_t prefix = 1 + varint_size(size);
    if (buffer_reserve(out, prefix) == NULL)
        return;
    memmove(out->data + from + prefix, out->data + from, size);
    out->data[from] = tag;
    varint_write(out->data + from + 1, size);
    out->size += prefix;
}

static void append_float(struct buffer *out, double value)
{
    buffer_append_byte(out, TAG_FLOAT);
    buffer_append(out, &value, sizeof value); /* protobuf is little-endian, and so are we */
}

static void append_timestamp(struct buffer *out, int64_t us)
{
    size_t from = out->size;
    append_number(out, TAG_FIRST, floor_div(us, MICROS_PER_SECOND));
    append_number(out, TAG_SECOND, floor_mod(us, MICROS_PER_SECOND) * 1000);
    end_content(out, TAG_TIMESTAMP, from);
}

static void append_date(struct buffer *out, int64_t days)
{
    size_t from = out->size;
    struct civil_date date = civil_of_days(days);
    append_number(out, TAG_FIRST, date.year);
    append_number(out, TAG_SECOND, date.month);
    append_number(out, TAG_THIRD, date.day);
    end_content(out, TAG_DATE, from);
}

static void append_kind(struct buffer *out, const struct sql_type *type,
                        const struct sql_value *value);

/* A value as a message of its own. */
static void append_value(struct buffer *out, uint8_t tag, const struct sql_type *type,
                         const struct sql_value *value)
{
    size_t from = out->size;
    if (!value->is_null)
        append_kind(out, type, value);
    end_content(out, tag, from);
}

/* A map is an array of pairs. */
static void append_pair(struct buffer *out, const struct sql_type *map,
                        const struct sql_value *pair)
{
    size_t element = out->size;
    append_value(out, TAG_ELEMENT, map->key, &pair[0]);
    append_value(out, TAG_ELEMENT, map->element, &pair[1]);
    end_content(out, TAG_ARRAY, element);
    end_content(out, TAG_ELEMENT, element);
}

static void append_items(struct buffer *out, const struct sql_type *type,
                         const struct sql_value *value)
{
    size_t from = out->size;
    if (type->kind == SQL_MAP)
        for (size_t i = 0; i < value->count; i += 2)
            append_pair(out, type, &value->items[i]);
    else
        for (size_t i = 0; i < value->count; i++)
            append_value(out, TAG_ELEMENT, sql_item_type(type, i), &value->items[i]);
    end_content(out, TAG_ARRAY, from);
}

static void append_kind(struct buffer *out, const struct sql_type *type,
                        const struct sql_value *value)
{
    switch (type->kind) {
    case SQL_BOOL:
        append_varint(out, TAG_BOOL, value->boolean);
        break;
    case SQL_INT64:
    case SQL_ENUM:
        append_varint(out, TAG_INT, (uint64_t)value->int64);
        break;
    case SQL_FLOAT32:
    case SQL_FLOAT64:
        append_float(out, value->float64);
        break;
    case SQL_STRING:
        append_text(out, TAG_STRING, value->text);
        break;
    case SQL_BYTES:
    case SQL_PROTO:
        append_text(out, TAG_BYTES, value->text);
        break;
    case SQL_DATE:
        append_date(out, value->int64);
        break;
    case SQL_TIMESTAMP:
        append_timestamp(out, value->int64);
        break;
    case SQL_ARRAY:
    case SQL_STRUCT:
    case SQL_MAP:
        append_items(out, type, value);
        break;
    }
}

void query_value_append(struct buffer *out, const struct sql_type *type,
                        const struct sql_value *value)
{
    append_value(out, TAG_VALUES, type, value);
}

/* --- values from messages --- */

static const char *case_name(Bt__Value__KindCase kind)
{
    static const struct {
        Bt__Value__KindCase kind;
        const char *name;
    } names[] = {
        {BT__VALUE__KIND_BYTES_VALUE, "bytes_type"},
        {BT__VALUE__KIND_STRING_VALUE, "string_type"},
        {BT__VALUE__KIND_ARRAY_VALUE, "array_type"},
        {BT__VALUE__KIND_INT_VALUE, "int64_type"},
        {BT__VALUE__KIND_BOOL_VALUE, "bool_type"},
        {BT__VALUE__KIND_FLOAT_VALUE, "float64_type"},
        {BT__VALUE__KIND_TIMESTAMP_VALUE, "timestamp_type"},
        {BT__VALUE__KIND_DATE_VALUE, "date_type"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].kind == kind)
            return names[i].name;
    return "raw_type";
}

static const char *type_name(enum sql_kind kind)
{
    static const char *const names[] = {
        [SQL_BOOL] = "bool_type",       [SQL_INT64] = "int64_type",
        [SQL_FLOAT32] = "float32_type", [SQL_FLOAT64] = "float64_type",
        [SQL_STRING] = "string_type",   [SQL_BYTES] = "bytes_type",
        [SQL_DATE] = "date_type",       [SQL_TIMESTAMP] = "timestamp_type",
        [SQL_ENUM] = "enum_type",       [SQL_PROTO] = "proto_type",
        [SQL_ARRAY] = "array_type",     [SQL_STRUCT] = "struct_type",
        [SQL_MAP] = "map_type"};
    return names[kind];
}

static status wrong_type(const char *name, const char *has, enum sql_kind expected)
{
    return status_make(STATUS_INVALID_ARGUMENT, "params '%s' has type %s but expected type %s",
                       name, has, type_name(expected));
}

status query_parameter_mismatch(const char *name, enum sql_kind has, enum sql_kind expected)
{
    return wrong_type(name, type_name(has), expected);
}

static status bad_value(const char *name, const char *why)
{
    return status_make(STATUS_INVALID_ARGUMENT, "params '%s' has a value that is %s", name, why);
}

static status timestamp_from_message(const char *name, const Pb__Timestamp *message,
                                     struct sql_value *out)
{
    int64_t us;
    bool overflows = __builtin_mul_overflow(message->seconds, MICROS_PER_SECOND, &us) ||
                     __builtin_add_overflow(us, message->nanos / 1000, &us);
    *out = sql_of_int64(us);
    bool fits = !overflows && message->nanos >= 0 && message->nanos < 1000000000 &&
                us >= SQL_TIMESTAMP_MIN && us <= SQL_TIMESTAMP_MAX;
    return fits ? status_ok() : bad_value(name, "no timestamp from year 1 to year 9999");
}

static status date_from_message(const char *name, const Type__Date *message, struct sql_value *out)
{
    struct civil_date date = {message->year, message->month, message->day};
    if (!is_civil(date))
        return bad_value(name, "no date from year 1 to year 9999");
    *out = sql_of_int64(days_of_civil(date));
    return status_ok();
}

static status string_from_message(const char *name, const Bt__Value *message, struct sql_value *out)
{
    *out = sql_of_text(bytes_of(message->string_value));
    return utf8_is_valid(out->text) ? status_ok() : bad_value(name, "no UTF-8");
}

static status array_from_message(const char *name, const Bt__ArrayValue *message,
                                 const struct sql_type *type, struct arena *arena,
                                 struct sql_value *out)
{
    struct sql_value *items = arena_alloc(arena, message->n_values * sizeof *items);
    if (items == NULL)
        return status_out_of_memory();
    if (type->kind == SQL_STRUCT && message->n_values != type->field_count)
        return bad_value(name, "a struct of another number of fields");
    for (size_t i = 0; i < message->n_values; i++)
        TRY(query_value_from_message(name, message->values[i], sql_item_type(type, i), arena,
                                     &items[i]));
    *out = sql_of_items(items, message->n_values);
    return status_ok();
}

static Bt__Value__KindCase value_case(enum sql_kind kind)
{
    static const Bt__Value__KindCase cases[] = {[SQL_BOOL] = BT__VALUE__KIND_BOOL_VALUE,
                                                [SQL_INT64] = BT__VALUE__KIND_INT_VALUE,
                                                [SQL_FLOAT32] = BT__VALUE__KIND_FLOAT_VALUE,
                                                [SQL_FLOAT64] = BT__VALUE__KIND_FLOAT_VALUE,
                                                [SQL_STRING] = BT__VALUE__KIND_STRING_VALUE,
                                                [SQL_BYTES] = BT__VALUE__KIND_BYTES_VALUE,
                                                [SQL_DATE] = BT__VALUE__KIND_DATE_VALUE,
                                                [SQL_TIMESTAMP] = BT__VALUE__KIND_TIMESTAMP_VALUE,
                                                [SQL_ENUM] = BT__VALUE__KIND_INT_VALUE,
                                                [SQL_PROTO] = BT__VALUE__KIND_BYTES_VALUE,
                                                [SQL_ARRAY] = BT__VALUE__KIND_ARRAY_VALUE,
                                                [SQL_STRUCT] = BT__VALUE__KIND_ARRAY_VALUE,
                                                [SQL_MAP] = BT__VALUE__KIND_ARRAY_VALUE};
    return cases[kind];
}

status query_value_from_message(const char *name, const Bt__Value *message,
                                const struct sql_type *type, struct arena *arena,
                                struct sql_value *out)
{
    *out = sql_null();
    if (message->kind_case == BT__VALUE__KIND__NOT_SET)
        return status_ok();
    if (message->kind_case != value_case(type->kind) || type->kind == SQL_MAP)
        return wrong_type(name, case_name(message->kind_case), type->kind);
    switch (type->kind) {
    case SQL_BOOL:
        *out = sql_of_bool(message->bool_value);
        return status_ok();
    case SQL_FLOAT32:
    case SQL_FLOAT64:
        *out = sql_of_float64(type->kind == SQL_FLOAT32 ? (float)message->float_value
                                                        : message->float_value);
        return status_ok();
    case SQL_STRING:
        return string_from_message(name, message, out);
    case SQL_BYTES:
        *out = sql_of_text(proto_bytes(message->bytes_value));
        return status_ok();
    case SQL_DATE:
        return date_from_message(name, message->date_value, out);
    case SQL_TIMESTAMP:
        return timestamp_from_message(name, message->timestamp_value, out);
    case SQL_ARRAY:
    case SQL_STRUCT:
        return array_from_message(name, message->array_value, type, arena, out);
    default:
        *out = sql_of_int64(message->int_value);
        return status_ok();
    }
}
