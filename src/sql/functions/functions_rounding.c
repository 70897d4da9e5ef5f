/* Numbers rounded, the greatest and the least of several, and random ones. */
#include "sql/functions/function_tables.h"

#include <math.h>

/* --- to whole numbers --- */

static status ceiling(const struct sql_call *call, const struct sql_value *args, size_t count,
                      struct sql_value *out)
{
    (void)call, (void)count;
    *out = sql_of_float64(ceil(args[0].float64));
    return status_ok();
}

static status floor_(const struct sql_call *call, const struct sql_value *args, size_t count,
                     struct sql_value *out)
{
    (void)call, (void)count;
    *out = sql_of_float64(floor(args[0].float64));
    return status_ok();
}

/* --- to so many digits --- */

/* Beyond these, a double has no digits, or is nothing but digits before them. */
enum { MOST_DIGITS = 323, MOST_ZEROS = 309 };

/* What is rounded is the double next to the product, so that 2.675 to two digits is 2.68, though
 * in binary it is a bit less. The unit is of the wider type, where 10^27 is still exact, and so the
 * result is the double that is next to the decimal number. */
static double round_digits(double value, int64_t digits, double rounded(double))
{
    if (!isfinite(value) || digits > MOST_DIGITS)
        return value;
    if (digits < -MOST_ZEROS)
        return 0;
    long double unit = powl(10, (long double)(digits < 0 ? -digits : digits));
    if (digits < 0)
        return (double)((long double)rounded((double)(value / unit)) * unit);
    double shifted = (double)(value * unit);
    bool is_whole = fabs(shifted) >= 0x1p53;
    return is_whole ? value : (double)((long double)rounded(shifted) / unit);
}

static status round_result(const char *function, double value, double result, struct sql_value *out)
{
    *out = sql_of_float64(result);
    if (isfinite(result) || !isfinite(value))
        return status_ok();
    return status_make(STATUS_OUT_OF_RANGE, "Floating point overflow in function: %s(%g)", function,
                       value);
}

static status round_(const struct sql_call *call, const struct sql_value *args, size_t count,
                     struct sql_value *out)
{
    (void)call;
    double value = args[0].float64;
    int64_t digits = count > 1 ? args[1].int64 : 0;
    return round_result("ROUND", value, round_digits(value, digits, round), out);
}

static status trunc_(const struct sql_call *call, const struct sql_value *args, size_t count,
                     struct sql_value *out)
{
    (void)call;
    double value = args[0].float64;
    int64_t digits = count > 1 ? args[1].int64 : 0;
    return round_result("TRUNC", value, round_digits(value, digits, trunc), out);
}

/* --- the greatest and the least --- */

static bool is_nan(const struct sql_type *type, const struct sql_value *value)
{
    return sql_is_float(type) && isnan(value->float64);
}

/* A NaN wins over all. */
static status choose(const struct sql_call *call, const struct sql_value *args, size_t count,
                     int sign, struct sql_value *out)
{
    const struct sql_type *type = call->type;
    *out = args[0];
    for (size_t i = 1; i < count && !is_nan(type, out); i++)
        if (is_nan(type, &args[i]) || sign * sql_value_compare(type, &args[i], out) > 0)
            *out = args[i];
    return status_ok();
}

static status greatest(const struct sql_call *call, const struct sql_value *args, size_t count,
                       struct sql_value *out)
{
    return choose(call, args, count, 1, out);
}

static status least(const struct sql_call *call, const struct sql_value *args, size_t count,
                    struct sql_value *out)
{
    return choose(call, args, count, -1, out);
}

/* --- RAND --- */

/* SplitMix64: a counter, well mixed; the upper 53 bits are a double's. */
static status rand_(const struct sql_call *call, const struct sql_value *args, size_t count,
                    struct sql_value *out)
{
    (void)args, (void)count;
    uint64_t x = call->session->random += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    *out = sql_of_float64((double)((x ^ x >> 31) >> 11) * 0x1p-53);
    return status_ok();
}

const struct sql_function sql_rounding_functions[] = {
    {"CEIL", "FLOAT64(FLOAT64)", ceiling},
    {"CEILING", "FLOAT64(FLOAT64)", ceiling},
    {"FLOOR", "FLOAT64(FLOAT64)", floor_},
    {"ROUND", "FLOAT64(FLOAT64, [INT64])", round_},
    {"TRUNC", "FLOAT64(FLOAT64, [INT64])", trunc_},
    {"GREATEST", "T(T:orderable...)", greatest},
    {"LEAST", "T(T:orderable...)", least},
    {"RAND", "FLOAT64()", rand_, SQL_VOLATILE},
    {0},
};
