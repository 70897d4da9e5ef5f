/* See instance_tables.h. */
#include "replica/instance_tables.h"

#include "cluster/shared_table.h"

static bool take_shared(void *context, struct table *table)
{
    struct table **found = context;
    if (table_uid(table) == 0)
        return true;
    table_retain(table);
    *found = table;
    return false;
}

/* The first behind the name, with a reference; NULL: there is none. */
static status next_table(struct cluster *cluster, bytes prefix, bytes after, struct table **out)
{
    *out = NULL;
    return cluster_list_tables(cluster, prefix, after, take_shared, out);
}

static status visit_behind(struct cluster *cluster, bytes prefix, struct buffer *after,
                           status (*visit)(void *context, struct table *table), void *context)
{
    struct table *table;
    status s = next_table(cluster, prefix, buffer_bytes(after), &table);
    while (status_is_ok(s) && table != NULL) {
        s = visit(context, table);
        buffer_clear(after);
        buffer_append_bytes(after, bytes_of(table_name(table)));
        table_release(table);
        table = NULL;
        if (status_is_ok(s))
            s = after->failed ? status_out_of_memory()
                              : next_table(cluster, prefix, buffer_bytes(after), &table);
    }
    return s;
}

status instance_tables_visit(struct cluster *cluster, const char *instance,
                             status (*visit)(void *context, struct table *table), void *context)
{
    struct buffer prefix = {0}, after = {0};
    buffer_append_format(&prefix, "%s/tables/", instance);
    status s = prefix.failed ? status_out_of_memory()
                             : visit_behind(cluster, buffer_bytes(&prefix), &after, visit, context);
    buffer_free(&prefix);
    buffer_free(&after);
    return s;
}
