/* What the planner's files share. */
#ifndef TRESTLE_SQL_PLAN_OPTIMIZE_PRIVATE_H
#define TRESTLE_SQL_PLAN_OPTIMIZE_PRIVATE_H

#include "sql/plan/optimize.h"

/* A copy of an operator, to be changed. NULL without memory. */
struct sql_operator *copy_operator(struct arena *arena, const struct sql_operator *operator_);

/* Reads less of the table: only those slots that the operators above the scan look at, up to the
 * one that makes columns of its own (prune.c). */
status prune_scan(struct sql_plan *plan, struct arena *arena);

static inline bool has_volatile(const struct sql_expr *expr)
{
    bool has = expr->function != NULL && (expr->function->flags & SQL_VOLATILE) != 0;
    for (size_t i = 0; i < expr->arg_count && !has; i++)
        has = has_volatile(expr->args[i]);
    return has;
}

#endif
