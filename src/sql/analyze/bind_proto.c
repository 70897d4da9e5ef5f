/* Names of messages and enums, and of messages' fields. */
#include "sql/analyze/analyze_private.h"
#include "sql/proto_type.h"

static status not_found(const struct binding *binding, const struct ast_name *name,
                        const char *path)
{
    return sql_error(binding->analyzer->analysis->text, name->at, "Type not found: %s", path);
}

/* bundle.pkg.Message: of a bundle of the table that is read. A quoted name may have some of the
 * dots in it. */
status bind_named_type(const struct binding *binding, const struct ast_name *name,
                       const struct sql_type **out)
{
    struct analyzer *analyzer = binding->analyzer;
    const struct sql_catalog *catalog = analyzer->analysis->catalog;
    char *path, *bundle;
    bytes descriptors;
    TRY(join_names(analyzer, name, &path));
    TRY(join_names(analyzer, name, &bundle));
    char *dot = strchr(bundle, '.');
    if (dot == NULL || analyzer->table == NULL)
        return not_found(binding, name, path);
    *dot = '\0';
    TRY(catalog->bundle(catalog->context, analyzer->table, bundle, analyzer->arena, &descriptors));
    if (descriptors.size == 0)
        return not_found(binding, name, path);
    TRY(sql_named_type_find(descriptors, bundle, dot + 1, analyzer->arena, out));
    return *out == NULL ? not_found(binding, name, path) : status_ok();
}

status bind_proto_field(const struct binding *binding, const struct sql_expr *of, const char *name,
                        uint32_t at, const struct sql_expr **out)
{
    struct analyzer *analyzer = binding->analyzer;
    const struct sql_proto_field *field;
    TRY(sql_proto_field_find(of->type->named, name, analyzer->arena, &field));
    if (field == NULL)
        return sql_error(analyzer->analysis->text, at,
                         "Protocol buffer %s does not have a field called %s",
                         of->type->named->path, name);
    struct sql_expr *expr = new_bound(analyzer, SQL_PROTO_FIELD, at, field->type);
    const struct sql_expr **args = arena_alloc(analyzer->arena, sizeof *args);
    if (expr == NULL || args == NULL)
        return status_out_of_memory();
    args[0] = of;
    expr->field = field;
    *out = expr;
    return set_args(analyzer, expr, args, 1);
}
