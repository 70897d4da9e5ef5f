/* See sql_values.h. Messages come from wire/proto.h, which bounds how deep they are. */
#include "cmd/sql/sql_values.h"

#include "base/utf8.h"
#include "sql/functions/json_write.h"
#include "sql/time/calendar.h"
#include "sql/time/datetime_text.h"
#include "wire/grpc_text.h"
#include "wire/json.h"
#include "wire/proto.h"

#include <math.h>
#include <utf8proc.h>

/* --- types --- */

struct simple_kind {
    const char *name; /* NULL: it has parts */
    Bt__Value__KindCase value;
};

static const struct simple_kind *simple_kind(Bt__Type__KindCase kind)
{
    static const struct simple_kind kinds[] = {
        [BT__TYPE__KIND_BOOL_TYPE] = {"BOOL", BT__VALUE__KIND_BOOL_VALUE},
        [BT__TYPE__KIND_INT64_TYPE] = {"INT64", BT__VALUE__KIND_INT_VALUE},
        [BT__TYPE__KIND_FLOAT32_TYPE] = {"FLOAT32", BT__VALUE__KIND_FLOAT_VALUE},
        [BT__TYPE__KIND_FLOAT64_TYPE] = {"FLOAT64", BT__VALUE__KIND_FLOAT_VALUE},
        [BT__TYPE__KIND_STRING_TYPE] = {"STRING", BT__VALUE__KIND_STRING_VALUE},
        [BT__TYPE__KIND_BYTES_TYPE] = {"BYTES", BT__VALUE__KIND_BYTES_VALUE},
        [BT__TYPE__KIND_DATE_TYPE] = {"DATE", BT__VALUE__KIND_DATE_VALUE},
        [BT__TYPE__KIND_TIMESTAMP_TYPE] = {"TIMESTAMP", BT__VALUE__KIND_TIMESTAMP_VALUE},
        [BT__TYPE__KIND_PROTO_TYPE] = {NULL, BT__VALUE__KIND_BYTES_VALUE},
        [BT__TYPE__KIND_ENUM_TYPE] = {NULL, BT__VALUE__KIND_INT_VALUE},
        [BT__TYPE__KIND_ARRAY_TYPE] = {NULL, BT__VALUE__KIND_ARRAY_VALUE},
        [BT__TYPE__KIND_STRUCT_TYPE] = {NULL, BT__VALUE__KIND_ARRAY_VALUE},
        [BT__TYPE__KIND_MAP_TYPE] = {NULL, BT__VALUE__KIND_ARRAY_VALUE},
    };
    bool is_known = (size_t)kind < sizeof kinds / sizeof *kinds &&
                    kinds[kind].value != BT__VALUE__KIND__NOT_SET;
    return is_known ? &kinds[kind] : NULL;
}

bool shell_type_is_number(const Bt__Type *type)
{
    return type->kind_case == BT__TYPE__KIND_INT64_TYPE ||
           type->kind_case == BT__TYPE__KIND_FLOAT32_TYPE ||
           type->kind_case == BT__TYPE__KIND_FLOAT64_TYPE;
}

static void append_struct_type(struct buffer *out, const Bt__Type__Struct *type)
{
    buffer_append_format(out, "STRUCT<");
    for (size_t i = 0; i < type->n_fields; i++) {
        const char *name = type->fields[i]->field_name;
        buffer_append_format(out, i == 0 ? "" : ", ");
        shell_text_append(out, bytes_of(name));
        buffer_append_format(out, name[0] == '\0' ? "" : " ");
        shell_type_append(out, type->fields[i]->type);
    }
    buffer_append_byte(out, '>');
}

void shell_type_append(struct buffer *out, const Bt__Type *type)
{
    const struct simple_kind *simple = type == NULL ? NULL : simple_kind(type->kind_case);
    if (simple == NULL) {
        buffer_append_format(out, "?");
    } else if (simple->name != NULL) {
        buffer_append_format(out, "%s", simple->name);
    } else if (type->kind_case == BT__TYPE__KIND_ARRAY_TYPE) {
        buffer_append_format(out, "ARRAY<");
        shell_type_append(out, type->array_type->element_type);
        buffer_append_byte(out, '>');
    } else if (type->kind_case == BT__TYPE__KIND_MAP_TYPE) {
        buffer_append_format(out, "MAP<");
        shell_type_append(out, type->map_type->key_type);
        buffer_append_format(out, ", ");
        shell_type_append(out, type->map_type->value_type);
        buffer_append_byte(out, '>');
    } else if (type->kind_case == BT__TYPE__KIND_STRUCT_TYPE) {
        append_struct_type(out, type->struct_type);
    } else if (type->kind_case == BT__TYPE__KIND_PROTO_TYPE) {
        buffer_append_format(out, "%s.%s", type->proto_type->schema_bundle_id,
                             type->proto_type->message_name);
    } else {
        buffer_append_format(out, "%s.%s", type->enum_type->schema_bundle_id,
                             type->enum_type->enum_name);
    }
}

/* --- parts --- */

/* The parts of an array, a struct, a map: for a map, the keys and values in turn. */
static size_t part_count(const Bt__Type *type, const Bt__Value *value)
{
    size_t count = value->array_value->n_values;
    return type->kind_case == BT__TYPE__KIND_MAP_TYPE ? 2 * count : count;
}

static const Bt__Type *part_type(const Bt__Type *type, size_t i)
{
    if (type->kind_case == BT__TYPE__KIND_ARRAY_TYPE)
        return type->array_type->element_type;
    if (type->kind_case == BT__TYPE__KIND_STRUCT_TYPE)
        return type->struct_type->fields[i]->type;
    return i % 2 == 0 ? type->map_type->key_type : type->map_type->value_type;
}

static const Bt__Value *part_value(const Bt__Type *type, const Bt__Value *value, size_t i)
{
    if (type->kind_case == BT__TYPE__KIND_MAP_TYPE)
        return value->array_value->values[i / 2]->array_value->values[i % 2];
    return value->array_value->values[i];
}

/* --- whether it is one --- */

static status not_of_type(const Bt__Type *type)
{
    struct buffer name = {0};
    shell_type_append(&name, type);
    status s = status_make(STATUS_INTERNAL, "the server sent a value that is no %.*s",
                           (int)name.size, (const char *)name.data);
    buffer_free(&name);
    return s;
}

static bool is_pair(const Bt__Value *value)
{
    return value->kind_case == BT__VALUE__KIND_ARRAY_VALUE && value->array_value->n_values == 2;
}

static bool has_right_count(const Bt__Type *type, const Bt__Value *value)
{
    const Bt__ArrayValue *parts = value->array_value;
    if (type->kind_case == BT__TYPE__KIND_STRUCT_TYPE)
        return parts->n_values == type->struct_type->n_fields;
    if (type->kind_case != BT__TYPE__KIND_MAP_TYPE)
        return true;
    for (size_t i = 0; i < parts->n_values; i++)
        if (!is_pair(parts->values[i]))
            return false;
    return true;
}

static bool is_date(const Type__Date *date)
{
    return is_civil((struct civil_date){date->year, date->month, date->day});
}

static bool is_time(const Pb__Timestamp *time)
{
    return time->seconds >= SQL_TIMESTAMP_MIN / MICROS_PER_SECOND &&
           time->seconds <= SQL_TIMESTAMP_MAX / MICROS_PER_SECOND && time->nanos >= 0 &&
           time->nanos < 1000000000;
}

static bool fits(const Bt__Type *type, const Bt__Value *value)
{
    const struct simple_kind *simple = simple_kind(type->kind_case);
    if (simple == NULL || simple->value != value->kind_case)
        return false;
    switch (value->kind_case) {
    case BT__VALUE__KIND_DATE_VALUE:
        return is_date(value->date_value);
    case BT__VALUE__KIND_TIMESTAMP_VALUE:
        return is_time(value->timestamp_value);
    case BT__VALUE__KIND_ARRAY_VALUE:
        return has_right_count(type, value);
    default:
        return true;
    }
}

status shell_value_check(const Bt__Type *type, const Bt__Value *value)
{
    if (shell_value_is_null(value))
        return status_ok();
    if (type == NULL || !fits(type, value))
        return not_of_type(type);
    if (value->kind_case != BT__VALUE__KIND_ARRAY_VALUE)
        return status_ok();
    for (size_t i = 0; i < part_count(type, value); i++)
        TRY(shell_value_check(part_type(type, i), part_value(type, value, i)));
    return status_ok();
}

/* --- texts --- */

static bool is_visible(uint32_t code)
{
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)code);
    return category != UTF8PROC_CATEGORY_CC && category != UTF8PROC_CATEGORY_CN &&
           category != UTF8PROC_CATEGORY_CS && category != UTF8PROC_CATEGORY_ZL &&
           category != UTF8PROC_CATEGORY_ZP;
}

static bool all_visible(bytes text)
{
    for (size_t at = 0; at < text.size;)
        if (!is_visible(utf8_next(text, &at)))
            return false;
    return true;
}

static void append_hidden(struct buffer *out, uint32_t code)
{
    const char letter = code == '\n' ? 'n' : code == '\r' ? 'r' : code == '\t' ? 't' : '\0';
    if (letter != '\0')
        buffer_append_format(out, "\\%c", letter);
    else
        buffer_append_format(out, code > UINT16_MAX ? "\\U%08x" : "\\u%04x", code);
}

/* A valid text; `quote` is 0 if there are to be none. */
static void append_visible(struct buffer *out, bytes text, char quote)
{
    bool doubles = quote != '\0' || !all_visible(text);
    for (size_t at = 0, from = 0; at < text.size; from = at) {
        uint32_t code = utf8_next(text, &at);
        if (!is_visible(code)) {
            append_hidden(out, code);
            continue;
        }
        if ((code == '\\' && doubles) || (quote != '\0' && code == (uint32_t)quote))
            buffer_append_byte(out, '\\');
        buffer_append(out, text.data + from, at - from);
    }
}

void shell_text_append(struct buffer *out, bytes text)
{
    append_visible(out, text, '\0');
}

static void append_bytes_escaped(struct buffer *out, bytes b, char quote)
{
    for (size_t i = 0; i < b.size; i++) {
        uint8_t c = b.data[i];
        bool is_plain = c >= ' ' && c < 0x7f;
        if (c == '\\' || (is_plain && quote != '\0' && c == (uint8_t)quote))
            buffer_append_byte(out, '\\');
        if (is_plain)
            buffer_append_byte(out, c);
        else
            buffer_append_format(out, "\\x%02x", c);
    }
}

static void append_bytes(struct buffer *out, bytes b, char quote)
{
    if (utf8_is_valid(b) && all_visible(b))
        append_visible(out, b, quote);
    else
        append_bytes_escaped(out, b, quote);
}

/* --- what has no parts --- */

static int64_t micros_of(const Pb__Timestamp *time)
{
    return time->seconds * MICROS_PER_SECOND + time->nanos / 1000;
}

static void append_date(struct buffer *out, const Type__Date *date)
{
    date_append(out, days_of_civil((struct civil_date){date->year, date->month, date->day}));
}

static void append_float(struct buffer *out, const Bt__Type *type, const Bt__Value *value)
{
    sql_float_append(out, value->float_value, type->kind_case == BT__TYPE__KIND_FLOAT32_TYPE);
}

/* --- as text --- */

static void append_literal(struct buffer *out, const Bt__Type *type, const Bt__Value *value);

static void append_parts(struct buffer *out, const Bt__Type *type, const Bt__Value *value)
{
    bool is_array = type->kind_case == BT__TYPE__KIND_ARRAY_TYPE;
    bool is_map = type->kind_case == BT__TYPE__KIND_MAP_TYPE;
    buffer_append_byte(out, is_array ? '[' : is_map ? '{' : '(');
    for (size_t i = 0; i < part_count(type, value); i++) {
        buffer_append_format(out, i == 0 ? "" : is_map && i % 2 == 1 ? ": " : ", ");
        append_literal(out, part_type(type, i), part_value(type, value, i));
    }
    buffer_append_byte(out, is_array ? ']' : is_map ? '}' : ')');
}

static void append_quoted(struct buffer *out, const char *before, const Bt__Type *type,
                          const Bt__Value *value)
{
    buffer_append_format(out, "%s\"", before);
    if (value->kind_case == BT__VALUE__KIND_STRING_VALUE)
        append_visible(out, bytes_of(value->string_value), '"');
    else if (value->kind_case == BT__VALUE__KIND_BYTES_VALUE)
        append_bytes(out, proto_bytes(value->bytes_value), '"');
    else
        shell_value_append_text(out, type, value, true);
    buffer_append_byte(out, '"');
}

/* Appends the value as a query would have it. */
static void append_literal(struct buffer *out, const Bt__Type *type, const Bt__Value *value)
{
    switch (value->kind_case) {
    case BT__VALUE__KIND__NOT_SET:
        buffer_append_format(out, "NULL");
        break;
    case BT__VALUE__KIND_STRING_VALUE:
        append_quoted(out, "", type, value);
        break;
    case BT__VALUE__KIND_BYTES_VALUE:
        append_quoted(out, "b", type, value);
        break;
    case BT__VALUE__KIND_DATE_VALUE:
        append_quoted(out, "DATE ", type, value);
        break;
    case BT__VALUE__KIND_TIMESTAMP_VALUE:
        append_quoted(out, "TIMESTAMP ", type, value);
        break;
    default:
        shell_value_append_text(out, type, value, true);
    }
}

static void append_text(struct buffer *out, bytes text, bool is_bytes, bool for_terminal)
{
    if (!for_terminal && (!is_bytes || utf8_is_valid(text)))
        buffer_append_bytes(out, text);
    else if (is_bytes)
        append_bytes(out, text, '\0');
    else
        append_visible(out, text, '\0');
}

void shell_value_append_text(struct buffer *out, const Bt__Type *type, const Bt__Value *value,
                             bool for_terminal)
{
    switch (value->kind_case) {
    case BT__VALUE__KIND_BOOL_VALUE:
        buffer_append_format(out, value->bool_value ? "true" : "false");
        break;
    case BT__VALUE__KIND_INT_VALUE:
        buffer_append_format(out, "%lld", (long long)value->int_value);
        break;
    case BT__VALUE__KIND_FLOAT_VALUE:
        append_float(out, type, value);
        break;
    case BT__VALUE__KIND_DATE_VALUE:
        append_date(out, value->date_value);
        break;
    case BT__VALUE__KIND_TIMESTAMP_VALUE:
        timestamp_append(out, micros_of(value->timestamp_value), 0);
        break;
    case BT__VALUE__KIND_STRING_VALUE:
        append_text(out, bytes_of(value->string_value), false, for_terminal);
        break;
    case BT__VALUE__KIND_BYTES_VALUE:
        append_text(out, proto_bytes(value->bytes_value), true, for_terminal);
        break;
    default:
        append_parts(out, type, value);
    }
}

/* --- as JSON --- */

#define EXACT_INTEGER                                                                              \
    (INT64_C(1) << 53) /* beyond it a double, as many readers take, is not exact */

static void append_json_int64(struct buffer *out, int64_t value)
{
    bool is_exact = value >= -EXACT_INTEGER && value <= EXACT_INTEGER;
    buffer_append_format(out, is_exact ? "%lld" : "\"%lld\"", (long long)value);
}

static void append_json_float(struct buffer *out, const Bt__Type *type, const Bt__Value *value)
{
    double number = value->float_value;
    if (isnan(number))
        buffer_append_format(out, "\"NaN\"");
    else if (isinf(number))
        buffer_append_format(out, number < 0 ? "\"-Infinity\"" : "\"Infinity\"");
    else
        append_float(out, type, value);
}

static void append_json_bytes(struct buffer *out, bytes b, bool is_key)
{
    if (utf8_is_valid(b)) {
        json_append_string(out, b);
        return;
    }
    buffer_append_format(out, is_key ? "\"base64:" : "{\"base64\": \"");
    size_t start = out->size;
    base64_encode(b, out);
    while ((out->size - start) % 4 != 0 && !out->failed)
        buffer_append_byte(out, '=');
    buffer_append_format(out, is_key ? "\"" : "\"}");
}

static void append_json_key(struct buffer *out, const Bt__Type *type, const Bt__Value *key)
{
    if (key->kind_case == BT__VALUE__KIND_BYTES_VALUE)
        append_json_bytes(out, proto_bytes(key->bytes_value), true);
    else if (key->kind_case == BT__VALUE__KIND_STRING_VALUE)
        json_append_string(out, bytes_of(key->string_value));
    else if (shell_value_is_null(key))
        buffer_append_format(out, "\"null\"");
    else
        append_quoted(out, "", type, key);
}

static void append_json_array(struct buffer *out, const Bt__Type *type, const Bt__Value *value)
{
    buffer_append_byte(out, '[');
    for (size_t i = 0; i < part_count(type, value); i++) {
        buffer_append_format(out, i == 0 ? "" : ", ");
        shell_value_append_json(out, part_type(type, i), part_value(type, value, i));
    }
    buffer_append_byte(out, ']');
}

static void append_json_struct(struct buffer *out, const Bt__Type *type, const Bt__Value *value)
{
    buffer_append_byte(out, '{');
    for (size_t i = 0; i < part_count(type, value); i++) {
        const char *name = type->struct_type->fields[i]->field_name;
        buffer_append_format(out, i == 0 ? "" : ", ");
        if (name[0] != '\0')
            json_append_string(out, bytes_of(name));
        else
            buffer_append_format(out, "\"_field_%zu\"", i + 1);
        buffer_append_format(out, ": ");
        shell_value_append_json(out, part_type(type, i), part_value(type, value, i));
    }
    buffer_append_byte(out, '}');
}

static void append_json_map(struct buffer *out, const Bt__Type *type, const Bt__Value *value)
{
    buffer_append_byte(out, '{');
    for (size_t i = 0; i < part_count(type, value); i += 2) {
        buffer_append_format(out, i == 0 ? "" : ", ");
        append_json_key(out, part_type(type, i), part_value(type, value, i));
        buffer_append_format(out, ": ");
        shell_value_append_json(out, part_type(type, i + 1), part_value(type, value, i + 1));
    }
    buffer_append_byte(out, '}');
}

static void append_json_parts(struct buffer *out, const Bt__Type *type, const Bt__Value *value)
{
    if (type->kind_case == BT__TYPE__KIND_ARRAY_TYPE)
        append_json_array(out, type, value);
    else if (type->kind_case == BT__TYPE__KIND_STRUCT_TYPE)
        append_json_struct(out, type, value);
    else
        append_json_map(out, type, value);
}

void shell_value_append_json(struct buffer *out, const Bt__Type *type, const Bt__Value *value)
{
    switch (value->kind_case) {
    case BT__VALUE__KIND__NOT_SET:
        buffer_append_format(out, "null");
        break;
    case BT__VALUE__KIND_BOOL_VALUE:
        buffer_append_format(out, value->bool_value ? "true" : "false");
        break;
    case BT__VALUE__KIND_INT_VALUE:
        append_json_int64(out, value->int_value);
        break;
    case BT__VALUE__KIND_FLOAT_VALUE:
        append_json_float(out, type, value);
        break;
    case BT__VALUE__KIND_STRING_VALUE:
        json_append_string(out, bytes_of(value->string_value));
        break;
    case BT__VALUE__KIND_BYTES_VALUE:
        append_json_bytes(out, proto_bytes(value->bytes_value), false);
        break;
    case BT__VALUE__KIND_DATE_VALUE:
        append_quoted(out, "", type, value);
        break;
    case BT__VALUE__KIND_TIMESTAMP_VALUE:
        json_write_timestamp(value->timestamp_value->seconds, value->timestamp_value->nanos, out);
        break;
    default:
        append_json_parts(out, type, value);
    }
}
