/* The planner's rules: see optimize.h.
 *
 * The tree is a list, since a query reads one table: it is copied from the scan upwards, and each
 * operator, when it comes on top, may go further down, or join the one below. */
#include "base/check.h"
#include "sql/plan/key_schema.h"
#include "sql/plan/optimize_private.h"

struct planner {
    struct arena *arena;
};

struct sql_operator *copy_operator(struct arena *arena, const struct sql_operator *operator_)
{
    struct sql_operator *copy = arena_alloc(arena, sizeof *copy);
    if (copy != NULL)
        *copy = *operator_;
    return copy;
}

static status over(struct planner *planner, const struct sql_operator *operator_,
                   const struct sql_operator *input, const struct sql_operator **out)
{
    struct sql_operator *copy = copy_operator(planner->arena, operator_);
    if (copy == NULL)
        return status_out_of_memory();
    copy->input = input;
    *out = copy;
    return status_ok();
}

/* --- columns replaced by what they are computed from --- */

struct substitution {
    const struct sql_expr *const *exprs;
};

static status substitute_column(void *context, const struct sql_expr *expr,
                                const struct sql_expr **out)
{
    const struct substitution *substitution = context;
    if (expr->kind == SQL_COLUMN)
        *out = substitution->exprs[expr->index];
    return status_ok();
}

static status substitute(struct planner *planner, const struct sql_expr *expr,
                         const struct sql_operator *project, const struct sql_expr **out)
{
    struct substitution substitution = {project->exprs};
    return sql_expr_map(expr, planner->arena, substitute_column, &substitution, out);
}

static bool is_plain(const struct sql_expr *expr)
{
    return expr->kind == SQL_COLUMN || expr->kind == SQL_CONSTANT || expr->kind == SQL_PARAMETER;
}

static size_t count_uses(const struct sql_expr *expr, size_t column)
{
    size_t uses = expr->kind == SQL_COLUMN && expr->index == column;
    for (size_t i = 0; i < expr->arg_count; i++)
        uses += count_uses(expr->args[i], column);
    return uses;
}

/* Within a lambda, an expression would be computed again and again. */
static bool has_lambda(const struct sql_expr *expr)
{
    bool has = expr->kind == SQL_LAMBDA;
    for (size_t i = 0; i < expr->arg_count && !has; i++)
        has = has_lambda(expr->args[i]);
    return has;
}

/* --- conditions go down --- */

/* Whether a condition may look at what the projection computes from, and not at its result: it is
 * computed once more then, for rows that pass. */
static bool may_pass_projection(const struct sql_operator *project,
                                const struct sql_expr *condition)
{
    for (size_t i = 0; i < project->expr_count; i++) {
        size_t uses = count_uses(condition, i);
        const struct sql_expr *expr = project->exprs[i];
        if (uses > 0 && !is_plain(expr) && (uses > 1 || has_lambda(condition)))
            return false;
        if (uses > 0 && has_volatile(expr))
            return false;
    }
    return true;
}

/* Whether it looks at columns of the operator's input alone. */
static bool is_of_input(const struct sql_operator *operator_, const struct sql_expr *condition)
{
    for (size_t i = operator_->input->column_count; i < operator_->column_count; i++)
        if (count_uses(condition, i) > 0)
            return false;
    return true;
}

static bool may_pass(const struct sql_operator *below, const struct sql_expr *condition)
{
    if (has_volatile(condition))
        return false;
    switch (below->kind) {
    case SQL_OP_PROJECT:
        return may_pass_projection(below, condition);
    case SQL_OP_UNNEST:
        return is_of_input(below, condition);
    case SQL_OP_DISTINCT:
        return true;
    case SQL_OP_SORT:
        return below->limit == NULL;
    default:
        return false;
    }
}

/* Of the parts of an AND those that may pass, or those that may not. NULL: there are none. */
static status parts_that(struct planner *planner, const struct sql_operator *below,
                         const struct sql_expr *condition, bool pass, const struct sql_expr **out)
{
    struct sql_expr *parts = arena_alloc(planner->arena, sizeof *parts);
    const struct sql_expr **args = arena_alloc(planner->arena, condition->arg_count * sizeof *args);
    if (parts == NULL || args == NULL)
        return status_out_of_memory();
    *parts = *condition;
    parts->args = args;
    parts->arg_count = 0;
    for (size_t i = 0; i < condition->arg_count; i++)
        if (may_pass(below, condition->args[i]) == pass)
            args[parts->arg_count++] = condition->args[i];
    *out = parts->arg_count == 0 ? NULL : parts->arg_count == 1 ? args[0] : parts;
    return status_ok();
}

static status push_filter(struct planner *planner, const struct sql_operator *filter,
                          const struct sql_operator *below, const struct sql_operator **out);

/* What may pass goes down, the rest stays: of `_key = k AND item > 5` over UNNEST, the key. */
static status divide_filter(struct planner *planner, const struct sql_operator *filter,
                            const struct sql_operator *below, const struct sql_operator **out)
{
    struct sql_operator down = *filter, rest = *filter;
    const struct sql_operator *input;
    if (filter->condition->kind != SQL_AND)
        return over(planner, filter, below, out);
    TRY(parts_that(planner, below, filter->condition, true, &down.condition));
    TRY(parts_that(planner, below, filter->condition, false, &rest.condition));
    if (down.condition == NULL || rest.condition == NULL || !may_pass(below, down.condition))
        return over(planner, filter, below, out);
    TRY(push_filter(planner, &down, below, &input));
    return over(planner, &rest, input, out);
}

static status push_filter(struct planner *planner, const struct sql_operator *filter,
                          const struct sql_operator *below, const struct sql_operator **out)
{
    if (!may_pass(below, filter->condition))
        return divide_filter(planner, filter, below, out);
    CHECK(below->input != NULL); /* a scan lets nothing pass */
    struct sql_operator moved = *filter;
    const struct sql_operator *input;
    if (below->kind == SQL_OP_PROJECT)
        TRY(substitute(planner, filter->condition, below, &moved.condition));
    moved.columns = below->input->columns;
    moved.column_count = below->input->column_count;
    TRY(push_filter(planner, &moved, below->input, &input));
    return over(planner, below, input, out);
}

/* --- projections join --- */

static bool may_join(const struct sql_operator *upper, const struct sql_operator *lower)
{
    for (size_t i = 0; i < lower->expr_count; i++) {
        size_t uses = 0;
        bool in_lambda = false;
        for (size_t k = 0; k < upper->expr_count; k++) {
            size_t here = count_uses(upper->exprs[k], i);
            uses += here;
            in_lambda = in_lambda || (here > 0 && has_lambda(upper->exprs[k]));
        }
        const struct sql_expr *expr = lower->exprs[i];
        if (!is_plain(expr) && (uses > 1 || in_lambda || (uses == 0 && has_volatile(expr))))
            return false;
    }
    return true;
}

static status join_projections(struct planner *planner, const struct sql_operator *upper,
                               const struct sql_operator *lower, const struct sql_operator **out)
{
    if (lower->kind != SQL_OP_PROJECT || !may_join(upper, lower))
        return over(planner, upper, lower, out);
    const struct sql_expr **exprs = arena_alloc(planner->arena, upper->expr_count * sizeof *exprs);
    if (exprs == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < upper->expr_count; i++)
        TRY(substitute(planner, upper->exprs[i], lower, &exprs[i]));
    CHECK(lower->input != NULL);
    struct sql_operator joined = *upper;
    joined.exprs = exprs;
    return join_projections(planner, &joined, lower->input, out);
}

/* --- the order of keys needs no sort --- */

/* Which column of the scan a column of the operator is; SIZE_MAX: none, or the rows are no longer
 * those of the scan. */
static size_t scan_column(const struct sql_operator *operator_, size_t column)
{
    switch (operator_->kind) {
    case SQL_OP_SCAN:
        return column;
    case SQL_OP_FILTER:
        return scan_column(operator_->input, column);
    case SQL_OP_PROJECT:
        return operator_->exprs[column]->kind == SQL_COLUMN
                   ? scan_column(operator_->input, operator_->exprs[column]->index)
                   : SIZE_MAX;
    default:
        return SIZE_MAX;
    }
}

static const struct sql_operator *scan_of(const struct sql_operator *operator_)
{
    while (operator_->input != NULL)
        operator_ = operator_->input;
    return operator_;
}

/* The slot of the scan by which an order goes; NULL: by something else. */
static const struct sql_slot *order_slot(const struct sql_order *order,
                                         const struct sql_operator *below,
                                         const struct sql_scan_plan *scan)
{
    size_t column =
        order->expr->kind == SQL_COLUMN ? scan_column(below, order->expr->index) : SIZE_MAX;
    return column == SIZE_MAX ? NULL : &scan->slots[column];
}

/* Whether an order goes by a part of the key, in the direction of the first, and has NULLs where
 * keys have them. */
static bool is_part_order(const struct sql_operator *sort, size_t part,
                          const struct sql_operator *below, const struct sql_scan_plan *scan)
{
    const struct sql_order *order = &sort->orders[part];
    const struct sql_slot *slot = order_slot(order, below, scan);
    return slot != NULL && slot->kind == SQL_SLOT_KEY_PART && slot->part == part &&
           order->is_descending == sort->orders[0].is_descending &&
           order->nulls_last == order->is_descending;
}

/* How many of the orders are those of the first parts of the key. */
static size_t count_part_orders(const struct sql_operator *sort, const struct sql_operator *below,
                                const struct sql_scan_plan *scan)
{
    const struct sql_key_schema *schema = scan->table->key_schema;
    size_t count = 0;
    if (schema == NULL || !sql_key_schema_has_order(schema))
        return 0;
    while (count < sort->order_count && count < sql_key_schema_count(schema) &&
           is_part_order(sort, count, below, scan))
        count++;
    return count;
}

/* Keys are never NULL, and no two rows have the same, but for versions of a view's row: what is
 * ordered by after them, or after all their parts, does not matter. */
static bool is_key_order(const struct sql_operator *sort, const struct sql_operator *below)
{
    const struct sql_operator *operator_ = scan_of(below);
    if (operator_->kind != SQL_OP_SCAN)
        return false;
    const struct sql_scan_plan *scan = operator_->scan;
    const struct sql_slot *first = order_slot(&sort->orders[0], below, scan);
    bool is_of_key = first != NULL && first->kind == SQL_SLOT_KEY;
    size_t parts = count_part_orders(sort, below, scan);
    size_t ordered = is_of_key ? 1 : parts;
    if (ordered == sort->order_count)
        return true;
    bool is_whole =
        is_of_key || (parts > 0 && parts == sql_key_schema_count(scan->table->key_schema));
    return is_whole && !sql_relation_has_versions(scan->table);
}

static status direct_scan(struct planner *planner, const struct sql_operator *operator_,
                          bool is_reversed, const struct sql_operator **out)
{
    const struct sql_operator *input = NULL;
    if (operator_->input != NULL)
        TRY(direct_scan(planner, operator_->input, is_reversed, &input));
    struct sql_operator *copy = copy_operator(planner->arena, operator_);
    struct sql_scan_plan *scan = arena_alloc(planner->arena, sizeof *scan);
    if (copy == NULL || scan == NULL)
        return status_out_of_memory();
    copy->input = input;
    if (operator_->kind == SQL_OP_SCAN) {
        *scan = *operator_->scan;
        scan->is_reversed = is_reversed;
        copy->scan = scan;
    }
    *out = copy;
    return status_ok();
}

/* The scan may have the direction of an inner query's order already: the last one counts. */
static status plan_sort(struct planner *planner, const struct sql_operator *sort,
                        const struct sql_operator *below, const struct sql_operator **out)
{
    if (!is_key_order(sort, below))
        return over(planner, sort, below, out);
    /* A sort below this one may have turned the scan: its direction is said again. */
    return direct_scan(planner, below, sort->orders[0].is_descending, out);
}

/* --- limits --- */

/* Gives the limit to a sort below projections: it need not keep more rows. Or to the scan, of
 * which no more will be asked for. */
static status bound_below(struct planner *planner, const struct sql_operator *limit,
                          const struct sql_operator *below, const struct sql_operator **out)
{
    const struct sql_operator *input = below->input;
    *out = below;
    bool is_sort = below->kind == SQL_OP_SORT && below->limit == NULL;
    bool is_scan = below->kind == SQL_OP_SCAN && limit->offset == NULL;
    if (!is_sort && !is_scan && below->kind != SQL_OP_PROJECT)
        return status_ok();
    if (below->kind == SQL_OP_PROJECT)
        TRY(bound_below(planner, limit, below->input, &input));
    struct sql_operator *copy = copy_operator(planner->arena, below);
    struct sql_scan_plan *scan = arena_alloc(planner->arena, sizeof *scan);
    if (copy == NULL || scan == NULL)
        return status_out_of_memory();
    copy->input = input;
    if (is_sort) {
        copy->limit = limit->limit;
        copy->offset = limit->offset;
    }
    if (is_scan) {
        *scan = *below->scan;
        scan->row_limit = limit->limit;
        copy->scan = scan;
    }
    *out = copy;
    return status_ok();
}

static status plan_limit(struct planner *planner, const struct sql_operator *limit,
                         const struct sql_operator *below, const struct sql_operator **out)
{
    TRY(bound_below(planner, limit, below, &below));
    return over(planner, limit, below, out);
}

/* --- from the scan upwards --- */

static status plan_operator(struct planner *planner, const struct sql_operator *operator_,
                            const struct sql_operator **out)
{
    const struct sql_operator *input = NULL;
    if (operator_->input != NULL)
        TRY(plan_operator(planner, operator_->input, &input));
    if (input == NULL)
        return over(planner, operator_, NULL, out);
    switch (operator_->kind) {
    case SQL_OP_FILTER:
        return push_filter(planner, operator_, input, out);
    case SQL_OP_PROJECT:
        return join_projections(planner, operator_, input, out);
    case SQL_OP_SORT:
        return plan_sort(planner, operator_, input, out);
    case SQL_OP_LIMIT:
        return plan_limit(planner, operator_, input, out);
    default:
        return over(planner, operator_, input, out);
    }
}

status sql_optimize(struct sql_plan *plan, struct arena *arena)
{
    struct planner planner = {arena};
    TRY(plan_operator(&planner, plan->root, &plan->root));
    return prune_scan(plan, arena);
}
