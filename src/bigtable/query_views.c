/* Logical views, whose queries are planned when they are made and run when a query names them; and
 * materialized ones, kept with queries that are not run. */
#include "bigtable/children.h"
#include "bigtable/instance_methods.h"
#include "bigtable/names.h"
#include "bigtable/query.h"

static const char *const allowed[] = {"query", "deletion_protection", NULL};

/* A query that stays is not looked at again: what it reads may be gone by now. */
static status check_query(const struct admin_request *request, const char *name, const char *text,
                          bool is_materialized)
{
    bytes instance = bytes_make(name, resource_parent_size(name));
    struct query_view view = {
        .id = name_id(name), .text = text, .is_materialized = is_materialized};
    view.instance = arena_string(request->arena, instance);
    return view.instance == NULL ? status_out_of_memory()
                                 : query_check_view(request->bigtable, request->arena, &view);
}

/* --- logical views --- */

static status check_logical(const struct admin_request *request, const ProtobufCMessage *before,
                            const ProtobufCMessage *after)
{
    const BtAdmin__LogicalView *was = (const void *)before, *is = (const void *)after;
    if (was != NULL && strcmp(was->query, is->query) == 0)
        return status_ok();
    return check_query(request, is->name, is->query, false);
}

static const struct child_kind logical_views = {
    .kind = RESOURCE_LOGICAL_VIEW,
    .name = "logical_view",
    .create_metadata = &bt_admin__create_logical_view_metadata__descriptor,
    .update_metadata = &bt_admin__update_logical_view_metadata__descriptor,
    .list_response = &bt_admin__list_logical_views_response__descriptor,
    .allowed = allowed,
    .check = check_logical,
};

CHILD_METHOD(create, logical_view, logical_views)
CHILD_METHOD(get, logical_view, logical_views)
CHILD_METHOD(list, logical_views, logical_views)
CHILD_METHOD(update, logical_view, logical_views)
CHILD_METHOD(delete, logical_view, logical_views)

/* --- materialized views --- */

/* A materialized view's query stays: its content was made by it. */
static status check_materialized(const struct admin_request *request,
                                 const ProtobufCMessage *before, const ProtobufCMessage *after)
{
    const BtAdmin__MaterializedView *was = (const void *)before, *is = (const void *)after;
    if (was == NULL)
        return check_query(request, is->name, is->query, true);
    if (strcmp(was->query, is->query) != 0)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "The query of a materialized view cannot be changed");
    return status_ok();
}

static const struct child_kind materialized_views = {
    .kind = RESOURCE_MATERIALIZED_VIEW,
    .name = "materialized_view",
    .create_metadata = &bt_admin__create_materialized_view_metadata__descriptor,
    .update_metadata = &bt_admin__update_materialized_view_metadata__descriptor,
    .list_response = &bt_admin__list_materialized_views_response__descriptor,
    .allowed = allowed,
    .check = check_materialized,
};

CHILD_METHOD(create, materialized_view, materialized_views)
CHILD_METHOD(get, materialized_view, materialized_views)
CHILD_METHOD(list, materialized_views, materialized_views)
CHILD_METHOD(update, materialized_view, materialized_views)
CHILD_METHOD(delete, materialized_view, materialized_views)
