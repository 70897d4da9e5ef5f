/* Literals. */
#include "sql/analyze/analyze_private.h"
#include "sql/functions/cast.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <strings.h>

static status literal(struct analyzer *analyzer, uint32_t at, const struct sql_type *type,
                      struct sql_value value, const struct sql_expr **out)
{
    struct sql_expr *expr = new_bound(analyzer, SQL_CONSTANT, at, type);
    if (expr == NULL)
        return status_out_of_memory();
    expr->constant = value;
    expr->is_literal = true;
    *out = expr;
    return status_ok();
}

static status bind_integer(struct analyzer *analyzer, const struct ast_expr *ast, bool is_negative,
                           const struct sql_expr **out)
{
    bool is_hex = ast->text[0] == '0' && (ast->text[1] == 'x' || ast->text[1] == 'X');
    errno = 0;
    uint64_t magnitude = strtoull(ast->text, NULL, is_hex ? 16 : 10);
    uint64_t most = (uint64_t)INT64_MAX + is_negative;
    if (errno != 0 || magnitude > most || (is_hex && ast->text[2] == '\0'))
        return sql_error(analyzer->analysis->text, ast->at, "Invalid integer literal: %s%s",
                         is_negative ? "-" : "", ast->text);
    int64_t value = (int64_t)(is_negative ? 0 - magnitude : magnitude);
    return literal(analyzer, ast->at, &sql_int64, sql_of_int64(value), out);
}

static status bind_float(struct analyzer *analyzer, const struct ast_expr *ast, bool is_negative,
                         const struct sql_expr **out)
{
    double value = strtod(ast->text, NULL);
    if (isinf(value))
        return sql_error(analyzer->analysis->text, ast->at, "Invalid floating point literal: %s",
                         ast->text);
    return literal(analyzer, ast->at, &sql_float64, sql_of_float64(is_negative ? -value : value),
                   out);
}

/* DATE '2014-09-27': checked here and now. */
static status bind_typed(const struct binding *binding, const struct ast_expr *ast,
                         const struct sql_expr **out)
{
    struct analyzer *analyzer = binding->analyzer;
    const struct sql_type *type = sql_type_named(bytes_of(ast->name->text));
    if (type == NULL || (type->kind != SQL_DATE && type->kind != SQL_TIMESTAMP))
        return sql_error(analyzer->analysis->text, ast->at, "%s literals are not supported",
                         ast->name->text);
    const struct sql_type *from = &sql_string;
    struct sql_call call = {.arena = analyzer->arena,
                            .type = type,
                            .types = &from,
                            .session = analyzer->analysis->session};
    struct sql_value text = sql_of_text(ast->operands->literal);
    struct sql_value value;
    status result = sql_cast_value(&call, from, type, &text, &value);
    if (result.code == STATUS_RESOURCE_EXHAUSTED)
        return result;
    if (!status_is_ok(result)) {
        status_free(result);
        return sql_error(analyzer->analysis->text, ast->at, "Invalid %s literal",
                         type->kind == SQL_DATE ? "DATE" : "TIMESTAMP");
    }
    return new_constant(analyzer, ast->at, type, value, out);
}

status bind_literal(const struct binding *binding, const struct ast_expr *ast,
                    const struct sql_expr **out)
{
    struct analyzer *analyzer = binding->analyzer;
    switch (ast->kind) {
    case AST_NULL:
        return literal(analyzer, ast->at, &sql_int64, sql_null(), out);
    case AST_TRUE:
    case AST_FALSE:
        return literal(analyzer, ast->at, &sql_bool, sql_of_bool(ast->kind == AST_TRUE), out);
    case AST_INTEGER:
        return bind_integer(analyzer, ast, false, out);
    case AST_FLOAT:
        return bind_float(analyzer, ast, false, out);
    case AST_STRING:
        return literal(analyzer, ast->at, &sql_string, sql_of_text(ast->literal), out);
    case AST_BYTES:
        return literal(analyzer, ast->at, &sql_bytes, sql_of_text(ast->literal), out);
    default:
        return bind_typed(binding, ast, out);
    }
}

/* The sign is an operator, but -9223372036854775808 is a literal all the same. */
status bind_negative(const struct binding *binding, const struct ast_expr *ast, bool *is_literal,
                     const struct sql_expr **out)
{
    const struct ast_expr *operand = ast->operands;
    *is_literal =
        !operand->is_parenthesized && (operand->kind == AST_INTEGER || operand->kind == AST_FLOAT);
    if (!*is_literal)
        return status_ok();
    return operand->kind == AST_INTEGER ? bind_integer(binding->analyzer, operand, true, out)
                                        : bind_float(binding->analyzer, operand, true, out);
}
