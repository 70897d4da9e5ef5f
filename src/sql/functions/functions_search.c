/* Arrays: looking for values, by equality or by a lambda; and making arrays by lambdas. */
#include "sql/functions/function_tables.h"
#include "sql/work.h"

/* --- whether an element is what is looked for --- */

/* A NULL is never equal. */
static bool is_equal(const struct sql_type *type, const struct sql_value *a,
                     const struct sql_value *b)
{
    struct sql_value equal = sql_value_equals(type, a, b);
    return !equal.is_null && equal.boolean;
}

typedef status matcher(const struct sql_call *call, const struct sql_value *args, size_t index,
                       bool *matches);

/* The element is args[1]. */
static status match_value(const struct sql_call *call, const struct sql_value *args, size_t index,
                          bool *matches)
{
    *matches = is_equal(call->types[0]->element, &args[0].items[index], &args[1]);
    return sql_count(call->session, 1 + args[1].weight / SQL_WEIGHT_A_STEP);
}

/* The lambda, of the element and its offset, is TRUE. */
static status match_lambda(const struct sql_call *call, const struct sql_value *args, size_t index,
                           bool *matches)
{
    const struct sql_value of[2] = {args[0].items[index], sql_of_int64((int64_t)index)};
    struct sql_value result;
    TRY(call->apply(call, of, &result));
    *matches = !result.is_null && result.boolean;
    return status_ok();
}

/* --- ARRAY_INCLUDES --- */

static status includes(const struct sql_call *call, const struct sql_value *args, matcher *match,
                       struct sql_value *out)
{
    bool matches = false;
    for (size_t i = 0; i < args[0].count && !matches; i++)
        TRY(match(call, args, i, &matches));
    *out = sql_of_bool(matches);
    return status_ok();
}

static status includes_value(const struct sql_call *call, const struct sql_value *args,
                             size_t count, struct sql_value *out)
{
    (void)count;
    return includes(call, args, match_value, out);
}

static status includes_lambda(const struct sql_call *call, const struct sql_value *args,
                              size_t count, struct sql_value *out)
{
    (void)count;
    return includes(call, args, match_lambda, out);
}

/* Whether any of the second array, or all, are in the first: `is_any` is what one find decides. */
static status includes_several(const struct sql_call *call, const struct sql_value *args,
                               bool is_any, struct sql_value *out)
{
    *out = sql_of_bool(!is_any);
    for (size_t i = 0; i < args[1].count && out->boolean != is_any; i++) {
        struct sql_value pair[2] = {args[0], args[1].items[i]}, one;
        TRY(includes(call, pair, match_value, &one));
        if (one.boolean == is_any)
            *out = one;
    }
    return status_ok();
}

static status includes_any(const struct sql_call *call, const struct sql_value *args, size_t count,
                           struct sql_value *out)
{
    (void)count;
    return includes_several(call, args, true, out);
}

static status includes_all(const struct sql_call *call, const struct sql_value *args, size_t count,
                           struct sql_value *out)
{
    (void)count;
    return includes_several(call, args, false, out);
}

/* --- ARRAY_OFFSET --- */

static status read_mode(const struct sql_value *args, size_t count, bool *is_last)
{
    *is_last = count > 2 && bytes_equal(args[2].text, bytes_of("LAST"));
    if (count <= 2 || *is_last || bytes_equal(args[2].text, bytes_of("FIRST")))
        return status_ok();
    return status_make(STATUS_OUT_OF_RANGE, "Invalid mode of ARRAY_OFFSET: it is FIRST or LAST");
}

static status offset(const struct sql_call *call, const struct sql_value *args, size_t count,
                     matcher *match, struct sql_value *out)
{
    bool is_last, matches = false;
    TRY(read_mode(args, count, &is_last));
    *out = sql_null();
    for (size_t i = 0; i < args[0].count && !matches; i++) {
        size_t index = is_last ? args[0].count - 1 - i : i;
        TRY(match(call, args, index, &matches));
        if (matches)
            *out = sql_of_int64((int64_t)index);
    }
    return status_ok();
}

static status offset_of_value(const struct sql_call *call, const struct sql_value *args,
                              size_t count, struct sql_value *out)
{
    return offset(call, args, count, match_value, out);
}

static status offset_of_lambda(const struct sql_call *call, const struct sql_value *args,
                               size_t count, struct sql_value *out)
{
    return offset(call, args, count, match_lambda, out);
}

/* --- arrays of what was found --- */

/* The elements that match, or, `as_offsets`, where they are. */
static status keep_matches(const struct sql_call *call, const struct sql_value *args,
                           matcher *match, bool as_offsets, struct sql_value *out)
{
    size_t kept = 0;
    struct sql_value *items = sql_items_alloc(call->arena, args[0].count);
    if (items == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < args[0].count; i++) {
        bool matches;
        TRY(match(call, args, i, &matches));
        if (matches)
            items[kept++] = as_offsets ? sql_of_int64((int64_t)i) : args[0].items[i];
    }
    *out = sql_of_items(items, kept);
    return status_ok();
}

static status offsets_of_value(const struct sql_call *call, const struct sql_value *args,
                               size_t count, struct sql_value *out)
{
    (void)count;
    return keep_matches(call, args, match_value, true, out);
}

static status offsets_of_lambda(const struct sql_call *call, const struct sql_value *args,
                                size_t count, struct sql_value *out)
{
    (void)count;
    return keep_matches(call, args, match_lambda, true, out);
}

static status filter(const struct sql_call *call, const struct sql_value *args, size_t count,
                     struct sql_value *out)
{
    (void)count;
    return keep_matches(call, args, match_lambda, false, out);
}

static status transform(const struct sql_call *call, const struct sql_value *args, size_t count,
                        struct sql_value *out)
{
    (void)count;
    struct sql_value *items = sql_items_alloc(call->arena, args[0].count);
    if (items == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < args[0].count; i++) {
        const struct sql_value of[2] = {args[0].items[i], sql_of_int64((int64_t)i)};
        TRY(call->apply(call, of, &items[i]));
    }
    *out = sql_of_items(items, args[0].count);
    return status_ok();
}

/* --- ARRAY_IS_DISTINCT: as GROUP BY has it, so that two NULLs are the same --- */

static int compare(const void *a, const void *b, void *type)
{
    return sql_value_compare(type, a, b);
}

static status is_distinct(const struct sql_call *call, const struct sql_value *args, size_t count,
                          struct sql_value *out)
{
    (void)count;
    const struct sql_type *type = call->types[0]->element;
    size_t length = args[0].count;
    struct sql_value *sorted = sql_items_alloc(call->arena, length);
    if (sorted == NULL)
        return status_out_of_memory();
    *out = sql_of_bool(true);
    if (length == 0)
        return status_ok();
    memcpy(sorted, args[0].items, length * sizeof *sorted);
    TRY(sql_sort(sorted, length, sizeof *sorted, compare, (void *)(uintptr_t)type, call->session));
    for (size_t i = 1; i < length && out->boolean; i++)
        out->boolean = sql_value_compare(type, &sorted[i - 1], &sorted[i]) != 0;
    return status_ok();
}

const struct sql_function sql_search_functions[] = {
    {"ARRAY_INCLUDES", "BOOL(ARRAY<T>, T:equality)", includes_value},
    {"ARRAY_INCLUDES", "BOOL(ARRAY<T>, (T) -> BOOL)", includes_lambda},
    {"ARRAY_INCLUDES_ANY", "BOOL(ARRAY<T:equality>, ARRAY<T>)", includes_any},
    {"ARRAY_INCLUDES_ALL", "BOOL(ARRAY<T:equality>, ARRAY<T>)", includes_all},
    {"ARRAY_OFFSET", "INT64(ARRAY<T>, T:equality, [STRING])", offset_of_value},
    {"ARRAY_OFFSET", "INT64(ARRAY<T>, (T) -> BOOL, [STRING])", offset_of_lambda},
    {"ARRAY_OFFSETS", "ARRAY<INT64>(ARRAY<T>, T:equality)", offsets_of_value},
    {"ARRAY_OFFSETS", "ARRAY<INT64>(ARRAY<T>, (T) -> BOOL)", offsets_of_lambda},
    {"ARRAY_FILTER", "ARRAY<T>(ARRAY<T>, (T) -> BOOL)", filter},
    {"ARRAY_FILTER", "ARRAY<T>(ARRAY<T>, (T, INT64) -> BOOL)", filter},
    {"ARRAY_TRANSFORM", "ARRAY<U>(ARRAY<T>, (T) -> U:element)", transform},
    {"ARRAY_TRANSFORM", "ARRAY<U>(ARRAY<T>, (T, INT64) -> U:element)", transform},
    {"ARRAY_IS_DISTINCT", "BOOL(ARRAY<T:groupable>)", is_distinct},
    {0},
};
