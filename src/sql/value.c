/* Values of SQL expressions: see value.h. */
#include "sql/value.h"

#include <math.h>

/* --- copies --- */

static status copy_items(const struct sql_type *type, const struct sql_value *value,
                         struct arena *arena, struct sql_value *out)
{
    struct sql_value *items = arena_alloc(arena, value->count * sizeof *items);
    if (items == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < value->count; i++)
        TRY(sql_value_copy(sql_item_type(type, i), &value->items[i], arena, &items[i]));
    *out = sql_of_items(items, value->count);
    return status_ok();
}

status sql_value_copy(const struct sql_type *type, const struct sql_value *value,
                      struct arena *arena, struct sql_value *out)
{
    *out = *value;
    if (value->is_null)
        return status_ok();
    switch (type->kind) {
    case SQL_STRING:
    case SQL_BYTES:
    case SQL_PROTO:
        out->text = arena_copy(arena, value->text);
        return out->text.data == NULL ? status_out_of_memory() : status_ok();
    case SQL_ARRAY:
    case SQL_STRUCT:
    case SQL_MAP:
        return copy_items(type, value, arena, out);
    default:
        return status_ok();
    }
}

/* --- equality --- */

/* FALSE if any pair differs, else NULL if any cannot be told. */
static struct sql_value items_equal(const struct sql_type *type, const struct sql_value *a,
                                    const struct sql_value *b)
{
    struct sql_value all = sql_of_bool(true);
    if (a->count != b->count)
        return sql_of_bool(false);
    for (size_t i = 0; i < a->count; i++) {
        struct sql_value one = sql_value_equals(sql_item_type(type, i), &a->items[i], &b->items[i]);
        if (one.is_null)
            all = one;
        else if (!one.boolean)
            return one;
    }
    return all;
}

struct sql_value sql_value_equals(const struct sql_type *type, const struct sql_value *a,
                                  const struct sql_value *b)
{
    if (a->is_null || b->is_null)
        return sql_null();
    switch (type->kind) {
    case SQL_ARRAY:
    case SQL_STRUCT:
    case SQL_MAP:
        return items_equal(type, a, b);
    case SQL_FLOAT32:
    case SQL_FLOAT64:
        return sql_of_bool(a->float64 == b->float64);
    default:
        return sql_of_bool(sql_value_order(type, a, b) == 0);
    }
}

/* --- order --- */

#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

int sql_value_order(const struct sql_type *type, const struct sql_value *a,
                    const struct sql_value *b)
{
    switch (type->kind) {
    case SQL_BOOL:
        return COMPARE(a->boolean, b->boolean);
    case SQL_FLOAT32:
    case SQL_FLOAT64:
        return COMPARE(a->float64, b->float64);
    case SQL_STRING: /* the order of code points is that of UTF-8's bytes */
    case SQL_BYTES:
    case SQL_PROTO:
        return bytes_compare(a->text, b->text);
    default:
        return COMPARE(a->int64, b->int64);
    }
}

static int compare_items(const struct sql_type *type, const struct sql_value *a,
                         const struct sql_value *b)
{
    for (size_t i = 0; i < a->count && i < b->count; i++) {
        int order = sql_value_compare(sql_item_type(type, i), &a->items[i], &b->items[i]);
        if (order != 0)
            return order;
    }
    return COMPARE(a->count, b->count);
}

int sql_value_total_order(const struct sql_type *type, const struct sql_value *a,
                          const struct sql_value *b)
{
    int order = sql_value_order(type, a, b);
    if (order != 0 || !sql_is_float(type))
        return order;
    return (signbit(b->float64) != 0) - (signbit(a->float64) != 0);
}

int sql_value_compare(const struct sql_type *type, const struct sql_value *a,
                      const struct sql_value *b)
{
    if (a->is_null || b->is_null)
        return b->is_null - a->is_null;
    if (type->kind >= SQL_ARRAY)
        return compare_items(type, a, b);
    if (sql_is_float(type) && (isnan(a->float64) || isnan(b->float64)))
        return (isnan(b->float64) != 0) - (isnan(a->float64) != 0);
    return sql_value_order(type, a, b);
}

/* --- hashes --- */

static uint64_t mix(uint64_t hash, uint64_t more)
{
    hash = (hash ^ more) * UINT64_C(0x9e3779b97f4a7c15); /* 2^64 by the golden ratio */
    return hash ^ hash >> 32;
}

static uint64_t hash_float(double value)
{
    if (isnan(value))
        return 1;
    double canonical = value == 0 ? 0 : value; /* -0 is 0 */
    return bytes_hash(bytes_make(&canonical, sizeof canonical));
}

static uint64_t hash_items(const struct sql_type *type, const struct sql_value *value)
{
    uint64_t hash = value->count;
    for (size_t i = 0; i < value->count; i++)
        hash = mix(hash, sql_value_hash(sql_item_type(type, i), &value->items[i]));
    return hash;
}

uint64_t sql_value_hash(const struct sql_type *type, const struct sql_value *value)
{
    if (value->is_null)
        return 0;
    switch (type->kind) {
    case SQL_ARRAY:
    case SQL_STRUCT:
    case SQL_MAP:
        return hash_items(type, value);
    case SQL_FLOAT32:
    case SQL_FLOAT64:
        return hash_float(value->float64);
    case SQL_STRING:
    case SQL_BYTES:
    case SQL_PROTO:
        return bytes_hash(value->text);
    case SQL_BOOL:
        return mix(2, value->boolean);
    default:
        return mix(3, (uint64_t)value->int64);
    }
}

/* --- maps --- */

const struct sql_value *sql_map_find(const struct sql_type *map, const struct sql_value *value,
                                     const struct sql_value *key)
{
    size_t low = 0;
    size_t high = value->count / 2;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = sql_value_compare(map->key, &value->items[2 * middle], key);
        if (order == 0)
            return &value->items[2 * middle + 1];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}
