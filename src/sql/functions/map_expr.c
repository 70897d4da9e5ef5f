/* Expressions with some parts in other places. */
#include "sql/functions/expr.h"

static status map_args(const struct sql_expr *expr, struct arena *arena, sql_expr_mapper *map,
                       void *context, const struct sql_expr **out)
{
    const struct sql_expr **args = arena_alloc(arena, expr->arg_count * sizeof *args);
    bool is_same = true;
    if (args == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < expr->arg_count; i++) {
        TRY(sql_expr_map(expr->args[i], arena, map, context, &args[i]));
        is_same = is_same && args[i] == expr->args[i];
    }
    if (is_same)
        return status_ok();
    struct sql_expr *copy = arena_alloc(arena, sizeof *copy);
    if (copy == NULL)
        return status_out_of_memory();
    *copy = *expr;
    copy->args = args;
    *out = copy;
    return status_ok();
}

status sql_expr_map(const struct sql_expr *expr, struct arena *arena, sql_expr_mapper *map,
                    void *context, const struct sql_expr **out)
{
    *out = NULL;
    TRY(map(context, expr, out));
    if (*out != NULL)
        return status_ok();
    *out = expr;
    return expr->arg_count == 0 ? status_ok() : map_args(expr, arena, map, context, out);
}
