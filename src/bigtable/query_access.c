/* See query_access.h. */
#include "bigtable/query_access.h"

#include "bigtable/names.h"
#include "history/history_store.h"

/* The instance's own queries, those of views that are made, and all without access control. */
static bool is_free(const struct query_catalog *catalog)
{
    return catalog->bigtable->access == NULL || catalog->call == NULL;
}

static status demand(const struct query_catalog *catalog, const struct query_demand *demand)
{
    return access_demand(catalog->bigtable->access, access_caller(catalog->call),
                         demand->permission, demand->resource);
}

static bool may(const struct query_catalog *catalog, enum access_permission permission,
                const char *resource)
{
    struct permission_set granted =
        access_granted(catalog->bigtable->access, access_caller(catalog->call), bytes_of(resource));
    return permission_set_has(granted, permission);
}

bool query_names_own(const char *id)
{
    return strcmp(id, HISTORY_TABLE) == 0;
}

static status demand_own(struct query_catalog *catalog)
{
    const struct query_demand asked = {PERMISSION_metrics_get, bytes_of("servers/self")};
    TRY(demand(catalog, &asked));
    return vector_add(&catalog->demands, catalog->arena, &asked, sizeof asked);
}

status query_access_demand(struct query_catalog *catalog, const char *id, enum query_source source)
{
    bool is_table = source == QUERY_TABLE, is_materialized = source == QUERY_MATERIALIZED_VIEW;
    const enum access_permission of_table = PERMISSION_tables_readRows;
    const enum access_permission of_view =
        is_materialized ? PERMISSION_materializedViews_readRows : PERMISSION_logicalViews_readRows;
    if (is_free(catalog))
        return status_ok();
    if (query_names_own(id))
        return demand_own(catalog);
    const char *table = name_of_table(catalog->arena, catalog->instance, id);
    const char *view = name_join(catalog->arena, catalog->instance,
                                 is_materialized ? "materializedViews" : "logicalViews", id);
    if (table == NULL || view == NULL)
        return status_out_of_memory();
    /* A caller that may read neither is told of a table, whether there is one or not. */
    bool is_view = !is_table && (may(catalog, of_view, view) || may(catalog, of_table, table));
    struct query_demand asked = {is_view ? of_view : of_table, bytes_of(is_view ? view : table)};
    TRY(demand(catalog, &asked));
    return vector_add(&catalog->demands, catalog->arena, &asked, sizeof asked);
}

status query_access_again(const struct query_catalog *catalog)
{
    const struct query_demand *demands = catalog->demands.items;
    for (size_t i = 0; i < catalog->demands.count; i++)
        TRY(demand(catalog, &demands[i]));
    return status_ok();
}

bool query_access_shows(const struct query_catalog *catalog, const char *table)
{
    return is_free(catalog) || may(catalog, PERMISSION_tables_readRows, table);
}
