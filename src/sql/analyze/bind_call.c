/* Calls: which kind of function a name is, and its arguments. */
#include "sql/analyze/analyze_private.h"

#include <strings.h>

/* --- date parts --- */

static const char *const weekdays[] = {"SUNDAY",   "MONDAY", "TUESDAY", "WEDNESDAY",
                                       "THURSDAY", "FRIDAY", "SATURDAY"};

static bool find_part(const char *name, const char *weekday, enum sql_part *out)
{
    for (size_t i = 0; weekday != NULL && i < sizeof weekdays / sizeof *weekdays; i++)
        if (strcasecmp(weekdays[i], weekday) == 0) {
            *out = SQL_PART_WEEK + i;
            return strcasecmp(name, "WEEK") == 0;
        }
    *out = SQL_PART_MICROSECOND;
    while (*out <= SQL_PART_NFKD && strcasecmp(sql_part_name(*out), name) != 0)
        ++*out;
    return weekday == NULL && *out <= SQL_PART_NFKD;
}

static status bind_part(const struct binding *binding, const char *function,
                        const struct ast_part *ast, struct argument *out)
{
    enum sql_part part;
    bool normalizes = strncasecmp(function, "NORMALIZE", 9) == 0;
    if (!find_part(ast->name, ast->weekday, &part) || (part >= SQL_PART_NFC) != normalizes)
        return sql_error(binding->analyzer->analysis->text, ast->at,
                         "A valid %s name is required but found %s",
                         normalizes ? "normalization mode" : "date part", ast->name);
    out->is_part = true;
    return new_constant(binding->analyzer, ast->at, &sql_int64, sql_of_int64(part), &out->expr);
}

/* MONTH, which the parser takes for a column, and WEEK(MONDAY), for a call. */
static bool read_part(const struct ast_expr *ast, struct ast_part *out)
{
    *out = (struct ast_part){.at = ast->at};
    if ((ast->kind != AST_PATH && ast->kind != AST_CALL) || ast->name->next != NULL)
        return false;
    out->name = ast->name->text;
    if (ast->kind == AST_PATH)
        return true;
    const struct ast_expr *weekday = ast->operands;
    bool is_one = weekday != NULL && weekday->next == NULL && weekday->kind == AST_PATH &&
                  weekday->name->next == NULL;
    out->weekday = is_one ? weekday->name->text : NULL;
    return is_one;
}

/* Whether a function of the name wants a part there. */
static bool wants_part(const char *name, size_t index)
{
    size_t row = 0;
    for (const struct sql_function *f; (f = function_at(name, &row)) != NULL;)
        if (signature_has_part(f->signature, index))
            return true;
    return false;
}

/* EXTRACT(part FROM x AT TIME ZONE z) */
status bind_extract(const struct binding *binding, const struct ast_expr *ast,
                    const struct sql_expr **out)
{
    struct argument arguments[3] = {0};
    size_t count = 1;
    TRY(bind_part(binding, "EXTRACT", &ast->part, &arguments[0]));
    for (const struct ast_expr *operand = ast->operands; operand != NULL; operand = operand->next)
        TRY(bind_expr(binding, operand, &arguments[count++].expr));
    bool is_date = arguments[0].expr->constant.int64 == SQL_PART_DATE;
    if (is_date) /* its type is another: DATE(x, z) */
        return resolve_function(binding, "DATE", ast->at, arguments + 1, count - 1, false, out);
    return resolve_function(binding, "$extract", ast->at, arguments, count, false, out);
}

/* --- arguments --- */

static size_t most_arguments(const struct ast_expr *list)
{
    size_t count = 0;
    for (; list != NULL; list = list->next)
        count += list->kind == AST_INTERVAL ? 2 : 1; /* its number and its part */
    return count;
}

static status bind_argument(const struct binding *binding, const char *name,
                            const struct ast_expr *ast, struct argument *arguments, size_t *count)
{
    struct argument *argument = &arguments[(*count)++];
    struct ast_part part;
    *argument = (struct argument){.ast = ast};
    if (ast->kind == AST_LAMBDA)
        return status_ok();
    if (ast->kind == AST_INTERVAL) {
        TRY(bind_expr(binding, ast->operands, &argument->expr));
        return bind_part(binding, name, &ast->part, &arguments[(*count)++]);
    }
    if (wants_part(name, *count - 1) && read_part(ast, &part))
        return bind_part(binding, name, &part, argument);
    return bind_expr(binding, ast, &argument->expr);
}

status bind_arguments(const struct binding *binding, const char *name, const struct ast_expr *list,
                      struct argument **out, size_t *count)
{
    *out = arena_alloc(binding->analyzer->arena, most_arguments(list) * sizeof **out);
    if (*out == NULL)
        return status_out_of_memory();
    *count = 0;
    for (; list != NULL; list = list->next)
        TRY(bind_argument(binding, name, list, *out, count));
    return status_ok();
}

/* --- names --- */

static bool function_exists(const char *name)
{
    size_t row = 0;
    return name[0] != '$' && function_at(name, &row) != NULL;
}

static void suggest_functions(struct suggestion *suggestion)
{
    size_t tables;
    const struct sql_function *const *functions = sql_function_tables(&tables);
    for (size_t i = 0; i < tables; i++)
        for (const struct sql_function *f = functions[i]; f->name != NULL; f++)
            suggest(suggestion, f->name);
    const struct sql_aggregate *const *aggregates = sql_aggregate_tables(&tables);
    for (size_t i = 0; i < tables; i++)
        for (const struct sql_aggregate *f = aggregates[i]; f->name != NULL; f++)
            suggest(suggestion, f->name);
}

static status not_found(const struct binding *binding, const char *name, uint32_t at)
{
    struct suggestion suggestion = {.wanted = name};
    suggest_functions(&suggestion);
    bool is_near = suggestion.best != NULL;
    return sql_error(binding->analyzer->analysis->text, at, "Function not found: %s%s%s%s", name,
                     is_near ? "; Did you mean " : "", is_near ? suggestion.best : "",
                     is_near ? "?" : "");
}

/* --- calls --- */

/* What only aggregates may have. */
static status check_plain(const struct binding *binding, const struct ast_expr *ast,
                          const char *name)
{
    const struct ast_call *call = ast->call;
    const char *what = call->is_star                      ? "*"
                       : call->is_distinct                ? "DISTINCT"
                       : call->nulls != AST_NULLS_DEFAULT ? "IGNORE NULLS or RESPECT NULLS"
                       : call->having != AST_HAVING_NONE  ? "HAVING"
                       : call->order != NULL              ? "ORDER BY"
                       : call->limit != NULL              ? "LIMIT"
                                                          : NULL;
    return what == NULL
               ? status_ok()
               : sql_error(binding->analyzer->analysis->text, ast->at,
                           "Non-aggregate function %s cannot be called with %s", name, what);
}

/* CONCAT takes numbers and dates as CAST AS STRING writes them. */
static status cast_to_texts(const struct binding *binding, struct argument *arguments, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct sql_expr *expr = arguments[i].expr;
        bool is_null = expr != NULL && expr->kind == SQL_CONSTANT && expr->constant.is_null;
        if (expr != NULL && !is_null && !sql_is_text(expr->type) && sql_type_has_order(expr->type))
            TRY(new_cast(binding->analyzer, expr, &sql_string, false, &arguments[i].expr));
    }
    return status_ok();
}

static status bind_plain(const struct binding *binding, const struct ast_expr *ast,
                         const char *name, bool is_safe, const struct sql_expr **out)
{
    struct argument *arguments;
    size_t count;
    TRY(check_plain(binding, ast, name));
    if (strcasecmp(name, "IF") == 0)
        return bind_if(binding, ast, out);
    if (strcasecmp(name, "COALESCE") == 0 || strcasecmp(name, "IFNULL") == 0)
        return bind_coalesce(binding, ast, out);
    bool is_view_only = strcasecmp(name, "VIEW_PARAMETERS") == 0;
    if (!function_exists(name))
        return not_found(binding, name, ast->at);
    if (is_view_only && !binding->analyzer->analysis->is_view)
        return sql_error(binding->analyzer->analysis->text, ast->at,
                         "%s is allowed in the query of a logical view only", name);
    TRY(bind_arguments(binding, name, ast->operands, &arguments, &count));
    if (strcasecmp(name, "CONCAT") == 0)
        TRY(cast_to_texts(binding, arguments, count));
    return resolve_function(binding, name, ast->at, arguments, count, is_safe, out);
}

status bind_call(const struct binding *binding, const struct ast_expr *ast,
                 const struct sql_expr **out)
{
    char *name;
    bool is_aggregate;
    bool is_safe = ast->name->next != NULL && strcasecmp(ast->name->text, "SAFE") == 0;
    TRY(join_names(binding->analyzer, is_safe ? ast->name->next : ast->name, &name));
    if (ast->call->over != NULL || is_window_function(name))
        return bind_window(binding, ast, name, out);
    TRY(bind_aggregate(binding, ast, name, &is_aggregate, out));
    return is_aggregate ? status_ok() : bind_plain(binding, ast, name, is_safe, out);
}
