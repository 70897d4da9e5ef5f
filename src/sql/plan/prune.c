/* What of the table is read: only what an operator uses.
 *
 * The operators above the scan refer to its columns, up to the first that makes columns of its own,
 * a projection or a grouping. Of a family that only appears as fam['q'], with q the same for all
 * rows, one column is read, and its value is a column of the scan; no map is made. */
#include "base/vector.h"
#include "sql/plan/optimize_private.h"

#include <string.h>

enum { MOST_CELLS = 5000 }; /* each is looked for among all */

struct pruner {
    struct arena *arena;
    const struct sql_operator *scan;
    size_t *whole;       /* of each old slot: its place among the new ones; SIZE_MAX: not there */
    struct vector slots; /* of struct sql_slot: the new ones */
    struct vector columns;
    bool is_rewriting; /* else it collects */
};

/* fam['q'], with a family of the scan and a fixed q. */
static bool is_cell(const struct pruner *pruner, const struct sql_expr *expr)
{
    return expr->kind == SQL_CALL && strcmp(expr->function->name, "$map_at") == 0 &&
           expr->args[0]->kind == SQL_COLUMN && expr->args[0]->index < pruner->scan->column_count &&
           pruner->scan->scan->slots[expr->args[0]->index].kind == SQL_SLOT_FAMILY &&
           sql_expr_is_fixed(expr->args[1]);
}

static bool same_qualifier(const struct sql_expr *a, const struct sql_expr *b)
{
    bool are_constants = a->kind == SQL_CONSTANT && b->kind == SQL_CONSTANT;
    bool are_parameters = a->kind == SQL_PARAMETER && b->kind == SQL_PARAMETER;
    return a == b || (are_parameters && a->index == b->index) ||
           (are_constants && sql_value_compare(a->type, &a->constant, &b->constant) == 0);
}

static size_t find_cell(const struct pruner *pruner, const struct sql_slot *of,
                        const struct sql_expr *qualifier)
{
    const struct sql_slot *slots = pruner->slots.items;
    for (size_t i = 0; i < pruner->slots.count; i++)
        if (slots[i].kind == SQL_SLOT_COLUMN && bytes_equal(slots[i].family, of->family) &&
            same_qualifier(slots[i].qualifier, qualifier))
            return i;
    return SIZE_MAX;
}

static status add_slot(struct pruner *pruner, const struct sql_slot *slot, const char *name)
{
    struct sql_column column = {name, slot->type, false};
    TRY(vector_add(&pruner->slots, pruner->arena, slot, sizeof *slot));
    return vector_add(&pruner->columns, pruner->arena, &column, sizeof column);
}

static status collect_cell(struct pruner *pruner, const struct sql_expr *expr)
{
    struct sql_slot slot = pruner->scan->scan->slots[expr->args[0]->index];
    if (find_cell(pruner, &slot, expr->args[1]) != SIZE_MAX)
        return status_ok();
    if (pruner->slots.count >= MOST_CELLS)
        return status_make(STATUS_RESOURCE_EXHAUSTED,
                           "The query names more than %d columns of the table's families",
                           MOST_CELLS);
    slot.kind = SQL_SLOT_COLUMN;
    slot.type = expr->type;
    slot.qualifier = expr->args[1];
    return add_slot(pruner, &slot, "");
}

static status collect_whole(struct pruner *pruner, size_t column)
{
    if (pruner->whole[column] != SIZE_MAX)
        return status_ok();
    pruner->whole[column] = pruner->slots.count;
    return add_slot(pruner, &pruner->scan->scan->slots[column], pruner->scan->columns[column].name);
}

static status new_place(struct pruner *pruner, const struct sql_expr *of, size_t place,
                        const struct sql_expr **out)
{
    struct sql_expr *column = arena_zalloc(pruner->arena, sizeof *column);
    if (column == NULL)
        return status_out_of_memory();
    column->kind = SQL_COLUMN;
    column->at = of->at;
    column->type = of->type;
    column->index = place;
    *out = column;
    return status_ok();
}

/* What is behind the scan's columns stays behind them. */
static size_t moved_place(const struct pruner *pruner, size_t column)
{
    size_t before = pruner->scan->column_count;
    return column < before ? pruner->whole[column] : column - before + pruner->slots.count;
}

/* First all that is needed is collected, then each expression gets the new places. */
static status map_node(void *context, const struct sql_expr *expr, const struct sql_expr **out)
{
    struct pruner *pruner = context;
    bool is_column = expr->kind == SQL_COLUMN;
    if (is_cell(pruner, expr)) {
        *out = expr;
        if (!pruner->is_rewriting)
            return collect_cell(pruner, expr);
        const struct sql_slot *of = &pruner->scan->scan->slots[expr->args[0]->index];
        return new_place(pruner, expr, find_cell(pruner, of, expr->args[1]), out);
    }
    if (!is_column)
        return status_ok();
    if (pruner->is_rewriting)
        return new_place(pruner, expr, moved_place(pruner, expr->index), out);
    return expr->index < pruner->scan->column_count ? collect_whole(pruner, expr->index)
                                                    : status_ok();
}

static status map_expr(struct pruner *pruner, const struct sql_expr **expr)
{
    if (*expr == NULL)
        return status_ok();
    return sql_expr_map(*expr, pruner->arena, map_node, pruner, expr);
}

static status map_exprs(struct pruner *pruner, const struct sql_expr *const **list, size_t count)
{
    const struct sql_expr **exprs = arena_alloc(pruner->arena, count * sizeof *exprs);
    if (exprs == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < count; i++) {
        exprs[i] = (*list)[i];
        TRY(map_expr(pruner, &exprs[i]));
    }
    *list = exprs;
    return status_ok();
}

static status map_orders(struct pruner *pruner, const struct sql_order **list, size_t count)
{
    struct sql_order *orders = arena_alloc(pruner->arena, count * sizeof *orders);
    if (orders == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < count; i++) {
        orders[i] = (*list)[i];
        TRY(map_expr(pruner, &orders[i].expr));
    }
    *list = orders;
    return status_ok();
}

static status map_aggregates(struct pruner *pruner, struct sql_operator *operator_)
{
    struct sql_aggregation *copies =
        arena_alloc(pruner->arena, operator_->aggregate_count * sizeof *copies);
    if (copies == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < operator_->aggregate_count; i++) {
        copies[i] = operator_->aggregates[i];
        TRY(map_exprs(pruner, &copies[i].args, copies[i].arg_count));
        TRY(map_expr(pruner, &copies[i].having));
        TRY(map_orders(pruner, &copies[i].orders, copies[i].order_count));
    }
    operator_->aggregates = copies;
    return status_ok();
}

/* All expressions of an operator that refer to its input. */
static status map_operator(struct pruner *pruner, struct sql_operator *operator_)
{
    TRY(map_expr(pruner, &operator_->condition));
    TRY(map_exprs(pruner, &operator_->exprs, operator_->expr_count));
    TRY(map_orders(pruner, &operator_->orders, operator_->order_count));
    return map_aggregates(pruner, operator_);
}

/* Whether its columns are its own, so that nothing above it sees those of the scan. */
static bool ends_sight(const struct sql_operator *operator_)
{
    return operator_->kind == SQL_OP_PROJECT || operator_->kind == SQL_OP_AGGREGATE;
}

static bool passes_sight(const struct sql_operator *operator_)
{
    return operator_->kind == SQL_OP_FILTER || operator_->kind == SQL_OP_UNNEST ||
           operator_->kind == SQL_OP_SORT || operator_->kind == SQL_OP_LIMIT;
}

/* All operators above the scan, from the lowest on. */
static status list_operators(struct arena *arena, const struct sql_operator *operator_,
                             struct vector *out)
{
    if (operator_->input == NULL)
        return status_ok();
    TRY(list_operators(arena, operator_->input, out));
    return vector_add(out, arena, &operator_, sizeof operator_);
}

/* --- putting it together --- */

static status new_columns(struct pruner *pruner, struct sql_operator *operator_)
{
    size_t own = operator_->column_count - pruner->scan->column_count;
    struct sql_column *columns =
        arena_alloc(pruner->arena, (pruner->slots.count + own) * sizeof *columns);
    if (columns == NULL)
        return status_out_of_memory();
    if (pruner->slots.count > 0)
        memcpy(columns, pruner->columns.items, pruner->slots.count * sizeof *columns);
    if (own > 0)
        memcpy(columns + pruner->slots.count, operator_->columns + pruner->scan->column_count,
               own * sizeof *columns);
    operator_->columns = columns;
    operator_->column_count = pruner->slots.count + own;
    return status_ok();
}

/* The conditions right above the scan, as one; they have been rewritten by now. */
static status scan_condition(struct pruner *pruner, struct sql_operator *const *operators,
                             size_t count, const struct sql_expr **out)
{
    size_t conditions = 0;
    while (conditions < count && operators[conditions]->kind == SQL_OP_FILTER)
        conditions++;
    const struct sql_expr **args = arena_alloc(pruner->arena, conditions * sizeof *args);
    struct sql_expr *all = arena_zalloc(pruner->arena, sizeof *all);
    if (args == NULL || all == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < conditions; i++)
        args[i] = operators[i]->condition;
    *all = (struct sql_expr){
        .kind = SQL_AND, .type = &sql_bool, .args = args, .arg_count = conditions};
    *out = conditions == 0 ? NULL : all;
    return status_ok();
}

static status pruned_scan(struct pruner *pruner, struct sql_operator *const *operators,
                          size_t count, const struct sql_operator **out)
{
    struct sql_operator *scan = copy_operator(pruner->arena, pruner->scan);
    struct sql_scan_plan *plan = arena_alloc(pruner->arena, sizeof *plan);
    if (scan == NULL || plan == NULL)
        return status_out_of_memory();
    *plan = *pruner->scan->scan;
    plan->slots = pruner->slots.items;
    plan->slot_count = pruner->slots.count;
    TRY(scan_condition(pruner, operators, count, &plan->condition));
    TRY(new_columns(pruner, scan));
    scan->scan = plan;
    *out = scan;
    return status_ok();
}

/* Rewrites operators up to the first that ends the sight; links all of them again. */
static status rewrite_operators(struct pruner *pruner, struct sql_operator **operators,
                                size_t count, size_t in_sight)
{
    pruner->is_rewriting = true;
    for (size_t i = 0; i < in_sight; i++) {
        TRY(map_operator(pruner, operators[i]));
        if (!ends_sight(operators[i]))
            TRY(new_columns(pruner, operators[i]));
    }
    const struct sql_operator *below;
    TRY(pruned_scan(pruner, operators, in_sight, &below));
    for (size_t i = 0; i < count; i++) {
        operators[i]->input = below;
        below = operators[i];
    }
    return status_ok();
}

static status copy_all(struct arena *arena, struct vector *operators)
{
    struct sql_operator **items = operators->items;
    for (size_t i = 0; i < operators->count; i++) {
        items[i] = copy_operator(arena, items[i]);
        if (items[i] == NULL)
            return status_out_of_memory();
    }
    return status_ok();
}

/* How many operators see the scan's columns, the one that ends it among them; 0 if something needs
 * all of them. */
static size_t count_in_sight(struct sql_operator *const *operators, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (ends_sight(operators[i]))
            return i + 1;
        if (!passes_sight(operators[i]))
            return 0;
    }
    return 0;
}

static status collect(struct pruner *pruner, struct sql_operator *const *operators, size_t in_sight)
{
    pruner->whole = arena_alloc(pruner->arena, pruner->scan->column_count * sizeof *pruner->whole);
    if (pruner->whole == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < pruner->scan->column_count; i++)
        pruner->whole[i] = SIZE_MAX;
    for (size_t i = 0; i < in_sight; i++) {
        struct sql_operator looked_at = *operators[i];
        TRY(map_operator(pruner, &looked_at));
    }
    return status_ok();
}

status prune_scan(struct sql_plan *plan, struct arena *arena)
{
    struct vector operators = {0};
    struct pruner pruner = {.arena = arena, .scan = plan->root};
    while (pruner.scan->input != NULL)
        pruner.scan = pruner.scan->input;
    TRY(list_operators(arena, plan->root, &operators));
    size_t in_sight = count_in_sight(operators.items, operators.count);
    if (pruner.scan->kind != SQL_OP_SCAN || in_sight == 0)
        return status_ok();
    TRY(copy_all(arena, &operators));
    TRY(collect(&pruner, operators.items, in_sight));
    TRY(rewrite_operators(&pruner, operators.items, operators.count, in_sight));
    plan->root = ((struct sql_operator **)operators.items)[operators.count - 1];
    return status_ok();
}
