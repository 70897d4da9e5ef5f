/* See query_materialized.h. */
#include "bigtable/query_materialized.h"

#include "bigtable/materialized.h"
#include "bigtable/names.h"
#include "google/bigtable/admin/v2/instance.pb-c.h"

static status query_of(struct resource *resource, struct arena *arena, const char **out)
{
    ProtobufCMessage *message;
    TRY(resource_decode(resource, arena, &message));
    *out = ((const BtAdmin__MaterializedView *)(const void *)message)->query;
    return status_ok();
}

/* The rows' table, if it is there already: what has none is not readable in any case. */
static status hold_rows(struct query_catalog *catalog, const char *name)
{
    struct view_found view;
    TRY(views_find(catalog->bigtable->views, name, &view));
    catalog->table = view.table;
    catalog->unreadable = view.is_readable ? status_ok() : materialized_unreadable(name, &view);
    return status_ok();
}

static status hold(struct query_catalog *catalog, struct resource *resource, const char *name,
                   struct found_relation *found)
{
    const struct materialized *view;
    const struct sql_relation *relation;
    TRY(materialized_of(catalog->bigtable, resource, &view));
    TRY(query_of(resource, catalog->arena, &found->materialized_query));
    TRY(view_program_relation(view->program, found->relation->name, NULL, catalog->arena,
                              &relation));
    *found->relation = *relation;
    return hold_rows(catalog, name);
}

/* Until the query ends: the columns are those of its program. */
static status keep(struct query_catalog *catalog, struct resource *resource)
{
    status s = vector_add(&catalog->views, catalog->arena, &resource, sizeof(resource));
    if (!status_is_ok(s))
        resource_release(resource);
    return s;
}

static const char *full_name(const struct query_catalog *catalog, const char *id)
{
    return name_join(catalog->arena, catalog->instance, "materializedViews", id);
}

status query_find_materialized(struct query_catalog *catalog, const char *id,
                               struct found_relation *found, bool *is_there)
{
    struct resource *resource;
    const char *name = full_name(catalog, id);
    *is_there = false;
    if (name == NULL)
        return status_out_of_memory();
    query_catalog_let_go(catalog);
    status s =
        control_find(catalog->bigtable->control, RESOURCE_MATERIALIZED_VIEW, name, &resource);
    if (s.code == STATUS_NOT_FOUND) {
        status_free(s);
        return status_ok();
    }
    TRY(s);
    *is_there = true;
    TRY(keep(catalog, resource));
    return hold(catalog, resource, name, found);
}

/* projects/P/instances/I, of which production knows the parts. */
static status tell_gone(const struct query_catalog *catalog, const char *id)
{
    const char *project = catalog->instance + strlen("projects/");
    int project_size = (int)strcspn(project, "/");
    const char *instance = name_id(catalog->instance);
    const char *cluster = BIGTABLE_CLUSTER_ID;
    return status_make(STATUS_NOT_FOUND,
                       "Failed to read: %s/clusters/%s/materializedViews/%s : "
                       "MaterializedViewsReplicas(%.*s,%s,%s,%s) : Failed to read: "
                       "%s/clusters/%s/materializedViews/%s",
                       catalog->instance, cluster, id, project_size, project, instance, cluster, id,
                       catalog->instance, cluster, id);
}

status query_find_prepared_materialized(struct query_catalog *catalog,
                                        const Query__Relation *prepared,
                                        struct found_relation *found)
{
    bool is_there;
    TRY(query_find_materialized(catalog, prepared->name, found, &is_there));
    if (!is_there)
        return tell_gone(catalog, prepared->name);
    return strcmp(found->materialized_query, prepared->query) == 0 ? status_ok() : query_expired();
}

status query_check_readable(const struct query_catalog *catalog, const struct sql_plan *plan)
{
    bool will_do = plan->allows_incomplete_views && catalog->table != NULL;
    return will_do ? status_ok() : status_copy(catalog->unreadable);
}
