/* JSON, written: see json_write.h. */
#include "sql/functions/json_write.h"

#include "wire/grpc_text.h"

#include <math.h>

/* --- strings --- */

static void append_control(struct buffer *out, uint8_t c)
{
    static const char letters[] = "btn\vfr"; /* from 8 on; 11 has no letter */
    if (c >= '\b' && c <= '\r' && c != '\v')
        buffer_append_format(out, "\\%c", letters[c - '\b']);
    else
        buffer_append_format(out, "\\u%04x", c);
}

void json_append_string(struct buffer *out, bytes text)
{
    buffer_append_byte(out, '"');
    for (size_t i = 0; i < text.size; i++) {
        uint8_t c = text.data[i];
        if (c < ' ') {
            append_control(out, c);
            continue;
        }
        if (c == '"' || c == '\\')
            buffer_append_byte(out, '\\');
        buffer_append_byte(out, c);
    }
    buffer_append_byte(out, '"');
}

/* --- JSON again --- */

static bool append_escaped(struct buffer *out, bytes escaped)
{
    struct buffer text = {0};
    bool is_text = json_unescape(escaped, &text);
    if (text.failed)
        out->failed = true;
    else
        json_append_string(out, buffer_bytes(&text));
    buffer_free(&text);
    return is_text;
}

static bool append_scalar(struct buffer *out, struct json_reader *reader)
{
    bytes text;
    if (json_take_scalar(reader, &text) == JSON_STRING)
        return append_escaped(out, text);
    buffer_append_bytes(out, text);
    return true;
}

static bool append_members(struct buffer *out, struct json_reader *reader)
{
    bytes name;
    do {
        json_take_scalar(reader, &name);
        if (!append_escaped(out, name) || !json_take(reader, ':'))
            return false;
        buffer_append_byte(out, ':');
        if (!json_append_compact(out, reader))
            return false;
        buffer_append(out, ",", 1);
    } while (json_take(reader, ','));
    return true;
}

static bool append_elements(struct buffer *out, struct json_reader *reader)
{
    do {
        if (!json_append_compact(out, reader))
            return false;
        buffer_append(out, ",", 1);
    } while (json_take(reader, ','));
    return true;
}

/* Each item leaves a comma behind: the last becomes the end. */
bool json_append_compact(struct buffer *out, struct json_reader *reader)
{
    enum json_kind kind = json_peek(reader);
    if (kind != JSON_ARRAY && kind != JSON_OBJECT)
        return append_scalar(out, reader);
    bool is_array = kind == JSON_ARRAY;
    char end = is_array ? ']' : '}';
    buffer_append_byte(out, is_array ? '[' : '{');
    json_take(reader, is_array ? '[' : '{');
    if (!json_take(reader, end)) {
        if (!(is_array ? append_elements(out, reader) : append_members(out, reader)))
            return false;
        json_take(reader, end);
        if (!out->failed)
            out->size--;
    }
    buffer_append_byte(out, (uint8_t)end);
    return true;
}

/* --- values --- */

#define EXACT_INTEGER (INT64_C(1) << 53) /* beyond it, a double is not exact: a string */

static void append_int64(struct buffer *out, int64_t value)
{
    bool is_exact = value >= -EXACT_INTEGER && value <= EXACT_INTEGER;
    buffer_append_format(out, is_exact ? "%lld" : "\"%lld\"", (long long)value);
}

static void append_float(struct buffer *out, double value, bool is_float32)
{
    if (isnan(value))
        buffer_append_format(out, "\"NaN\"");
    else if (isinf(value))
        buffer_append_format(out, value < 0 ? "\"-Infinity\"" : "\"Infinity\"");
    else
        sql_float_append(out, value, is_float32);
}

static void append_base64(struct buffer *out, bytes value)
{
    buffer_append_byte(out, '"');
    size_t start = out->size;
    base64_encode(value, out);
    while ((out->size - start) % 4 != 0 && !out->failed)
        buffer_append_byte(out, '=');
    buffer_append_byte(out, '"');
}

/* 2014-09-27 12:30:00+00 as 2014-09-27T12:30:00Z */
static void append_timestamp(struct buffer *out, const struct sql_value *value)
{
    enum { DATE_SIZE = 10, ZONE_SIZE = 3 };
    buffer_append_byte(out, '"');
    size_t start = out->size;
    sql_value_append_text(out, &sql_timestamp, value);
    if (out->failed)
        return;
    out->data[start + DATE_SIZE] = 'T';
    out->size -= ZONE_SIZE;
    buffer_append_format(out, "Z\"");
}

static void append_text(struct buffer *out, const struct sql_type *type,
                        const struct sql_value *value)
{
    struct buffer text = {0};
    sql_value_append_text(&text, type, value);
    out->failed = out->failed || text.failed;
    json_append_string(out, buffer_bytes(&text));
    buffer_free(&text);
}

struct json_form {
    bool is_pretty;
    unsigned depth;
};

static void new_line(struct buffer *out, const struct json_form *form)
{
    if (form->is_pretty)
        buffer_append_format(out, "\n%*s", (int)(2 * form->depth), "");
}

static status append_any(struct buffer *out, const struct sql_type *type,
                         const struct sql_value *value, struct json_form form);

/* A map's key: always a string. */
static void append_key(struct buffer *out, const struct sql_type *type, const struct sql_value *key)
{
    if (type->kind == SQL_BYTES && !key->is_null)
        append_base64(out, key->text);
    else
        append_text(out, type, key);
}

static status append_items(struct buffer *out, const struct sql_type *type,
                           const struct sql_value *value, struct json_form form)
{
    bool is_array = type->kind == SQL_ARRAY, is_map = type->kind == SQL_MAP;
    struct json_form inner = {form.is_pretty, form.depth + 1};
    buffer_append_byte(out, is_array ? '[' : '{');
    for (size_t i = 0; i < value->count; i++) {
        const struct sql_value *item = &value->items[i];
        if (i > 0)
            buffer_append_byte(out, ',');
        new_line(out, &inner);
        if (is_map)
            append_key(out, type->key, item);
        else if (!is_array)
            json_append_string(out, bytes_of(type->fields[i].name));
        if (!is_array)
            buffer_append_format(out, form.is_pretty ? ": " : ":");
        if (is_map)
            item = &value->items[++i];
        TRY(append_any(out, sql_item_type(type, i), item, inner));
    }
    if (value->count > 0)
        new_line(out, &form);
    buffer_append_byte(out, is_array ? ']' : '}');
    return status_ok();
}

static status append_any(struct buffer *out, const struct sql_type *type,
                         const struct sql_value *value, struct json_form form)
{
    if (value->is_null) {
        buffer_append_format(out, "null");
        return status_ok();
    }
    switch (type->kind) {
    case SQL_BOOL:
        sql_value_append_text(out, type, value);
        return status_ok();
    case SQL_INT64:
        append_int64(out, value->int64);
        return status_ok();
    case SQL_FLOAT32:
    case SQL_FLOAT64:
        append_float(out, value->float64, type->kind == SQL_FLOAT32);
        return status_ok();
    case SQL_BYTES:
        append_base64(out, value->text);
        return status_ok();
    case SQL_TIMESTAMP:
        append_timestamp(out, value);
        return status_ok();
    case SQL_STRING:
    case SQL_DATE:
    case SQL_ENUM:
        append_text(out, type, value);
        return status_ok();
    case SQL_PROTO:
        return status_make(STATUS_OUT_OF_RANGE, "TO_JSON_STRING does not support type PROTO");
    case SQL_ARRAY:
    case SQL_STRUCT:
    case SQL_MAP:
        break;
    }
    return append_items(out, type, value, form);
}

status json_append_value(struct buffer *out, const struct sql_type *type,
                         const struct sql_value *value, bool is_pretty)
{
    return append_any(out, type, value, (struct json_form){is_pretty, 0});
}
