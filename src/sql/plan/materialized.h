/* What a materialized view's query must look like, beside being a query. */
#ifndef TRESTLE_SQL_PLAN_MATERIALIZED_H
#define TRESTLE_SQL_PLAN_MATERIALIZED_H

#include "sql/plan/plan.h"

/* Checks a plan as sql_analyze makes it: one GROUP BY or one ORDER BY, whose columns are selected,
 * and functions that give the same whenever they are asked. INVALID_ARGUMENT, in production's
 * words. */
status sql_check_materialized(const struct sql_plan *plan);

/* Which column of an operator further down a column of an operator is, unchanged; SIZE_MAX: none.
 */
size_t sql_trace_column(const struct sql_operator *op, size_t column,
                        const struct sql_operator *to);

#endif
