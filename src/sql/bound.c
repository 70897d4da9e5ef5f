/* Making bound expressions, comparing them, folding them. */
#include "sql/analyze_private.h"
#include "sql/cast.h"
#include "sql/proto_type.h"

struct sql_expr *new_bound(struct analyzer *analyzer, enum sql_expr_kind kind, uint32_t at,
                           const struct sql_type *type)
{
    struct sql_expr *expr = arena_zalloc(analyzer->arena, sizeof *expr);
    if (expr == NULL)
        return NULL;
    expr->kind = kind;
    expr->at = at;
    expr->type = type;
    return expr;
}

status set_args(struct analyzer *analyzer, struct sql_expr *expr,
                const struct sql_expr *const *args, size_t count)
{
    const struct sql_type **types = arena_alloc(analyzer->arena, count * sizeof *types);
    if (types == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < count; i++)
        types[i] = args[i]->type;
    expr->args = args;
    expr->types = types;
    expr->arg_count = count;
    return status_ok();
}

status new_constant(struct analyzer *analyzer, uint32_t at, const struct sql_type *type,
                    struct sql_value value, const struct sql_expr **out)
{
    struct sql_expr *constant = new_bound(analyzer, SQL_CONSTANT, at, type);
    if (constant == NULL)
        return status_out_of_memory();
    constant->constant = value;
    *out = constant;
    return status_ok();
}

status new_column(struct analyzer *analyzer, uint32_t at, const struct sql_type *type, size_t index,
                  const struct sql_expr **out)
{
    struct sql_expr *column = new_bound(analyzer, SQL_COLUMN, at, type);
    if (column == NULL)
        return status_out_of_memory();
    column->index = index;
    *out = column;
    return status_ok();
}

/* An expression of one argument. */
static status new_of_one(struct analyzer *analyzer, struct sql_expr *expr,
                         const struct sql_expr *arg)
{
    const struct sql_expr **args = arena_alloc(analyzer->arena, sizeof *args);
    if (expr == NULL || args == NULL)
        return status_out_of_memory();
    args[0] = arg;
    return set_args(analyzer, expr, args, 1);
}

status new_field(struct analyzer *analyzer, uint32_t at, const struct sql_expr *of, size_t index,
                 const struct sql_expr **out)
{
    struct sql_expr *field = new_bound(analyzer, SQL_FIELD, at, of->type->fields[index].type);
    TRY(new_of_one(analyzer, field, of));
    field->index = index;
    *out = field;
    return status_ok();
}

status new_cast(struct analyzer *analyzer, const struct sql_expr *expr, const struct sql_type *to,
                bool is_safe, const struct sql_expr **out)
{
    struct sql_expr *cast = new_bound(analyzer, SQL_CALL, expr->at, to);
    TRY(new_of_one(analyzer, cast, expr));
    cast->function = &sql_cast_function;
    cast->is_safe = is_safe;
    cast->call = analyzer->call_count++;
    *out = fold_constant(analyzer, cast);
    return status_ok();
}

/* --- folding --- */

/* A failure is left for the execution to find: the row that it is for may never come. */
const struct sql_expr *fold_constant(struct analyzer *analyzer, const struct sql_expr *expr)
{
    if (!sql_expr_is_constant(expr))
        return expr;
    struct sql_value value;
    status result =
        sql_evaluate_constant(expr, analyzer->arena, analyzer->analysis->session, &value);
    bool is_known = status_is_ok(result);
    status_free(result);
    const struct sql_expr *constant = expr;
    if (is_known)
        status_ignore(new_constant(analyzer, expr->at, expr->type, value, &constant));
    return constant;
}

/* --- comparing --- */

static bool same_field(const struct sql_proto_field *a, const struct sql_proto_field *b)
{
    return a == b || (a != NULL && b != NULL && a->number == b->number &&
                      a->tells_presence == b->tells_presence);
}

static bool same_node(const struct sql_expr *a, const struct sql_expr *b)
{
    if (a->kind != b->kind || a->index != b->index || a->function != b->function ||
        !same_field(a->field, b->field) || a->is_safe != b->is_safe ||
        a->arg_count != b->arg_count || !sql_type_equal(a->type, b->type))
        return false;
    if (a->function != NULL && (a->function->flags & SQL_VOLATILE) != 0)
        return a == b;
    return a->kind != SQL_CONSTANT || sql_value_compare(a->type, &a->constant, &b->constant) == 0;
}

bool sql_expr_equal(const struct sql_expr *a, const struct sql_expr *b)
{
    if (!same_node(a, b))
        return false;
    for (size_t i = 0; i < a->arg_count; i++)
        if (!sql_expr_equal(a->args[i], b->args[i]))
            return false;
    return true;
}
