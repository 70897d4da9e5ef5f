/* See backup_jobs.h. */
#include "bigtable/backup_jobs.h"

#include "base/limits.h"
#include "bigtable/backup_failures.h"
#include "bigtable/names.h"
#include "bigtable/schema_message.h"
#include "google/longrunning/operations.pb-c.h"

/* --- ordering --- */

static status check_type(BtAdmin__Backup *backup)
{
    switch (backup->backup_type) {
    case BT_ADMIN__BACKUP__BACKUP_TYPE__BACKUP_TYPE_UNSPECIFIED:
        backup->backup_type = BT_ADMIN__BACKUP__BACKUP_TYPE__STANDARD;
        return status_ok();
    case BT_ADMIN__BACKUP__BACKUP_TYPE__STANDARD:
    case BT_ADMIN__BACKUP__BACKUP_TYPE__HOT:
        return status_ok();
    default:
        return status_make(STATUS_INVALID_ARGUMENT, "backup_type is unknown");
    }
}

static status check_terms(const struct backup_order *order, struct edit *edit)
{
    struct backup_terms terms = {.begun_us = (int64_t)edit_version(edit),
                                 .is_copy = *order->backup->source_backup != '\0'};
    TRY(check_type(order->backup));
    if (order->is_automated)
        return status_ok();
    TRY(find_edition(edit, order->arena, order->backup->name, &terms.is_enterprise_plus));
    TRY(check_backup_expiry(&terms, order->backup));
    return check_backup_cooling(&terms, order->backup);
}

/* Its cluster says how it is encrypted. Whether the key works is not looked at again for a backup:
 * production says UNKNOWN of it, and Go's suite wants that. */
static status find_encryption(struct backup_order *order, const BtAdmin__Cluster *cluster)
{
    BtAdmin__EncryptionInfo *info;
    TRY(cluster_encryption(cluster, order->arena, &info));
    if (info->encryption_status != NULL)
        info->encryption_status->code = STATUS_UNKNOWN;
    order->backup->encryption_info = info;
    return status_ok();
}

static status complete(struct backup_order *order, struct edit *edit)
{
    char *name = name_parent(order->arena, order->backup->name);
    ProtobufCMessage *cluster;
    if (name == NULL)
        return status_out_of_memory();
    TRY(find_for_change(edit, order->arena, RESOURCE_CLUSTER, name, "", &cluster));
    TRY(find_encryption(order, (const void *)cluster));
    return check_terms(order, edit);
}

static status begin(struct backup_order *order, struct edit *edit, const char *kind,
                    const ProtobufCMessage *metadata, const ProtobufCMessage **operation)
{
    struct backup_facts facts = {.backup = order->backup, .is_automated = order->is_automated};
    struct buffer argument = {0};
    status s = backup_facts_encode_whole(&facts, &argument);
    struct operation_spec spec = {
        .metadata = metadata, .kind = kind, .argument = buffer_bytes(&argument)};
    if (status_is_ok(s))
        s = begin_operation(edit, order->arena, order->backup->name, &spec, operation);
    buffer_free(&argument);
    return s;
}

status backup_order_stage(struct backup_order *order, struct edit *edit, const char *kind,
                          const ProtobufCMessage *metadata, const ProtobufCMessage **operation)
{
    TRY(complete(order, edit));
    TRY(edit_delete_under(edit, order->backup->name)); /* a former one's policy */
    TRY(begin(order, edit, kind, metadata, operation));
    struct backup_facts facts = {.backup = order->backup, .is_automated = order->is_automated};
    TRY(backup_job_reserve(order->bigtable,
                           ((const Lro__Operation *)(const void *)*operation)->name, &facts));
    order->is_reserved = true;
    return status_ok();
}

void backup_order_undo(struct backup_order *order)
{
    if (order->is_reserved)
        backup_give_up(order->bigtable->backups, order->backup->name);
}

status check_backup_is_of_use(const struct bigtable *bigtable, const BtAdmin__Backup *backup)
{
    int64_t now_us = clock_wall_us(cluster_clock(bigtable->cluster));
    if (backup->state != BT_ADMIN__BACKUP__STATE__READY)
        return status_make(STATUS_FAILED_PRECONDITION, "Backup is being created: %s", backup->name);
    if (bigtable->backups_expire && backup->expire_time != NULL &&
        timestamp_us(backup->expire_time) <= now_us)
        return status_make(STATUS_FAILED_PRECONDITION, "Backup has expired: %s", backup->name);
    return status_ok();
}

/* --- carrying out --- */

enum { SHOW_EVERY_US = 1000000 };

static bool set_percent(struct backup_job *job)
{
    const struct backup_work *work = &job->work;
    int32_t before = job->progress->progress_percent;
    uint64_t percent = work->bytes_total == 0 ? 0 : work->bytes_done * 100 / work->bytes_total;
    job->progress->progress_percent = percent > 99 ? 99 : (int32_t)percent;
    return job->progress->progress_percent != before;
}

static void show_now_and_then(struct backup_job *job)
{
    int64_t now_us = clock_steady_us(cluster_clock(job->bigtable->cluster));
    if (job->progress == NULL || now_us - job->shown_us < SHOW_EVERY_US)
        return;
    job->shown_us = now_us;
    if (set_percent(job))
        status_ignore(operation_report(job->operation, job->metadata)); /* or else next time */
}

static bool goes_on(struct backup_work *work)
{
    struct backup_job *job = work->context;
    show_now_and_then(job);
    return !operation_is_cancelled(job->operation);
}

static status present(const struct backup_job *job, Pb__Timestamp **out)
{
    struct clock *clock = cluster_clock(job->bigtable->cluster);
    return timestamp_message(clock_wall_us(clock), job->arena, out);
}

/* Clients see when it ended, also if it failed; without that the failure is seen all the same. */
static void show_end(struct backup_job *job)
{
    if (job->metadata == NULL || operation_is_stopping(job->operation))
        return;
    status_ignore(present(job, job->end));
    status_ignore(operation_report(job->operation, job->metadata));
}

status backup_job_run(struct bigtable *bigtable, struct operation *operation,
                      status (*work)(struct backup_job *job))
{
    struct backup_job job = {.work = {.goes_on = goes_on, .context = &job},
                             .bigtable = bigtable,
                             .operation = operation,
                             .arena = arena_create(LIMIT_ARENA_ADMIN_BYTES)};
    if (job.arena == NULL)
        return status_out_of_memory();
    status s = work(&job);
    if (!status_is_ok(s) && s.code != STATUS_CANCELLED)
        backup_failures_note(bigtable->backup_failures, job.table, job.by_policy);
    if (!status_is_ok(s))
        show_end(&job);
    arena_destroy(job.arena);
    return s;
}

status backup_job_recover(const struct bigtable *bigtable, const char *operation, bytes argument,
                          status (*take_up)(const struct bigtable *bigtable, const char *operation,
                                            bytes argument, struct arena *arena))
{
    struct arena *arena = arena_create(LIMIT_ARENA_ADMIN_BYTES);
    if (arena == NULL)
        return status_out_of_memory();
    status s = take_up(bigtable, operation, argument, arena);
    arena_destroy(arena);
    return s;
}

status
backup_job_recover_making(const struct bigtable *bigtable, const char *operation, bytes argument,
                          status (*reserve)(const struct bigtable *bigtable, const char *operation,
                                            struct backup_facts *facts))
{
    struct arena *arena = arena_create(LIMIT_ARENA_ADMIN_BYTES);
    struct backup_facts facts;
    bool is_done = false;
    status s =
        arena == NULL ? status_out_of_memory() : backup_facts_decode(argument, arena, &facts);
    if (status_is_ok(s))
        s = backup_job_is_done(bigtable, operation, facts.backup->name, arena, &is_done);
    if (status_is_ok(s) && !is_done)
        s = reserve(bigtable, operation, &facts);
    arena_destroy(arena);
    return s;
}

status backup_job_show(struct backup_job *job, const ProtobufCMessage *metadata,
                       BtAdmin__OperationProgress **slot)
{
    PROTO_NEW(job->arena, *slot, BT_ADMIN__OPERATION_PROGRESS__INIT);
    job->progress = *slot;
    job->end = &job->progress->end_time;
    job->metadata = metadata;
    return present(job, &job->progress->start_time);
}

status backup_job_complete(struct backup_job *job)
{
    job->progress->progress_percent = 100;
    return present(job, &job->progress->end_time);
}

struct finishing {
    struct backup_job *job;
    const BtAdmin__Backup *backup;
    const ProtobufCMessage *metadata;
};

static status stage_finish(void *context, struct edit *edit)
{
    const struct finishing *finishing = context;
    return operation_finish(finishing->job->operation, edit, finishing->metadata,
                            &finishing->backup->base);
}

/* An operation that says that it failed must not leave a backup. */
status backup_job_finish(struct backup_job *job, const BtAdmin__Backup *backup,
                         const ProtobufCMessage *metadata)
{
    struct finishing finishing = {job, backup, metadata};
    status s = control_edit(job->bigtable->control, stage_finish, &finishing);
    if (!status_is_ok(s))
        status_ignore(backup_delete(job->bigtable->backups, backup->name));
    return s;
}

status backup_job_is_done(const struct bigtable *bigtable, const char *operation, const char *name,
                          struct arena *arena, bool *is_done)
{
    struct backup_facts found;
    *is_done = false;
    status s = find_backup(bigtable->backups, name, arena, &found);
    if (s.code == STATUS_NOT_FOUND) {
        status_free(s);
        return status_ok();
    }
    TRY(s);
    if (strcmp(found.operation, operation) != 0)
        return status_make(STATUS_ALREADY_EXISTS, "Backup already exists: %s", name);
    *is_done = found.backup->state == BT_ADMIN__BACKUP__STATE__READY;
    return status_ok();
}

status backup_job_reserve(const struct bigtable *bigtable, const char *operation,
                          struct backup_facts *facts)
{
    struct buffer kept = {0};
    facts->operation = operation;
    status s = backup_facts_encode(facts, &kept);
    if (status_is_ok(s))
        s = backup_reserve(bigtable->backups, facts->backup->name, facts->backup->source_table,
                           buffer_bytes(&kept));
    buffer_free(&kept);
    return s;
}
