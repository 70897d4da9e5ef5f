/* ListDatabases of google.firestore.admin.v1.FirestoreAdmin: the databases of a project, or of all.
 * A database is there when something was written to it: it is a table with a name of its own form.
 */
#include "base/vector.h"
#include "datastore/admin/admin_methods.h"
#include "google/firestore/admin/v1/firestore_admin.pb-c.h"

#define PROJECTS     "projects/"
#define DATABASES    "/databases/"
#define ALL_PROJECTS "-"

status ds_list_databases_locate(struct ds_call *call, const ProtobufCMessage *request)
{
    const char *parent = ((const FsAdmin__ListDatabasesRequest *)request)->parent;
    if (strncmp(parent, PROJECTS, strlen(PROJECTS)) != 0)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "Invalid parent '%s': expected projects/{project}", parent);
    call->project_id = parent + strlen(PROJECTS);
    return status_ok();
}

struct listing {
    struct arena *arena;
    struct vector found; /* of FsAdmin__Database * */
    status result;
};

static status make_database(const char *name, struct arena *arena, FsAdmin__Database **out)
{
    PROTO_NEW(arena, *out, FS_ADMIN__DATABASE__INIT);
    (*out)->name = arena_string(arena, bytes_of(name));
    (*out)->location_id = "local";
    (*out)->type = FS_ADMIN__DATABASE__DATABASE_TYPE__DATASTORE_MODE;
    return (*out)->name == NULL ? status_out_of_memory() : status_ok();
}

/* Tables of Bigtable have other names. */
static bool is_database(const char *name)
{
    const char *slash = strchr(name + strlen(PROJECTS), '/');
    return slash != NULL && strncmp(slash, DATABASES, strlen(DATABASES)) == 0;
}

static bool add_database(void *context, struct table *table)
{
    struct listing *listing = context;
    FsAdmin__Database *database;
    if (!is_database(table_name(table)))
        return true;
    listing->result = make_database(table_name(table), listing->arena, &database);
    if (status_is_ok(listing->result))
        listing->result =
            vector_add(&listing->found, listing->arena, &database, sizeof(FsAdmin__Database *));
    return status_is_ok(listing->result);
}

status ds_list_databases(struct ds_call *call, const ProtobufCMessage *message,
                         ProtobufCMessage **response)
{
    struct listing listing = {.arena = call->arena};
    struct buffer prefix = {0};
    FsAdmin__ListDatabasesResponse *list;
    (void)message;
    PROTO_NEW(call->arena, list, FS_ADMIN__LIST_DATABASES_RESPONSE__INIT);
    buffer_append_bytes(&prefix, bytes_of(PROJECTS));
    if (strcmp(call->project_id, ALL_PROJECTS) != 0)
        buffer_append_format(&prefix, "%s" DATABASES, call->project_id);
    status s = prefix.failed ? status_out_of_memory()
                             : cluster_list_tables(call->datastore->cluster, buffer_bytes(&prefix),
                                                   bytes_of(""), add_database, &listing);
    buffer_free(&prefix);
    TRY(s);
    TRY(listing.result);
    list->databases = listing.found.items;
    list->n_databases = listing.found.count;
    *response = &list->base;
    return status_ok();
}
