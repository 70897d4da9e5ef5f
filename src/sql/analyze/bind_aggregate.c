/* Aggregate functions: collected where they stand, computed before the expression around them. */
#include "sql/analyze/analyze_private.h"

#include <limits.h>
#include <strings.h>

static status complain(const struct binding *binding, const struct ast_expr *ast, const char *name,
                       const char *what)
{
    return sql_error(binding->analyzer->analysis->text, ast->at, "Aggregate function %s %s", name,
                     what);
}

static status check_place(const struct binding *binding, const struct ast_expr *ast,
                          const char *name)
{
    if (binding->in_aggregate)
        return sql_error(binding->analyzer->analysis->text, ast->at,
                         "Aggregations of aggregations are not allowed");
    if (binding->aggregates != NULL)
        return status_ok();
    return sql_error(binding->analyzer->analysis->text, ast->at,
                     "Aggregate function %s not allowed in %s", name, binding->clause);
}

/* --- the function --- */

static status choose(const struct binding *binding, const struct ast_expr *ast, const char *name,
                     struct sql_aggregation *out)
{
    struct argument *arguments;
    size_t count, row = 0;
    int least = INT_MAX;
    const char *wanted = ast->call->is_star ? "$count_star" : name;
    TRY(bind_arguments(binding, name, ast->operands, &arguments, &count));
    for (const struct sql_aggregate *f; (f = aggregate_at(wanted, &row)) != NULL && least > 0;) {
        bool fits;
        int cost;
        TRY(match_signature(binding, f->signature, arguments, count, &fits, &cost, NULL));
        if (fits && cost < least) {
            out->function = f;
            least = cost;
        }
    }
    if (out->function == NULL)
        return no_matching_signature(binding, name, ast->at, arguments, count);
    bool fits;
    struct resolved resolved;
    TRY(match_signature(binding, out->function->signature, arguments, count, &fits, &least,
                        &resolved));
    out->args = resolved.args;
    out->arg_count = resolved.arg_count;
    out->type = resolved.type;
    return fits ? status_ok() : no_matching_signature(binding, name, ast->at, arguments, count);
}

static status set_types(const struct binding *binding, struct sql_aggregation *out)
{
    const struct sql_type **types =
        arena_alloc(binding->analyzer->arena, out->arg_count * sizeof *types);
    if (types == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < out->arg_count; i++)
        types[i] = out->args[i]->type;
    out->types = types;
    return status_ok();
}

/* --- what may be said beside the arguments --- */

static status check_modifiers(const struct binding *binding, const struct ast_expr *ast,
                              const char *name, const struct sql_aggregation *aggregation)
{
    const struct ast_call *call = ast->call;
    unsigned flags = aggregation->function->flags;
    if (call->is_distinct && ((flags & SQL_NOT_DISTINCT) != 0 || aggregation->arg_count == 0))
        return complain(binding, ast, name, "does not support DISTINCT in arguments");
    if (call->is_distinct && !sql_type_is_groupable(aggregation->types[0]))
        return complain(binding, ast, name,
                        "with DISTINCT cannot be used with arguments that cannot be compared");
    if (call->nulls != AST_NULLS_DEFAULT && (flags & SQL_ALLOWS_NULLS) == 0)
        return complain(binding, ast, name, "does not support IGNORE NULLS or RESPECT NULLS");
    if (call->order != NULL && (flags & SQL_ALLOWS_ORDER) == 0)
        return complain(binding, ast, name, "does not support ORDER BY in arguments");
    if (call->limit != NULL && (flags & SQL_ALLOWS_ORDER) == 0)
        return complain(binding, ast, name, "does not support LIMIT in arguments");
    return status_ok();
}

status add_order(const struct binding *binding, const struct ast_order *ast,
                 const struct sql_expr *expr, struct vector *orders)
{
    struct sql_order order = {.expr = expr, .is_descending = ast->is_descending};
    if (!sql_type_is_orderable(expr->type))
        return sql_error(binding->analyzer->analysis->text, expr->at,
                         "ORDER BY does not support expressions of type %s",
                         type_words(binding->analyzer, expr->type));
    order.nulls_last =
        ast->nulls == AST_NULLS_UNSAID ? ast->is_descending : ast->nulls == AST_NULLS_LAST;
    return vector_add(orders, binding->analyzer->arena, &order, sizeof order);
}

status bind_orders(const struct binding *binding, const struct ast_order *list,
                   const struct sql_order **out, size_t *count)
{
    struct vector orders = {0};
    for (; list != NULL; list = list->next) {
        const struct sql_expr *expr;
        TRY(bind_expr(binding, list->expr, &expr));
        TRY(add_order(binding, list, expr, &orders));
    }
    *out = orders.items;
    *count = orders.count;
    return status_ok();
}

static status bind_modifiers(const struct binding *binding, const struct ast_expr *ast,
                             const char *name, struct sql_aggregation *out)
{
    const struct ast_call *call = ast->call;
    TRY(check_modifiers(binding, ast, name, out));
    out->is_distinct = call->is_distinct;
    out->ignores_nulls =
        call->nulls == AST_NULLS_IGNORE ||
        (call->nulls == AST_NULLS_DEFAULT && (out->function->flags & SQL_AGGREGATES_NULLS) == 0);
    out->having_is_max = call->having == AST_HAVING_MAX;
    if (call->having_operand != NULL)
        TRY(bind_expr(binding, call->having_operand, &out->having));
    TRY(bind_orders(binding, call->order, &out->orders, &out->order_count));
    if (out->is_distinct && out->order_count > 0 &&
        (out->order_count > 1 || !sql_expr_equal(out->orders[0].expr, out->args[0])))
        return complain(binding, ast, name,
                        "that has both DISTINCT and ORDER BY arguments can only ORDER BY columns "
                        "that are arguments to the function");
    if (call->limit != NULL)
        TRY(bind_fixed(binding->analyzer, call->limit, "LIMIT", &sql_int64, &out->limit));
    return status_ok();
}

status make_aggregation(const struct binding *binding, const struct ast_expr *ast, const char *name,
                        struct sql_aggregation *out)
{
    *out = (struct sql_aggregation){0};
    TRY(choose(binding, ast, name, out));
    TRY(set_types(binding, out));
    return bind_modifiers(binding, ast, name, out);
}

bool is_aggregate_function(const char *name)
{
    size_t row = 0;
    return name[0] != '$' && aggregate_at(name, &row) != NULL;
}

status bind_aggregate(const struct binding *binding, const struct ast_expr *ast, const char *name,
                      bool *is_aggregate, const struct sql_expr **out)
{
    *is_aggregate = is_aggregate_function(name);
    if (!*is_aggregate)
        return status_ok();
    TRY(check_place(binding, ast, name));
    struct binding inner = *binding;
    struct sql_aggregation aggregation;
    inner.in_aggregate = true;
    inner.windows = NULL;
    TRY(make_aggregation(&inner, ast, name, &aggregation));
    struct sql_expr *placeholder =
        new_bound(binding->analyzer, SQL_AGGREGATED, ast->at, aggregation.type);
    if (placeholder == NULL)
        return status_out_of_memory();
    placeholder->index = binding->aggregates->count;
    *out = placeholder;
    return vector_add(binding->aggregates, binding->analyzer->arena, &aggregation,
                      sizeof aggregation);
}
