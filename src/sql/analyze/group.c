/* Expressions after grouping, and after window functions: what they refer to is then a column of
 * another operator. */
#include "sql/analyze/analyze_private.h"

static status not_grouped(const struct rewrite *rewrite, const struct sql_expr *column)
{
    return sql_error(rewrite->analyzer->analysis->text, column->at,
                     "%s expression references column %s which is neither grouped nor aggregated",
                     rewrite->clause, rewrite->from->names[column->index].text);
}

static status to_column(const struct rewrite *rewrite, const struct sql_expr *expr, size_t index,
                        const struct sql_expr **out)
{
    return new_column(rewrite->analyzer, expr->at, expr->type, index, out);
}

static status map_node(void *context, const struct sql_expr *expr, const struct sql_expr **out)
{
    const struct rewrite *rewrite = context;
    TRY(count_planning(rewrite->analyzer, rewrite->key_count));
    for (size_t i = 0; i < rewrite->key_count; i++)
        if (sql_expr_equal(expr, rewrite->keys[i]))
            return to_column(rewrite, expr, i, out);
    if (expr->kind == SQL_AGGREGATED)
        return to_column(rewrite, expr, rewrite->key_count + expr->index, out);
    if (expr->kind == SQL_WINDOWED && rewrite->windows_from != SIZE_MAX)
        return to_column(rewrite, expr, rewrite->windows_from + expr->index, out);
    bool is_gone = expr->kind == SQL_COLUMN && rewrite->is_grouped;
    return is_gone ? not_grouped(rewrite, expr) : status_ok();
}

status rewrite_expr(const struct rewrite *rewrite, const struct sql_expr *expr,
                    const struct sql_expr **out)
{
    return sql_expr_map(expr, rewrite->analyzer->arena, map_node, (void *)(uintptr_t)rewrite, out);
}

static status rewrite_list(const struct rewrite *rewrite, const struct sql_expr *const **list,
                           size_t count)
{
    const struct sql_expr **exprs = arena_alloc(rewrite->analyzer->arena, count * sizeof *exprs);
    if (exprs == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < count; i++)
        TRY(rewrite_expr(rewrite, (*list)[i], &exprs[i]));
    *list = exprs;
    return status_ok();
}

static status rewrite_orders(const struct rewrite *rewrite, const struct sql_order **list,
                             size_t count)
{
    struct sql_order *orders = arena_alloc(rewrite->analyzer->arena, count * sizeof *orders);
    if (orders == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < count; i++) {
        orders[i] = (*list)[i];
        TRY(rewrite_expr(rewrite, orders[i].expr, &orders[i].expr));
    }
    *list = orders;
    return status_ok();
}

/* The arguments of the window's function, and its partition and order. */
status rewrite_window(const struct rewrite *rewrite, struct sql_window *window)
{
    TRY(rewrite_list(rewrite, &window->args, window->arg_count));
    TRY(rewrite_list(rewrite, &window->partition, window->partition_count));
    TRY(rewrite_orders(rewrite, &window->orders, window->order_count));
    if (window->aggregation == NULL)
        return status_ok();
    struct sql_aggregation *copy = arena_alloc(rewrite->analyzer->arena, sizeof *copy);
    if (copy == NULL)
        return status_out_of_memory();
    *copy = *window->aggregation;
    copy->args = window->args;
    window->aggregation = copy;
    return status_ok();
}
