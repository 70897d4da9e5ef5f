/* CopyBackup, also into another instance or project: see backup_jobs.h. */
#include "base/limits.h"
#include "bigtable/backup_jobs.h"
#include "bigtable/backup_methods.h"
#include "bigtable/names.h"

static status metadata_of(const char *name, const BtAdmin__Backup *source, struct arena *arena,
                          BtAdmin__CopyBackupMetadata **out)
{
    PROTO_NEW(arena, *out, BT_ADMIN__COPY_BACKUP_METADATA__INIT);
    (*out)->name = name;
    return backup_info_message(source, arena, &(*out)->source_backup_info);
}

/* --- the order --- */

struct copying {
    struct backup_order order;
    const ProtobufCMessage *operation;
    bool is_held;
};

static status stage_from(struct copying *copying, struct edit *edit, const BtAdmin__Backup *source)
{
    struct backup_order *order = &copying->order;
    BtAdmin__CopyBackupMetadata *metadata;
    TRY(check_backup_is_of_use(order->bigtable, source));
    if (*source->source_backup != '\0')
        return status_make(STATUS_FAILED_PRECONDITION,
                           "A copied backup cannot be copied again: %s is a copy of %s",
                           source->name, source->source_backup);
    order->backup->source_table = source->source_table;
    TRY(metadata_of(order->backup->name, source, order->arena, &metadata));
    return backup_order_stage(order, edit, copy_backup_kind.name, &metadata->base,
                              &copying->operation);
}

static status stage_copy(void *context, struct edit *edit)
{
    struct copying *copying = context;
    const struct backup_order *order = &copying->order;
    const char *source = order->backup->source_backup;
    struct backup_facts facts;
    TRY(backup_hold(order->bigtable->backups, source));
    copying->is_held = true;
    TRY(find_backup(order->bigtable->backups, source, order->arena, &facts));
    return stage_from(copying, edit, facts.backup);
}

static status order_copy(struct copying *copying)
{
    const struct backup_order *order = &copying->order;
    status s = control_edit(order->bigtable->control, stage_copy, copying);
    if (status_is_ok(s))
        return s;
    backup_order_undo(&copying->order);
    if (copying->is_held)
        backup_let_go(order->bigtable->backups, order->backup->source_backup);
    return s;
}

/* --- the work --- */

/* The source may be gone when a copy that was made before a crash is finished. */
static status describe_source(struct backup_job *job, const BtAdmin__Backup *backup,
                              BtAdmin__Backup **out)
{
    struct backup_facts facts;
    status s = find_backup(job->bigtable->backups, backup->source_backup, job->arena, &facts);
    *out = facts.backup;
    if (s.code != STATUS_NOT_FOUND)
        return s;
    status_free(s);
    PROTO_NEW(job->arena, *out, BT_ADMIN__BACKUP__INIT);
    (*out)->name = backup->source_backup;
    (*out)->source_table = backup->source_table;
    return status_ok();
}

static status announce(struct backup_job *job, const BtAdmin__Backup *backup,
                       BtAdmin__CopyBackupMetadata **metadata)
{
    BtAdmin__Backup *source;
    TRY(describe_source(job, backup, &source));
    TRY(metadata_of(backup->name, source, job->arena, metadata));
    return backup_job_show(job, &(*metadata)->base, &(*metadata)->progress);
}

/* Lets go of the source, whatever happens, and gives the name up if there is no copy. */
static status copy(struct backup_job *job, const BtAdmin__Backup *backup,
                   BtAdmin__CopyBackupMetadata **metadata)
{
    struct backups *backups = job->bigtable->backups;
    status s = announce(job, backup, metadata);
    if (status_is_ok(s))
        s = backup_copy(backups, backup->source_backup, backup->name, &job->work);
    else
        backup_give_up(backups, backup->name);
    backup_let_go(backups, backup->source_backup);
    return s;
}

static status work(struct backup_job *job)
{
    struct backup_facts facts;
    BtAdmin__CopyBackupMetadata *metadata;
    bool is_done;
    TRY(backup_facts_decode(operation_argument(job->operation), job->arena, &facts));
    const char *name = facts.backup->name;
    job->table = facts.backup->source_table;
    operation_set_subject(job->operation, name);
    TRY(backup_job_is_done(job->bigtable, operation_name(job->operation), name, job->arena,
                           &is_done));
    if (is_done)
        TRY(announce(job, facts.backup, &metadata));
    else
        TRY(copy(job, facts.backup, &metadata));
    TRY(backup_job_complete(job));
    TRY(find_backup(job->bigtable->backups, name, job->arena, &facts));
    return backup_job_finish(job, facts.backup, &metadata->base);
}

static status run(void *context, struct operation *operation)
{
    return backup_job_run(context, operation, work);
}

static status reserve_and_hold(const struct bigtable *bigtable, const char *operation,
                               struct backup_facts *facts)
{
    const char *source = facts->backup->source_backup;
    TRY(backup_hold(bigtable->backups, source));
    status s = backup_job_reserve(bigtable, operation, facts);
    if (!status_is_ok(s))
        backup_let_go(bigtable->backups, source);
    return s;
}

static status recover(void *context, const char *name, bytes argument)
{
    return backup_job_recover_making(context, name, argument, reserve_and_hold);
}

const struct operation_kind copy_backup_kind = {
    .name = "copy-backup", .run = run, .recover = recover};

/* --- the call --- */

/* The copy of a hot backup is a standard one. */
status copy_backup(const struct admin_request *request, const ProtobufCMessage **response)
{
    const BtAdmin__CopyBackupRequest *message = (const void *)request->message;
    BtAdmin__Backup backup = BT_ADMIN__BACKUP__INIT;
    TRY(check_cluster_name(message->parent));
    TRY(name_check_resource_id("backup", message->backup_id, LIMIT_RESOURCE_ID_BYTES));
    TRY(check_backup_name(message->source_backup));
    backup.name = name_join(request->arena, message->parent, "backups", message->backup_id);
    if (backup.name == NULL)
        return status_out_of_memory();
    backup.source_backup = message->source_backup;
    backup.expire_time = message->expire_time;
    struct copying copying = {
        .order = {.bigtable = request->bigtable, .arena = request->arena, .backup = &backup}};
    TRY(order_copy(&copying));
    *response = copying.operation;
    return status_ok();
}
