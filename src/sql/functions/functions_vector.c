/* Distances between vectors, which are arrays of numbers, or, where most are 0, arrays of pairs: an
 * index or a name, and its number. */
#include "sql/functions/function_tables.h"
#include "sql/work.h"

#include <math.h>

/* --- sums over both vectors --- */

struct sums {
    double products; /* of a and b */
    double squares_a;
    double squares_b;
    double squares; /* of the differences */
};

static void add_pair(struct sums *sums, double a, double b)
{
    sums->products += a * b;
    sums->squares_a += a * a;
    sums->squares_b += b * b;
    sums->squares += (a - b) * (a - b);
}

static status sum_dense(const struct sql_value *a, const struct sql_value *b, struct sums *sums)
{
    if (a->count != b->count)
        return status_make(STATUS_OUT_OF_RANGE, "Array length mismatch: %zu and %zu.", a->count,
                           b->count);
    for (size_t i = 0; i < a->count; i++) {
        if (a->items[i].is_null || b->items[i].is_null)
            return status_make(STATUS_OUT_OF_RANGE, "NULL array element.");
        add_pair(sums, a->items[i].float64, b->items[i].float64);
    }
    return status_ok();
}

/* --- vectors of pairs: what has no pair is 0 --- */

static int compare_indexes(const void *a, const void *b, void *type)
{
    const struct sql_value *left = a;
    const struct sql_value *right = b;
    return sql_value_compare(type, &left->items[0], &right->items[0]);
}

static status check_pair(const struct sql_value *pair)
{
    if (pair->is_null)
        return status_make(STATUS_OUT_OF_RANGE, "NULL array element.");
    if (pair->items[0].is_null || pair->items[1].is_null)
        return status_make(STATUS_OUT_OF_RANGE, "NULL struct field.");
    return status_ok();
}

/* A copy in the order of indexes, each of which may come once. */
static status sort_pairs(const struct sql_call *call, const struct sql_type *type,
                         const struct sql_value *vector, struct sql_value **out)
{
    struct sql_value *pairs = *out = sql_items_alloc(call->arena, vector->count);
    if (pairs == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < vector->count; i++) {
        TRY(check_pair(&vector->items[i]));
        pairs[i] = vector->items[i];
    }
    TRY(sql_sort(pairs, vector->count, sizeof *pairs, compare_indexes, (void *)(uintptr_t)type,
                 call->session));
    for (size_t i = 1; i < vector->count; i++)
        if (compare_indexes(&pairs[i - 1], &pairs[i], (void *)(uintptr_t)type) == 0)
            return status_make(STATUS_OUT_OF_RANGE, "Duplicate index found in the input array.");
    return status_ok();
}

static status sum_sparse(const struct sql_call *call, const struct sql_value *args,
                         struct sums *sums)
{
    const struct sql_type *type = call->types[0]->element->fields[0].type;
    struct sql_value *a, *b;
    TRY(sort_pairs(call, type, &args[0], &a));
    TRY(sort_pairs(call, type, &args[1], &b));
    const struct sql_value *a_end = a + args[0].count, *b_end = b + args[1].count;
    while (a < a_end || b < b_end) {
        int order = a == a_end   ? 1
                    : b == b_end ? -1
                                 : compare_indexes(a, b, (void *)(uintptr_t)type);
        add_pair(sums, order <= 0 ? a->items[1].float64 : 0, order >= 0 ? b->items[1].float64 : 0);
        a += order <= 0;
        b += order >= 0;
    }
    return status_ok();
}

static status sum(const struct sql_call *call, const struct sql_value *args, struct sums *sums)
{
    *sums = (struct sums){0};
    return call->types[0]->element->kind == SQL_STRUCT ? sum_sparse(call, args, sums)
                                                       : sum_dense(&args[0], &args[1], sums);
}

/* --- distances --- */

static status cosine_distance(const struct sql_call *call, const struct sql_value *args,
                              size_t count, struct sql_value *out)
{
    (void)count;
    struct sums sums;
    TRY(sum(call, args, &sums));
    if (sums.squares_a == 0 || sums.squares_b == 0)
        return status_make(STATUS_OUT_OF_RANGE,
                           "Cannot compute cosine distance against zero vector.");
    *out = sql_of_float64(1 - sums.products / (sqrt(sums.squares_a) * sqrt(sums.squares_b)));
    return status_ok();
}

static status euclidean_distance(const struct sql_call *call, const struct sql_value *args,
                                 size_t count, struct sql_value *out)
{
    (void)count;
    struct sums sums;
    TRY(sum(call, args, &sums));
    *out = sql_of_float64(sqrt(sums.squares));
    return status_ok();
}

#define OF_VECTORS(type) "FLOAT64(ARRAY<" type ">, ARRAY<" type ">)"

const struct sql_function sql_vector_functions[] = {
    {"COSINE_DISTANCE", OF_VECTORS("FLOAT64"), cosine_distance},
    {"COSINE_DISTANCE", OF_VECTORS("FLOAT32"), cosine_distance},
    {"COSINE_DISTANCE", OF_VECTORS("STRUCT<INT64, FLOAT64>"), cosine_distance},
    {"COSINE_DISTANCE", OF_VECTORS("STRUCT<STRING, FLOAT64>"), cosine_distance},
    {"EUCLIDEAN_DISTANCE", OF_VECTORS("FLOAT64"), euclidean_distance},
    {"EUCLIDEAN_DISTANCE", OF_VECTORS("FLOAT32"), euclidean_distance},
    {"EUCLIDEAN_DISTANCE", OF_VECTORS("STRUCT<INT64, FLOAT64>"), euclidean_distance},
    {"EUCLIDEAN_DISTANCE", OF_VECTORS("STRUCT<STRING, FLOAT64>"), euclidean_distance},
    {0},
};
