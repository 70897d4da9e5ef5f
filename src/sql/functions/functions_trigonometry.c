/* Functions of angles. What is finite must come to something finite, else it is an error. */
#include "sql/functions/function_tables.h"

#include <math.h>

static status check(const char *function, double x, double of(double), struct sql_value *out)
{
    double result = of(x);
    *out = sql_of_float64(result);
    if (isfinite(result) || !isfinite(x))
        return status_ok();
    const char *what = isinf(result) ? "overflow" : "error";
    return status_make(STATUS_OUT_OF_RANGE, "Floating point %s in function: %s(%g)", what, function,
                       x);
}

/* Of what goes beyond all bounds at 0. */
static status check_zero(const char *function, double x, double of(double), struct sql_value *out)
{
    if (x == 0)
        return status_make(STATUS_OUT_OF_RANGE, "Floating point error in function: %s(%g)",
                           function, x);
    return check(function, x, of, out);
}

static double secant(double x)
{
    return 1 / cos(x);
}

static double hyperbolic_secant(double x)
{
    return 1 / cosh(x);
}

static double cosecant(double x)
{
    return 1 / sin(x);
}

static double hyperbolic_cosecant(double x)
{
    return 1 / sinh(x);
}

static double cotangent(double x)
{
    return 1 / tan(x);
}

static double hyperbolic_cotangent(double x)
{
    return 1 / tanh(x);
}

/* A row's function: NAME(x) by `of`, checked by `checked`. */
#define FUNCTION(symbol, NAME, of, checked)                                                        \
    static status symbol(const struct sql_call *call, const struct sql_value *args, size_t count,  \
                         struct sql_value *out)                                                    \
    {                                                                                              \
        (void)call, (void)count;                                                                   \
        return checked(NAME, args[0].float64, of, out);                                            \
    }

FUNCTION(cos_, "COS", cos, check)
FUNCTION(cosh_, "COSH", cosh, check)
FUNCTION(acos_, "ACOS", acos, check)
FUNCTION(acosh_, "ACOSH", acosh, check)
FUNCTION(sin_, "SIN", sin, check)
FUNCTION(sinh_, "SINH", sinh, check)
FUNCTION(asin_, "ASIN", asin, check)
FUNCTION(asinh_, "ASINH", asinh, check)
FUNCTION(tan_, "TAN", tan, check)
FUNCTION(tanh_, "TANH", tanh, check)
FUNCTION(atan_, "ATAN", atan, check)
FUNCTION(atanh_, "ATANH", atanh, check)
FUNCTION(sec_, "SEC", secant, check)
FUNCTION(sech_, "SECH", hyperbolic_secant, check)
FUNCTION(csc_, "CSC", cosecant, check_zero)
FUNCTION(csch_, "CSCH", hyperbolic_cosecant, check_zero)
FUNCTION(cot_, "COT", cotangent, check_zero)
FUNCTION(coth_, "COTH", hyperbolic_cotangent, check_zero)

static status atan2_(const struct sql_call *call, const struct sql_value *args, size_t count,
                     struct sql_value *out)
{
    (void)call, (void)count;
    *out = sql_of_float64(atan2(args[0].float64, args[1].float64));
    return status_ok();
}

const struct sql_function sql_trigonometry_functions[] = {
    {"COS", "FLOAT64(FLOAT64)", cos_},
    {"COSH", "FLOAT64(FLOAT64)", cosh_},
    {"ACOS", "FLOAT64(FLOAT64)", acos_},
    {"ACOSH", "FLOAT64(FLOAT64)", acosh_},
    {"SIN", "FLOAT64(FLOAT64)", sin_},
    {"SINH", "FLOAT64(FLOAT64)", sinh_},
    {"ASIN", "FLOAT64(FLOAT64)", asin_},
    {"ASINH", "FLOAT64(FLOAT64)", asinh_},
    {"TAN", "FLOAT64(FLOAT64)", tan_},
    {"TANH", "FLOAT64(FLOAT64)", tanh_},
    {"ATAN", "FLOAT64(FLOAT64)", atan_},
    {"ATANH", "FLOAT64(FLOAT64)", atanh_},
    {"SEC", "FLOAT64(FLOAT64)", sec_},
    {"SECH", "FLOAT64(FLOAT64)", sech_},
    {"CSC", "FLOAT64(FLOAT64)", csc_},
    {"CSCH", "FLOAT64(FLOAT64)", csch_},
    {"COT", "FLOAT64(FLOAT64)", cot_},
    {"COTH", "FLOAT64(FLOAT64)", coth_},
    {"ATAN2", "FLOAT64(FLOAT64, FLOAT64)", atan2_},
    {0},
};
