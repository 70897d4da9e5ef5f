/* Window functions: f(…) OVER (…), collected where they stand, computed after grouping. */
#include "sql/analyze/analyze_private.h"

#include <ctype.h>
#include <limits.h>
#include <strings.h>

enum { MOST_NAMED = 100 }; /* windows that begin with each other: a loop, beyond */

/* What is computed of a window alone; aggregates may have an OVER, too. */
static const struct window_function {
    const char *name;
    enum sql_window_kind kind;
    const char *signature;
    bool needs_order;
    bool has_frame;
    bool allows_nulls;
} functions[] = {
    {"ROW_NUMBER", SQL_WINDOW_ROW_NUMBER, "INT64()", false, false, false},
    {"RANK", SQL_WINDOW_RANK, "INT64()", true, false, false},
    {"DENSE_RANK", SQL_WINDOW_DENSE_RANK, "INT64()", true, false, false},
    {"PERCENT_RANK", SQL_WINDOW_PERCENT_RANK, "FLOAT64()", true, false, false},
    {"CUME_DIST", SQL_WINDOW_CUME_DIST, "FLOAT64()", true, false, false},
    {"NTILE", SQL_WINDOW_NTILE, "INT64(INT64)", true, false, false},
    {"FIRST_VALUE", SQL_WINDOW_FIRST_VALUE, "T(T)", true, true, true},
    {"LAST_VALUE", SQL_WINDOW_LAST_VALUE, "T(T)", true, true, true},
    {"NTH_VALUE", SQL_WINDOW_NTH_VALUE, "T(T, INT64)", true, true, true},
    {"LEAD", SQL_WINDOW_LEAD, "T(T, [INT64], [T])", true, false, false},
    {"LAG", SQL_WINDOW_LAG, "T(T, [INT64], [T])", true, false, false},
    {"PERCENTILE_CONT", SQL_WINDOW_PERCENTILE_CONT, "FLOAT64(FLOAT64, FLOAT64)", false, false,
     true},
    {"PERCENTILE_DISC", SQL_WINDOW_PERCENTILE_DISC, "T(T:orderable, FLOAT64)", false, false, true},
};

static const struct window_function *find(const char *name)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (strcasecmp(functions[i].name, name) == 0)
            return &functions[i];
    return NULL;
}

bool is_window_function(const char *name)
{
    return find(name) != NULL;
}

const char *sql_window_function_name(size_t index)
{
    return index < sizeof functions / sizeof *functions ? functions[index].name : NULL;
}

static status complain(const struct binding *binding, const struct ast_expr *ast, const char *name,
                       const char *what)
{
    return sql_error(binding->analyzer->analysis->text, ast->at, "Analytic function %s %s", name,
                     what);
}

/* --- the window: its own words, then those of the window that it begins with --- */

static const struct ast_window *find_named(const struct binding *binding, const char *name)
{
    const struct ast_window *window = binding->named_windows;
    while (window != NULL && strcasecmp(window->name, name) != 0)
        window = window->next;
    return window;
}

static status merge_named(const struct binding *binding, struct ast_window *window)
{
    for (unsigned i = 0; window->base != NULL; i++) {
        const struct ast_window *base = find_named(binding, window->base);
        if (base == NULL || i > MOST_NAMED)
            return sql_error(binding->analyzer->analysis->text, window->at,
                             "Unrecognized window alias %s", window->base);
        bool is_twice = window->partition != NULL ||
                        (window->order != NULL && base->order != NULL) ||
                        base->frame != AST_FRAME_DEFAULT;
        bool is_alone = window->partition == NULL && window->order == NULL &&
                        window->frame == AST_FRAME_DEFAULT;
        if (is_twice && !is_alone)
            return sql_error(binding->analyzer->analysis->text, window->at,
                             "A window that begins with %s cannot say what that one says already",
                             window->base);
        window->partition = base->partition;
        if (window->order == NULL)
            window->order = base->order;
        if (window->frame == AST_FRAME_DEFAULT) {
            window->frame = base->frame;
            window->start = base->start;
            window->end = base->end;
        }
        window->base = base->base;
    }
    return status_ok();
}

static status bind_bound(const struct binding *binding, const struct ast_bound *ast,
                         const struct sql_type *type, struct sql_frame_bound *out)
{
    static const enum sql_bound_place places[] = {
        [AST_UNBOUNDED_PRECEDING] = SQL_FRAME_UNBOUNDED_PRECEDING,
        [AST_PRECEDING] = SQL_FRAME_PRECEDING,
        [AST_CURRENT_ROW] = SQL_FRAME_CURRENT,
        [AST_FOLLOWING] = SQL_FRAME_FOLLOWING,
        [AST_UNBOUNDED_FOLLOWING] = SQL_FRAME_UNBOUNDED_FOLLOWING};
    out->place = places[ast->kind];
    return ast->offset == NULL
               ? status_ok()
               : bind_fixed(binding->analyzer, ast->offset, "A window frame", type, &out->offset);
}

static status bind_frame(const struct binding *binding, const struct ast_window *ast,
                         struct sql_window *out)
{
    bool has_offset = ast->start.offset != NULL || ast->end.offset != NULL;
    const struct sql_type *type = &sql_int64;
    out->is_range = ast->frame != AST_FRAME_ROWS;
    if (ast->frame == AST_FRAME_DEFAULT) {
        out->start.place = SQL_FRAME_UNBOUNDED_PRECEDING;
        out->end.place = out->order_count > 0 ? SQL_FRAME_CURRENT : SQL_FRAME_UNBOUNDED_FOLLOWING;
        return status_ok();
    }
    if (out->is_range && has_offset) {
        if (out->order_count != 1 || !sql_is_number(out->orders[0].expr->type))
            return sql_error(binding->analyzer->analysis->text, ast->at,
                             "RANGE with an offset needs ORDER BY of one number");
        type = out->orders[0].expr->type;
    }
    TRY(bind_bound(binding, &ast->start, type, &out->start));
    TRY(bind_bound(binding, &ast->end, type, &out->end));
    bool is_empty = out->start.place > out->end.place;
    return is_empty ? sql_error(binding->analyzer->analysis->text, ast->at,
                                "The starting window frame boundary cannot come after the ending "
                                "window frame boundary")
                    : status_ok();
}

static status bind_partition(const struct binding *binding, const struct ast_window *ast,
                             struct sql_window *out)
{
    TRY(bind_exprs(binding, ast->partition, &out->partition, &out->partition_count));
    for (size_t i = 0; i < out->partition_count; i++)
        if (!sql_type_is_groupable(out->partition[i]->type))
            return sql_error(binding->analyzer->analysis->text, out->partition[i]->at,
                             "Partitioning by expressions of this type is not allowed");
    return bind_orders(binding, ast->order, &out->orders, &out->order_count);
}

/* --- the function --- */

static status bind_own(const struct binding *binding, const struct ast_expr *ast,
                       const struct window_function *function, struct sql_window *out)
{
    struct argument *arguments;
    struct resolved resolved;
    size_t count;
    bool fits;
    int cost;
    TRY(bind_arguments(binding, function->name, ast->operands, &arguments, &count));
    TRY(match_signature(binding, function->signature, arguments, count, &fits, &cost, &resolved));
    if (!fits)
        return no_matching_signature(binding, function->name, ast->at, arguments, count);
    if (ast->call->nulls != AST_NULLS_DEFAULT && !function->allows_nulls)
        return complain(binding, ast, function->name, "does not support IGNORE or RESPECT NULLS");
    bool is_percentile = function->kind >= SQL_WINDOW_PERCENTILE_CONT;
    out->ignores_nulls = ast->call->nulls == AST_NULLS_IGNORE ||
                         (is_percentile && ast->call->nulls == AST_NULLS_DEFAULT);
    out->kind = function->kind;
    out->type = resolved.type;
    out->args = resolved.args;
    out->arg_count = resolved.arg_count;
    return status_ok();
}

static status bind_aggregation(const struct binding *binding, const struct ast_expr *ast,
                               const char *name, struct sql_window *out)
{
    struct sql_aggregation *aggregation =
        arena_alloc(binding->analyzer->arena, sizeof *aggregation);
    if (aggregation == NULL)
        return status_out_of_memory();
    TRY(make_aggregation(binding, ast, name, aggregation));
    if (aggregation->order_count > 0 || aggregation->limit != NULL || aggregation->having != NULL)
        return complain(binding, ast, name,
                        "does not support ORDER BY, LIMIT or HAVING in its arguments");
    out->kind = SQL_WINDOW_AGGREGATE;
    out->type = aggregation->type;
    out->aggregation = aggregation;
    out->args = aggregation->args;
    out->arg_count = aggregation->arg_count;
    return status_ok();
}

static status check_window(const struct binding *binding, const struct ast_expr *ast,
                           const struct window_function *function, const struct ast_window *window,
                           size_t orders)
{
    if (function == NULL)
        return status_ok();
    const char *lacks = function->needs_order && orders == 0 ? "ORDER BY is required" : NULL;
    if (!function->has_frame && window->frame != AST_FRAME_DEFAULT)
        lacks = "framing clause is not allowed";
    if (lacks == NULL)
        return status_ok();
    char name[24] = ""; /* GoogleSQL has it in small letters here */
    for (size_t i = 0; i + 1 < sizeof name && function->name[i] != '\0'; i++)
        name[i] = (char)tolower((unsigned char)function->name[i]);
    return sql_error(binding->analyzer->analysis->text, ast->call->over->at,
                     "Window %s for analytic function %s", lacks, name);
}

static status make_window(const struct binding *binding, const struct ast_expr *ast,
                          const char *name, struct sql_window *out)
{
    const struct window_function *function = find(name);
    struct ast_window window = *ast->call->over;
    if (function == NULL && !is_aggregate_function(name))
        return sql_error(binding->analyzer->analysis->text, ast->at,
                         "Function %s cannot be called with an OVER clause", name);
    if (function != NULL)
        TRY(bind_own(binding, ast, function, out));
    else
        TRY(bind_aggregation(binding, ast, name, out));
    TRY(merge_named(binding, &window));
    TRY(bind_partition(binding, &window, out));
    TRY(check_window(binding, ast, function, &window, out->order_count));
    return bind_frame(binding, &window, out);
}

status bind_window(const struct binding *binding, const struct ast_expr *ast, const char *name,
                   const struct sql_expr **out)
{
    struct sql_window window = {0};
    if (ast->call->over == NULL)
        return complain(binding, ast, name, "cannot be called without an OVER clause");
    if (binding->windows == NULL)
        return sql_error(binding->analyzer->analysis->text, ast->at,
                         "Analytic function %s not allowed in %s", name, binding->clause);
    struct binding inner = *binding;
    inner.windows = NULL; /* none within another; aggregates are fine, they come first */
    TRY(make_window(&inner, ast, name, &window));
    struct sql_expr *placeholder = new_bound(binding->analyzer, SQL_WINDOWED, ast->at, window.type);
    if (placeholder == NULL)
        return status_out_of_memory();
    placeholder->index = binding->windows->count;
    *out = placeholder;
    return vector_add(binding->windows, binding->analyzer->arena, &window, sizeof window);
}
