/* CASE, CAST, arrays, structs, subscripts: what is neither an operator nor a call. */
#include "sql/analyze/analyze_private.h"
#include "sql/functions/cast.h"

/* --- values of which one is taken --- */

/* "…; all THEN/ELSE arguments must be coercible to a common type but found: INT64, STRING" */
static status no_common_type(const struct binding *binding, uint32_t at, const char *what,
                             const struct sql_expr *const *exprs, size_t count)
{
    return sql_error(binding->analyzer->analysis->text, at, what,
                     types_words(binding->analyzer, exprs, count));
}

/* Coerces all to their common type, in place; *type NULL: they have none. */
static status coerce_all(const struct binding *binding, const struct sql_expr **exprs, size_t count,
                         const struct sql_type **type)
{
    *type = common_type(exprs, count);
    for (size_t i = 0; i < count && *type != NULL; i++)
        TRY(coerce(binding, exprs[i], *type, &exprs[i]));
    return status_ok();
}

static status copy_exprs(struct analyzer *analyzer, const struct sql_expr *const *exprs,
                         size_t count, size_t room, const struct sql_expr ***out)
{
    *out = arena_alloc(analyzer->arena, (count + room) * sizeof **out);
    if (*out == NULL)
        return status_out_of_memory();
    if (count > 0)
        memcpy(*out, exprs, count * sizeof **out);
    return status_ok();
}

/* Every second of a CASE's arguments, from `first` on; with the ELSE. */
static size_t gather(const struct sql_expr **args, size_t first, size_t count,
                     const struct sql_expr **out)
{
    size_t gathered = 0;
    for (size_t i = first; i < count; i += 2)
        out[gathered++] = args[i];
    return gathered;
}

static void scatter(const struct sql_expr **args, size_t first, size_t count,
                    const struct sql_expr **from)
{
    for (size_t i = first; i < count; i += 2)
        args[i] = *from++;
}

/* Args are [operand], WHEN, THEN, …, ELSE. */
static status finish_case(const struct binding *binding, const struct ast_expr *ast,
                          const struct sql_expr **args, size_t count, bool has_operand,
                          const struct sql_expr **out)
{
    struct analyzer *analyzer = binding->analyzer;
    size_t base = has_operand;
    const struct sql_type *type, *compared = &sql_bool;
    const struct sql_expr **list;
    TRY(copy_exprs(analyzer, args, count, 1, &list));

    size_t results = gather(args, base + 1, count - 1, list);
    list[results] = args[count - 1];
    TRY(coerce_all(binding, list, results + 1, &type));
    if (type == NULL)
        return no_common_type(binding, ast->at,
                              "No matching signature for operator CASE; all THEN/ELSE arguments "
                              "must be coercible to a common type but found: %s",
                              list, results + 1);
    scatter(args, base + 1, count - 1, list);
    args[count - 1] = list[results];

    size_t conditions = gather(args, base, count - 1, list);
    if (has_operand) {
        list[conditions] = args[0];
        TRY(coerce_all(binding, list, conditions + 1, &compared));
        args[0] = list[conditions];
    }
    for (size_t i = 0; i < conditions && !has_operand && compared != NULL; i++)
        if (coercion_cost(list[i], &sql_bool) < 0)
            compared = NULL;
        else
            TRY(coerce(binding, list[i], &sql_bool, &list[i]));
    if (compared == NULL || !sql_type_has_equality(compared))
        return no_common_type(binding, ast->at,
                              "No matching signature for operator CASE for argument types: %s",
                              list, conditions + has_operand);
    scatter(args, base, count - 1, list);

    struct sql_expr *whole = new_bound(analyzer, has_operand ? SQL_CASE : SQL_IF, ast->at, type);
    if (whole == NULL)
        return status_out_of_memory();
    TRY(set_args(analyzer, whole, args, count));
    *out = fold_constant(analyzer, whole);
    return status_ok();
}

static status null_literal(const struct binding *binding, const struct ast_expr *at,
                           const struct sql_expr **out)
{
    const struct ast_expr null = {.kind = AST_NULL, .at = at->at};
    return bind_literal(binding, &null, out);
}

status bind_case(const struct binding *binding, const struct ast_expr *ast,
                 const struct sql_expr **out)
{
    const struct sql_expr *const *bound;
    const struct sql_expr **args;
    size_t count;
    TRY(bind_exprs(binding, ast->operands, &bound, &count));
    TRY(copy_exprs(binding->analyzer, bound, count, 1, &args));
    if (!ast->has_else)
        TRY(null_literal(binding, ast, &args[count++]));
    return finish_case(binding, ast, args, count, ast->has_operand, out);
}

status bind_if(const struct binding *binding, const struct ast_expr *ast,
               const struct sql_expr **out)
{
    const struct sql_expr *const *bound;
    const struct sql_expr **args;
    size_t count;
    TRY(bind_exprs(binding, ast->operands, &bound, &count));
    if (count != 3)
        return sql_error(binding->analyzer->analysis->text, ast->at,
                         "Number of arguments does not match for function IF. Supported "
                         "signature: IF(BOOL, T1, T1)");
    const struct sql_type *type;
    TRY(copy_exprs(binding->analyzer, bound, count, 0, &args));
    TRY(coerce_all(binding, args + 1, 2, &type));
    if (type == NULL || coercion_cost(args[0], &sql_bool) < 0)
        return no_common_type(binding, ast->at,
                              "No matching signature for function IF for argument types: %s", args,
                              count);
    return finish_case(binding, ast, args, count, false, out);
}

status bind_coalesce(const struct binding *binding, const struct ast_expr *ast,
                     const struct sql_expr **out)
{
    const struct sql_expr *const *bound;
    const struct sql_expr **args;
    const struct sql_type *type;
    size_t count;
    TRY(bind_exprs(binding, ast->operands, &bound, &count));
    TRY(copy_exprs(binding->analyzer, bound, count, 0, &args));
    if (count == 0)
        return sql_error(binding->analyzer->analysis->text, ast->at,
                         "No matching signature for function COALESCE with no arguments");
    TRY(coerce_all(binding, args, count, &type));
    if (type == NULL)
        return no_common_type(binding, ast->at,
                              "No matching signature for function COALESCE for argument types: %s",
                              args, count);
    struct sql_expr *whole = new_bound(binding->analyzer, SQL_COALESCE, ast->at, type);
    if (whole == NULL)
        return status_out_of_memory();
    TRY(set_args(binding->analyzer, whole, args, count));
    *out = fold_constant(binding->analyzer, whole);
    return status_ok();
}

/* --- CAST --- */

static status bad_cast(const struct binding *binding, const struct ast_expr *ast,
                       const struct sql_type *from, const struct sql_type *to)
{
    return sql_error(binding->analyzer->analysis->text, ast->at, "Invalid cast from %s to %s",
                     type_words(binding->analyzer, from), type_words(binding->analyzer, to));
}

status bind_cast(const struct binding *binding, const struct ast_expr *ast,
                 const struct sql_expr **out)
{
    const struct sql_type *to;
    const struct sql_expr *from;
    TRY(bind_type(binding, ast->type, &to));
    TRY(bind_expr(binding, ast->operands, &from));
    bool is_literal = from->kind == SQL_CONSTANT && from->is_literal;
    bool is_items = from->kind == SQL_ITEMS && from->is_literal && coercion_cost(from, to) >= 0;
    if (!sql_can_cast(from->type, to) && !is_items && !(is_literal && from->constant.is_null))
        return bad_cast(binding, ast, from->type, to);
    if (ast->operands->next != NULL)
        return sql_error(binding->analyzer->analysis->text, ast->operands->next->at,
                         "FORMAT in CAST is not supported");
    if (is_items || (is_literal && from->constant.is_null))
        return coerce(binding, from, to, out);
    if (is_literal && !ast->is_safe)
        return cast_literal(binding, from, to, out);
    return new_cast(binding->analyzer, from, to, ast->is_safe, out);
}

/* --- arrays and structs --- */

static status element_type(const struct binding *binding, const struct ast_expr *ast,
                           const struct sql_expr **args, size_t count, const struct sql_type **out)
{
    const struct sql_type *array;
    if (ast->type != NULL) {
        TRY(bind_type(binding, ast->type, &array));
        *out = array->element;
    } else {
        *out = common_type(args, count);
    }
    if (*out == NULL)
        return no_common_type(binding, ast->at,
                              "Array elements of types {%s} do not have a common supertype", args,
                              count);
    return (*out)->kind == SQL_ARRAY
               ? sql_error(binding->analyzer->analysis->text, ast->at,
                           "Cannot construct an array of arrays: nested arrays are not supported")
               : status_ok();
}

/* Literals of which all elements are literals coerce as they do. */
static bool all_literal(const struct sql_expr *const *args, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!args[i]->is_literal)
            return false;
    return true;
}

status bind_array(const struct binding *binding, const struct ast_expr *ast,
                  const struct sql_expr **out)
{
    struct analyzer *analyzer = binding->analyzer;
    const struct sql_expr *const *bound;
    const struct sql_expr **args;
    const struct sql_type *element;
    size_t count;
    TRY(bind_exprs(binding, ast->operands, &bound, &count));
    TRY(copy_exprs(analyzer, bound, count, 0, &args));
    TRY(element_type(binding, ast, args, count, &element));
    bool is_literal = ast->type == NULL && all_literal(args, count);
    for (size_t i = 0; i < count; i++) {
        if (coercion_cost(args[i], element) < 0)
            return bad_cast(binding, ast, args[i]->type, element);
        if (!is_literal || !sql_type_equal(args[i]->type, element))
            TRY(coerce(binding, args[i], element, &args[i]));
    }
    const struct sql_type *type = sql_array_of(analyzer->arena, element);
    struct sql_expr *array = new_bound(analyzer, SQL_ITEMS, ast->at, type);
    if (type == NULL || array == NULL)
        return status_out_of_memory();
    array->is_literal = is_literal;
    *out = array;
    return set_args(analyzer, array, args, count);
}

/* Without AS it is the column's. */
static const char *field_name(const struct ast_expr *operand)
{
    return operand->alias != NULL ? operand->alias : implicit_name(operand);
}

static status untyped_struct(const struct binding *binding, const struct ast_expr *ast,
                             const struct sql_expr *const *args, size_t count,
                             const struct sql_type **out)
{
    struct sql_field *fields = arena_alloc(binding->analyzer->arena, count * sizeof *fields);
    if (fields == NULL)
        return status_out_of_memory();
    const struct ast_expr *operand = ast->operands;
    for (size_t i = 0; i < count; i++, operand = operand->next)
        fields[i] = (struct sql_field){field_name(operand), args[i]->type};
    *out = sql_struct_of(binding->analyzer->arena, fields, count);
    return *out == NULL ? status_out_of_memory() : status_ok();
}

static status coerce_fields(const struct binding *binding, const struct ast_expr *ast,
                            const struct sql_type *type, const struct sql_expr **args, size_t count)
{
    if (type->field_count != count)
        return sql_error(binding->analyzer->analysis->text, ast->at,
                         "STRUCT type has %zu fields but constructor call has %zu fields",
                         type->field_count, count);
    for (size_t i = 0; i < count; i++) {
        if (coercion_cost(args[i], type->fields[i].type) < 0)
            return bad_cast(binding, ast, args[i]->type, type->fields[i].type);
        TRY(coerce(binding, args[i], type->fields[i].type, &args[i]));
    }
    return status_ok();
}

status bind_struct(const struct binding *binding, const struct ast_expr *ast,
                   const struct sql_expr **out)
{
    struct analyzer *analyzer = binding->analyzer;
    const struct sql_expr *const *bound;
    const struct sql_expr **args;
    const struct sql_type *type;
    size_t count;
    TRY(bind_exprs(binding, ast->operands, &bound, &count));
    TRY(copy_exprs(analyzer, bound, count, 0, &args));
    if (ast->type != NULL) {
        TRY(bind_type(binding, ast->type, &type));
        TRY(coerce_fields(binding, ast, type, args, count));
    } else {
        TRY(untyped_struct(binding, ast, args, count, &type));
    }
    struct sql_expr *whole = new_bound(analyzer, SQL_ITEMS, ast->at, type);
    if (whole == NULL)
        return status_out_of_memory();
    whole->is_literal = ast->type == NULL && count > 0 && all_literal(args, count);
    *out = whole;
    return set_args(analyzer, whole, args, count);
}

/* --- subscripts --- */

static status no_subscript(const struct binding *binding, const struct ast_expr *ast,
                           const struct sql_expr *const args[2])
{
    return sql_error(binding->analyzer->analysis->text, ast->at,
                     "Subscript access using [%s] is not supported on values of type %s",
                     type_words(binding->analyzer, args[1]->type),
                     type_words(binding->analyzer, args[0]->type));
}

status bind_subscript(const struct binding *binding, const struct ast_expr *ast,
                      const struct sql_expr **out)
{
    static const char *const of_array[] = {[AST_SUBSCRIPT_BARE] = "$array_offset",
                                           [AST_SUBSCRIPT_OFFSET] = "$array_offset",
                                           [AST_SUBSCRIPT_ORDINAL] = "$array_ordinal",
                                           [AST_SUBSCRIPT_SAFE_OFFSET] = "$safe_offset",
                                           [AST_SUBSCRIPT_SAFE_ORDINAL] = "$safe_ordinal",
                                           [AST_SUBSCRIPT_SAFE_KEY] = NULL};
    static const char *const of_map[] = {[AST_SUBSCRIPT_BARE] = "$map_at",
                                         [AST_SUBSCRIPT_KEY] = "$map_key",
                                         [AST_SUBSCRIPT_SAFE_KEY] = "$map_at"};
    const struct sql_expr *args[2];
    TRY(bind_expr(binding, ast->operands, &args[0]));
    TRY(bind_expr(binding, ast->operands->next, &args[1]));
    enum sql_kind kind = args[0]->type->kind;
    const char *name = kind == SQL_ARRAY ? of_array[ast->subscript]
                       : kind == SQL_MAP ? of_map[ast->subscript]
                                         : NULL;
    if (name == NULL)
        return no_subscript(binding, ast, args);
    return resolve_operator(binding, name, ast->at, args, 2, out);
}
