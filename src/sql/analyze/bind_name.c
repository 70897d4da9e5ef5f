/* Names: columns, their fields, lambdas' arguments, aliases, parameters. */
#include "sql/analyze/analyze_private.h"

#include <strings.h>

static bool same(const char *a, const char *b)
{
    return strcasecmp(a, b) == 0;
}

/* --- names by themselves --- */

status join_names(struct analyzer *analyzer, const struct ast_name *name, char **out)
{
    struct buffer joined = {0};
    for (; name != NULL; name = name->next)
        buffer_append_format(&joined, "%s%s", name->text, name->next == NULL ? "" : ".");
    *out = joined.failed ? NULL : arena_string(analyzer->arena, buffer_bytes(&joined));
    buffer_free(&joined);
    return *out == NULL ? status_out_of_memory() : status_ok();
}

const char *implicit_name(const struct ast_expr *expr)
{
    if (expr->kind == AST_DOT)
        return expr->text;
    if (expr->kind != AST_PATH)
        return "";
    const struct ast_name *name = expr->name;
    while (name->next != NULL)
        name = name->next;
    return name->text;
}

/* --- fields --- */

static status no_field(const struct binding *binding, const struct sql_expr *of, const char *name,
                       uint32_t at)
{
    bytes text = binding->analyzer->analysis->text;
    const char *type = type_words(binding->analyzer, of->type);
    if (of->type->kind == SQL_STRUCT)
        return sql_error(text, at, "Field name %s does not exist in %s", name, type);
    return sql_error(text, at, "Cannot access field %s on a value with type %s", name, type);
}

static size_t find_field(const struct sql_type *type, const char *name, bool *is_ambiguous)
{
    size_t found = SIZE_MAX;
    *is_ambiguous = false;
    for (size_t i = 0; type->kind == SQL_STRUCT && i < type->field_count; i++)
        if (same(type->fields[i].name, name)) {
            *is_ambiguous = found != SIZE_MAX;
            found = i;
        }
    return found;
}

status bind_field(const struct binding *binding, const struct sql_expr *of, const char *name,
                  uint32_t at, const struct sql_expr **out)
{
    bool is_ambiguous;
    if (of->type->kind == SQL_PROTO)
        return bind_proto_field(binding, of, name, at, out);
    if (of->type->kind == SQL_STRUCT)
        TRY(count_planning(binding->analyzer, of->type->field_count));
    size_t index = find_field(of->type, name, &is_ambiguous);
    if (is_ambiguous)
        return sql_error(binding->analyzer->analysis->text, at, "Field name %s is ambiguous", name);
    if (index == SIZE_MAX)
        return no_field(binding, of, name, at);
    return new_field(binding->analyzer, at, of, index, out);
}

static status bind_fields(const struct binding *binding, const struct ast_name *names,
                          const struct sql_expr **expr)
{
    for (; names != NULL; names = names->next)
        TRY(bind_field(binding, *expr, names->text, names->at, expr));
    return status_ok();
}

/* --- what a name may be, from the inside out --- */

static bool find_argument(const struct lambda_scope *scope, const char *name,
                          const struct sql_type **type, size_t *index)
{
    for (; scope != NULL; scope = scope->outer) {
        const struct ast_name *at = scope->names;
        for (size_t i = 0; i < scope->count; i++, at = at->next)
            if (same(at->text, name)) {
                *type = scope->types[i];
                *index = scope->first + i;
                return true;
            }
    }
    return false;
}

static status bind_argument(const struct binding *binding, const struct ast_name *name,
                            const struct sql_expr **out)
{
    const struct sql_type *type;
    size_t index;
    *out = NULL;
    if (!find_argument(binding->lambda, name->text, &type, &index))
        return status_ok();
    struct sql_expr *argument = new_bound(binding->analyzer, SQL_ARGUMENT, name->at, type);
    if (argument == NULL)
        return status_out_of_memory();
    argument->index = index;
    *out = argument;
    return status_ok();
}

static status ambiguous(const struct binding *binding, const struct ast_name *name)
{
    return sql_error(binding->analyzer->analysis->text, name->at, "Column name %s is ambiguous",
                     name->text);
}

static const struct sql_expr *find_alias(const struct binding *binding, const char *name,
                                         size_t *count)
{
    const struct sql_expr *found = NULL;
    *count = 0;
    for (size_t i = 0; i < binding->alias_count; i++)
        if (same(binding->aliases[i].name, name)) {
            bool is_other = found != NULL && !sql_expr_equal(found, binding->aliases[i].expr);
            *count += found == NULL || is_other;
            found = binding->aliases[i].expr;
        }
    return found;
}

/* A name of the select list; *out NULL if it is none. */
static status bind_alias(const struct binding *binding, const struct ast_name *name,
                         const struct sql_expr **out)
{
    size_t count;
    TRY(count_planning(binding->analyzer, binding->alias_count));
    *out = find_alias(binding, name->text, &count);
    return count > 1 ? ambiguous(binding, name) : status_ok();
}

/* The column with the name, of those with the qualifier (NULL: of all). */
static status find_column(const struct binding *binding, const char *qualifier,
                          const struct ast_name *name, size_t *out)
{
    const struct relation *relation = binding->relation;
    *out = SIZE_MAX;
    TRY(count_planning(binding->analyzer, relation->operator_->column_count));
    for (size_t i = 0; i < relation->operator_->column_count; i++) {
        const struct name *column = &relation->names[i];
        if ((qualifier != NULL && !same(column->qualifier, qualifier)) ||
            !same(column->text, name->text))
            continue;
        if (*out != SIZE_MAX)
            return ambiguous(binding, name);
        *out = i;
    }
    return status_ok();
}

static status column_at(const struct binding *binding, const struct ast_name *name, size_t index,
                        const struct sql_expr **out)
{
    return new_column(binding->analyzer, name->at,
                      binding->relation->operator_->columns[index].type, index, out);
}

/* A field of what UNNEST gives, of which the fields are in sight like columns. */
static status bind_element_field(const struct binding *binding, const struct ast_name *name,
                                 const struct sql_expr **out)
{
    const struct sql_expr *element;
    for (size_t i = 0; i < binding->relation->operator_->column_count; i++) {
        bool is_ambiguous;
        const struct sql_type *type = binding->relation->operator_->columns[i].type;
        if (!binding->relation->names[i].is_element ||
            find_field(type, name->text, &is_ambiguous) == SIZE_MAX)
            continue;
        if (*out != NULL)
            return ambiguous(binding, name);
        TRY(column_at(binding, name, i, &element));
        TRY(bind_field(binding, element, name->text, name->at, out));
    }
    return status_ok();
}

static status bind_column(const struct binding *binding, const struct ast_name *name,
                          const struct sql_expr **out)
{
    size_t index;
    *out = NULL;
    if (binding->relation == NULL)
        return status_ok();
    TRY(find_column(binding, NULL, name, &index));
    return index != SIZE_MAX ? column_at(binding, name, index, out)
                             : bind_element_field(binding, name, out);
}

static bool is_qualifier(const struct relation *relation, const char *name)
{
    for (size_t i = 0; relation != NULL && i < relation->operator_->column_count; i++)
        if (same(relation->names[i].qualifier, name))
            return true;
    return false;
}

/* t.column */
static status bind_qualified(const struct binding *binding, const struct ast_name *name,
                             const struct sql_expr **out)
{
    size_t index;
    *out = NULL;
    if (name->next == NULL || !is_qualifier(binding->relation, name->text))
        return status_ok();
    TRY(find_column(binding, name->text, name->next, &index));
    if (index == SIZE_MAX)
        return sql_error(binding->analyzer->analysis->text, name->next->at,
                         "Name %s not found inside %s", name->next->text, name->text);
    return column_at(binding, name->next, index, out);
}

static status unrecognized(const struct binding *binding, const struct ast_name *name)
{
    struct suggestion suggestion = {.wanted = name->text};
    const struct relation *relation = binding->relation;
    for (size_t i = 0; relation != NULL && i < relation->operator_->column_count; i++)
        suggest(&suggestion, relation->names[i].text);
    bool is_near = suggestion.best != NULL && suggestion.best[0] != '\0';
    return sql_error(binding->analyzer->analysis->text, name->at, "Unrecognized name: %s%s%s%s",
                     name->text, is_near ? "; Did you mean " : "", is_near ? suggestion.best : "",
                     is_near ? "?" : "");
}

/* CURRENT_DATE and its like do without parentheses. */
static status bind_bare_function(const struct binding *binding, const struct ast_name *name,
                                 const struct sql_expr **out)
{
    bool is_bare = same(name->text, "CURRENT_DATE") || same(name->text, "CURRENT_TIMESTAMP");
    return is_bare ? resolve_function(binding, name->text, name->at, NULL, 0, false, out)
                   : unrecognized(binding, name);
}

/* The first name of a path; *rest is what of the path is left. */
static status bind_first(const struct binding *binding, const struct ast_name *name,
                         const struct ast_name **rest, const struct sql_expr **out)
{
    *rest = name->next;
    TRY(bind_argument(binding, name, out));
    if (*out == NULL && binding->aliases_win)
        TRY(bind_alias(binding, name, out));
    if (*out == NULL)
        TRY(bind_column(binding, name, out));
    if (*out == NULL && !binding->aliases_win)
        TRY(bind_alias(binding, name, out));
    if (*out != NULL)
        return status_ok();
    TRY(bind_qualified(binding, name, out));
    if (*out == NULL)
        return bind_bare_function(binding, name, out);
    *rest = name->next->next;
    return status_ok();
}

status bind_path(const struct binding *binding, const struct ast_expr *ast,
                 const struct sql_expr **out)
{
    const struct ast_name *rest;
    TRY(bind_first(binding, ast->name, &rest, out));
    return bind_fields(binding, rest, out);
}

status bind_parameter(const struct binding *binding, const struct ast_expr *ast,
                      const struct sql_expr **out)
{
    const struct sql_analysis *analysis = binding->analyzer->analysis;
    for (size_t i = 0; i < analysis->parameter_count; i++) {
        if (!same(analysis->parameters[i].name, ast->text))
            continue;
        struct sql_expr *parameter =
            new_bound(binding->analyzer, SQL_PARAMETER, ast->at, analysis->parameters[i].type);
        if (parameter == NULL)
            return status_out_of_memory();
        parameter->index = i;
        *out = parameter;
        return status_ok();
    }
    return sql_error(analysis->text, ast->at, "Query parameter '%s' not found", ast->text);
}
