/* Types as a query writes them. */
#include "sql/analyze/analyze_private.h"

static status bind_simple(const struct binding *binding, const struct ast_type *ast,
                          const struct sql_type **out)
{
    if (ast->name->next == NULL) {
        *out = sql_type_named(bytes_of(ast->name->text));
        if (*out != NULL)
            return status_ok();
    }
    return bind_named_type(binding, ast->name, out);
}

static status bind_struct_type(const struct binding *binding, const struct ast_type *ast,
                               const struct sql_type **out)
{
    struct arena *arena = binding->analyzer->arena;
    size_t count = 0;
    for (const struct ast_type *part = ast->parts; part != NULL; part = part->next)
        count++;
    struct sql_field *fields = arena_alloc(arena, count * sizeof *fields);
    if (fields == NULL)
        return status_out_of_memory();
    count = 0;
    for (const struct ast_type *part = ast->parts; part != NULL; part = part->next, count++) {
        fields[count].name = part->field;
        TRY(bind_type(binding, part, &fields[count].type));
    }
    *out = sql_struct_of(arena, fields, count);
    return *out == NULL ? status_out_of_memory() : status_ok();
}

static status bind_map_type(const struct binding *binding, const struct ast_type *ast,
                            const struct sql_type **out)
{
    const struct sql_type *key, *value;
    if (ast->parts->next == NULL || ast->parts->next->next != NULL)
        return sql_error(binding->analyzer->analysis->text, ast->at,
                         "MAP takes two types: MAP<K, V>");
    TRY(bind_type(binding, ast->parts, &key));
    TRY(bind_type(binding, ast->parts->next, &value));
    *out = sql_map_of(binding->analyzer->arena, key, value);
    return *out == NULL ? status_out_of_memory() : status_ok();
}

static status bind_array_type(const struct binding *binding, const struct ast_type *ast,
                              const struct sql_type **out)
{
    const struct sql_type *element;
    TRY(bind_type(binding, ast->parts, &element));
    if (ast->parts->next != NULL || element->kind == SQL_ARRAY)
        return sql_error(binding->analyzer->analysis->text, ast->at,
                         "Arrays of arrays are not supported");
    *out = sql_array_of(binding->analyzer->arena, element);
    return *out == NULL ? status_out_of_memory() : status_ok();
}

status bind_type(const struct binding *binding, const struct ast_type *ast,
                 const struct sql_type **out)
{
    switch (ast->kind) {
    case AST_TYPE_ARRAY:
        return bind_array_type(binding, ast, out);
    case AST_TYPE_STRUCT:
        return bind_struct_type(binding, ast, out);
    case AST_TYPE_MAP:
        return bind_map_type(binding, ast, out);
    case AST_TYPE_NAMED:
        break;
    }
    return bind_simple(binding, ast, out);
}

/* --- and back --- */

/* An error says less, but is one all the same, without memory for its words. */
static const char *end_words(struct analyzer *analyzer, struct buffer *words)
{
    const char *text = words->failed ? NULL : arena_string(analyzer->arena, buffer_bytes(words));
    buffer_free(words);
    return text == NULL ? "?" : text;
}

const char *type_words(struct analyzer *analyzer, const struct sql_type *type)
{
    struct buffer words = {0};
    sql_type_append(&words, type);
    return end_words(analyzer, &words);
}

const char *types_words(struct analyzer *analyzer, const struct sql_expr *const *exprs,
                        size_t count)
{
    struct buffer words = {0};
    for (size_t i = 0; i < count; i++) {
        buffer_append_format(&words, "%s", i == 0 ? "" : ", ");
        sql_type_append(&words, exprs[i]->type);
    }
    return end_words(analyzer, &words);
}
