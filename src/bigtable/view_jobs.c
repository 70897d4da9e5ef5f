/* See view_jobs.h. Looked at again and again (operation_kind.is_awaited), so each step is short. */
#include "bigtable/view_jobs.h"

#include "base/limits.h"
#include "bigtable/names.h"
#include "bigtable/resource_call.h"
#include "google/bigtable/admin/v2/bigtable_instance_admin.pb-c.h"
#include "views/views.h"
#include "wire/timestamps.h"

#include <stdlib.h>

struct job {
    struct bigtable *bigtable;
    struct operation *operation;
    struct arena *arena;
    BtAdmin__CreateMaterializedViewMetadata *metadata;
    const char *name; /* of the view */
};

status view_stage_deletion(struct bigtable *bigtable, struct edit *edit, const char *name)
{
    struct catalog_txn *txn;
    TRY(edit_delete(edit, RESOURCE_MATERIALIZED_VIEW, name));
    TRY(edit_txn(edit, &txn));
    return views_delete_table(bigtable->views, name, txn);
}

/* --- whose it is --- */

static status read_argument(struct job *job)
{
    ProtobufCMessage *message;
    TRY(proto_decode(&bt_admin__create_materialized_view_metadata__descriptor,
                     operation_argument(job->operation), job->arena, &message));
    job->metadata = (void *)message;
    const BtAdmin__CreateMaterializedViewRequest *request = job->metadata->original_request;
    job->name =
        name_join(job->arena, request->parent, "materializedViews", request->materialized_view_id);
    return job->name == NULL ? status_out_of_memory() : status_ok();
}

/* Another one may have been made since in the place of ours, of the same query, too: ours was made
 * by the edit that began the operation, whose version is its id. */
static status check_is_ours(const struct job *job, const struct resource *standing)
{
    uint64_t begun_in = strtoull(name_id(operation_name(job->operation)), NULL, 10);
    if (standing != NULL && resource_made_in(standing) == begun_in)
        return status_ok();
    return status_make(STATUS_NOT_FOUND, "Not found: %s was deleted", job->name);
}

static status check_is_there(const struct job *job)
{
    struct resource *standing;
    TRY(control_find(job->bigtable->control, RESOURCE_MATERIALIZED_VIEW, job->name, &standing));
    status s = check_is_ours(job, standing);
    resource_release(standing);
    return s;
}

/* The view as it is now. */
static status find_view(const struct job *job, struct edit *edit, ProtobufCMessage **out)
{
    const struct resource *standing = edit_find(edit, RESOURCE_MATERIALIZED_VIEW, job->name);
    TRY(check_is_ours(job, standing));
    return resource_message(standing, job->arena, out);
}

/* --- its ends --- */

static status stage_finish(void *context, struct edit *edit)
{
    struct job *job = context;
    ProtobufCMessage *view;
    TRY(find_view(job, edit, &view));
    TRY(edit_time(edit, job->arena, &job->metadata->end_time));
    return operation_finish(job->operation, edit, &job->metadata->base, view);
}

static status stage_undoing(void *context, struct edit *edit)
{
    struct job *job = context;
    ProtobufCMessage *view;
    TRY(find_view(job, edit, &view));
    return view_stage_deletion(job->bigtable, edit, job->name);
}

/* A stop looks like it, and leaves all as it is. */
static status cancel(struct job *job)
{
    if (operation_is_stopping(job->operation))
        return status_ok();
    TRY(control_edit(job->bigtable->control, stage_undoing, job));
    return status_make(STATUS_CANCELLED, "The operation was cancelled, and %s is gone", job->name);
}

/* --- looking --- */

static status look(struct job *job)
{
    struct view_found found;
    TRY(read_argument(job));
    operation_set_subject(job->operation, job->name);
    if (operation_is_cancelled(job->operation))
        return cancel(job);
    TRY(check_is_there(job));
    TRY(views_find(job->bigtable->views, job->name, &found));
    if (found.table != NULL)
        table_release(found.table);
    if (found.state == VIEW_FAILED)
        return status_make(STATUS_FAILED_PRECONDITION, "%s", found.words);
    if (!found.is_readable)
        return status_ok();
    return control_edit(job->bigtable->control, stage_finish, job);
}

static status run(void *context, struct operation *operation)
{
    struct job job = {.bigtable = context,
                      .operation = operation,
                      .arena = arena_create(LIMIT_ARENA_ADMIN_BYTES)};
    if (job.arena == NULL)
        return status_out_of_memory();
    status s = look(&job);
    arena_destroy(job.arena);
    return s;
}

/* Populations go on by themselves; one that has no view any more is found out by `run`. */
static status recover(void *context, const char *name, bytes argument)
{
    (void)context, (void)name, (void)argument;
    return status_ok();
}

const struct operation_kind create_view_kind = {
    .name = "create-materialized-view", .run = run, .recover = recover, .is_awaited = true};
