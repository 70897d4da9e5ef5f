/* a[i] of arrays and m[k] of maps. */
#include "sql/functions/function_tables.h"

static bool is_within(const struct sql_value *array, int64_t index)
{
    return index >= 0 && index < (int64_t)array->count;
}

static status out_of_bounds(int64_t index)
{
    return index < 0 ? status_make(STATUS_OUT_OF_RANGE, "Array index is out of bounds")
                     : status_make(STATUS_OUT_OF_RANGE, "Array index %lld is out of bounds",
                                   (long long)index);
}

static status array_offset(const struct sql_call *call, const struct sql_value *args, size_t count,
                           struct sql_value *out)
{
    (void)call, (void)count;
    if (!is_within(&args[0], args[1].int64))
        return out_of_bounds(args[1].int64);
    *out = args[0].items[args[1].int64];
    return status_ok();
}

static status array_ordinal(const struct sql_call *call, const struct sql_value *args, size_t count,
                            struct sql_value *out)
{
    (void)call, (void)count;
    int64_t ordinal = args[1].int64;
    if (ordinal < 1 || !is_within(&args[0], ordinal - 1))
        return ordinal < 1 ? out_of_bounds(-1) : out_of_bounds(ordinal);
    *out = args[0].items[ordinal - 1];
    return status_ok();
}

static status safe_offset(const struct sql_call *call, const struct sql_value *args, size_t count,
                          struct sql_value *out)
{
    (void)call, (void)count;
    *out = is_within(&args[0], args[1].int64) ? args[0].items[args[1].int64] : sql_null();
    return status_ok();
}

static status safe_ordinal(const struct sql_call *call, const struct sql_value *args, size_t count,
                           struct sql_value *out)
{
    (void)call, (void)count;
    bool fits = args[1].int64 >= 1 && is_within(&args[0], args[1].int64 - 1);
    *out = fits ? args[0].items[args[1].int64 - 1] : sql_null();
    return status_ok();
}

/* A NULL key finds what is stored under NULL: hardly ever anything. */
static status map_at(const struct sql_call *call, const struct sql_value *args, size_t count,
                     struct sql_value *out)
{
    (void)count;
    const struct sql_value *found =
        args[0].is_null ? NULL : sql_map_find(call->types[0], &args[0], &args[1]);
    *out = found == NULL ? sql_null() : *found;
    return status_ok();
}

static status map_key(const struct sql_call *call, const struct sql_value *args, size_t count,
                      struct sql_value *out)
{
    TRY(map_at(call, args, count, out));
    if (args[0].is_null || sql_map_find(call->types[0], &args[0], &args[1]) != NULL)
        return status_ok();
    struct buffer key = {.budget = call->session->budget};
    sql_value_append_literal(&key, call->types[1], &args[1]);
    buffer_append_byte(&key, '\0');
    status error =
        key.failed ? status_out_of_memory()
                   : status_make(STATUS_OUT_OF_RANGE, "Key not found in map: %s", (char *)key.data);
    buffer_free(&key);
    return error;
}

const struct sql_function sql_subscript_functions[] = {
    {"$array_offset", "T(ARRAY<T>, INT64)", array_offset},
    {"$array_ordinal", "T(ARRAY<T>, INT64)", array_ordinal},
    {"$safe_offset", "T(ARRAY<T>, INT64)", safe_offset},
    {"$safe_ordinal", "T(ARRAY<T>, INT64)", safe_ordinal},
    {"$map_at", "V(MAP<K, V>, K)", map_at, SQL_TAKES_NULLS},
    {"$map_key", "V(MAP<K, V>, K)", map_key, SQL_TAKES_NULLS},
    {0},
};
