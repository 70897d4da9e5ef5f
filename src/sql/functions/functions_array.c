/* Arrays: their parts, their joining, and arrays of numbers in steps. Those that look for values
 * are in functions_search.c. */
#include "sql/functions/function_tables.h"

#include <math.h>

/* --- length, first and last --- */

static status array_length(const struct sql_call *call, const struct sql_value *args, size_t count,
                           struct sql_value *out)
{
    (void)call, (void)count;
    *out = sql_of_int64((int64_t)args[0].count);
    return status_ok();
}

static status array_first(const struct sql_call *call, const struct sql_value *args, size_t count,
                          struct sql_value *out)
{
    (void)call, (void)count;
    if (args[0].count == 0)
        return status_make(STATUS_OUT_OF_RANGE,
                           "ARRAY_FIRST cannot get the first element of an empty array");
    *out = args[0].items[0];
    return status_ok();
}

static status array_last(const struct sql_call *call, const struct sql_value *args, size_t count,
                         struct sql_value *out)
{
    (void)call, (void)count;
    if (args[0].count == 0)
        return status_make(STATUS_OUT_OF_RANGE,
                           "ARRAY_LAST cannot get the last element of an empty array");
    *out = args[0].items[args[0].count - 1];
    return status_ok();
}

/* How many of the array's elements `n` are, at most all. */
static status count_of_n(const struct sql_value *array, int64_t n, const char *function,
                         size_t *out)
{
    *out = n < (int64_t)array->count ? (size_t)n : array->count;
    if (n >= 0)
        return status_ok();
    return status_make(STATUS_OUT_OF_RANGE, "The n argument to %s must not be negative.", function);
}

static status array_first_n(const struct sql_call *call, const struct sql_value *args, size_t count,
                            struct sql_value *out)
{
    (void)call, (void)count;
    size_t n;
    TRY(count_of_n(&args[0], args[1].int64, "ARRAY_FIRST_N", &n));
    *out = sql_of_items(args[0].items, n);
    return status_ok();
}

static status array_last_n(const struct sql_call *call, const struct sql_value *args, size_t count,
                           struct sql_value *out)
{
    (void)call, (void)count;
    size_t n;
    TRY(count_of_n(&args[0], args[1].int64, "ARRAY_LAST_N", &n));
    *out = n == 0 ? sql_of_items(NULL, 0) : sql_of_items(args[0].items + (args[0].count - n), n);
    return status_ok();
}

/* Both ends belong to it; what is negative counts from the end; what lies outside is cut off. */
static status array_slice(const struct sql_call *call, const struct sql_value *args, size_t count,
                          struct sql_value *out)
{
    (void)call, (void)count;
    int64_t length = (int64_t)args[0].count;
    int64_t from = args[1].int64 < 0 ? args[1].int64 + length : args[1].int64;
    int64_t to = args[2].int64 < 0 ? args[2].int64 + length : args[2].int64;
    from = from < 0 ? 0 : from;
    to = to >= length ? length - 1 : to;
    *out = from > to ? sql_of_items(NULL, 0)
                     : sql_of_items(args[0].items + from, (size_t)(to - from + 1));
    return status_ok();
}

static status array_reverse(const struct sql_call *call, const struct sql_value *args, size_t count,
                            struct sql_value *out)
{
    (void)count;
    size_t length = args[0].count;
    struct sql_value *items = sql_items_alloc(call->arena, length);
    if (items == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < length; i++)
        items[i] = args[0].items[length - 1 - i];
    *out = sql_of_items(items, length);
    return status_ok();
}

/* --- joining --- */

static status array_concat(const struct sql_call *call, const struct sql_value *args, size_t count,
                           struct sql_value *out)
{
    size_t length = 0;
    for (size_t i = 0; i < count; i++)
        length += args[i].count;
    struct sql_value *items = sql_items_alloc(call->arena, length);
    if (items == NULL)
        return status_out_of_memory();
    struct sql_value *to = items;
    for (size_t i = 0; i < count; i++) {
        if (args[i].count > 0)
            memcpy(to, args[i].items, args[i].count * sizeof *to);
        to += args[i].count;
    }
    *out = sql_of_items(items, length);
    return status_ok();
}

static uint8_t *write_text(uint8_t *at, bytes text)
{
    if (text.size > 0)
        memcpy(at, text.data, text.size);
    return at + text.size;
}

/* NULLs are left out, unless there is a text for them. */
static status array_to_string(const struct sql_call *call, const struct sql_value *args,
                              size_t count, struct sql_value *out)
{
    const struct sql_value *array = &args[0];
    bytes delimiter = args[1].text;
    const struct sql_value *null_text = count > 2 ? &args[2] : NULL;
    size_t size = 0;
    for (size_t i = 0; i < array->count; i++) {
        const struct sql_value *item = array->items[i].is_null ? null_text : &array->items[i];
        size += item == NULL ? 0 : delimiter.size + item->text.size;
    }
    uint8_t *joined = arena_alloc(call->arena, size);
    if (joined == NULL)
        return status_out_of_memory();
    uint8_t *at = joined;
    bool has_any = false;
    for (size_t i = 0; i < array->count; i++) {
        const struct sql_value *item = array->items[i].is_null ? null_text : &array->items[i];
        if (item == NULL)
            continue;
        at = write_text(write_text(at, has_any ? delimiter : bytes_make(NULL, 0)), item->text);
        has_any = true;
    }
    *out = sql_of_text(bytes_make(joined, (size_t)(at - joined)));
    return status_ok();
}

/* --- GENERATE_ARRAY --- */

static status too_long(uint64_t count)
{
    return status_make(STATUS_RESOURCE_EXHAUSTED,
                       "GENERATE_ARRAY would have %llu elements, more than memory allows",
                       (unsigned long long)count);
}

/* All but its number of elements is in unsigned numbers, which have room for any distance. */
static status generate_int64(const struct sql_call *call, const struct sql_value *args,
                             size_t count, struct sql_value *out)
{
    int64_t from = args[0].int64, to = args[1].int64, step = count > 2 ? args[2].int64 : 1;
    if (step == 0)
        return status_make(STATUS_OUT_OF_RANGE, "Sequence step cannot be 0.");
    *out = sql_of_items(NULL, 0);
    if (step > 0 ? from > to : from < to)
        return status_ok();
    uint64_t distance = step > 0 ? (uint64_t)to - (uint64_t)from : (uint64_t)from - (uint64_t)to;
    uint64_t steps = distance / (step > 0 ? (uint64_t)step : -(uint64_t)step);
    struct sql_value *items = steps == UINT64_MAX ? NULL : sql_items_alloc(call->arena, steps + 1);
    if (items == NULL)
        return too_long(steps == UINT64_MAX ? steps : steps + 1);
    for (uint64_t i = 0; i <= steps; i++)
        items[i] = sql_of_int64((int64_t)((uint64_t)from + i * (uint64_t)step));
    *out = sql_of_items(items, (size_t)steps + 1);
    return status_ok();
}

/* Each element is computed from the first: errors do not add up. A NaN makes no array. */
static status generate_float64(const struct sql_call *call, const struct sql_value *args,
                               size_t count, struct sql_value *out)
{
    double from = args[0].float64, to = args[1].float64, step = count > 2 ? args[2].float64 : 1;
    if (step == 0)
        return status_make(STATUS_OUT_OF_RANGE, "Sequence step cannot be 0.");
    *out = isnan(from) || isnan(to) || isnan(step) ? sql_null() : sql_of_items(NULL, 0);
    if (out->is_null || (step > 0 ? from > to : from < to))
        return status_ok();
    double steps = isinf(step) ? 0 : floor((to - from) / step);
    bool is_endless = !(steps < (double)(SIZE_MAX / 2));
    struct sql_value *items = is_endless ? NULL : sql_items_alloc(call->arena, (uint64_t)steps + 1);
    if (items == NULL)
        return too_long(is_endless ? UINT64_MAX : (uint64_t)steps + 1);
    for (uint64_t i = 0; i <= (uint64_t)steps; i++)
        items[i] = sql_of_float64(i == 0 ? from : from + (double)i * step);
    *out = sql_of_items(items, (size_t)steps + 1);
    return status_ok();
}

const struct sql_function sql_array_functions[] = {
    {"ARRAY_LENGTH", "INT64(ARRAY<T>)", array_length, SQL_LOOKS_UP},
    {"ARRAY_FIRST", "T(ARRAY<T>)", array_first, SQL_LOOKS_UP},
    {"ARRAY_LAST", "T(ARRAY<T>)", array_last, SQL_LOOKS_UP},
    {"ARRAY_FIRST_N", "ARRAY<T>(ARRAY<T>, INT64)", array_first_n},
    {"ARRAY_LAST_N", "ARRAY<T>(ARRAY<T>, INT64)", array_last_n},
    {"ARRAY_SLICE", "ARRAY<T>(ARRAY<T>, INT64, INT64)", array_slice},
    {"ARRAY_REVERSE", "ARRAY<T>(ARRAY<T>)", array_reverse},
    {"ARRAY_CONCAT", "ARRAY<T>(ARRAY<T>...)", array_concat},
    {"ARRAY_TO_STRING", "STRING(ARRAY<STRING>, STRING, [STRING])", array_to_string},
    {"ARRAY_TO_STRING", "BYTES(ARRAY<BYTES>, BYTES, [BYTES])", array_to_string},
    {"GENERATE_ARRAY", "ARRAY<INT64>(INT64, INT64, [INT64])", generate_int64},
    {"GENERATE_ARRAY", "ARRAY<FLOAT64>(FLOAT64, FLOAT64, [FLOAT64])", generate_float64},
    {0},
};
