/* Coercion: what an expression can be beside what it is.
 *
 * Literals and parameters can be more than other expressions: a string literal is a DATE where one
 * is wanted, and bytes (which Bigtable adds to GoogleSQL: `_key = 'r1'`); a string parameter is a
 * DATE, but not bytes. docs/reference/sql.md has the table. */
#include "sql/analyze/analyze_private.h"
#include "sql/functions/cast.h"

enum cost {
    COST_NONE = 0,
    COST_UNTYPED = 1,
    COST_LITERAL = 2,
    COST_WIDER = 3,
    COST_IMPOSSIBLE = -1
};

/* Whether values of the type may be written as a literal of the other. */
static bool literal_can_be(enum sql_kind from, enum sql_kind to)
{
    switch (from) {
    case SQL_INT64:
        return to == SQL_FLOAT32 || to == SQL_FLOAT64 || to == SQL_ENUM;
    case SQL_FLOAT64:
        return to == SQL_FLOAT32;
    case SQL_STRING:
        return to == SQL_DATE || to == SQL_TIMESTAMP || to == SQL_ENUM || to == SQL_BYTES;
    default:
        return from == SQL_BYTES && to == SQL_PROTO;
    }
}

static bool parameter_can_be(enum sql_kind from, enum sql_kind to)
{
    if (from == SQL_STRING)
        return to == SQL_DATE || to == SQL_TIMESTAMP || to == SQL_ENUM;
    return (from == SQL_INT64 && to == SQL_ENUM) || (from == SQL_BYTES && to == SQL_PROTO);
}

static bool is_wider(const struct sql_type *from, const struct sql_type *to)
{
    return to->kind == SQL_FLOAT64 && (from->kind == SQL_INT64 || from->kind == SQL_FLOAT32);
}

/* Of […] and (…), element by element. */
static int items_cost(const struct sql_expr *expr, const struct sql_type *to)
{
    bool fits = to->kind == SQL_ARRAY ? expr->type->kind == SQL_ARRAY
                                      : to->kind == SQL_STRUCT && expr->type->kind == SQL_STRUCT &&
                                            to->field_count == expr->arg_count;
    int worst = fits ? COST_UNTYPED : COST_IMPOSSIBLE;
    for (size_t i = 0; i < expr->arg_count && worst >= 0; i++) {
        int cost = coercion_cost(expr->args[i], sql_item_type(to, i));
        if (cost < 0 || cost > worst)
            worst = cost;
    }
    return worst;
}

/* Of what is no literal. Structs are as their fields are, whose names do not matter. */
static int type_cost(const struct sql_type *from, const struct sql_type *to)
{
    if (sql_type_equal(from, to))
        return COST_NONE;
    if (from->kind != SQL_STRUCT || to->kind != SQL_STRUCT || from->field_count != to->field_count)
        return is_wider(from, to) ? COST_WIDER : COST_IMPOSSIBLE;
    int worst = COST_UNTYPED;
    for (size_t i = 0; i < from->field_count && worst >= 0; i++) {
        int cost = type_cost(from->fields[i].type, to->fields[i].type);
        if (cost < 0 || cost > worst)
            worst = cost;
    }
    return worst;
}

int coercion_cost(const struct sql_expr *expr, const struct sql_type *to)
{
    const struct sql_type *from = expr->type;
    if (is_null_literal(expr))
        return COST_UNTYPED;
    if (sql_type_equal(from, to))
        return COST_NONE;
    if (expr->kind == SQL_ITEMS && expr->is_literal)
        return items_cost(expr, to);
    if (expr->kind == SQL_CONSTANT && expr->is_literal && literal_can_be(from->kind, to->kind))
        return COST_LITERAL;
    if (expr->kind == SQL_PARAMETER && parameter_can_be(from->kind, to->kind))
        return COST_LITERAL;
    return type_cost(from, to);
}

/* --- doing it --- */

static status bad_literal(struct analyzer *analyzer, const struct sql_expr *literal,
                          const struct sql_type *to)
{
    struct buffer words = {0};
    sql_value_append_literal(&words, literal->type, &literal->constant);
    buffer_append_byte(&words, '\0');
    status error = words.failed ? status_out_of_memory()
                                : sql_error(analyzer->analysis->text, literal->at,
                                            "Could not cast literal %s to type %s",
                                            (char *)words.data, type_words(analyzer, to));
    buffer_free(&words);
    return error;
}

status cast_literal(const struct binding *binding, const struct sql_expr *expr,
                    const struct sql_type *to, const struct sql_expr **out)
{
    struct analyzer *analyzer = binding->analyzer;
    struct sql_call call = {.arena = analyzer->arena,
                            .type = to,
                            .types = &expr->type,
                            .session = analyzer->analysis->session};
    struct sql_value value;
    status result = sql_cast_value(&call, expr->type, to, &expr->constant, &value);
    if (result.code == STATUS_RESOURCE_EXHAUSTED)
        return result;
    if (!status_is_ok(result)) {
        status_free(result);
        return bad_literal(analyzer, expr, to);
    }
    return new_constant(analyzer, expr->at, to, value, out);
}

static status coerce_items(const struct binding *binding, const struct sql_expr *expr,
                           const struct sql_type *to, const struct sql_expr **out)
{
    struct analyzer *analyzer = binding->analyzer;
    struct sql_expr *items = new_bound(analyzer, SQL_ITEMS, expr->at, to);
    const struct sql_expr **args = arena_alloc(analyzer->arena, expr->arg_count * sizeof *args);
    if (items == NULL || args == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < expr->arg_count; i++)
        TRY(coerce(binding, expr->args[i], sql_item_type(to, i), &args[i]));
    *out = items;
    return set_args(analyzer, items, args, expr->arg_count);
}

status coerce(const struct binding *binding, const struct sql_expr *expr, const struct sql_type *to,
              const struct sql_expr **out)
{
    struct analyzer *analyzer = binding->analyzer;
    *out = expr;
    if (is_null_literal(expr))
        return new_constant(analyzer, expr->at, to, sql_null(), out);
    if (sql_type_equal(expr->type, to))
        return status_ok();
    if (expr->kind == SQL_ITEMS && expr->is_literal)
        return coerce_items(binding, expr, to, out);
    if (expr->kind == SQL_CONSTANT && expr->is_literal)
        return cast_literal(binding, expr, to, out);
    return new_cast(analyzer, expr, to, false, out);
}

/* --- supertypes --- */

static bool all_can_be(const struct sql_expr *const *exprs, size_t count, const struct sql_type *to)
{
    for (size_t i = 0; i < count; i++)
        if (coercion_cost(exprs[i], to) < 0)
            return false;
    return true;
}

/* Types are tried in this order: of what is no literal, of literals, and the widest number. */
const struct sql_type *common_type(const struct sql_expr *const *exprs, size_t count)
{
    const struct sql_type *untyped = &sql_int64;
    for (int literals = 0; literals <= 1; literals++)
        for (size_t i = 0; i < count; i++) {
            if (is_empty_literal(exprs[i]))
                untyped = exprs[i]->type;
            else if (!is_null_literal(exprs[i]) && exprs[i]->is_literal == literals &&
                     all_can_be(exprs, count, exprs[i]->type))
                return exprs[i]->type;
        }
    if (all_can_be(exprs, count, untyped))
        return untyped;
    return all_can_be(exprs, count, &sql_float64) ? &sql_float64 : NULL;
}
