/* CAST: see cast.h. */
#include "sql/functions/cast.h"

#include "base/utf8.h"
#include "sql/proto_type.h"
#include "sql/text.h"
#include "sql/time/calendar.h"
#include "sql/time/datetime_text.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <strings.h>

/* --- which pairs there are --- */

/* Bits of the kinds that a kind can become, beside its own; arrays, structs and maps go by their
 * parts. */
#define KIND(kind) (1u << (kind))

static const unsigned casts[] = {
    [SQL_BOOL] = KIND(SQL_INT64) | KIND(SQL_STRING),
    [SQL_INT64] =
        KIND(SQL_BOOL) | KIND(SQL_FLOAT32) | KIND(SQL_FLOAT64) | KIND(SQL_STRING) | KIND(SQL_ENUM),
    [SQL_FLOAT32] = KIND(SQL_INT64) | KIND(SQL_FLOAT64) | KIND(SQL_STRING),
    [SQL_FLOAT64] = KIND(SQL_INT64) | KIND(SQL_FLOAT32) | KIND(SQL_STRING),
    [SQL_STRING] = KIND(SQL_BOOL) | KIND(SQL_INT64) | KIND(SQL_FLOAT32) | KIND(SQL_FLOAT64) |
                   KIND(SQL_BYTES) | KIND(SQL_DATE) | KIND(SQL_TIMESTAMP) | KIND(SQL_ENUM),
    [SQL_BYTES] = KIND(SQL_STRING) | KIND(SQL_PROTO),
    [SQL_DATE] = KIND(SQL_STRING) | KIND(SQL_TIMESTAMP),
    [SQL_TIMESTAMP] = KIND(SQL_STRING) | KIND(SQL_DATE),
    [SQL_ENUM] = KIND(SQL_INT64) | KIND(SQL_STRING),
    [SQL_PROTO] = KIND(SQL_BYTES),
    [SQL_MAP] = 0,
};

static bool can_cast_fields(const struct sql_type *from, const struct sql_type *to)
{
    if (from->field_count != to->field_count)
        return false;
    for (size_t i = 0; i < from->field_count; i++)
        if (!sql_can_cast(from->fields[i].type, to->fields[i].type))
            return false;
    return true;
}

bool sql_can_cast(const struct sql_type *from, const struct sql_type *to)
{
    if (sql_type_equal(from, to))
        return true;
    if (from->kind == SQL_STRUCT && to->kind == SQL_STRUCT)
        return can_cast_fields(from, to);
    if (from->kind == SQL_ARRAY && to->kind == SQL_ARRAY)
        return sql_can_cast(from->element, to->element);
    if (from->kind == SQL_MAP && to->kind == SQL_MAP)
        return sql_type_equal(from->key, to->key) && sql_can_cast(from->element, to->element);
    return (casts[from->kind] & KIND(to->kind)) != 0;
}

/* --- from numbers --- */

static status float_to_int64(double value, struct sql_value *out)
{
    if (!isfinite(value))
        return status_make(STATUS_OUT_OF_RANGE,
                           "Illegal conversion of non-finite floating point number to an integer: "
                           "%g",
                           value);
    double rounded = round(value);
    if (rounded < -0x1p63 || rounded >= 0x1p63)
        return status_make(STATUS_OUT_OF_RANGE, "int64 out of range: %g", value);
    *out = sql_of_int64((int64_t)rounded);
    return status_ok();
}

static status to_float32(double value, struct sql_value *out)
{
    *out = sql_of_float64((float)value);
    if (isinf(out->float64) && !isinf(value))
        return status_make(STATUS_OUT_OF_RANGE, "float out of range: %g", value);
    return status_ok();
}

static status to_text(const struct sql_call *call, const struct sql_type *from,
                      const struct sql_value *value, struct sql_value *out)
{
    struct buffer text = {0};
    sql_value_append_text(&text, from, value);
    *out = sql_of_text(arena_copy(call->arena, buffer_bytes(&text)));
    bool failed = text.failed || out->text.data == NULL;
    buffer_free(&text);
    return failed ? status_out_of_memory() : status_ok();
}

static status from_int64(const struct sql_call *call, const struct sql_type *to,
                         const struct sql_value *value, struct sql_value *out)
{
    switch (to->kind) {
    case SQL_BOOL:
        *out = sql_of_bool(value->int64 != 0);
        return status_ok();
    case SQL_FLOAT32:
        return to_float32((double)value->int64, out);
    case SQL_FLOAT64:
        *out = sql_of_float64((double)value->int64);
        return status_ok();
    case SQL_ENUM:
        *out = *value;
        return sql_enum_check(to->named, value->int64);
    default:
        return to_text(call, &sql_int64, value, out);
    }
}

static status from_float(const struct sql_call *call, const struct sql_type *from,
                         const struct sql_type *to, const struct sql_value *value,
                         struct sql_value *out)
{
    switch (to->kind) {
    case SQL_INT64:
        return float_to_int64(value->float64, out);
    case SQL_FLOAT32:
        return to_float32(value->float64, out);
    case SQL_FLOAT64:
        *out = *value;
        return status_ok();
    default:
        return to_text(call, from, value, out);
    }
}

/* --- from STRING --- */

static status bad_text(const char *what, bytes text)
{
    return status_make(STATUS_OUT_OF_RANGE, "Bad %s value: %.*s", what, (int)text.size,
                       text.size == 0 ? "" : (const char *)text.data);
}

static status to_bool(bytes text, struct sql_value *out)
{
    bytes word = text_trimmed(text);
    bool is_true = word.size == 4 && strncasecmp((const char *)word.data, "true", 4) == 0;
    bool is_false = word.size == 5 && strncasecmp((const char *)word.data, "false", 5) == 0;
    *out = sql_of_bool(is_true);
    return is_true || is_false ? status_ok() : bad_text("bool", text);
}

enum { NUMBER_SIZE = 400 }; /* of a number's text: enough for all digits of any float */

/* The text as a string, without blanks around it; false if it is no number's. */
static bool number_text(bytes text, char out[NUMBER_SIZE])
{
    bytes number = text_trimmed(text);
    if (number.size == 0 || number.size >= NUMBER_SIZE ||
        memchr(number.data, '\0', number.size) != NULL)
        return false;
    memcpy(out, number.data, number.size);
    out[number.size] = '\0';
    return true;
}

/* Decimal, or hexadecimal with 0x; a sign may come first. */
static status to_int64(bytes text, struct sql_value *out)
{
    char number[NUMBER_SIZE];
    char *end;
    if (!number_text(text, number))
        return bad_text("int64", text);
    const char *digits = number + (number[0] == '+' || number[0] == '-');
    bool is_hex = digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X');
    if (!isxdigit((unsigned char)digits[is_hex ? 2 : 0]))
        return bad_text("int64", text);
    errno = 0;
    *out = sql_of_int64(strtoll(number, &end, is_hex ? 16 : 10));
    return errno == 0 && *end == '\0' ? status_ok() : bad_text("int64", text);
}

static bool is_named_float(const char *digits)
{
    return strcasecmp(digits, "inf") == 0 || strcasecmp(digits, "infinity") == 0 ||
           strcasecmp(digits, "nan") == 0;
}

static status to_float64(bytes text, const char *what, struct sql_value *out)
{
    char number[NUMBER_SIZE];
    char *end;
    if (!number_text(text, number))
        return bad_text(what, text);
    const char *digits = number + (number[0] == '+' || number[0] == '-');
    bool is_named = is_named_float(digits);
    if (!is_named && digits[strspn(digits, "0123456789.eE+-")] != '\0') /* no 0x, no nan(…) */
        return bad_text(what, text);
    double value = strtod(number, &end);
    *out = sql_of_float64(value);
    bool overflows = isinf(value) && !is_named;
    return *end == '\0' && end > number && !overflows ? status_ok() : bad_text(what, text);
}

static status to_timestamp(const struct sql_call *call, bytes text, struct sql_value *out)
{
    const struct sql_zone *utc;
    *out = sql_of_int64(0);
    TRY(sql_zone_find(call->session->zones, bytes_of("UTC"), &utc));
    return timestamp_parse(call->session->zones, text, utc, NULL, &out->int64);
}

static status from_string(const struct sql_call *call, const struct sql_type *to,
                          const struct sql_value *value, struct sql_value *out)
{
    *out = *value;
    switch (to->kind) {
    case SQL_BOOL:
        return to_bool(value->text, out);
    case SQL_INT64:
        return to_int64(value->text, out);
    case SQL_FLOAT32:
        TRY(to_float64(value->text, "float", out));
        return to_float32(out->float64, out);
    case SQL_FLOAT64:
        return to_float64(value->text, "double", out);
    case SQL_DATE:
        *out = sql_of_int64(0);
        return date_parse(value->text, &out->int64);
    case SQL_TIMESTAMP:
        return to_timestamp(call, value->text, out);
    case SQL_ENUM:
        return sql_enum_parse(to->named, value->text, out);
    default:
        return status_ok(); /* BYTES: the same */
    }
}

/* --- from others --- */

static status from_bytes(const struct sql_type *to, const struct sql_value *value,
                         struct sql_value *out)
{
    *out = *value;
    if (to->kind == SQL_STRING && !utf8_is_valid(value->text))
        return status_make(STATUS_OUT_OF_RANGE, "Invalid cast of bytes to UTF8 string");
    return status_ok();
}

static status cast_items(const struct sql_call *call, const struct sql_type *from,
                         const struct sql_type *to, const struct sql_value *value,
                         struct sql_value *out)
{
    struct sql_value *items = arena_alloc(call->arena, value->count * sizeof *items);
    if (items == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < value->count; i++)
        TRY(sql_cast_value(call, sql_item_type(from, i), sql_item_type(to, i), &value->items[i],
                           &items[i]));
    *out = sql_of_items(items, value->count);
    return status_ok();
}

status sql_cast_value(const struct sql_call *call, const struct sql_type *from,
                      const struct sql_type *to, const struct sql_value *value,
                      struct sql_value *out)
{
    *out = *value;
    if (value->is_null || (from->kind == to->kind && from->kind < SQL_ENUM))
        return status_ok();
    switch (from->kind) {
    case SQL_BOOL:
        if (to->kind == SQL_STRING)
            return to_text(call, from, value, out);
        *out = sql_of_int64(value->boolean);
        return status_ok();
    case SQL_INT64:
        return from_int64(call, to, value, out);
    case SQL_FLOAT32:
    case SQL_FLOAT64:
        return from_float(call, from, to, value, out);
    case SQL_STRING:
        return from_string(call, to, value, out);
    case SQL_BYTES:
        return from_bytes(to, value, out);
    case SQL_DATE:
        if (to->kind == SQL_TIMESTAMP)
            *out = sql_of_int64(value->int64 * MICROS_PER_DAY);
        return to->kind == SQL_STRING ? to_text(call, from, value, out) : status_ok();
    case SQL_TIMESTAMP:
        if (to->kind == SQL_DATE)
            *out = sql_of_int64(floor_div(value->int64, MICROS_PER_DAY));
        return to->kind == SQL_STRING ? to_text(call, from, value, out) : status_ok();
    case SQL_ENUM:
        return to->kind == SQL_STRING ? to_text(call, from, value, out) : status_ok();
    case SQL_PROTO:
        return status_ok();
    default:
        return cast_items(call, from, to, value, out);
    }
}

static status evaluate_cast(const struct sql_call *call, const struct sql_value *args, size_t count,
                            struct sql_value *out)
{
    (void)count;
    return sql_cast_value(call, call->types[0], call->type, &args[0], out);
}

const struct sql_function sql_cast_function = {
    .name = "CAST", .signature = "T(T)", .evaluate = evaluate_cast};
