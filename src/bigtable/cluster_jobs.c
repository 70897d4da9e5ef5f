/* See cluster_jobs.h. Looked at again and again (operation_kind.is_awaited), so each step is short.
 */
#include "bigtable/cluster_jobs.h"

#include "base/limits.h"
#include "base/vector.h"
#include "bigtable/names.h"
#include "bigtable/peers_hook.h"
#include "bigtable/resource_call.h"
#include "google/bigtable/admin/v2/bigtable_instance_admin.pb-c.h"

#include <stdlib.h>

typedef BtAdmin__CreateClusterMetadata__TableProgress TableProgress;
typedef BtAdmin__CreateClusterMetadata__TablesEntry TablesEntry;

struct job {
    struct bigtable *bigtable;
    struct operation *operation;
    struct arena *arena;
    BtAdmin__CreateClusterMetadata *metadata;
    const char *name; /* of the cluster */
};

static status read_argument(struct job *job)
{
    ProtobufCMessage *message;
    TRY(proto_decode(&bt_admin__create_cluster_metadata__descriptor,
                     operation_argument(job->operation), job->arena, &message));
    job->metadata = (void *)message;
    const BtAdmin__CreateClusterRequest *request = job->metadata->original_request;
    job->name = name_join(job->arena, request->parent, "clusters", request->cluster_id);
    return job->name == NULL ? status_out_of_memory() : status_ok();
}

/* Another one may have been made since in the place of ours, which was made by the edit that began
 * the operation, whose version is its id. */
static status find_ours(const struct job *job, BtAdmin__Cluster **out)
{
    uint64_t begun_in = strtoull(name_id(operation_name(job->operation)), NULL, 10);
    struct resource *standing;
    ProtobufCMessage *message = NULL;
    status s = control_find(job->bigtable->control, RESOURCE_CLUSTER, job->name, &standing);
    if (s.code == STATUS_NOT_FOUND || (status_is_ok(s) && resource_made_in(standing) != begun_in)) {
        if (status_is_ok(s))
            resource_release(standing);
        status_free(s);
        return status_make(STATUS_ABORTED, "Cluster \"%s\" was deleted", job->name);
    }
    TRY(s);
    s = resource_decode(standing, job->arena, &message);
    resource_release(standing);
    *out = (void *)message;
    return s;
}

/* --- its ends --- */

struct ending {
    struct job *job;
    const BtAdmin__Cluster *cluster;
};

static status stage_finish(void *context, struct edit *edit)
{
    const struct ending *ending = context;
    struct job *job = ending->job;
    TRY(edit_time(edit, job->arena, &job->metadata->finish_time));
    return operation_finish(job->operation, edit, &job->metadata->base, &ending->cluster->base);
}

static status stage_undoing(void *context, struct edit *edit)
{
    const struct job *job = context;
    return edit_delete(edit, RESOURCE_CLUSTER, job->name);
}

/* A stop looks like it, and leaves all as it is. */
static status cancel(struct job *job)
{
    if (operation_is_stopping(job->operation))
        return status_ok();
    TRY(control_edit(job->bigtable->control, stage_undoing, job));
    return status_make(STATUS_CANCELLED, "The operation was cancelled, and %s is gone", job->name);
}

/* --- how far it is --- */

struct telling {
    struct job *job;
    struct vector entries; /* of TablesEntry * */
    status s;
};

static TableProgress *progress_of(struct arena *arena, const struct table_copied *copied)
{
    TableProgress *progress = arena_alloc(arena, sizeof *progress);
    if (progress == NULL)
        return NULL;
    *progress = (TableProgress)BT_ADMIN__CREATE_CLUSTER_METADATA__TABLE_PROGRESS__INIT;
    progress->estimated_size_bytes = copied->size_bytes;
    progress->estimated_copied_bytes = copied->copied_bytes;
    progress->state = copied->is_over
                          ? BT_ADMIN__CREATE_CLUSTER_METADATA__TABLE_PROGRESS__STATE__COMPLETED
                      : copied->copied_bytes > 0
                          ? BT_ADMIN__CREATE_CLUSTER_METADATA__TABLE_PROGRESS__STATE__COPYING
                          : BT_ADMIN__CREATE_CLUSTER_METADATA__TABLE_PROGRESS__STATE__PENDING;
    return progress;
}

static status add_entry(struct telling *telling, const struct table_copied *copied)
{
    struct arena *arena = telling->job->arena;
    TablesEntry *entry;
    PROTO_NEW(arena, entry, BT_ADMIN__CREATE_CLUSTER_METADATA__TABLES_ENTRY__INIT);
    entry->key = arena_string(arena, bytes_of(copied->name));
    entry->value = progress_of(arena, copied);
    if (entry->key == NULL || entry->value == NULL)
        return status_out_of_memory();
    return vector_add(&telling->entries, arena, &entry, sizeof(void *));
}

static void tell_table(void *context, const struct table_copied *copied)
{
    struct telling *telling = context;
    if (status_is_ok(telling->s))
        telling->s = add_entry(telling, copied);
}

/* Not more than once a second, of which the operation's thread does not keep count: so when the
 * peer has been asked anew, which is as often. */
static status report(struct job *job)
{
    const struct bigtable_peers *peers = job->bigtable->peers;
    struct telling telling = {.job = job, .s = status_ok()};
    if (peers == NULL || !peers->copied(peers->replication, job->name, tell_table, &telling))
        return status_ok();
    TRY(telling.s);
    job->metadata->tables = telling.entries.items;
    job->metadata->n_tables = telling.entries.count;
    return operation_report(job->operation, &job->metadata->base);
}

/* --- looking --- */

static status look(struct job *job)
{
    BtAdmin__Cluster *cluster;
    TRY(read_argument(job));
    operation_set_subject(job->operation, job->name);
    if (operation_is_cancelled(job->operation))
        return cancel(job);
    TRY(find_ours(job, &cluster));
    struct ending ending = {job, cluster};
    return cluster->state == BT_ADMIN__CLUSTER__STATE__CREATING
               ? report(job)
               : control_edit(job->bigtable->control, stage_finish, &ending);
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

/* Copies go on by themselves; a cluster that is there no more is found out by `run`. */
static status recover(void *context, const char *name, bytes argument)
{
    (void)context, (void)name, (void)argument;
    return status_ok();
}

const struct operation_kind create_cluster_kind = {
    .name = "create-cluster", .run = run, .recover = recover, .is_awaited = true};
