/* Functions on numbers. Those of angles are in functions_trigonometry.c. */
#include "sql/functions/function_tables.h"

#include <math.h>

/* --- errors --- */

static status int64_overflow(const char *function, int64_t a)
{
    return status_make(STATUS_OUT_OF_RANGE, "int64 overflow: %s(%lld)", function, (long long)a);
}

/* An infinity or a NaN that comes of finite numbers is an error. */
static status float_result(const char *function, double a, double b, double result,
                           struct sql_value *out)
{
    *out = sql_of_float64(result);
    if (isfinite(result) || !isfinite(a) || !isfinite(b))
        return status_ok();
    return status_make(STATUS_OUT_OF_RANGE, "Floating point error in function: %s(%g, %g)",
                       function, a, b);
}

static status float_result_of_one(const char *function, double a, double result,
                                  struct sql_value *out)
{
    *out = sql_of_float64(result);
    if (isfinite(result) || !isfinite(a))
        return status_ok();
    return status_make(STATUS_OUT_OF_RANGE, "Floating point error in function: %s(%g)", function,
                       a);
}

/* --- signs --- */

static status abs_int64(const struct sql_call *call, const struct sql_value *args, size_t count,
                        struct sql_value *out)
{
    (void)call, (void)count;
    if (args[0].int64 == INT64_MIN)
        return int64_overflow("ABS", args[0].int64);
    *out = sql_of_int64(args[0].int64 < 0 ? -args[0].int64 : args[0].int64);
    return status_ok();
}

static status abs_float(const struct sql_call *call, const struct sql_value *args, size_t count,
                        struct sql_value *out)
{
    (void)call, (void)count;
    *out = sql_of_float64(fabs(args[0].float64));
    return status_ok();
}

static status sign_int64(const struct sql_call *call, const struct sql_value *args, size_t count,
                         struct sql_value *out)
{
    (void)call, (void)count;
    *out = sql_of_int64((args[0].int64 > 0) - (args[0].int64 < 0));
    return status_ok();
}

static status sign_float(const struct sql_call *call, const struct sql_value *args, size_t count,
                         struct sql_value *out)
{
    (void)call, (void)count;
    double value = args[0].float64;
    *out = sql_of_float64(isnan(value) ? value : (value > 0) - (value < 0));
    return status_ok();
}

static status is_inf(const struct sql_call *call, const struct sql_value *args, size_t count,
                     struct sql_value *out)
{
    (void)call, (void)count;
    *out = sql_of_bool(isinf(args[0].float64));
    return status_ok();
}

static status is_nan(const struct sql_call *call, const struct sql_value *args, size_t count,
                     struct sql_value *out)
{
    (void)call, (void)count;
    *out = sql_of_bool(isnan(args[0].float64));
    return status_ok();
}

/* --- division --- */

/* By zero too: there are infinities, and NaN. Written so that no sanitizer takes it for a slip. */
static status ieee_divide(const struct sql_call *call, const struct sql_value *args, size_t count,
                          struct sql_value *out)
{
    (void)call, (void)count;
    double a = args[0].float64, b = args[1].float64;
    if (b != 0 || isnan(a) || a == 0)
        *out = sql_of_float64(b != 0 ? a / b : NAN);
    else
        *out = sql_of_float64(signbit(a) == signbit(b) ? INFINITY : -INFINITY);
    return status_ok();
}

static status div_int64(const struct sql_call *call, const struct sql_value *args, size_t count,
                        struct sql_value *out)
{
    (void)call, (void)count;
    int64_t a = args[0].int64, b = args[1].int64;
    if (b == 0)
        return status_make(STATUS_OUT_OF_RANGE, "division by zero: DIV");
    if (a == INT64_MIN && b == -1)
        return status_make(STATUS_OUT_OF_RANGE, "int64 overflow: %lld / %lld", (long long)a,
                           (long long)b);
    *out = sql_of_int64(a / b);
    return status_ok();
}

static status mod_int64(const struct sql_call *call, const struct sql_value *args, size_t count,
                        struct sql_value *out)
{
    (void)call, (void)count;
    int64_t a = args[0].int64, b = args[1].int64;
    if (b == 0)
        return status_make(STATUS_OUT_OF_RANGE, "division by zero: MOD");
    *out = sql_of_int64(b == -1 ? 0 : a % b); /* the least number by -1 would trap */
    return status_ok();
}

/* --- SAFE_ADD and the like: NULL instead of an error --- */

static status safe_add_int64(const struct sql_call *call, const struct sql_value *args,
                             size_t count, struct sql_value *out)
{
    (void)call, (void)count;
    int64_t result;
    bool overflows = __builtin_add_overflow(args[0].int64, args[1].int64, &result);
    *out = overflows ? sql_null() : sql_of_int64(result);
    return status_ok();
}

static status safe_subtract_int64(const struct sql_call *call, const struct sql_value *args,
                                  size_t count, struct sql_value *out)
{
    (void)call, (void)count;
    int64_t result;
    bool overflows = __builtin_sub_overflow(args[0].int64, args[1].int64, &result);
    *out = overflows ? sql_null() : sql_of_int64(result);
    return status_ok();
}

static status safe_multiply_int64(const struct sql_call *call, const struct sql_value *args,
                                  size_t count, struct sql_value *out)
{
    (void)call, (void)count;
    int64_t result;
    bool overflows = __builtin_mul_overflow(args[0].int64, args[1].int64, &result);
    *out = overflows ? sql_null() : sql_of_int64(result);
    return status_ok();
}

static status safe_negate_int64(const struct sql_call *call, const struct sql_value *args,
                                size_t count, struct sql_value *out)
{
    (void)call, (void)count;
    *out = args[0].int64 == INT64_MIN ? sql_null() : sql_of_int64(-args[0].int64);
    return status_ok();
}

static status safe_negate_float(const struct sql_call *call, const struct sql_value *args,
                                size_t count, struct sql_value *out)
{
    (void)call, (void)count;
    *out = sql_of_float64(-args[0].float64);
    return status_ok();
}

/* What is infinite or NaN though the numbers were finite becomes NULL. */
static status safe_float(const struct sql_value *args, double result, struct sql_value *out)
{
    bool is_wrong = !isfinite(result) && isfinite(args[0].float64) && isfinite(args[1].float64);
    *out = is_wrong ? sql_null() : sql_of_float64(result);
    return status_ok();
}

static status safe_add_float(const struct sql_call *call, const struct sql_value *args,
                             size_t count, struct sql_value *out)
{
    (void)call, (void)count;
    return safe_float(args, args[0].float64 + args[1].float64, out);
}

static status safe_subtract_float(const struct sql_call *call, const struct sql_value *args,
                                  size_t count, struct sql_value *out)
{
    (void)call, (void)count;
    return safe_float(args, args[0].float64 - args[1].float64, out);
}

static status safe_multiply_float(const struct sql_call *call, const struct sql_value *args,
                                  size_t count, struct sql_value *out)
{
    (void)call, (void)count;
    return safe_float(args, args[0].float64 * args[1].float64, out);
}

static status safe_divide(const struct sql_call *call, const struct sql_value *args, size_t count,
                          struct sql_value *out)
{
    (void)call, (void)count;
    if (args[1].float64 != 0)
        return safe_float(args, args[0].float64 / args[1].float64, out);
    *out = sql_null();
    return status_ok();
}

/* --- powers and logarithms --- */

static status square_root(const struct sql_call *call, const struct sql_value *args, size_t count,
                          struct sql_value *out)
{
    (void)call, (void)count;
    if (args[0].float64 < 0)
        return status_make(STATUS_OUT_OF_RANGE, "Argument to SQRT cannot be negative: %g",
                           args[0].float64);
    *out = sql_of_float64(sqrt(args[0].float64));
    return status_ok();
}

static status power(const struct sql_call *call, const struct sql_value *args, size_t count,
                    struct sql_value *out)
{
    (void)call, (void)count;
    double a = args[0].float64, b = args[1].float64;
    return float_result("POW", a, b, pow(a, b), out);
}

static status exponential(const struct sql_call *call, const struct sql_value *args, size_t count,
                          struct sql_value *out)
{
    (void)call, (void)count;
    return float_result_of_one("EXP", args[0].float64, exp(args[0].float64), out);
}

static status natural_logarithm(const struct sql_call *call, const struct sql_value *args,
                                size_t count, struct sql_value *out)
{
    (void)call, (void)count;
    return float_result_of_one("LN", args[0].float64, log(args[0].float64), out);
}

static status decimal_logarithm(const struct sql_call *call, const struct sql_value *args,
                                size_t count, struct sql_value *out)
{
    (void)call, (void)count;
    return float_result_of_one("LOG10", args[0].float64, log10(args[0].float64), out);
}

/* To an infinite base, and of infinity to one below 1, as the limits have it. */
static status logarithm(const struct sql_call *call, const struct sql_value *args, size_t count,
                        struct sql_value *out)
{
    (void)call;
    double a = args[0].float64, base = count > 1 ? args[1].float64 : M_E;
    if (count == 1)
        return float_result_of_one("LOG", a, log(a), out);
    bool has_one = isfinite(base) && base > 0 && base != 1;
    return float_result("LOG", a, base, has_one ? log(a) / log(base) : NAN, out);
}

const struct sql_function sql_math_functions[] = {
    {"ABS", "INT64(INT64)", abs_int64},
    {"ABS", "FLOAT32(FLOAT32)", abs_float},
    {"ABS", "FLOAT64(FLOAT64)", abs_float},
    {"SIGN", "INT64(INT64)", sign_int64},
    {"SIGN", "FLOAT32(FLOAT32)", sign_float},
    {"SIGN", "FLOAT64(FLOAT64)", sign_float},
    {"IS_INF", "BOOL(FLOAT64)", is_inf},
    {"IS_NAN", "BOOL(FLOAT64)", is_nan},
    {"IEEE_DIVIDE", "FLOAT64(FLOAT64, FLOAT64)", ieee_divide},
    {"DIV", "INT64(INT64, INT64)", div_int64},
    {"MOD", "INT64(INT64, INT64)", mod_int64},
    {"SAFE_ADD", "INT64(INT64, INT64)", safe_add_int64},
    {"SAFE_ADD", "FLOAT64(FLOAT64, FLOAT64)", safe_add_float},
    {"SAFE_SUBTRACT", "INT64(INT64, INT64)", safe_subtract_int64},
    {"SAFE_SUBTRACT", "FLOAT64(FLOAT64, FLOAT64)", safe_subtract_float},
    {"SAFE_MULTIPLY", "INT64(INT64, INT64)", safe_multiply_int64},
    {"SAFE_MULTIPLY", "FLOAT64(FLOAT64, FLOAT64)", safe_multiply_float},
    {"SAFE_DIVIDE", "FLOAT64(FLOAT64, FLOAT64)", safe_divide},
    {"SAFE_NEGATE", "INT64(INT64)", safe_negate_int64},
    {"SAFE_NEGATE", "FLOAT32(FLOAT32)", safe_negate_float},
    {"SAFE_NEGATE", "FLOAT64(FLOAT64)", safe_negate_float},
    {"SQRT", "FLOAT64(FLOAT64)", square_root},
    {"POW", "FLOAT64(FLOAT64, FLOAT64)", power},
    {"POWER", "FLOAT64(FLOAT64, FLOAT64)", power},
    {"EXP", "FLOAT64(FLOAT64)", exponential},
    {"LN", "FLOAT64(FLOAT64)", natural_logarithm},
    {"LOG", "FLOAT64(FLOAT64, [FLOAT64])", logarithm},
    {"LOG10", "FLOAT64(FLOAT64)", decimal_logarithm},
    {0},
};
