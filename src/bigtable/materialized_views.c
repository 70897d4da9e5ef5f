/* Materialized views, administered. A view, its table and the operation that tells of its creation
 * are made by one edit; what fills the table is views/.
 *
 * The operation ends when the view is populated, which may take hours: it is awaited
 * (operations.h), over restarts of the server. It fails with the view, and when the view is
 * deleted. Who cancels it undoes the creation: the view goes, deletion protection or not. */
#include "base/limits.h"
#include "bigtable/children.h"
#include "bigtable/default_instance.h"
#include "bigtable/instance_methods.h"
#include "bigtable/materialized.h"
#include "bigtable/names.h"
#include "bigtable/view_guard.h"
#include "bigtable/view_jobs.h"
#include "cluster/view/view_table.h"
#include "google/longrunning/operations.pb-c.h"
#include "wire/timestamps.h"

/* --- get, list, update --- */

static const char *const allowed[] = {"query", "deletion_protection", NULL};

/* A query stays: what is in the view was made by it. */
static status check(const struct admin_request *request, const ProtobufCMessage *before,
                    const ProtobufCMessage *after)
{
    const BtAdmin__MaterializedView *was = (const void *)before, *is = (const void *)after;
    (void)request;
    if (strcmp(was->query, is->query) == 0)
        return status_ok();
    return status_make(STATUS_INVALID_ARGUMENT, "Immutable fields 'query,name' cannot be updated.");
}

static const struct child_kind materialized_views = {
    .kind = RESOURCE_MATERIALIZED_VIEW,
    .name = "materialized_view",
    .update_metadata = &bt_admin__update_materialized_view_metadata__descriptor,
    .list_response = &bt_admin__list_materialized_views_response__descriptor,
    .allowed = allowed,
    .check = check,
};

CHILD_METHOD(get, materialized_view, materialized_views)
CHILD_METHOD(list, materialized_views, materialized_views)
CHILD_METHOD(update, materialized_view, materialized_views)

/* --- create --- */

struct creation {
    const struct admin_request *request;
    BtAdmin__MaterializedView view;
    const ProtobufCMessage *operation;
};

static status define(const struct creation *creation, struct view_definition *out)
{
    const struct admin_request *request = creation->request;
    const struct materialized_query query = {
        .name = creation->view.name, .text = creation->view.query, .call = request->call};
    struct view_program *program;
    TRY(materialized_define(request->bigtable, &query, request->arena, out));
    return view_program_make(out->plan, request->arena, &program);
}

static status check_is_new(const struct creation *creation, struct edit *edit)
{
    const struct admin_request *request = creation->request;
    const BtAdmin__CreateMaterializedViewRequest *message = (const void *)request->message;
    if (edit_find(edit, RESOURCE_MATERIALIZED_VIEW, creation->view.name) != NULL)
        return status_make(STATUS_ALREADY_EXISTS, "Materialized View %s already exists.",
                           message->materialized_view_id);
    return check_id_is_free(request->bigtable, request->arena, edit, RESOURCE_MATERIALIZED_VIEW,
                            message->parent, message->materialized_view_id);
}

static status check_has_room(const struct creation *creation, const char *source)
{
    struct table *table;
    TRY(cluster_table(creation->request->bigtable->cluster, bytes_of(source), &table));
    size_t count = table_view_count(table);
    table_release(table);
    if (count < LIMIT_VIEWS_A_TABLE)
        return status_ok();
    return status_make(STATUS_RESOURCE_EXHAUSTED,
                       "%s has %d materialized views, as many as a table may have", source,
                       LIMIT_VIEWS_A_TABLE);
}

/* The metadata as it is at first is what the work needs to know. */
static status begin(struct creation *creation, struct edit *edit)
{
    struct arena *arena = creation->request->arena;
    BtAdmin__CreateMaterializedViewMetadata metadata =
        BT_ADMIN__CREATE_MATERIALIZED_VIEW_METADATA__INIT;
    union { /* the message is not changed, but its field's type has no const */
        const ProtobufCMessage *given;
        void *wanted;
    } request = {.given = creation->request->message};
    struct buffer argument = {0};
    metadata.original_request = request.wanted;
    TRY(edit_time(edit, arena, &metadata.start_time));
    proto_encode(&metadata.base, &argument);
    struct operation_spec spec = {.metadata = &metadata.base,
                                  .kind = create_view_kind.name,
                                  .argument = buffer_bytes(&argument)};
    status s = argument.failed
                   ? status_out_of_memory()
                   : begin_operation(edit, arena, creation->view.name, &spec, &creation->operation);
    buffer_free(&argument);
    return s;
}

/* What is wrong with the query is said before all else, as in production. */
static status stage_creation(void *context, struct edit *edit)
{
    struct creation *creation = context;
    const struct admin_request *request = creation->request;
    struct view_definition definition;
    struct catalog_txn *txn;
    TRY(define(creation, &definition));
    TRY(check_is_new(creation, edit));
    TRY(check_has_room(creation, definition.source));
    TRY(create_resource(edit, request->arena, RESOURCE_MATERIALIZED_VIEW, &creation->view.base));
    TRY(begin(creation, edit));
    TRY(edit_txn(edit, &txn));
    return views_create_table(request->bigtable->views, creation->view.name, &definition, txn);
}

status create_materialized_view(const struct admin_request *request,
                                const ProtobufCMessage **response)
{
    const BtAdmin__CreateMaterializedViewRequest *message = (const void *)request->message;
    struct creation creation = {.request = request, .view = BT_ADMIN__MATERIALIZED_VIEW__INIT};
    if (message->materialized_view != NULL)
        creation.view = *message->materialized_view;
    TRY(name_new_child(request, RESOURCE_MATERIALIZED_VIEW, message->parent,
                       message->materialized_view_id, &creation.view.name));
    TRY(control_edit(request->bigtable->control, stage_creation, &creation));
    *response = creation.operation;
    return status_ok();
}

/* --- delete --- */

static status stage_deletion(void *context, struct edit *edit)
{
    const struct admin_request *request = context;
    const BtAdmin__DeleteMaterializedViewRequest *message = (const void *)request->message;
    ProtobufCMessage *view;
    TRY(find_for_change(edit, request->arena, RESOURCE_MATERIALIZED_VIEW, message->name,
                        message->etag, &view));
    if (((const BtAdmin__MaterializedView *)(const void *)view)->deletion_protection)
        return status_make(STATUS_FAILED_PRECONDITION,
                           "Materialized View %s has deletion protection enabled.", message->name);
    return view_stage_deletion(request->bigtable, edit, message->name);
}

status delete_materialized_view(const struct admin_request *request,
                                const ProtobufCMessage **response)
{
    const BtAdmin__DeleteMaterializedViewRequest *message = (const void *)request->message;
    struct admin_request copy = *request;
    TRY(check_resource_name(RESOURCE_MATERIALIZED_VIEW, message->name));
    TRY(control_edit(request->bigtable->control, stage_deletion, &copy));
    *response = admin_empty_response();
    return status_ok();
}
