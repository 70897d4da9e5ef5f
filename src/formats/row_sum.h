/* A sum over rows, in any order, by which two ways of having them are compared: as many rows, with
 * the same keys and cells, have the same sum; others have it by chance once in 2^64. */
#ifndef TRESTLE_FORMATS_ROW_SUM_H
#define TRESTLE_FORMATS_ROW_SUM_H

#include "formats/change.h"

struct row_sum {
    uint64_t rows;
    uint64_t sum;
};

/* Without timestamps, where one of the two has none. */
void row_sum_add(struct row_sum *sum, const struct move_change *row, bool has_timestamps);

static inline bool row_sum_equal(const struct row_sum *a, const struct row_sum *b)
{
    return a->rows == b->rows && a->sum == b->sum;
}

#endif
