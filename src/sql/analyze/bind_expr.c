/* Expressions: which file binds which, and operators. */
#include "base/check.h"
#include "sql/analyze/analyze_private.h"

/* --- lists --- */

static size_t count_exprs(const struct ast_expr *list)
{
    size_t count = 0;
    for (; list != NULL; list = list->next)
        count++;
    return count;
}

status bind_exprs(const struct binding *binding, const struct ast_expr *list,
                  const struct sql_expr *const **out, size_t *count)
{
    *count = count_exprs(list);
    const struct sql_expr **exprs = arena_alloc(binding->analyzer->arena, *count * sizeof *exprs);
    if (exprs == NULL)
        return status_out_of_memory();
    *out = exprs;
    for (; list != NULL; list = list->next)
        TRY(bind_expr(binding, list, exprs++));
    return status_ok();
}

/* --- operators that are functions --- */

/* The operator of all operands, and NOT of it if the text says so. */
static status bind_as_function(const struct binding *binding, const struct ast_expr *ast,
                               const char *name, const struct sql_expr **out)
{
    const struct sql_expr *const *args;
    size_t count;
    TRY(bind_exprs(binding, ast->operands, &args, &count));
    TRY(resolve_operator(binding, name, ast->at, args, count, out));
    return ast->is_not ? resolve_operator(binding, "$not", ast->at, out, 1, out) : status_ok();
}

static const char *binary_name(enum ast_operator operator_)
{
    static const char *const names[] = {
        [AST_NEGATE] = "$negate",
        [AST_BIT_NOT] = "$bit_not",
        [AST_NOT] = "$not",
        [AST_MULTIPLY] = "$multiply",
        [AST_DIVIDE] = "$divide",
        [AST_CONCAT] = "$concat",
        [AST_ADD] = "$add",
        [AST_SUBTRACT] = "$subtract",
        [AST_SHIFT_LEFT] = "$shift_left",
        [AST_SHIFT_RIGHT] = "$shift_right",
        [AST_BIT_AND] = "$bit_and",
        [AST_BIT_XOR] = "$bit_xor",
        [AST_BIT_OR] = "$bit_or",
        [AST_EQUAL] = "$equal",
        [AST_NOT_EQUAL] = "$not_equal",
        [AST_LESS] = "$less",
        [AST_LESS_EQUAL] = "$less_equal",
        [AST_GREATER] = "$greater",
        [AST_GREATER_EQUAL] = "$greater_equal",
        [AST_LIKE] = "$like",
    };
    return names[operator_];
}

static status not_boolean(const struct binding *binding, const struct ast_expr *ast,
                          const struct sql_expr *const *args, size_t count)
{
    struct argument *arguments = arena_zalloc(binding->analyzer->arena, count * sizeof *arguments);
    if (arguments == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < count; i++)
        arguments[i].expr = args[i];
    const char *name = ast->operator_ == AST_AND ? "$AND" : "$OR";
    return no_matching_signature(binding, name, ast->at, arguments, count);
}

static status bind_logical(const struct binding *binding, const struct ast_expr *ast,
                           const struct sql_expr **out)
{
    const struct sql_expr *const *args;
    const struct sql_expr **coerced;
    size_t count;
    TRY(bind_exprs(binding, ast->operands, &args, &count));
    coerced = arena_alloc(binding->analyzer->arena, count * sizeof *coerced);
    enum sql_expr_kind kind = ast->operator_ == AST_AND ? SQL_AND : SQL_OR;
    struct sql_expr *whole = new_bound(binding->analyzer, kind, ast->at, &sql_bool);
    if (whole == NULL || coerced == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < count; i++) {
        if (coercion_cost(args[i], &sql_bool) < 0)
            return not_boolean(binding, ast, args, count);
        TRY(coerce(binding, args[i], &sql_bool, &coerced[i]));
    }
    TRY(set_args(binding->analyzer, whole, coerced, count));
    *out = fold_constant(binding->analyzer, whole);
    return status_ok();
}

static status bind_unary(const struct binding *binding, const struct ast_expr *ast,
                         const struct sql_expr **out)
{
    bool is_literal = false;
    if (ast->operator_ == AST_NEGATE)
        TRY(bind_negative(binding, ast, &is_literal, out));
    if (is_literal)
        return status_ok();
    if (ast->operator_ != AST_PLUS)
        return bind_as_function(binding, ast, binary_name(ast->operator_), out);
    TRY(bind_expr(binding, ast->operands, out));
    if (sql_is_number((*out)->type))
        return status_ok();
    struct argument argument = {.expr = *out};
    return no_matching_signature(binding, "$+", ast->at, &argument, 1);
}

static status bind_binary(const struct binding *binding, const struct ast_expr *ast,
                          const struct sql_expr **out)
{
    if (ast->operator_ == AST_AND || ast->operator_ == AST_OR)
        return bind_logical(binding, ast, out);
    return bind_as_function(binding, ast, binary_name(ast->operator_), out);
}

static status bind_is(const struct binding *binding, const struct ast_expr *ast,
                      const struct sql_expr **out)
{
    static const char *const names[] = {[AST_IS_NULL] = "$is_null",
                                        [AST_IS_TRUE] = "$is_true",
                                        [AST_IS_FALSE] = "$is_false",
                                        [AST_IS_UNKNOWN] = "$is_unknown"};
    return bind_as_function(binding, ast, names[ast->predicate], out);
}

static status refuse_subquery(const struct binding *binding, const struct ast_expr *ast)
{
    return sql_error(binding->analyzer->analysis->text, ast->at, "Subqueries are not supported");
}

/* --- all of them --- */

status bind_expr(const struct binding *binding, const struct ast_expr *ast,
                 const struct sql_expr **out)
{
    switch (ast->kind) {
    case AST_NULL:
    case AST_TRUE:
    case AST_FALSE:
    case AST_INTEGER:
    case AST_FLOAT:
    case AST_STRING:
    case AST_BYTES:
    case AST_TYPED:
        return bind_literal(binding, ast, out);
    case AST_PARAMETER:
        return bind_parameter(binding, ast, out);
    case AST_PATH:
        return bind_path(binding, ast, out);
    case AST_DOT: {
        const struct sql_expr *of = NULL;
        TRY(bind_expr(binding, ast->operands, &of));
        CHECK(of != NULL);
        return bind_field(binding, of, ast->text, ast->at, out);
    }
    case AST_SUBSCRIPT:
        return bind_subscript(binding, ast, out);
    case AST_UNARY:
        return bind_unary(binding, ast, out);
    case AST_BINARY:
        return bind_binary(binding, ast, out);
    case AST_LIKE_QUANTIFIED:
        return bind_as_function(binding, ast,
                                ast->quantifier == AST_ANY ? "$like_any" : "$like_all", out);
    case AST_BETWEEN:
        return bind_as_function(binding, ast, "$between", out);
    case AST_IN:
        return bind_as_function(binding, ast, "$in", out);
    case AST_IN_UNNEST:
        return bind_as_function(binding, ast, "$in_array", out);
    case AST_IS:
        return bind_is(binding, ast, out);
    case AST_IS_DISTINCT:
        return bind_as_function(binding, ast, "$is_distinct", out);
    case AST_CASE:
        return bind_case(binding, ast, out);
    case AST_CAST:
        return bind_cast(binding, ast, out);
    case AST_EXTRACT:
        return bind_extract(binding, ast, out);
    case AST_CALL:
        return bind_call(binding, ast, out);
    case AST_ARRAY:
        return bind_array(binding, ast, out);
    case AST_STRUCT:
        return bind_struct(binding, ast, out);
    case AST_IN_QUERY:
    case AST_SUBQUERY:
        return refuse_subquery(binding, ast);
    case AST_INTERVAL:
        return sql_error(binding->analyzer->analysis->text, ast->at,
                         "INTERVAL is supported only as an argument of a date function");
    case AST_NAMED_ARGUMENT:
    case AST_LAMBDA:
        break;
    }
    return sql_error(binding->analyzer->analysis->text, ast->at,
                     "Lambdas and named arguments are supported only as arguments of functions "
                     "that take them");
}

status bind_condition(const struct binding *binding, const struct ast_expr *ast,
                      const struct sql_expr **out)
{
    const struct sql_expr *condition;
    TRY(bind_expr(binding, ast, &condition));
    if (coercion_cost(condition, &sql_bool) >= 0)
        return coerce(binding, condition, &sql_bool, out);
    return sql_error(binding->analyzer->analysis->text, ast->at,
                     "%s should return type BOOL, but returns %s", binding->clause,
                     type_words(binding->analyzer, condition->type));
}

status bind_fixed(struct analyzer *analyzer, const struct ast_expr *ast, const char *clause,
                  const struct sql_type *type, const struct sql_expr **out)
{
    struct binding binding = {.analyzer = analyzer, .clause = clause};
    const struct sql_expr *expr;
    TRY(bind_expr(&binding, ast, &expr));
    if (coercion_cost(expr, type) >= 0)
        return coerce(&binding, expr, type, out);
    return sql_error(analyzer->analysis->text, ast->at, "%s expects an expression of type %s",
                     clause, type_words(analyzer, type));
}
