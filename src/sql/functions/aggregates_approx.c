/* APPROX_QUANTILES, APPROX_TOP_COUNT, APPROX_TOP_SUM. They may be approximate; these are exact, as
 * long as the query's memory holds the values. */
#include "base/vector.h"
#include "sql/functions/function_tables.h"
#include "sql/work.h"

#include <math.h>
#include <stdlib.h>

/* How many results are wanted: the last argument. */
static status check_number(const struct sql_value *number, const char *function)
{
    if (!number->is_null && number->int64 > 0)
        return status_ok();
    return status_make(STATUS_OUT_OF_RANGE, "The number of results of %s must be positive",
                       function);
}

/* --- APPROX_QUANTILES --- */

struct quantiles {
    int64_t number;
    struct vector values;
};

static status quantiles_add(const struct sql_call *call, void *state, const struct sql_value *args,
                            size_t count)
{
    (void)count;
    struct quantiles *quantiles = state;
    struct sql_value copy;
    TRY(check_number(&args[1], "APPROX_QUANTILES"));
    quantiles->number = args[1].int64;
    TRY(sql_value_copy(call->types[0], &args[0], call->arena, &copy));
    return vector_add(&quantiles->values, call->arena, &copy, sizeof copy);
}

static int compare_values(const void *a, const void *b, void *type)
{
    return sql_value_compare(type, a, b);
}

/* Quantile i of n is the value that i/n of all are not beyond; the first is the least. */
static size_t quantile_index(uint64_t i, uint64_t n, size_t count)
{
    unsigned __int128 reached = ((unsigned __int128)i * count + n - 1) / n;
    return reached == 0 ? 0 : (size_t)(reached - 1);
}

static status quantiles_finish(const struct sql_call *call, void *state, struct sql_value *out)
{
    struct quantiles *quantiles = state;
    struct sql_value *values = quantiles->values.items;
    uint64_t number = (uint64_t)quantiles->number;
    *out = sql_null();
    if (quantiles->values.count == 0)
        return status_ok();
    struct sql_value *items = sql_items_alloc(call->arena, number + 1);
    if (items == NULL)
        return status_out_of_memory();
    TRY(sql_sort(values, quantiles->values.count, sizeof *values, compare_values,
                 (void *)(uintptr_t)call->types[0], call->session));
    for (uint64_t i = 0; i <= number; i++)
        items[i] = values[quantile_index(i, number, quantiles->values.count)];
    *out = sql_of_items(items, (size_t)number + 1);
    return status_ok();
}

/* --- values with their weights --- */

struct entry {
    struct sql_value value;
    bool has_weight;
    __int128 total; /* of INT64 */
    double sum;     /* of FLOAT64 */
};

/* The first `sorted` are in order, each value once; those behind came since. */
struct tally {
    struct vector entries;
    size_t sorted;
    int64_t number;
};

enum { FEW = 64 };

static int compare_entries(const void *a, const void *b, void *type)
{
    const struct entry *left = a;
    const struct entry *right = b;
    return sql_value_compare(type, &left->value, &right->value);
}

static void add_entry(struct entry *to, const struct entry *entry)
{
    to->has_weight = to->has_weight || entry->has_weight;
    to->total += entry->total;
    to->sum += entry->sum;
}

/* Brings all into order, and what has one value together. */
static status sort_tally(const struct sql_call *call, struct tally *tally)
{
    const struct sql_type *type = call->types[0];
    struct entry *entries = tally->entries.items;
    size_t kept = 0;
    TRY(sql_sort(entries, tally->entries.count, sizeof *entries, compare_entries,
                 (void *)(uintptr_t)type, call->session));
    for (size_t i = 0; i < tally->entries.count; i++)
        if (kept > 0 &&
            compare_entries(&entries[kept - 1], &entries[i], (void *)(uintptr_t)type) == 0)
            add_entry(&entries[kept - 1], &entries[i]);
        else
            entries[kept++] = entries[i];
    tally->entries.count = tally->sorted = kept;
    return status_ok();
}

/* Whether the value is among those in order, and where. */
static bool find_entry(const struct sql_type *type, const struct tally *tally,
                       const struct sql_value *value, size_t *at)
{
    const struct entry *entries = tally->entries.items;
    size_t low = 0, high = tally->sorted;
    while (low < high) {
        *at = low + (high - low) / 2;
        int order = sql_value_compare(type, &entries[*at].value, value);
        if (order == 0)
            return true;
        if (order < 0)
            low = *at + 1;
        else
            high = *at;
    }
    return false;
}

static status tally_add(const struct sql_call *call, struct tally *tally, struct entry entry)
{
    const struct sql_type *type = call->types[0];
    struct entry *entries = tally->entries.items;
    size_t at;
    if (find_entry(type, tally, &entry.value, &at)) {
        add_entry(&entries[at], &entry);
        return status_ok();
    }
    struct sql_value value = entry.value;
    TRY(sql_value_copy(type, &value, call->arena, &entry.value));
    TRY(vector_add(&tally->entries, call->arena, &entry, sizeof entry));
    if (tally->entries.count - tally->sorted > tally->sorted + FEW)
        return sort_tally(call, tally);
    return status_ok();
}

/* --- APPROX_TOP_COUNT and APPROX_TOP_SUM --- */

static status count_add(const struct sql_call *call, void *state, const struct sql_value *args,
                        size_t count)
{
    (void)count;
    struct tally *tally = state;
    TRY(check_number(&args[1], "APPROX_TOP_COUNT"));
    tally->number = args[1].int64;
    return tally_add(call, tally, (struct entry){args[0], true, .total = 1});
}

/* A NULL weight is none; a value that has no other has the sum NULL. */
static status sum_add(const struct sql_call *call, void *state, const struct sql_value *args,
                      size_t count)
{
    (void)count;
    struct tally *tally = state;
    struct entry entry = {.value = args[0], .has_weight = !args[1].is_null};
    bool is_float = sql_is_float(call->types[1]);
    TRY(check_number(&args[2], "APPROX_TOP_SUM"));
    tally->number = args[2].int64;
    if (entry.has_weight && is_float)
        entry.sum = args[1].float64;
    else if (entry.has_weight)
        entry.total = args[1].int64;
    if (isnan(entry.sum) || entry.sum < 0 || entry.total < 0)
        return status_make(STATUS_OUT_OF_RANGE,
                           "Weights of APPROX_TOP_SUM must not be negative or NaN");
    return tally_add(call, tally, entry);
}

/* The heaviest first, those without a weight last; else in the order of values. */
static int compare_weights(const void *a, const void *b, void *type)
{
    const struct entry *left = a;
    const struct entry *right = b;
    if (left->has_weight != right->has_weight)
        return left->has_weight ? -1 : 1;
    if (left->total != right->total)
        return left->total > right->total ? -1 : 1;
    if (left->sum != right->sum)
        return left->sum > right->sum ? -1 : 1;
    return compare_entries(a, b, type);
}

static status weight_of(const struct sql_call *call, const struct entry *entry,
                        struct sql_value *out)
{
    bool is_float = sql_is_float(call->type->element->fields[1].type);
    *out = is_float ? sql_of_float64(entry->sum) : sql_of_int64((int64_t)entry->total);
    if (!entry->has_weight)
        *out = sql_null();
    return entry->total > INT64_MAX
               ? status_make(STATUS_OUT_OF_RANGE, "APPROX_TOP_SUM() aggregation overflow")
               : status_ok();
}

static status top_finish(const struct sql_call *call, void *state, struct sql_value *out)
{
    struct tally *tally = state;
    const struct sql_type *type = call->types[0];
    struct entry *entries = tally->entries.items;
    *out = sql_null();
    if (tally->entries.count == 0)
        return status_ok();
    TRY(sort_tally(call, tally));
    TRY(sql_sort(entries, tally->sorted, sizeof *entries, compare_weights, (void *)(uintptr_t)type,
                 call->session));
    size_t count = tally->number < (int64_t)tally->sorted ? (size_t)tally->number : tally->sorted;
    struct sql_value *items = sql_items_alloc(call->arena, count);
    struct sql_value *fields = sql_items_alloc(call->arena, 2 * count);
    if (items == NULL || fields == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < count; i++) {
        fields[2 * i] = entries[i].value;
        TRY(weight_of(call, &entries[i], &fields[2 * i + 1]));
        items[i] = sql_of_items(&fields[2 * i], 2);
    }
    *out = sql_of_items(items, count);
    return status_ok();
}

const struct sql_aggregate sql_approx_aggregates[] = {
    {"APPROX_QUANTILES", "ARRAY<T>(T:order, INT64)", sizeof(struct quantiles), SQL_ALLOWS_NULLS,
     quantiles_add, quantiles_finish},
    {"APPROX_TOP_COUNT", "ARRAY<STRUCT<value T, count INT64>>(T:groupable, INT64)",
     sizeof(struct tally), SQL_AGGREGATES_NULLS | SQL_NOT_DISTINCT, count_add, top_finish},
    {"APPROX_TOP_SUM", "ARRAY<STRUCT<value T, sum INT64>>(T:groupable, INT64, INT64)",
     sizeof(struct tally), SQL_AGGREGATES_NULLS | SQL_NOT_DISTINCT, sum_add, top_finish},
    {"APPROX_TOP_SUM", "ARRAY<STRUCT<value T, sum FLOAT64>>(T:groupable, FLOAT64, INT64)",
     sizeof(struct tally), SQL_AGGREGATES_NULLS | SQL_NOT_DISTINCT, sum_add, top_finish},
    {0},
};
