/* GetBackup, UpdateBackup, DeleteBackup. */
#include "bigtable/backup_facts.h"
#include "bigtable/backup_methods.h"
#include "bigtable/field_mask.h"
#include "bigtable/names.h"

status get_backup(const struct admin_request *request, const ProtobufCMessage **response)
{
    const BtAdmin__GetBackupRequest *message = (const void *)request->message;
    struct backup_facts facts;
    TRY(check_backup_name(message->name));
    TRY(find_backup(request->bigtable->backups, message->name, request->arena, &facts));
    *response = &facts.backup->base;
    return status_ok();
}

/* --- update --- */

struct update {
    const struct admin_request *request;
    struct backup_facts facts;
};

status put_backup_facts(const struct bigtable *bigtable, const struct backup_facts *facts)
{
    struct buffer kept = {0};
    status s = backup_facts_encode(facts, &kept);
    if (status_is_ok(s))
        s = backup_set_extra(bigtable->backups, facts->backup->name, buffer_bytes(&kept));
    buffer_free(&kept);
    return s;
}

/* An edit in which nothing is staged: one update at a time. */
static status change(void *context, struct edit *edit)
{
    static const char *const allowed[] = {"expire_time", "hot_to_standard_time", NULL};
    struct update *update = context;
    struct arena *arena = update->request->arena;
    const BtAdmin__UpdateBackupRequest *message = (const void *)update->request->message;
    TRY(find_backup(update->request->bigtable->backups, message->backup->name, arena,
                    &update->facts));
    BtAdmin__Backup *backup = update->facts.backup;
    const Pb__Timestamp *expiry = backup->expire_time, *cooling = backup->hot_to_standard_time;
    struct backup_terms terms = {.begun_us = timestamp_us(backup->start_time),
                                 .is_copy = *backup->source_backup != '\0'};
    TRY(field_mask_apply(message->update_mask, allowed, &message->backup->base, &backup->base,
                         arena));
    TRY(find_edition(edit, arena, backup->name, &terms.is_enterprise_plus));
    if (backup->expire_time != expiry)
        TRY(check_backup_expiry(&terms, backup));
    if (backup->hot_to_standard_time != cooling)
        TRY(check_backup_cooling(&terms, backup));
    return put_backup_facts(update->request->bigtable, &update->facts);
}

status update_backup(const struct admin_request *request, const ProtobufCMessage **response)
{
    const BtAdmin__UpdateBackupRequest *message = (const void *)request->message;
    struct update update = {.request = request};
    if (message->backup == NULL)
        return status_make(STATUS_INVALID_ARGUMENT, "backup must be set");
    TRY(check_backup_name(message->backup->name));
    TRY(control_edit(request->bigtable->control, change, &update));
    *response = &update.facts.backup->base;
    return status_ok();
}

/* --- delete --- */

static status delete_policy(void *context, struct edit *edit)
{
    return edit_delete_under(edit, context);
}

/* The backup goes first: between the two a crash may come, and no backup may stand without its
 * policy. A policy that is left over belongs to no backup, and goes when one of its name is made.
 */
status remove_backup(struct bigtable *bigtable, const char *name, struct arena *arena)
{
    char *copy = arena_string(arena, bytes_of(name));
    if (copy == NULL)
        return status_out_of_memory();
    TRY(backup_delete(bigtable->backups, name));
    status_ignore(control_edit(bigtable->control, delete_policy, copy));
    return status_ok();
}

/* Its thread may be busy with others, so that this may take longer than a client waits. */
static status cancel_making(const struct admin_request *request, const struct backup_facts *facts)
{
    enum { MOST_US = 20 * 1000000, LEFT_US = 1000000 };
    struct bigtable *bigtable = request->bigtable;
    struct backup_info info;
    int64_t until_us = clock_steady_us(cluster_clock(bigtable->cluster)) + MOST_US;
    if (until_us > request->deadline_us - LEFT_US)
        until_us = request->deadline_us - LEFT_US;
    TRY(operation_cancel(bigtable->control, facts->operation));
    operation_wait(bigtable->control, facts->operation, until_us);
    status s = backup_describe(bigtable->backups, facts->backup->name, request->arena, &info);
    if (status_is_ok(s) && !info.is_ready)
        return status_make(STATUS_UNAVAILABLE,
                           "The making of the backup has been cancelled, but has not ended yet: %s",
                           facts->backup->name);
    return s;
}

static status delete_it(const struct admin_request *request, const struct backup_facts *facts)
{
    if (facts->backup->state == BT_ADMIN__BACKUP__STATE__READY)
        return remove_backup(request->bigtable, facts->backup->name, request->arena);
    status s = cancel_making(request, facts);
    if (status_is_ok(s)) /* too late */
        s = remove_backup(request->bigtable, facts->backup->name, request->arena);
    if (s.code != STATUS_NOT_FOUND)
        return s;
    status_free(s);
    return status_ok();
}

/* A backup that is being made is cancelled. */
status delete_backup(const struct admin_request *request, const ProtobufCMessage **response)
{
    const BtAdmin__DeleteBackupRequest *message = (const void *)request->message;
    struct backup_facts facts;
    TRY(check_backup_name(message->name));
    TRY(find_backup(request->bigtable->backups, message->name, request->arena, &facts));
    TRY(delete_it(request, &facts));
    *response = admin_empty_response();
    return status_ok();
}
