/* Which plans are not worth a thread of their own: see sql_plan_is_quick. */
#include "sql/functions/cast.h"
#include "sql/plan/optimize.h"

static bool is_simple_kind(enum sql_kind kind)
{
    return kind == SQL_BOOL || kind == SQL_INT64 || kind == SQL_FLOAT32 || kind == SQL_FLOAT64 ||
           kind == SQL_STRING || kind == SQL_BYTES;
}

/* A walk along its arguments at most. Time zones, which are files, are in no cast between these. */
static bool is_quick_function(const struct sql_expr *call)
{
    static const char *const names[] = {"$not",        "$equal",     "$not_equal",     "$less",
                                        "$less_equal", "$greater",   "$greater_equal", "$between",
                                        "TO_INT64",    "TO_FLOAT32", "TO_FLOAT64"};
    if ((call->function->flags & SQL_LOOKS_UP) != 0)
        return true;
    if (call->function == &sql_cast_function)
        return is_simple_kind(call->type->kind) && is_simple_kind(call->args[0]->type->kind);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(call->function->name, names[i]) == 0)
            return true;
    return false;
}

static bool is_quick(const struct sql_expr *expr)
{
    bool may_be = expr->kind == SQL_CONSTANT || expr->kind == SQL_PARAMETER ||
                  expr->kind == SQL_COLUMN || expr->kind == SQL_AND || expr->kind == SQL_OR ||
                  expr->kind == SQL_IF || expr->kind == SQL_COALESCE ||
                  (expr->kind == SQL_CALL && is_quick_function(expr));
    for (size_t i = 0; i < expr->arg_count && may_be; i++)
        may_be = is_quick(expr->args[i]);
    return may_be;
}

static bool are_quick(const struct sql_expr *const *exprs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (exprs[i] != NULL && !is_quick(exprs[i]))
            return false;
    return true;
}

static bool is_one_value(const struct sql_expr *expr)
{
    return expr->kind == SQL_CONSTANT || expr->kind == SQL_PARAMETER;
}

static bool is_key(const struct sql_scan_plan *scan, const struct sql_expr *expr)
{
    return expr->kind == SQL_COLUMN && scan->slots[expr->index].kind == SQL_SLOT_KEY;
}

/* `_key = @key`, maybe among others that must be true as well: then there is one row at most. */
static bool names_one_row(const struct sql_scan_plan *scan, const struct sql_expr *condition)
{
    if (condition == NULL)
        return false;
    for (size_t i = 0; condition->kind == SQL_AND && i < condition->arg_count; i++)
        if (names_one_row(scan, condition->args[i]))
            return true;
    if (condition->kind != SQL_CALL || strcmp(condition->function->name, "$equal") != 0)
        return false;
    const struct sql_expr *left = condition->args[0], *right = condition->args[1];
    return (is_key(scan, left) && is_one_value(right)) ||
           (is_key(scan, right) && is_one_value(left));
}

static bool is_quick_scan(const struct sql_scan_plan *scan)
{
    const struct sql_temporal *temporal = &scan->temporal;
    const struct sql_expr *const times[] = {
        temporal->as_of,           temporal->after,    temporal->after_or_equal, temporal->before,
        temporal->before_or_equal, temporal->latest_n, scan->row_limit};
    for (size_t i = 0; i < scan->slot_count; i++)
        if (scan->slots[i].qualifier != NULL && !is_quick(scan->slots[i].qualifier))
            return false;
    return names_one_row(scan, scan->condition) && is_quick(scan->condition) &&
           are_quick(times, sizeof times / sizeof *times);
}

bool sql_plan_is_quick(const struct sql_plan *plan)
{
    const struct sql_operator *operator_ = plan->root;
    for (; operator_->kind != SQL_OP_SCAN; operator_ = operator_->input) {
        const struct sql_expr *const counts[] = {operator_->condition, operator_->limit,
                                                 operator_->offset};
        bool may_be = operator_->kind == SQL_OP_PROJECT || operator_->kind == SQL_OP_FILTER ||
                      operator_->kind == SQL_OP_LIMIT;
        if (!may_be || !are_quick(operator_->exprs, operator_->expr_count) ||
            !are_quick(counts, sizeof counts / sizeof *counts))
            return false;
    }
    return is_quick_scan(operator_->scan);
}
