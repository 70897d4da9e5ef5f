/* What SUM and AVG of FLOAT64 make of an exact sum: for the aggregates, and for the groups of
 * materialized views, which come to the same. */
#ifndef TRESTLE_SQL_FUNCTIONS_SUMS_H
#define TRESTLE_SQL_FUNCTIONS_SUMS_H

#include "base/exact_sum.h"
#include "sql/value.h"

/* OUT_OF_RANGE for a sum of finite numbers that is beyond the type's range. */
status sql_sum_of_float64(const struct exact_sum *sum, struct sql_value *out);
/* `count`: of the numbers, positive. */
struct sql_value sql_average_of_float64(const struct exact_sum *sum, int64_t count);

#endif
