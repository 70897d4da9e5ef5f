/* FORMAT: values in a text as printf has it, with GoogleSQL's %t (as CAST writes it) and %T (as a
 * query does).
 *
 * Each value is written without its width at first; padding and separators are put in then. */
#include "sql/functions/cast.h"
#include "sql/functions/function_tables.h"
#include "sql/syntax/literal.h"
#include "sql/text.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>

struct spec {
    bool is_left;      /* - */
    bool has_plus;     /* + */
    bool has_space;    /* blank */
    bool is_alternate; /* # */
    bool has_zeros;    /* 0 */
    bool is_grouped;   /* ' */
    int64_t width;     /* characters; 0: none */
    int64_t precision; /* -1: none */
    char kind;         /* d, s, T, … */
};

struct formatter {
    const struct sql_call *call;
    const struct sql_value *args; /* the pattern, and then what it is filled with */
    size_t count;
    size_t next; /* argument */
    size_t at;   /* in the pattern */
    struct buffer *out;
    bool is_null; /* a value without which there is no result was NULL */
};

/* --- mistakes --- */

static status bad_pattern(const struct formatter *f, const char *what)
{
    bytes pattern = f->args[0].text;
    return status_make(STATUS_OUT_OF_RANGE, "%s FORMAT for pattern \"%.*s\"", what,
                       (int)pattern.size, (const char *)pattern.data);
}

static status bad_type(const struct formatter *f, size_t index, const char *expected)
{
    struct buffer type = {0};
    sql_type_append(&type, f->call->types[index]);
    status error = status_make(STATUS_OUT_OF_RANGE,
                               "Invalid type for argument %zu to FORMAT; Expected %s; Got %.*s",
                               index + 1, expected, (int)type.size, (const char *)type.data);
    buffer_free(&type);
    return error;
}

/* --- the pattern --- */

static char peek(const struct formatter *f)
{
    bytes pattern = f->args[0].text;
    return f->at < pattern.size ? (char)pattern.data[f->at] : '\0';
}

static void read_flags(struct formatter *f, struct spec *spec)
{
    for (;; f->at++)
        switch (peek(f)) {
        case '-':
            spec->is_left = true;
            break;
        case '+':
            spec->has_plus = true;
            break;
        case ' ':
            spec->has_space = true;
            break;
        case '#':
            spec->is_alternate = true;
            break;
        case '0':
            spec->has_zeros = true;
            break;
        case '\'':
            spec->is_grouped = true;
            break;
        default:
            return;
        }
}

static status next_argument(struct formatter *f, size_t *index)
{
    if (f->next >= f->count)
        return bad_pattern(f, "Too few arguments to");
    *index = f->next++;
    return status_ok();
}

/* A width or a precision: digits, or `*` for an argument. */
static status read_size(struct formatter *f, int64_t *out)
{
    *out = 0;
    if (peek(f) == '*') {
        size_t index;
        f->at++;
        TRY(next_argument(f, &index));
        if (f->call->types[index]->kind != SQL_INT64)
            return bad_type(f, index, "INT64");
        f->is_null = f->is_null || f->args[index].is_null;
        *out = f->args[index].is_null ? 0 : f->args[index].int64;
    }
    while (isdigit((unsigned char)peek(f)) && *out <= TEXT_LIMIT)
        *out = 10 * *out + (f->args[0].text.data[f->at++] - '0');
    bool is_too_much = *out > TEXT_LIMIT || *out < -TEXT_LIMIT;
    return is_too_much ? bad_pattern(f, "Too great a width or precision in") : status_ok();
}

/* After the percent sign. */
static status read_spec(struct formatter *f, struct spec *spec)
{
    *spec = (struct spec){.precision = -1};
    read_flags(f, spec);
    TRY(read_size(f, &spec->width));
    if (spec->width < 0) {
        spec->is_left = true;
        spec->width = -spec->width;
    }
    if (peek(f) == '.') {
        f->at++;
        TRY(read_size(f, &spec->precision));
    }
    if (spec->precision < 0)
        spec->precision = -1;
    spec->kind = peek(f);
    if (spec->kind == '\0' || strchr("diuoxXfFeEgGstTp", spec->kind) == NULL)
        return bad_pattern(f, "Invalid specifier in");
    f->at++;
    return status_ok();
}

/* --- padding --- */

/* The size of a number's sign and its 0x. */
static size_t prefix_size(bytes body)
{
    size_t size = body.size > 0 && strchr("+- ", body.data[0]) != NULL && body.data[0] != '\0';
    bool has_base =
        body.size > size + 1 && body.data[size] == '0' && (body.data[size + 1] | 0x20) == 'x';
    return size + (has_base ? 2 : 0);
}

static void append_repeated(struct buffer *out, char c, uint64_t count)
{
    for (; count > 0 && !out->failed; count--)
        buffer_append_byte(out, (uint8_t)c);
}

static void append_padded(struct buffer *out, const struct spec *spec, bytes body, bool with_zeros)
{
    uint64_t length = utf8_length(body), wanted = (uint64_t)spec->width;
    uint64_t missing = wanted > length ? wanted - length : 0;
    with_zeros = with_zeros && !spec->is_left;
    size_t prefix = with_zeros ? prefix_size(body) : 0;
    if (!spec->is_left && !with_zeros)
        append_repeated(out, ' ', missing);
    buffer_append_bytes(out, text_slice(body, 0, prefix));
    if (with_zeros)
        append_repeated(out, '0', missing);
    buffer_append_bytes(out, bytes_from(body, prefix));
    if (spec->is_left)
        append_repeated(out, ' ', missing);
}

/* Copies a number with separators between the digits before its point: 12,345 and bc:614e. */
static void append_grouped(struct buffer *out, const struct spec *spec, bytes body)
{
    bool is_hex = spec->kind == 'x' || spec->kind == 'X';
    size_t group = is_hex || spec->kind == 'o' ? 4 : 3, start = prefix_size(body), end = start;
    while (end < body.size && (is_hex ? isxdigit(body.data[end]) : isdigit(body.data[end])))
        end++;
    for (size_t i = 0; i < body.size; i++) {
        if (i > start && i < end && (end - i) % group == 0)
            buffer_append_byte(out, is_hex ? ':' : ',');
        buffer_append_byte(out, body.data[i]);
    }
}

static void append_number(struct buffer *out, const struct spec *spec, bytes body, bool with_zeros)
{
    struct buffer grouped = {0};
    if (spec->is_grouped) {
        append_grouped(&grouped, spec, body);
        out->failed = out->failed || grouped.failed;
        body = buffer_bytes(&grouped);
    }
    append_padded(out, spec, body, with_zeros);
    buffer_free(&grouped);
}

/* --- numbers: by printf, without a width --- */

enum { PRINTF_FORMAT_SIZE = 16 };

static void printf_format(const struct spec *spec, const char *length, char kind,
                          char format[PRINTF_FORMAT_SIZE])
{
    snprintf(format, PRINTF_FORMAT_SIZE, "%%%s%s%s.*%s%c", spec->has_plus ? "+" : "",
             spec->has_space ? " " : "", spec->is_alternate ? "#" : "", length, kind);
}

static status append_integer(struct formatter *f, const struct spec *spec, size_t index)
{
    if (f->call->types[index]->kind != SQL_INT64)
        return bad_type(f, index, "INT64");
    long long value = f->args[index].int64;
    bool is_signed = spec->kind == 'd' || spec->kind == 'i';
    if (value < 0 && !is_signed)
        return status_make(STATUS_OUT_OF_RANGE, "FORMAT cannot write the negative %lld as %%%c",
                           value, spec->kind);
    char format[PRINTF_FORMAT_SIZE];
    struct buffer body = {0};
    printf_format(spec, "ll", spec->kind, format);
    buffer_append_format(&body, format, (int)spec->precision, value);
    f->out->failed = f->out->failed || body.failed;
    append_number(f->out, spec, buffer_bytes(&body), spec->has_zeros && spec->precision < 0);
    buffer_free(&body);
    return status_ok();
}

static status append_float(struct formatter *f, const struct spec *spec, size_t index)
{
    if (!sql_is_float(f->call->types[index]))
        return bad_type(f, index, "FLOAT64");
    double value = f->args[index].float64;
    char format[PRINTF_FORMAT_SIZE];
    struct buffer body = {0};
    printf_format(spec, "", spec->kind, format);
    if (isnan(value)) /* without a sign */
        value = NAN;
    buffer_append_format(&body, format, (int)spec->precision, value);
    f->out->failed = f->out->failed || body.failed;
    append_number(f->out, spec, buffer_bytes(&body), spec->has_zeros && isfinite(value));
    buffer_free(&body);
    return status_ok();
}

/* --- texts --- */

static status append_plain(const struct sql_call *call, const struct sql_type *type,
                           const struct sql_value *value, struct buffer *out);

static status append_items(const struct sql_call *call, const struct sql_type *type,
                           const struct sql_value *value, struct buffer *out)
{
    const char *brackets = type->kind == SQL_ARRAY ? "[]" : type->kind == SQL_MAP ? "{}" : "()";
    buffer_append_byte(out, (uint8_t)brackets[0]);
    for (size_t i = 0; i < value->count; i++) {
        bool is_value_of_map = type->kind == SQL_MAP && i % 2 == 1;
        buffer_append_format(out, "%s", i == 0 ? "" : is_value_of_map ? ": " : ", ");
        TRY(append_plain(call, sql_item_type(type, i), &value->items[i], out));
    }
    buffer_append_byte(out, (uint8_t)brackets[1]);
    return status_ok();
}

/* The literal without its b and quotes; a quote in it need not be escaped then. */
static void append_escaped(struct buffer *out, bytes value)
{
    struct buffer literal = {0};
    literal_append_bytes(&literal, value);
    out->failed = out->failed || literal.failed;
    for (size_t i = 2; i + 1 < literal.size && !literal.failed; i++) {
        bool is_escape = literal.data[i] == '\\';
        if (is_escape && literal.data[i + 1] != '"')
            buffer_append_byte(out, '\\');
        buffer_append_byte(out, literal.data[is_escape ? ++i : i]);
    }
    buffer_free(&literal);
}

static status append_proto(const struct sql_call *call, const struct sql_type *type,
                           const struct sql_value *value, struct buffer *out)
{
    struct sql_value text;
    TRY(sql_cast_value(call, type, &sql_string, value, &text));
    buffer_append_bytes(out, text.text);
    return status_ok();
}

/* %t: as CAST AS STRING, but a FLOAT64 always has a point, and what has parts is written, too. */
static status append_plain(const struct sql_call *call, const struct sql_type *type,
                           const struct sql_value *value, struct buffer *out)
{
    bool is_literal = value->is_null || (sql_is_float(type) && isfinite(value->float64));
    if (is_literal) {
        sql_value_append_literal(out, type, value);
        return status_ok();
    }
    switch (type->kind) {
    case SQL_BYTES:
        append_escaped(out, value->text);
        return status_ok();
    case SQL_PROTO:
        return append_proto(call, type, value, out);
    case SQL_ARRAY:
    case SQL_STRUCT:
    case SQL_MAP:
        return append_items(call, type, value, out);
    default:
        sql_value_append_text(out, type, value);
        return status_ok();
    }
}

static status append_value(struct formatter *f, const struct spec *spec, size_t index,
                           struct buffer *body)
{
    const struct sql_type *type = f->call->types[index];
    if (spec->kind == 's' && type->kind != SQL_STRING)
        return bad_type(f, index, "STRING");
    if (spec->kind == 'p' && type->kind != SQL_PROTO)
        return bad_type(f, index, "PROTO");
    if (spec->kind != 'T')
        return append_plain(f->call, type, &f->args[index], body);
    sql_value_append_literal(body, type, &f->args[index]);
    return status_ok();
}

/* The precision is the most characters that are taken. */
static status append_text(struct formatter *f, const struct spec *spec, size_t index)
{
    struct buffer body = {0};
    status s = append_value(f, spec, index, &body);
    bytes text = buffer_bytes(&body);
    f->out->failed = f->out->failed || body.failed;
    if (spec->precision >= 0 && !body.failed)
        text.size = text_skip(text, 0, (uint64_t)spec->precision, true);
    if (status_is_ok(s) && !body.failed)
        append_padded(f->out, spec, text, false);
    buffer_free(&body);
    return s;
}

/* --- FORMAT --- */

static status append_argument(struct formatter *f)
{
    struct spec spec;
    size_t index;
    TRY(read_spec(f, &spec));
    TRY(next_argument(f, &index));
    bool shows_null = spec.kind == 't' || spec.kind == 'T';
    if (f->args[index].is_null && !shows_null) {
        f->is_null = true;
        return status_ok();
    }
    if (strchr("stTp", spec.kind) != NULL)
        return append_text(f, &spec, index);
    return strchr("diuoxX", spec.kind) != NULL ? append_integer(f, &spec, index)
                                               : append_float(f, &spec, index);
}

static status append_all(struct formatter *f)
{
    bytes pattern = f->args[0].text;
    while (f->at < pattern.size && f->out->size <= TEXT_LIMIT) {
        uint8_t c = pattern.data[f->at++];
        if (c == '%' && peek(f) != '%') {
            TRY(append_argument(f));
            continue;
        }
        f->at += c == '%';
        buffer_append_byte(f->out, c);
    }
    if (f->out->size > TEXT_LIMIT)
        return status_make(STATUS_OUT_OF_RANGE,
                           "Output of FORMAT exceeds max allowed output size of 1MB");
    return f->next < f->count ? bad_pattern(f, "Too many arguments to") : status_ok();
}

static status format_(const struct sql_call *call, const struct sql_value *args, size_t count,
                      struct sql_value *out)
{
    if (args[0].is_null)
        return status_ok();
    struct buffer text = {0};
    struct formatter f = {.call = call, .args = args, .count = count, .next = 1, .out = &text};
    status s = append_all(&f);
    if (status_is_ok(s) && !f.is_null)
        return text_result(call, &text, out);
    buffer_free(&text);
    return s;
}

/* Each argument may have another type. */
const struct sql_function sql_format_functions[] = {
    {"FORMAT",
     "STRING(STRING, [A], [B], [C], [D], [E], [F], [G], [H], [I], [J], [K], [L], [M], [N], [O], "
     "[P], [Q], [R], [S], [T], [U], [V], [W], [X], [Y], [Z])",
     format_, SQL_TAKES_NULLS},
    {0},
};
