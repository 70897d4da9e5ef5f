/* Making bound expressions, comparing them, folding them. */
#include "sql/analyze/analyze_private.h"
#include "sql/functions/cast.h"
#include "sql/proto_type.h"
#include "sql/work.h"

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

/* Bytes that the constants of a query may take, each while it is made, and all that are kept: a
 * call has little more memory (LIMIT_ARENA_BASE_BYTES). */
enum { FOLDED_MOST = 512 << 10 };

static size_t value_size(const struct sql_type *type, const struct sql_value *value)
{
    if (value->is_null)
        return 0;
    if (type->kind == SQL_STRING || type->kind == SQL_BYTES || type->kind == SQL_PROTO)
        return value->text.size;
    if (type->kind != SQL_ARRAY && type->kind != SQL_STRUCT && type->kind != SQL_MAP)
        return 0;
    size_t size = value->count * sizeof *value;
    for (size_t i = 0; i < value->count; i++)
        size += value_size(sql_item_type(type, i), &value->items[i]);
    return size;
}

/* The constant's value, copied out of the memory that it was made in. */
static status evaluate_small(struct analyzer *analyzer, const struct sql_expr *expr,
                             struct arena *scratch, const struct sql_expr **out)
{
    struct sql_value value, kept;
    TRY(sql_evaluate_constant(expr, scratch, analyzer->analysis->session, &value));
    size_t size = value_size(expr->type, &value);
    if (size > FOLDED_MOST - analyzer->folded)
        return status_out_of_memory();
    TRY(sql_value_copy(expr->type, &value, analyzer->arena, &kept));
    analyzer->folded += size;
    return new_constant(analyzer, expr->at, expr->type, kept, out);
}

/* What is large is left for the execution, which has the memory; so is what takes long, and a
 * failure: the row that it is for may never come. */
const struct sql_expr *fold_constant(struct analyzer *analyzer, const struct sql_expr *expr)
{
    struct sql_session *session = analyzer->analysis->session;
    const struct sql_expr *constant;
    bool may_fold = !session->is_turn_over && sql_expr_is_constant(expr);
    struct arena *scratch = may_fold ? arena_create(FOLDED_MOST) : NULL;
    if (scratch == NULL)
        return expr;
    session->is_folding = true;
    status result = evaluate_small(analyzer, expr, scratch, &constant);
    session->is_folding = false;
    bool is_known = status_is_ok(result);
    if (!is_known) /* what it did by then counts as much as it may have done */
        status_ignore(sql_work(session, sql_steps_of_bytes(FOLDED_MOST)));
    status_free(result);
    arena_destroy(scratch);
    return is_known ? constant : expr;
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
