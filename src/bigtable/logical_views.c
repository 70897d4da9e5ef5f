/* Logical views, whose queries are planned when they are made and run when a query names them. */
#include "bigtable/children.h"
#include "bigtable/instance_methods.h"
#include "bigtable/names.h"
#include "bigtable/query.h"

static const char *const allowed[] = {"query", "deletion_protection", NULL};

/* A query that stays is not looked at again: what it reads may be gone by now. */
static status check_query(const struct admin_request *request, const char *name, const char *text)
{
    bytes instance = bytes_make(name, resource_parent_size(name));
    struct query_view view = {.id = name_id(name), .text = text};
    view.instance = arena_string(request->arena, instance);
    return view.instance == NULL ? status_out_of_memory()
                                 : query_check_view(request->bigtable, request->arena, &view);
}

static status check_logical(const struct admin_request *request, const ProtobufCMessage *before,
                            const ProtobufCMessage *after)
{
    const BtAdmin__LogicalView *was = (const void *)before, *is = (const void *)after;
    if (was != NULL && strcmp(was->query, is->query) == 0)
        return status_ok();
    return check_query(request, is->name, is->query);
}

static const struct child_kind logical_views = {
    .kind = RESOURCE_LOGICAL_VIEW,
    .name = "logical_view",
    .create_metadata = &bt_admin__create_logical_view_metadata__descriptor,
    .update_metadata = &bt_admin__update_logical_view_metadata__descriptor,
    .list_response = &bt_admin__list_logical_views_response__descriptor,
    .allowed = allowed,
    .check = check_logical,
    .shares_ids = true,
};

CHILD_METHOD(create, logical_view, logical_views)
CHILD_METHOD(get, logical_view, logical_views)
CHILD_METHOD(list, logical_views, logical_views)
CHILD_METHOD(update, logical_view, logical_views)
CHILD_METHOD(delete, logical_view, logical_views)
