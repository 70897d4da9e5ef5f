/* See view_guard.h. */
#include "bigtable/view_guard.h"

#include "bigtable/materialized.h"
#include "bigtable/names.h"
#include "cluster/view/view_table.h"

/* --- who reads a table --- */

struct readers {
    const struct admin_request *request;
    const char *table;
    const bytes *family; /* NULL: whatever they read of it */
    struct buffer names; /* of those that do, ", " between them */
    status failure;
};

static bool reads(const struct readers *readers, const struct materialized *view)
{
    return strcmp(view->definition.source, readers->table) == 0 &&
           (readers->family == NULL || view_program_reads_family(view->program, *readers->family));
}

/* A view that cannot be planned reads nothing: what it read is gone. */
static bool visit(void *context, struct resource *resource)
{
    struct readers *readers = context;
    const struct materialized *view;
    status s = materialized_of(readers->request->bigtable, resource, &view);
    if (s.code == STATUS_RESOURCE_EXHAUSTED) {
        readers->failure = s;
        return false;
    }
    if (status_is_ok(s) && reads(readers, view))
        buffer_append_format(&readers->names, "%s%s", readers->names.size > 0 ? ", " : "",
                             resource->name);
    status_free(s);
    return true;
}

static status list_readers(struct readers *readers, const char **names)
{
    struct arena *arena = readers->request->arena;
    char *instance = name_parent(arena, readers->table);
    if (instance == NULL)
        return status_out_of_memory();
    TRY(control_list(readers->request->bigtable->control, RESOURCE_MATERIALIZED_VIEW, instance, "",
                     visit, readers));
    TRY(readers->failure);
    if (readers->names.size > 0)
        *names = arena_string(arena, buffer_bytes(&readers->names));
    bool failed = readers->names.failed || (readers->names.size > 0 && *names == NULL);
    return failed ? status_out_of_memory() : status_ok();
}

/* A table that is not there is read by none: whoever wants to change it finds out. */
static bool is_viewed(const struct bigtable *bigtable, const char *name)
{
    struct table *table;
    status s = cluster_table(bigtable->cluster, bytes_of(name), &table);
    bool is = status_is_ok(s) && table_is_viewed(table);
    if (status_is_ok(s))
        table_release(table);
    status_free(s);
    return is;
}

/* The names of those that read it, in the arena; NULL: none does. */
static status find_readers(const struct admin_request *request, const char *table,
                           const bytes *family, const char **names)
{
    struct readers readers = {
        .request = request, .table = table, .family = family, .failure = status_ok()};
    *names = NULL;
    if (!is_viewed(request->bigtable, table))
        return status_ok();
    status s = list_readers(&readers, names);
    buffer_free(&readers.names);
    return s;
}

status check_no_view_reads(const struct admin_request *request, const char *table)
{
    const char *names;
    TRY(find_readers(request, table, NULL, &names));
    if (names == NULL)
        return status_ok();
    return status_make(STATUS_FAILED_PRECONDITION,
                       "Unable to delete resource %s because the resource is referenced by another "
                       "resource. The existing references are: {%s}",
                       table, names);
}

status check_no_view_reads_family(const struct admin_request *request, const char *table,
                                  bytes family)
{
    const char *names;
    TRY(find_readers(request, table, &family, &names));
    if (names == NULL)
        return status_ok();
    return status_make(STATUS_FAILED_PRECONDITION,
                       "Column family '%.*s' cannot be dropped because materialized views read it. "
                       "The existing references are: {%s}",
                       (int)family.size, (const char *)family.data, names);
}

status check_no_view_reads_keys(const struct admin_request *request, const char *table)
{
    const char *names;
    TRY(find_readers(request, table, NULL, &names));
    if (names == NULL)
        return status_ok();
    return status_make(STATUS_FAILED_PRECONDITION,
                       "The row_key_schema of %s cannot be changed because materialized views read "
                       "the table. The existing references are: {%s}",
                       table, names);
}

/* --- ids --- */

static status check_no_table(const struct bigtable *bigtable, struct arena *arena,
                             const char *instance, const char *id)
{
    struct table *table;
    const char *name = name_of_table(arena, instance, id);
    if (name == NULL)
        return status_out_of_memory();
    status s = cluster_table(bigtable->cluster, bytes_of(name), &table);
    if (s.code == STATUS_NOT_FOUND) {
        status_free(s);
        return status_ok();
    }
    TRY(s);
    table_release(table);
    return status_make(STATUS_ALREADY_EXISTS, "Table already exists: %s", name);
}

static status check_no_view(struct arena *arena, struct edit *edit, enum resource_kind kind,
                            const char *instance, const char *id)
{
    const struct resource_type *type = resource_type(kind);
    const char *name = name_join(arena, instance, type->collection, id);
    if (name == NULL)
        return status_out_of_memory();
    if (edit_find(edit, kind, name) == NULL)
        return status_ok();
    return status_make(STATUS_ALREADY_EXISTS, "%s already exists: %s", type->label, name);
}

status check_id_is_free(const struct bigtable *bigtable, struct arena *arena, struct edit *edit,
                        enum resource_kind kind, const char *instance, const char *id)
{
    if (kind != (enum resource_kind)0)
        TRY(check_no_table(bigtable, arena, instance, id));
    if (kind != RESOURCE_LOGICAL_VIEW)
        TRY(check_no_view(arena, edit, RESOURCE_LOGICAL_VIEW, instance, id));
    if (kind != RESOURCE_MATERIALIZED_VIEW)
        TRY(check_no_view(arena, edit, RESOURCE_MATERIALIZED_VIEW, instance, id));
    return status_ok();
}
