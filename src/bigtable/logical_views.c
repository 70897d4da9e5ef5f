/* Logical views: kept, with a query that is looked at no closer than view_query.h does. */
#include "bigtable/default_instance.h"
#include "bigtable/instance_methods.h"
#include "bigtable/names.h"
#include "bigtable/quick_change.h"
#include "bigtable/view_query.h"

status create_logical_view(const struct admin_request *request, const ProtobufCMessage **response)
{
    const BtAdmin__CreateLogicalViewRequest *message = (const void *)request->message;
    BtAdmin__CreateLogicalViewMetadata metadata = BT_ADMIN__CREATE_LOGICAL_VIEW_METADATA__INIT;
    BtAdmin__LogicalView view = BT_ADMIN__LOGICAL_VIEW__INIT;
    if (message->logical_view != NULL)
        view = *message->logical_view;
    TRY(name_new_resource(request, RESOURCE_LOGICAL_VIEW, message->parent, message->logical_view_id,
                          &view.name));
    TRY(view_query_check(view.query));
    struct resource_creation creation = {RESOURCE_LOGICAL_VIEW, message->parent, &view.base,
                                         &metadata.base};
    return create_quickly(request, &creation, response);
}

status get_logical_view(const struct admin_request *request, const ProtobufCMessage **response)
{
    const BtAdmin__GetLogicalViewRequest *message = (const void *)request->message;
    ProtobufCMessage *view = NULL;
    TRY(get_resource(request, RESOURCE_LOGICAL_VIEW, message->name, &view));
    *response = view;
    return status_ok();
}

status list_logical_views(const struct admin_request *request, const ProtobufCMessage **response)
{
    const BtAdmin__ListLogicalViewsRequest *message = (const void *)request->message;
    struct resource_page page;
    BtAdmin__ListLogicalViewsResponse *list;
    TRY(name_check_instance(message->parent));
    TRY(check_instance_to_list(request->bigtable, message->parent));
    TRY(list_resources(request, RESOURCE_LOGICAL_VIEW, message->parent, message->page_size,
                       message->page_token, &page));
    PROTO_NEW(request->arena, list, BT_ADMIN__LIST_LOGICAL_VIEWS_RESPONSE__INIT);
    list->logical_views = (void *)page.messages;
    list->n_logical_views = page.count;
    list->next_page_token = page.next_token;
    *response = &list->base;
    return status_ok();
}

static status check_change(const struct admin_request *request, const ProtobufCMessage *before,
                           const ProtobufCMessage *after)
{
    (void)request, (void)before;
    return view_query_check(((const BtAdmin__LogicalView *)(const void *)after)->query);
}

status update_logical_view(const struct admin_request *request, const ProtobufCMessage **response)
{
    static const char *const allowed[] = {"query", "deletion_protection", NULL};
    const BtAdmin__UpdateLogicalViewRequest *message = (const void *)request->message;
    BtAdmin__UpdateLogicalViewMetadata metadata = BT_ADMIN__UPDATE_LOGICAL_VIEW_METADATA__INIT;
    const BtAdmin__LogicalView *wanted = message->logical_view;
    if (wanted == NULL)
        return status_make(STATUS_INVALID_ARGUMENT, "logical_view must be set");
    struct resource_update update = {.kind = RESOURCE_LOGICAL_VIEW,
                                     .name = wanted->name,
                                     .etag = wanted->etag,
                                     .wanted = &wanted->base,
                                     .mask = message->update_mask,
                                     .allowed = allowed,
                                     .check = check_change,
                                     .metadata = &metadata.base};
    return update_quickly(request, &update, response);
}

status delete_logical_view(const struct admin_request *request, const ProtobufCMessage **response)
{
    const BtAdmin__DeleteLogicalViewRequest *message = (const void *)request->message;
    return delete_resource(request, RESOURCE_LOGICAL_VIEW, message->name, message->etag, response);
}
