/* How many different values a sketch has seen: see hll.h. All arithmetic is in double, in the order
 * of the library's, so that the rounded results are the same. */
#include "row/hll_private.h"

#include <math.h>

/* So many different values, and the mean of the raw estimates for them: the bias is what that is
 * too high. */
struct bias_point {
    uint32_t count;
    double mean;
};

#include "row/hll_bias.inc"

struct bias_table {
    const struct bias_point *points;
    size_t count;
};

#define BIAS_TABLE(precision)                                                                      \
    [precision] = {bias_##precision, sizeof bias_##precision / sizeof *bias_##precision}

static const struct bias_table tables[HLL_MOST_PRECISION + 1] = {
    BIAS_TABLE(4),  BIAS_TABLE(5),  BIAS_TABLE(6),  BIAS_TABLE(7),  BIAS_TABLE(8),
    BIAS_TABLE(9),  BIAS_TABLE(10), BIAS_TABLE(11), BIAS_TABLE(12), BIAS_TABLE(13),
    BIAS_TABLE(14), BIAS_TABLE(15), BIAS_TABLE(16), BIAS_TABLE(17), BIAS_TABLE(18),
};

/* --- bias: the mean of the nearest points, weighed by how near they are --- */

enum { NEIGHBOURS = 6 };

struct neighbour {
    double distance; /* squared */
    double bias;
};

/* Where the estimate is, or belongs. Some tables are not quite sorted, so how the search goes
 * matters: it is the library's. */
static size_t search(const struct bias_table *table, double estimate)
{
    size_t low = 0, high = table->count;
    while (low < high) {
        size_t middle = (low + high - 1) / 2;
        if (table->points[middle].mean == estimate)
            return middle;
        if (table->points[middle].mean < estimate)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The nearest come first; of equally near ones those that were found earlier. */
static void insert(struct neighbour *nearest, size_t *count, struct neighbour found)
{
    size_t at = *count;
    while (at > 0 && nearest[at - 1].distance > found.distance)
        at--;
    if (at == NEIGHBOURS)
        return;
    if (*count < NEIGHBOURS)
        ++*count;
    for (size_t i = *count - 1; i > at; i--)
        nearest[i] = nearest[i - 1];
    nearest[at] = found;
}

static double bias_of(double estimate, unsigned precision)
{
    const struct bias_table *table = &tables[precision];
    struct neighbour nearest[NEIGHBOURS] = {0};
    size_t count = 0;
    if (table->count == 0 || estimate < table->points[0].mean ||
        estimate > table->points[table->count - 1].mean)
        return 0;
    size_t at = search(table, estimate);
    size_t from = at < NEIGHBOURS ? 0 : at - NEIGHBOURS;
    size_t to = at + NEIGHBOURS < table->count ? at + NEIGHBOURS : table->count;
    for (size_t i = from; i < to; i++) {
        const struct bias_point *point = &table->points[i];
        double off = point->mean - estimate;
        insert(nearest, &count,
               (struct neighbour){.distance = off * off, .bias = point->mean - point->count});
    }
    if (nearest[0].distance == 0)
        return nearest[0].bias;
    double sum = 0, weights = 0;
    for (size_t i = 0; i < count; i++) {
        sum += nearest[i].bias / nearest[i].distance;
        weights += 1 / nearest[i].distance;
    }
    return sum / weights;
}

/* --- estimates --- */

/* A list of every index there is comes to infinity, which is the greatest number, as in the
 * library. */
static int64_t to_nearest(double x)
{
    return x < 0x1p63 ? (int64_t)floor(x + 0.5) : INT64_MAX;
}

/* How many of `m` cells were hit if so many stayed empty, by chance. */
static double linear_count(double m, double empty)
{
    return m * log(m / empty);
}

/* Up to here linear counting does better than the raw estimate. */
static double linear_limit(unsigned precision)
{
    static const int limits[] = {
        [4] = 10,     [5] = 20,     [6] = 40,     [7] = 80,      [8] = 220,
        [9] = 400,    [10] = 900,   [11] = 1800,  [12] = 3100,   [13] = 6500,
        [14] = 11500, [15] = 20000, [16] = 50000, [17] = 120000, [18] = 350000};
    if (precision < sizeof limits / sizeof *limits)
        return limits[precision];
    uint64_t limit = ((uint64_t)5 << precision) / 2;
    return (double)limit;
}

static double alpha(unsigned precision)
{
    static const double few[] = {[4] = 0.673101517, [5] = 0.697121585, [6] = 0.709209798};
    if (precision < sizeof few / sizeof *few)
        return few[precision];
    return 0.7213 / (1 + 1.079 / (double)(1 << precision));
}

static int64_t estimate_registers(const struct hll_state *state)
{
    double m = (double)(1 << state->precision);
    double sum = 0;
    size_t empty = 0;
    for (size_t i = 0; i < state->data.size; i++) {
        sum += ldexp(1, -state->data.data[i]);
        empty += state->data.data[i] == 0;
    }
    if (empty > 0) {
        double linear = linear_count(m, (double)empty);
        if (linear <= linear_limit(state->precision))
            return to_nearest(linear);
    }
    double raw = alpha(state->precision) * m * m / sum;
    return to_nearest(raw - bias_of(raw, state->precision));
}

int64_t hll_estimate(const struct hll_state *state)
{
    if (hll_state_is_sparse(state)) {
        double m = (double)(1 << state->sparse_precision);
        return to_nearest(linear_count(m, m - state->sparse_size));
    }
    return state->data.size == 0 ? 0 : estimate_registers(state);
}
