/* CreateBackup: see backup_jobs.h. */
#include "base/limits.h"
#include "bigtable/backup_jobs.h"
#include "bigtable/backup_methods.h"
#include "bigtable/names.h"
#include "bigtable/peers_hook.h"

static status metadata_of(const BtAdmin__Backup *backup, Pb__Timestamp *start_time,
                          struct arena *arena, BtAdmin__CreateBackupMetadata **out)
{
    PROTO_NEW(arena, *out, BT_ADMIN__CREATE_BACKUP_METADATA__INIT);
    (*out)->name = backup->name;
    (*out)->source_table = backup->source_table;
    (*out)->start_time = start_time;
    (*out)->end_time = backup->end_time;
    return status_ok();
}

/* --- the order --- */

struct creation {
    struct backup_order *order;
    const ProtobufCMessage *operation;
};

static status stage_creation(void *context, struct edit *edit)
{
    struct creation *creation = context;
    struct backup_order *order = creation->order;
    BtAdmin__CreateBackupMetadata *metadata;
    Pb__Timestamp *now;
    struct table *table;
    TRY(cluster_table(order->bigtable->cluster, bytes_of(order->backup->source_table), &table));
    table_release(table);
    TRY(edit_time(edit, order->arena, &now));
    TRY(metadata_of(order->backup, now, order->arena, &metadata));
    return backup_order_stage(order, edit, create_backup_kind.name, &metadata->base,
                              &creation->operation);
}

status backup_order_create(struct backup_order *order, const ProtobufCMessage **operation)
{
    struct creation creation = {.order = order};
    status s = control_edit(order->bigtable->control, stage_creation, &creation);
    if (!status_is_ok(s))
        backup_order_undo(order);
    *operation = creation.operation;
    return s;
}

/* --- the work --- */

static status make(struct backup_job *job, const BtAdmin__Backup *backup)
{
    struct backups *backups = job->bigtable->backups;
    struct table *table;
    status s = cluster_table(job->bigtable->cluster, bytes_of(backup->source_table), &table);
    if (!status_is_ok(s)) {
        backup_give_up(backups, backup->name);
        return s;
    }
    s = backup_create(backups, backup->name, table, &job->work);
    table_release(table);
    return s;
}

/* Sets the metadata that is seen should it fail: when the work on it began, and then its end. */
static status show(struct backup_job *job, const BtAdmin__Backup *backup)
{
    BtAdmin__CreateBackupMetadata *metadata;
    Pb__Timestamp *now;
    TRY(timestamp_message(cluster_wall_us(job->bigtable->cluster), job->arena, &now));
    TRY(metadata_of(backup, now, job->arena, &metadata));
    job->metadata = &metadata->base;
    job->end = &metadata->end_time;
    return status_ok();
}

static status work(struct backup_job *job)
{
    struct backup_facts facts;
    BtAdmin__CreateBackupMetadata *metadata;
    bool is_done;
    TRY(backup_facts_decode(operation_argument(job->operation), job->arena, &facts));
    const char *name = facts.backup->name;
    job->table = facts.backup->source_table;
    job->by_policy = facts.is_automated;
    operation_set_subject(job->operation, name);
    TRY(show(job, facts.backup));
    TRY(backup_job_is_done(job->bigtable, operation_name(job->operation), name, job->arena,
                           &is_done));
    if (!is_done)
        TRY(make(job, facts.backup));
    TRY(find_backup(job->bigtable->backups, name, job->arena, &facts));
    TRY(metadata_of(facts.backup, facts.backup->start_time, job->arena, &metadata));
    return backup_job_finish(job, facts.backup, &metadata->base);
}

static status run(void *context, struct operation *operation)
{
    return backup_job_run(context, operation, work);
}

static status recover(void *context, const char *name, bytes argument)
{
    return backup_job_recover_making(context, name, argument, backup_job_reserve);
}

const struct operation_kind create_backup_kind = {
    .name = "create-backup", .run = run, .recover = recover};

/* --- the call --- */

/* A backup is in a cluster of its table's instance. */
static status check_source(const BtAdmin__CreateBackupRequest *message)
{
    const char *source = message->backup->source_table;
    TRY(name_check_table(source));
    size_t size = resource_parent_size(source);
    if (size == resource_parent_size(message->parent) &&
        strncmp(source, message->parent, size) == 0)
        return status_ok();
    return status_make(STATUS_INVALID_ARGUMENT, "Table %s is not in the instance of the cluster %s",
                       source, message->parent);
}

status create_backup(const struct admin_request *request, const ProtobufCMessage **response)
{
    const BtAdmin__CreateBackupRequest *message = (const void *)request->message;
    BtAdmin__Backup backup = BT_ADMIN__BACKUP__INIT;
    TRY(check_cluster_name(message->parent));
    TRY(name_check_resource_id("backup", message->backup_id, LIMIT_RESOURCE_ID_BYTES));
    if (message->backup == NULL)
        return status_make(STATUS_INVALID_ARGUMENT, "backup must be set");
    TRY(check_source(message));
    const char *end = strstr(message->parent, "/clusters/"); /* of a name that was checked */
    TRY(check_is_here(request->bigtable,
                      bytes_make(message->parent, (size_t)(end - message->parent))));
    backup.name = name_join(request->arena, message->parent, "backups", message->backup_id);
    if (backup.name == NULL)
        return status_out_of_memory();
    backup.source_table = message->backup->source_table;
    backup.expire_time = message->backup->expire_time;
    backup.backup_type = message->backup->backup_type;
    backup.hot_to_standard_time = message->backup->hot_to_standard_time;
    struct backup_order order = {
        .bigtable = request->bigtable, .arena = request->arena, .backup = &backup};
    return backup_order_create(&order, response);
}
