/* Maps: their keys and values, in the order of keys. */
#include "sql/functions/function_tables.h"
#include "sql/work.h"

#include <stdlib.h>

static status contains_key(const struct sql_call *call, const struct sql_value *args, size_t count,
                           struct sql_value *out)
{
    (void)count;
    *out = args[0].is_null ? sql_null()
                           : sql_of_bool(sql_map_find(call->types[0], &args[0], &args[1]) != NULL);
    return status_ok();
}

static status is_empty(const struct sql_call *call, const struct sql_value *args, size_t count,
                       struct sql_value *out)
{
    (void)call, (void)count;
    *out = sql_of_bool(args[0].count == 0);
    return status_ok();
}

/* Keys and values are in turn already: each pair is a struct as it stands. */
static status entries(const struct sql_call *call, const struct sql_value *args, size_t count,
                      struct sql_value *out)
{
    (void)count;
    size_t pairs = args[0].count / 2;
    struct sql_value *items = sql_items_alloc(call->arena, pairs);
    if (items == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < pairs; i++)
        items[i] = sql_of_items(&args[0].items[2 * i], 2);
    *out = sql_of_items(items, pairs);
    return status_ok();
}

/* Every other item, from the first (keys) or the second (values). */
static status halves(const struct sql_call *call, const struct sql_value *map, size_t from,
                     struct sql_value *out)
{
    size_t pairs = map->count / 2;
    struct sql_value *items = sql_items_alloc(call->arena, pairs);
    if (items == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < pairs; i++)
        items[i] = map->items[2 * i + from];
    *out = sql_of_items(items, pairs);
    return status_ok();
}

static status keys(const struct sql_call *call, const struct sql_value *args, size_t count,
                   struct sql_value *out)
{
    (void)count;
    return halves(call, &args[0], 0, out);
}

static status values(const struct sql_call *call, const struct sql_value *args, size_t count,
                     struct sql_value *out)
{
    (void)count;
    return halves(call, &args[0], 1, out);
}

/* --- MAP_FROM_ARRAY --- */

static int compare_keys(const void *a, const void *b, void *type)
{
    const struct sql_value *left = a;
    const struct sql_value *right = b;
    return sql_value_compare(type, &left->items[0], &right->items[0]);
}

static status duplicate_key(const struct sql_type *type, const struct sql_value *key)
{
    struct buffer words = {0};
    sql_value_append_literal(&words, type, key);
    buffer_append_byte(&words, '\0');
    status error = words.failed
                       ? status_out_of_memory()
                       : status_make(STATUS_OUT_OF_RANGE,
                                     "Duplicate map keys are not allowed, but got multiple "
                                     "instances of key: %s",
                                     (char *)words.data);
    buffer_free(&words);
    return error;
}

/* A copy of the structs, by their first fields. */
static status sort_pairs(const struct sql_call *call, const struct sql_value *array,
                         struct sql_value **out)
{
    struct sql_value *pairs = *out = sql_items_alloc(call->arena, array->count);
    if (pairs == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < array->count; i++) {
        if (array->items[i].is_null)
            return status_make(STATUS_OUT_OF_RANGE,
                               "Struct element in MAP_FROM_ARRAY must not be NULL");
        pairs[i] = array->items[i];
    }
    return sql_sort(pairs, array->count, sizeof *pairs, compare_keys,
                    (void *)(uintptr_t)call->type->key, call->session);
}

static status from_array(const struct sql_call *call, const struct sql_value *args, size_t count,
                         struct sql_value *out)
{
    (void)count;
    const struct sql_type *type = call->type->key;
    struct sql_value *pairs;
    TRY(sort_pairs(call, &args[0], &pairs));
    struct sql_value *items = sql_items_alloc(call->arena, 2 * args[0].count);
    if (items == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < args[0].count; i++) {
        if (i > 0 && sql_value_compare(type, &pairs[i - 1].items[0], &pairs[i].items[0]) == 0)
            return duplicate_key(type, &pairs[i].items[0]);
        items[2 * i] = pairs[i].items[0];
        items[2 * i + 1] = pairs[i].items[1];
    }
    *out = sql_of_items(items, 2 * args[0].count);
    return status_ok();
}

const struct sql_function sql_map_functions[] = {
    {"MAP_CONTAINS_KEY", "BOOL(MAP<K, V>, K)", contains_key, SQL_TAKES_NULLS | SQL_LOOKS_UP},
    {"MAP_EMPTY", "BOOL(MAP<K, V>)", is_empty, SQL_LOOKS_UP},
    {"MAP_ENTRIES", "ARRAY<STRUCT<key K, value V>>(MAP<K, V>)", entries},
    {"MAP_KEYS", "ARRAY<K>(MAP<K, V>)", keys},
    {"MAP_VALUES", "ARRAY<V>(MAP<K, V>)", values},
    {"MAP_FROM_ARRAY", "MAP<K, V>(ARRAY<STRUCT<K:groupable, V>>)", from_array},
    {0},
};
