/* Operators on numbers, bits and texts. */
#include "sql/functions/function_tables.h"
#include "sql/time/datetime_parts.h"

#include <math.h>

/* --- INT64: an overflow is an error --- */

static status overflow(int64_t a, const char *operator_, int64_t b)
{
    return status_make(STATUS_OUT_OF_RANGE, "int64 overflow: %lld %s %lld", (long long)a, operator_,
                       (long long)b);
}

static status add_int64(const struct sql_call *call, const struct sql_value *args, size_t count,
                        struct sql_value *out)
{
    (void)call, (void)count;
    bool overflows = __builtin_add_overflow(args[0].int64, args[1].int64, &out->int64);
    out->is_null = false;
    return overflows ? overflow(args[0].int64, "+", args[1].int64) : status_ok();
}

static status subtract_int64(const struct sql_call *call, const struct sql_value *args,
                             size_t count, struct sql_value *out)
{
    (void)call, (void)count;
    bool overflows = __builtin_sub_overflow(args[0].int64, args[1].int64, &out->int64);
    out->is_null = false;
    return overflows ? overflow(args[0].int64, "-", args[1].int64) : status_ok();
}

static status multiply_int64(const struct sql_call *call, const struct sql_value *args,
                             size_t count, struct sql_value *out)
{
    (void)call, (void)count;
    bool overflows = __builtin_mul_overflow(args[0].int64, args[1].int64, &out->int64);
    out->is_null = false;
    return overflows ? overflow(args[0].int64, "*", args[1].int64) : status_ok();
}

static status negate_int64(const struct sql_call *call, const struct sql_value *args, size_t count,
                           struct sql_value *out)
{
    (void)call, (void)count;
    if (args[0].int64 == INT64_MIN)
        return status_make(STATUS_OUT_OF_RANGE, "int64 overflow: -(%lld)",
                           (long long)args[0].int64);
    *out = sql_of_int64(-args[0].int64);
    return status_ok();
}

/* --- FLOAT64: infinity out of finite numbers is one, too --- */

static status float_result(double a, const char *operator_, double b, double result,
                           struct sql_value *out)
{
    *out = sql_of_float64(result);
    if (isfinite(result) || !isfinite(a) || !isfinite(b))
        return status_ok();
    return status_make(STATUS_OUT_OF_RANGE, "double overflow: %g %s %g", a, operator_, b);
}

static status add_float64(const struct sql_call *call, const struct sql_value *args, size_t count,
                          struct sql_value *out)
{
    (void)call, (void)count;
    double a = args[0].float64, b = args[1].float64;
    return float_result(a, "+", b, a + b, out);
}

static status subtract_float64(const struct sql_call *call, const struct sql_value *args,
                               size_t count, struct sql_value *out)
{
    (void)call, (void)count;
    double a = args[0].float64, b = args[1].float64;
    return float_result(a, "-", b, a - b, out);
}

static status multiply_float64(const struct sql_call *call, const struct sql_value *args,
                               size_t count, struct sql_value *out)
{
    (void)call, (void)count;
    double a = args[0].float64, b = args[1].float64;
    return float_result(a, "*", b, a * b, out);
}

static status divide(const struct sql_call *call, const struct sql_value *args, size_t count,
                     struct sql_value *out)
{
    (void)call, (void)count;
    double a = args[0].float64, b = args[1].float64;
    if (b == 0)
        return status_make(STATUS_OUT_OF_RANGE, "division by zero: %g / %g", a, b);
    return float_result(a, "/", b, a / b, out);
}

static status negate_float(const struct sql_call *call, const struct sql_value *args, size_t count,
                           struct sql_value *out)
{
    (void)call, (void)count;
    *out = sql_of_float64(-args[0].float64);
    return status_ok();
}

/* --- dates and days --- */

static status add_days(const struct sql_call *call, const struct sql_value *args, size_t count,
                       struct sql_value *out)
{
    (void)count;
    bool is_date_first = call->types[0]->kind == SQL_DATE;
    int64_t date = args[!is_date_first].int64, days = args[is_date_first].int64;
    *out = sql_of_int64(0);
    return date_step(date, days, SQL_PART_DAY, &out->int64)
               ? status_ok()
               : date_overflow(date, days, SQL_PART_DAY, false);
}

static status subtract_days(const struct sql_call *call, const struct sql_value *args, size_t count,
                            struct sql_value *out)
{
    (void)call, (void)count;
    int64_t date = args[0].int64, days = args[1].int64;
    *out = sql_of_int64(0);
    bool fits = days != INT64_MIN && date_step(date, -days, SQL_PART_DAY, &out->int64);
    return fits ? status_ok() : date_overflow(date, days, SQL_PART_DAY, true);
}

/* --- bits --- */

static status bit_not_int64(const struct sql_call *call, const struct sql_value *args, size_t count,
                            struct sql_value *out)
{
    (void)call, (void)count;
    *out = sql_of_int64(~args[0].int64);
    return status_ok();
}

static status bit_and_int64(const struct sql_call *call, const struct sql_value *args, size_t count,
                            struct sql_value *out)
{
    (void)call, (void)count;
    *out = sql_of_int64(args[0].int64 & args[1].int64);
    return status_ok();
}

static status bit_or_int64(const struct sql_call *call, const struct sql_value *args, size_t count,
                           struct sql_value *out)
{
    (void)call, (void)count;
    *out = sql_of_int64(args[0].int64 | args[1].int64);
    return status_ok();
}

static status bit_xor_int64(const struct sql_call *call, const struct sql_value *args, size_t count,
                            struct sql_value *out)
{
    (void)call, (void)count;
    *out = sql_of_int64(args[0].int64 ^ args[1].int64);
    return status_ok();
}

static uint8_t and_byte(uint8_t a, uint8_t b)
{
    return a & b;
}

static uint8_t or_byte(uint8_t a, uint8_t b)
{
    return a | b;
}

static uint8_t xor_byte(uint8_t a, uint8_t b)
{
    return a ^ b;
}

static status combine_bytes(const struct sql_call *call, const struct sql_value *args,
                            uint8_t combine(uint8_t a, uint8_t b), struct sql_value *out)
{
    bytes a = args[0].text, b = args[1].text;
    if (a.size != b.size)
        return status_make(STATUS_OUT_OF_RANGE,
                           "Bitwise binary operator for BYTES requires equal length of the inputs. "
                           "Got %zu bytes on the left hand side and %zu bytes on the right hand "
                           "side.",
                           a.size, b.size);
    uint8_t *result = arena_alloc(call->arena, a.size);
    if (result == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < a.size; i++)
        result[i] = combine(a.data[i], b.data[i]);
    *out = sql_of_text(bytes_make(result, a.size));
    return status_ok();
}

static status bit_and_bytes(const struct sql_call *call, const struct sql_value *args, size_t count,
                            struct sql_value *out)
{
    (void)count;
    return combine_bytes(call, args, and_byte, out);
}

static status bit_or_bytes(const struct sql_call *call, const struct sql_value *args, size_t count,
                           struct sql_value *out)
{
    (void)count;
    return combine_bytes(call, args, or_byte, out);
}

static status bit_xor_bytes(const struct sql_call *call, const struct sql_value *args, size_t count,
                            struct sql_value *out)
{
    (void)count;
    return combine_bytes(call, args, xor_byte, out);
}

static status bit_not_bytes(const struct sql_call *call, const struct sql_value *args, size_t count,
                            struct sql_value *out)
{
    (void)count;
    uint8_t *result = arena_alloc(call->arena, args[0].text.size);
    if (result == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < args[0].text.size; i++)
        result[i] = (uint8_t)~args[0].text.data[i];
    *out = sql_of_text(bytes_make(result, args[0].text.size));
    return status_ok();
}

/* --- shifts: by any number of bits, but none that is negative; zeros come in on both sides --- */

static status negative_shift(void)
{
    return status_make(STATUS_OUT_OF_RANGE, "Bitwise shift by negative offset.");
}

static status shift_left_int64(const struct sql_call *call, const struct sql_value *args,
                               size_t count, struct sql_value *out)
{
    (void)call, (void)count;
    int64_t by = args[1].int64;
    *out = sql_of_int64(by < 0 || by > 63 ? 0 : (int64_t)((uint64_t)args[0].int64 << by));
    return by < 0 ? negative_shift() : status_ok();
}

static status shift_right_int64(const struct sql_call *call, const struct sql_value *args,
                                size_t count, struct sql_value *out)
{
    (void)call, (void)count;
    int64_t by = args[1].int64;
    *out = sql_of_int64(by < 0 || by > 63 ? 0 : (int64_t)((uint64_t)args[0].int64 >> by));
    return by < 0 ? negative_shift() : status_ok();
}

/* The byte at an offset that may lie outside. */
static unsigned byte_or_zero(bytes text, int64_t at)
{
    return at < 0 || at >= (int64_t)text.size ? 0 : text.data[at];
}

/* Shifts to the left by so many bits; to the right if they are negative. */
static status shift_bytes(const struct sql_call *call, bytes text, int64_t by, bool to_left,
                          struct sql_value *out)
{
    uint8_t *result = arena_alloc(call->arena, text.size);
    if (by < 0)
        return negative_shift();
    if (result == NULL)
        return status_out_of_memory();
    int64_t whole = by / 8;
    int bits = (int)(by % 8);
    for (int64_t i = 0; i < (int64_t)text.size; i++) {
        int64_t from = to_left ? i + whole : i - whole;
        unsigned near = byte_or_zero(text, from);
        unsigned far = byte_or_zero(text, to_left ? from + 1 : from - 1);
        result[i] = (uint8_t)(to_left ? near << bits | far >> (8 - bits)
                                      : near >> bits | far << (8 - bits));
    }
    *out = sql_of_text(bytes_make(result, text.size));
    return status_ok();
}

static status shift_left_bytes(const struct sql_call *call, const struct sql_value *args,
                               size_t count, struct sql_value *out)
{
    (void)count;
    return shift_bytes(call, args[0].text, args[1].int64, true, out);
}

static status shift_right_bytes(const struct sql_call *call, const struct sql_value *args,
                                size_t count, struct sql_value *out)
{
    (void)count;
    return shift_bytes(call, args[0].text, args[1].int64, false, out);
}

/* --- || --- */

static status concat_texts(const struct sql_call *call, const struct sql_value *args, size_t count,
                           struct sql_value *out)
{
    (void)count;
    size_t left = args[0].text.size, right = args[1].text.size;
    uint8_t *joined = arena_alloc(call->arena, left + right);
    if (joined == NULL)
        return status_out_of_memory();
    if (left > 0)
        memcpy(joined, args[0].text.data, left);
    if (right > 0)
        memcpy(joined + left, args[1].text.data, right);
    *out = sql_of_text(bytes_make(joined, left + right));
    return status_ok();
}

static status concat_arrays(const struct sql_call *call, const struct sql_value *args, size_t count,
                            struct sql_value *out)
{
    (void)count;
    size_t left = args[0].count, right = args[1].count;
    struct sql_value *joined = arena_alloc(call->arena, (left + right) * sizeof *joined);
    if (joined == NULL)
        return status_out_of_memory();
    if (left > 0)
        memcpy(joined, args[0].items, left * sizeof *joined);
    if (right > 0)
        memcpy(joined + left, args[1].items, right * sizeof *joined);
    *out = sql_of_items(joined, left + right);
    return status_ok();
}

const struct sql_function sql_arithmetic_functions[] = {
    {"$add", "INT64(INT64, INT64)", add_int64},
    {"$add", "FLOAT64(FLOAT64, FLOAT64)", add_float64},
    {"$add", "DATE(DATE, INT64)", add_days},
    {"$add", "DATE(INT64, DATE)", add_days},
    {"$subtract", "INT64(INT64, INT64)", subtract_int64},
    {"$subtract", "FLOAT64(FLOAT64, FLOAT64)", subtract_float64},
    {"$subtract", "DATE(DATE, INT64)", subtract_days},
    {"$multiply", "INT64(INT64, INT64)", multiply_int64},
    {"$multiply", "FLOAT64(FLOAT64, FLOAT64)", multiply_float64},
    {"$divide", "FLOAT64(FLOAT64, FLOAT64)", divide},
    {"$negate", "INT64(INT64)", negate_int64},
    {"$negate", "FLOAT32(FLOAT32)", negate_float},
    {"$negate", "FLOAT64(FLOAT64)", negate_float},
    {"$bit_not", "INT64(INT64)", bit_not_int64},
    {"$bit_not", "BYTES(BYTES)", bit_not_bytes},
    {"$bit_and", "INT64(INT64, INT64)", bit_and_int64},
    {"$bit_and", "BYTES(BYTES, BYTES)", bit_and_bytes},
    {"$bit_or", "INT64(INT64, INT64)", bit_or_int64},
    {"$bit_or", "BYTES(BYTES, BYTES)", bit_or_bytes},
    {"$bit_xor", "INT64(INT64, INT64)", bit_xor_int64},
    {"$bit_xor", "BYTES(BYTES, BYTES)", bit_xor_bytes},
    {"$shift_left", "INT64(INT64, INT64)", shift_left_int64},
    {"$shift_left", "BYTES(BYTES, INT64)", shift_left_bytes},
    {"$shift_right", "INT64(INT64, INT64)", shift_right_int64},
    {"$shift_right", "BYTES(BYTES, INT64)", shift_right_bytes},
    {"$concat", "STRING(STRING, STRING)", concat_texts},
    {"$concat", "BYTES(BYTES, BYTES)", concat_texts},
    {"$concat", "ARRAY<T>(ARRAY<T>, ARRAY<T>)", concat_arrays},
    {0},
};
