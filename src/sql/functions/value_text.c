/* Values as text: as CAST writes them, and as a query would. */
#include "sql/proto_type.h"
#include "sql/syntax/literal.h"
#include "sql/time/calendar.h"
#include "sql/time/datetime_text.h"
#include "sql/value.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* --- numbers --- */

/* The fewest digits that are read back as the same number. */
static void append_shortest(struct buffer *out, double value, bool is_float32)
{
    char text[40];
    for (int digits = is_float32 ? 6 : 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        bool is_same =
            is_float32 ? strtof(text, NULL) == (float)value : strtod(text, NULL) == value;
        if (is_same)
            break;
    }
    buffer_append_format(out, "%s", text);
}

void sql_float_append(struct buffer *out, double value, bool is_float32)
{
    if (isnan(value))
        buffer_append_format(out, "nan");
    else if (isinf(value))
        buffer_append_format(out, value < 0 ? "-inf" : "inf");
    else if (value == 0)
        buffer_append_format(out, "0"); /* -0 too */
    else
        append_shortest(out, value, is_float32);
}

/* --- as CAST --- */

void sql_value_append_text(struct buffer *out, const struct sql_type *type,
                           const struct sql_value *value)
{
    switch (type->kind) {
    case SQL_BOOL:
        buffer_append_format(out, value->boolean ? "true" : "false");
        break;
    case SQL_INT64:
        buffer_append_format(out, "%lld", (long long)value->int64);
        break;
    case SQL_FLOAT32:
    case SQL_FLOAT64:
        sql_float_append(out, value->float64, type->kind == SQL_FLOAT32);
        break;
    case SQL_DATE:
        date_append(out, value->int64);
        break;
    case SQL_TIMESTAMP:
        timestamp_append(out, value->int64, 0);
        break;
    case SQL_ENUM:
        sql_enum_append(out, type->named, value->int64);
        break;
    default:
        buffer_append_bytes(out, value->text);
    }
}

/* --- as a query --- */

static void append_items(struct buffer *out, const struct sql_type *type,
                         const struct sql_value *value)
{
    bool is_array = type->kind == SQL_ARRAY;
    buffer_append_byte(out, is_array ? '[' : type->kind == SQL_MAP ? '{' : '(');
    for (size_t i = 0; i < value->count; i++) {
        bool is_value_of_map = type->kind == SQL_MAP && i % 2 == 1;
        buffer_append_format(out, "%s", i == 0 ? "" : is_value_of_map ? ": " : ", ");
        sql_value_append_literal(out, sql_item_type(type, i), &value->items[i]);
    }
    buffer_append_byte(out, is_array ? ']' : type->kind == SQL_MAP ? '}' : ')');
}

static void append_float_literal(struct buffer *out, double value, bool is_float32)
{
    size_t before = out->size;
    if (!isfinite(value)) {
        buffer_append_format(out, "CAST(\"");
        sql_float_append(out, value, is_float32);
        buffer_append_format(out, "\" AS %s)", is_float32 ? "FLOAT32" : "FLOAT64");
        return;
    }
    sql_float_append(out, value, is_float32);
    for (size_t i = before; i < out->size; i++)
        if (out->data[i] == '.' || out->data[i] == 'e')
            return;
    buffer_append_format(out, ".0");
}

static void append_quoted(struct buffer *out, const char *before, const struct sql_type *type,
                          const struct sql_value *value)
{
    buffer_append_format(out, "%s\"", before);
    sql_value_append_text(out, type, value);
    buffer_append_byte(out, '"');
}

void sql_value_append_literal(struct buffer *out, const struct sql_type *type,
                              const struct sql_value *value)
{
    if (value->is_null) {
        buffer_append_format(out, "NULL");
        return;
    }
    switch (type->kind) {
    case SQL_FLOAT32:
    case SQL_FLOAT64:
        append_float_literal(out, value->float64, type->kind == SQL_FLOAT32);
        break;
    case SQL_STRING:
        literal_append_string(out, value->text);
        break;
    case SQL_BYTES:
    case SQL_PROTO:
        literal_append_bytes(out, value->text);
        break;
    case SQL_DATE:
        append_quoted(out, "DATE ", type, value);
        break;
    case SQL_TIMESTAMP:
        append_quoted(out, "TIMESTAMP ", type, value);
        break;
    case SQL_ARRAY:
    case SQL_STRUCT:
    case SQL_MAP:
        append_items(out, type, value);
        break;
    default:
        sql_value_append_text(out, type, value);
    }
}
