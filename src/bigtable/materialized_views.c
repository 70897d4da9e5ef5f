/* Materialized views: kept, with a query that is looked at no closer than view_query.h does. */
#include "bigtable/default_instance.h"
#include "bigtable/instance_methods.h"
#include "bigtable/names.h"
#include "bigtable/quick_change.h"
#include "bigtable/view_query.h"

status create_materialized_view(const struct admin_request *request,
                                const ProtobufCMessage **response)
{
    const BtAdmin__CreateMaterializedViewRequest *message = (const void *)request->message;
    BtAdmin__CreateMaterializedViewMetadata metadata =
        BT_ADMIN__CREATE_MATERIALIZED_VIEW_METADATA__INIT;
    BtAdmin__MaterializedView view = BT_ADMIN__MATERIALIZED_VIEW__INIT;
    if (message->materialized_view != NULL)
        view = *message->materialized_view;
    TRY(name_new_resource(request, RESOURCE_MATERIALIZED_VIEW, message->parent,
                          message->materialized_view_id, &view.name));
    TRY(view_query_check(view.query));
    struct resource_creation creation = {RESOURCE_MATERIALIZED_VIEW, message->parent, &view.base,
                                         &metadata.base};
    return create_quickly(request, &creation, response);
}

status get_materialized_view(const struct admin_request *request, const ProtobufCMessage **response)
{
    const BtAdmin__GetMaterializedViewRequest *message = (const void *)request->message;
    ProtobufCMessage *view = NULL;
    TRY(get_resource(request, RESOURCE_MATERIALIZED_VIEW, message->name, &view));
    *response = view;
    return status_ok();
}

status list_materialized_views(const struct admin_request *request,
                               const ProtobufCMessage **response)
{
    const BtAdmin__ListMaterializedViewsRequest *message = (const void *)request->message;
    struct resource_page page;
    BtAdmin__ListMaterializedViewsResponse *list;
    TRY(name_check_instance(message->parent));
    TRY(check_instance_to_list(request->bigtable, message->parent));
    TRY(list_resources(request, RESOURCE_MATERIALIZED_VIEW, message->parent, message->page_size,
                       message->page_token, &page));
    PROTO_NEW(request->arena, list, BT_ADMIN__LIST_MATERIALIZED_VIEWS_RESPONSE__INIT);
    list->materialized_views = (void *)page.messages;
    list->n_materialized_views = page.count;
    list->next_page_token = page.next_token;
    *response = &list->base;
    return status_ok();
}

/* What the view holds was made by its query. */
static status check_change(const struct admin_request *request, const ProtobufCMessage *before,
                           const ProtobufCMessage *after)
{
    const BtAdmin__MaterializedView *was = (const void *)before, *is = (const void *)after;
    (void)request;
    if (strcmp(was->query, is->query) == 0)
        return status_ok();
    return status_make(STATUS_INVALID_ARGUMENT,
                       "The query of a materialized view cannot be changed");
}

status update_materialized_view(const struct admin_request *request,
                                const ProtobufCMessage **response)
{
    static const char *const allowed[] = {"query", "deletion_protection", NULL};
    const BtAdmin__UpdateMaterializedViewRequest *message = (const void *)request->message;
    BtAdmin__UpdateMaterializedViewMetadata metadata =
        BT_ADMIN__UPDATE_MATERIALIZED_VIEW_METADATA__INIT;
    const BtAdmin__MaterializedView *wanted = message->materialized_view;
    if (wanted == NULL)
        return status_make(STATUS_INVALID_ARGUMENT, "materialized_view must be set");
    struct resource_update update = {.kind = RESOURCE_MATERIALIZED_VIEW,
                                     .name = wanted->name,
                                     .etag = wanted->etag,
                                     .wanted = &wanted->base,
                                     .mask = message->update_mask,
                                     .allowed = allowed,
                                     .check = check_change,
                                     .metadata = &metadata.base};
    return update_quickly(request, &update, response);
}

status delete_materialized_view(const struct admin_request *request,
                                const ProtobufCMessage **response)
{
    const BtAdmin__DeleteMaterializedViewRequest *message = (const void *)request->message;
    return delete_resource(request, RESOURCE_MATERIALIZED_VIEW, message->name, message->etag,
                           response);
}
