/* ListTables, GetTable, DeleteTable. */
#include "bigtable/default_instance.h"
#include "bigtable/names.h"
#include "bigtable/schema_message.h"
#include "bigtable/table_methods.h"
#include "bigtable/view_guard.h"

/* --- the clusters that a table is in: all of its instance's --- */

struct placing {
    struct arena *arena;
    struct table_place *place;
    status failure;
};

static status add_cluster(struct placing *placing, const struct resource *resource)
{
    struct table_place *place = placing->place;
    ProtobufCMessage *cluster;
    TRY(resource_decode(resource, placing->arena, &cluster));
    const BtAdmin__Cluster **larger =
        arena_alloc(placing->arena, (place->count + 1) * sizeof(*larger));
    if (larger == NULL)
        return status_out_of_memory();
    if (place->count > 0)
        memcpy(larger, place->clusters, place->count * sizeof(*larger));
    larger[place->count++] = (const void *)cluster;
    place->clusters = larger;
    return status_ok();
}

static bool visit_cluster(void *context, struct resource *resource)
{
    struct placing *placing = context;
    placing->failure = add_cluster(placing, resource);
    return status_is_ok(placing->failure);
}

static status find_place(const struct admin_request *request, const char *instance,
                         struct table_place *out)
{
    struct placing placing = {.arena = request->arena, .place = out, .failure = status_ok()};
    *out = (struct table_place){.count = 0};
    TRY(control_list(request->bigtable->control, RESOURCE_CLUSTER, instance, "", visit_cluster,
                     &placing));
    return placing.failure;
}

/* --- messages --- */

status table_message(const struct admin_request *request, struct table *table,
                     BtAdmin__Table__View view, BtAdmin__Table **out)
{
    struct table_info info;
    struct table_place place;
    char *instance = name_parent(request->arena, table_name(table));
    if (instance == NULL)
        return status_out_of_memory();
    TRY(find_place(request, instance, &place));
    TRY(table_describe(table, request->arena, &info));
    return table_to_message(&info, &place, view, request->arena, out);
}

status check_table_to_list(const struct admin_request *request, const char *name)
{
    struct table *table;
    TRY(name_check_table(name));
    TRY(cluster_table(request->bigtable->cluster, bytes_of(name), &table));
    table_release(table);
    return status_ok();
}

status describe_table(const struct admin_request *request, const char *name,
                      BtAdmin__Table__View view, BtAdmin__Table **out)
{
    struct table *table;
    TRY(name_check_table(name));
    TRY(cluster_table(request->bigtable->cluster, bytes_of(name), &table));
    status s = table_message(request, table, view, out);
    table_release(table);
    return s;
}

status get_table(const struct admin_request *request, const ProtobufCMessage **response)
{
    const BtAdmin__GetTableRequest *message = (const void *)request->message;
    BtAdmin__Table__View view = message->view;
    if (view == BT_ADMIN__TABLE__VIEW__VIEW_UNSPECIFIED)
        view = BT_ADMIN__TABLE__VIEW__SCHEMA_VIEW;
    BtAdmin__Table *table = NULL;
    TRY(describe_table(request, message->name, view, &table));
    *response = &table->base;
    return status_ok();
}

/* With the table go the views, schema bundles and policies that it has, and with it they may come
 * back. No other table gets the name while the edit is under way. */
static status delete_with_children(void *context, struct edit *edit)
{
    const struct admin_request *request = context;
    const char *name = ((const BtAdmin__DeleteTableRequest *)(const void *)request->message)->name;
    struct table *table;
    struct catalog_txn *txn;
    TRY(check_none_protected(edit_control(edit), request->arena, RESOURCE_AUTHORIZED_VIEW, name));
    TRY(check_no_view_reads(request, name));
    TRY(cluster_table(request->bigtable->cluster, bytes_of(name), &table));
    status s = edit_keep_under(edit, name, table_id(table));
    table_release(table);
    TRY(s);
    TRY(edit_txn(edit, &txn));
    return cluster_delete_table(request->bigtable->cluster, bytes_of(name), txn);
}

/* Clients delete what a test left behind and go by the code, so the words may follow production's:
 * here alone it says that it could not read, not that it did not find. */
status delete_table(const struct admin_request *request, const ProtobufCMessage **response)
{
    const BtAdmin__DeleteTableRequest *message = (const void *)request->message;
    TRY(name_check_table(message->name));
    struct admin_request copy = *request;
    status s = control_edit(request->bigtable->control, delete_with_children, &copy);
    if (s.code == STATUS_NOT_FOUND) {
        status_free(s);
        return status_make(STATUS_NOT_FOUND, "Failed to read: %s", message->name);
    }
    TRY(s);
    *response = admin_empty_response();
    return status_ok();
}

/* --- ListTables --- */

/* A page holds as many tables as an instance may have, unless the client asks for fewer. */
enum { DEFAULT_PAGE = 1000 };

struct listing {
    struct arena *arena;
    BtAdmin__Table__View view;
    struct table_place place;
    size_t limit;
    BtAdmin__Table **tables;
    size_t count;
    bool has_more;
    status failure;
};

static status add_table(struct listing *listing, struct table *table)
{
    struct table_info info;
    TRY(table_describe(table, listing->arena, &info));
    TRY(table_to_message(&info, &listing->place, listing->view, listing->arena,
                         &listing->tables[listing->count]));
    listing->count++;
    return status_ok();
}

static bool visit_table(void *context, struct table *table)
{
    struct listing *listing = context;
    listing->has_more = listing->count == listing->limit;
    if (listing->has_more)
        return false;
    listing->failure = add_table(listing, table);
    return status_is_ok(listing->failure);
}

static status fill_page(const struct admin_request *request,
                        const BtAdmin__ListTablesRequest *message, struct listing *listing)
{
    char *prefix = name_of_table(request->arena, message->parent, "");
    char *after = name_of_table(request->arena, message->parent, message->page_token);
    listing->tables = arena_alloc(request->arena, listing->limit * sizeof(*listing->tables));
    if (prefix == NULL || after == NULL || listing->tables == NULL)
        return status_out_of_memory();
    TRY(cluster_list_tables(request->bigtable->cluster, bytes_of(prefix), bytes_of(after),
                            visit_table, listing));
    return listing->failure;
}

/* A page token is the id of the last table of the page before. */
status list_tables(const struct admin_request *request, const ProtobufCMessage **response)
{
    const BtAdmin__ListTablesRequest *message = (const void *)request->message;
    TRY(name_check_instance(message->parent));
    if (message->page_size < 0)
        return status_make(STATUS_INVALID_ARGUMENT, "page_size must not be negative");
    if (message->page_token[0] != '\0')
        TRY(name_check_table_id(message->page_token));
    bool by_default = message->page_size == 0 || message->page_size > DEFAULT_PAGE;
    struct listing listing = {
        .arena = request->arena,
        .view = message->view == BT_ADMIN__TABLE__VIEW__VIEW_UNSPECIFIED
                    ? BT_ADMIN__TABLE__VIEW__NAME_ONLY
                    : message->view,
        .limit = by_default ? DEFAULT_PAGE : (size_t)message->page_size,
        .failure = status_ok(),
    };
    TRY(check_instance_to_list(request->bigtable, message->parent));
    TRY(find_place(request, message->parent, &listing.place));
    TRY(fill_page(request, message, &listing));
    BtAdmin__ListTablesResponse *page;
    PROTO_NEW(request->arena, page, BT_ADMIN__LIST_TABLES_RESPONSE__INIT);
    page->tables = listing.tables;
    page->n_tables = listing.count;
    if (listing.has_more)
        page->next_page_token = name_id(listing.tables[listing.count - 1]->name);
    *response = &page->base;
    return status_ok();
}
