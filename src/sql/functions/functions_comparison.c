/* Operators that compare, and what goes with them. NULL compared is NULL. */
#include "base/utf8.h"
#include "sql/functions/function_tables.h"
#include "sql/functions/like.h"

#include <math.h>

/* --- = and < --- */

static status equal(const struct sql_call *call, const struct sql_value *args, size_t count,
                    struct sql_value *out)
{
    (void)count;
    *out = sql_value_equals(call->types[0], &args[0], &args[1]);
    return status_ok();
}

static struct sql_value negated(struct sql_value value)
{
    return value.is_null ? value : sql_of_bool(!value.boolean);
}

static status not_equal(const struct sql_call *call, const struct sql_value *args, size_t count,
                        struct sql_value *out)
{
    (void)count;
    *out = negated(sql_value_equals(call->types[0], &args[0], &args[1]));
    return status_ok();
}

/* NaN is neither less nor greater, nor equal. */
static bool is_nan(const struct sql_call *call, const struct sql_value *args)
{
    return sql_is_float(call->types[0]) && (isnan(args[0].float64) || isnan(args[1].float64));
}

static status less(const struct sql_call *call, const struct sql_value *args, size_t count,
                   struct sql_value *out)
{
    (void)count;
    *out =
        sql_of_bool(!is_nan(call, args) && sql_value_order(call->types[0], &args[0], &args[1]) < 0);
    return status_ok();
}

static status less_equal(const struct sql_call *call, const struct sql_value *args, size_t count,
                         struct sql_value *out)
{
    (void)count;
    *out = sql_of_bool(!is_nan(call, args) &&
                       sql_value_order(call->types[0], &args[0], &args[1]) <= 0);
    return status_ok();
}

static status greater(const struct sql_call *call, const struct sql_value *args, size_t count,
                      struct sql_value *out)
{
    (void)count;
    *out =
        sql_of_bool(!is_nan(call, args) && sql_value_order(call->types[0], &args[0], &args[1]) > 0);
    return status_ok();
}

static status greater_equal(const struct sql_call *call, const struct sql_value *args, size_t count,
                            struct sql_value *out)
{
    (void)count;
    *out = sql_of_bool(!is_nan(call, args) &&
                       sql_value_order(call->types[0], &args[0], &args[1]) >= 0);
    return status_ok();
}

/* x BETWEEN a AND b is a <= x AND x <= b, with AND's logic. */
static status between(const struct sql_call *call, const struct sql_value *args, size_t count,
                      struct sql_value *out)
{
    const struct sql_value low[2] = {args[1], args[0]};
    const struct sql_value high[2] = {args[0], args[2]};
    struct sql_value above = sql_null(), below = sql_null();
    if (!low[0].is_null && !low[1].is_null)
        TRY(less_equal(call, low, count, &above));
    if (!high[0].is_null && !high[1].is_null)
        TRY(less_equal(call, high, count, &below));
    bool is_outside = (!above.is_null && !above.boolean) || (!below.is_null && !below.boolean);
    bool is_unknown = above.is_null || below.is_null;
    *out = is_outside ? sql_of_bool(false) : is_unknown ? sql_null() : sql_of_bool(true);
    return status_ok();
}

static status is_distinct(const struct sql_call *call, const struct sql_value *args, size_t count,
                          struct sql_value *out)
{
    (void)count;
    *out = sql_of_bool(sql_value_compare(call->types[0], &args[0], &args[1]) != 0);
    return status_ok();
}

static status nullif(const struct sql_call *call, const struct sql_value *args, size_t count,
                     struct sql_value *out)
{
    (void)count;
    struct sql_value same = sql_value_equals(call->types[0], &args[0], &args[1]);
    *out = !same.is_null && same.boolean ? sql_null() : args[0];
    return status_ok();
}

/* --- IN --- */

/* TRUE if any is equal; else NULL if any, or `x`, is NULL. */
static struct sql_value is_among(const struct sql_type *type, const struct sql_value *x,
                                 const struct sql_value *items, size_t count)
{
    struct sql_value result = sql_of_bool(false);
    for (size_t i = 0; i < count; i++) {
        struct sql_value same = sql_value_equals(type, x, &items[i]);
        if (same.is_null)
            result = same;
        else if (same.boolean)
            return same;
    }
    return result;
}

static status in_list(const struct sql_call *call, const struct sql_value *args, size_t count,
                      struct sql_value *out)
{
    *out = is_among(call->types[0], &args[0], args + 1, count - 1);
    return status_ok();
}

/* Nothing is in an array that is empty, or NULL. */
static status in_array(const struct sql_call *call, const struct sql_value *args, size_t count,
                       struct sql_value *out)
{
    (void)count;
    *out = args[1].is_null ? sql_of_bool(false)
                           : is_among(call->types[0], &args[0], args[1].items, args[1].count);
    return status_ok();
}

/* --- logic --- */

static status not_(const struct sql_call *call, const struct sql_value *args, size_t count,
                   struct sql_value *out)
{
    (void)call, (void)count;
    *out = sql_of_bool(!args[0].boolean);
    return status_ok();
}

static status is_null(const struct sql_call *call, const struct sql_value *args, size_t count,
                      struct sql_value *out)
{
    (void)call, (void)count;
    *out = sql_of_bool(args[0].is_null);
    return status_ok();
}

static status is_true(const struct sql_call *call, const struct sql_value *args, size_t count,
                      struct sql_value *out)
{
    (void)call, (void)count;
    *out = sql_of_bool(!args[0].is_null && args[0].boolean);
    return status_ok();
}

static status is_false(const struct sql_call *call, const struct sql_value *args, size_t count,
                       struct sql_value *out)
{
    (void)call, (void)count;
    *out = sql_of_bool(!args[0].is_null && !args[0].boolean);
    return status_ok();
}

/* --- LIKE --- */

static status like(const struct sql_call *call, const struct sql_value *args, size_t count,
                   struct sql_value *out)
{
    (void)count;
    bool matches;
    TRY(like_matches(call->session, args[0].text, args[1].text, call->types[0]->kind == SQL_STRING,
                     &matches));
    *out = sql_of_bool(matches);
    return status_ok();
}

/* Of several patterns: any, or all, as IN or AND would have it. */
static status like_several(const struct sql_call *call, const struct sql_value *args, size_t count,
                           bool is_any, struct sql_value *out)
{
    struct sql_value result = sql_of_bool(!is_any);
    for (size_t i = 1; i < count; i++) {
        const struct sql_value pair[2] = {args[0], args[i]};
        struct sql_value one = sql_null();
        if (!pair[0].is_null && !pair[1].is_null)
            TRY(like(call, pair, 2, &one));
        if (one.is_null)
            result = one;
        else if (one.boolean == is_any) {
            *out = one;
            return status_ok();
        }
    }
    *out = result;
    return status_ok();
}

static status like_any(const struct sql_call *call, const struct sql_value *args, size_t count,
                       struct sql_value *out)
{
    return like_several(call, args, count, true, out);
}

static status like_all(const struct sql_call *call, const struct sql_value *args, size_t count,
                       struct sql_value *out)
{
    return like_several(call, args, count, false, out);
}

const struct sql_function sql_comparison_functions[] = {
    {"$equal", "BOOL(T:equality, T)", equal},
    {"$not_equal", "BOOL(T:equality, T)", not_equal},
    {"$less", "BOOL(T:order, T)", less},
    {"$less_equal", "BOOL(T:order, T)", less_equal},
    {"$greater", "BOOL(T:order, T)", greater},
    {"$greater_equal", "BOOL(T:order, T)", greater_equal},
    {"$between", "BOOL(T:order, T, T)", between, SQL_TAKES_NULLS},
    {"$is_distinct", "BOOL(T:equality, T)", is_distinct, SQL_TAKES_NULLS},
    {"NULLIF", "T(T:equality, T)", nullif, SQL_TAKES_NULLS},
    {"$in", "BOOL(T:equality, T...)", in_list, SQL_TAKES_NULLS},
    {"$in_array", "BOOL(T:equality, ARRAY<T>)", in_array, SQL_TAKES_NULLS},
    {"$not", "BOOL(BOOL)", not_},
    {"$is_null", "BOOL(T)", is_null, SQL_TAKES_NULLS | SQL_LOOKS_UP},
    {"$is_unknown", "BOOL(BOOL)", is_null, SQL_TAKES_NULLS | SQL_LOOKS_UP},
    {"$is_true", "BOOL(BOOL)", is_true, SQL_TAKES_NULLS},
    {"$is_false", "BOOL(BOOL)", is_false, SQL_TAKES_NULLS},
    {"$like", "BOOL(STRING, STRING)", like},
    {"$like", "BOOL(BYTES, BYTES)", like},
    {"$like_any", "BOOL(STRING, STRING...)", like_any, SQL_TAKES_NULLS},
    {"$like_any", "BOOL(BYTES, BYTES...)", like_any, SQL_TAKES_NULLS},
    {"$like_all", "BOOL(STRING, STRING...)", like_all, SQL_TAKES_NULLS},
    {"$like_all", "BOOL(BYTES, BYTES...)", like_all, SQL_TAKES_NULLS},
    {0},
};
