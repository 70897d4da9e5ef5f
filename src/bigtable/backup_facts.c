/* See backup_facts.h. */
#include "bigtable/backup_facts.h"

#include "bigtable/names.h"
#include "google/bigtable/admin/v2/instance.pb-c.h"
#include "trestle/backup.pb-c.h"
#include "wire/json.h"

#include <stdio.h>

/* --- times --- */

static status wrong_time(const char *what, int64_t wanted_us, const Pb__Timestamp *given)
{
    struct buffer text = {0};
    buffer_append_format(&text, "%s the time that the backup was started, which should be ", what);
    json_write_timestamp(wanted_us / 1000000, (int32_t)(wanted_us % 1000000) * 1000, &text);
    buffer_append_format(&text, ", but got ");
    json_write_timestamp(given->seconds, given->nanos, &text);
    buffer_append_byte(&text, 0);
    status s = text.failed ? status_out_of_memory()
                           : status_make(STATUS_INVALID_ARGUMENT, "%s", (const char *)text.data);
    buffer_free(&text);
    return s;
}

/* --- how long --- */

/* Clients add six hours, or a day, to the moment at which they make up the request: when it is
 * here, that is a little less. */
enum { GRACE_US = 60 * 1000000 };

status check_backup_expiry(const struct backup_terms *terms, const BtAdmin__Backup *backup)
{
    const Pb__Timestamp *expiry = backup->expire_time;
    if (expiry == NULL)
        return status_make(STATUS_INVALID_ARGUMENT, "expire_time must be set");
    TRY(timestamp_check("expire_time", expiry));
    int64_t days = terms->is_copy ? 30 : terms->is_enterprise_plus ? 365 : 90;
    int64_t least_us = terms->begun_us + INT64_C(6) * HOUR_SECONDS * 1000000;
    int64_t most_us = terms->begun_us + days * DAY_SECONDS * 1000000;
    char most[64];
    if (timestamp_us(expiry) < least_us - GRACE_US)
        return wrong_time("Expire time must be at least 6h from", least_us, expiry);
    snprintf(most, sizeof most, "Expire time must be at most %d days from", (int)days);
    return timestamp_us(expiry) > most_us ? wrong_time(most, most_us, expiry) : status_ok();
}

status check_backup_cooling(const struct backup_terms *terms, const BtAdmin__Backup *backup)
{
    const Pb__Timestamp *cooling = backup->hot_to_standard_time;
    if (cooling == NULL)
        return status_ok();
    if (backup->backup_type != BT_ADMIN__BACKUP__BACKUP_TYPE__HOT)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "hot_to_standard_time can only be set for hot backups");
    TRY(timestamp_check("hot_to_standard_time", cooling));
    int64_t least_us = terms->begun_us + INT64_C(1) * DAY_SECONDS * 1000000;
    if (timestamp_us(cooling) < least_us - GRACE_US)
        return wrong_time("hot_to_standard_time must be at least 24h from", least_us, cooling);
    return status_ok();
}

status find_edition(const struct edit *edit, struct arena *arena, const char *backup,
                    bool *is_enterprise_plus)
{
    char *cluster = name_parent(arena, backup);
    char *name = cluster == NULL ? NULL : name_parent(arena, cluster);
    ProtobufCMessage *message;
    *is_enterprise_plus = false;
    if (name == NULL)
        return status_out_of_memory();
    const struct resource *resource = edit_find(edit, RESOURCE_INSTANCE, name);
    if (resource == NULL)
        return status_ok();
    TRY(resource_decode(resource, arena, &message));
    *is_enterprise_plus = ((const BtAdmin__Instance *)(const void *)message)->edition ==
                          BT_ADMIN__INSTANCE__EDITION__ENTERPRISE_PLUS;
    return status_ok();
}

/* --- what is kept --- */

/* Name, source, state, size and times of its making are the manifest's. */
static BtAdmin__Backup kept_of(const BtAdmin__Backup *backup)
{
    BtAdmin__Backup kept = BT_ADMIN__BACKUP__INIT;
    kept.expire_time = backup->expire_time;
    kept.backup_type = backup->backup_type;
    kept.hot_to_standard_time = backup->hot_to_standard_time;
    kept.source_backup = backup->source_backup;
    kept.encryption_info = backup->encryption_info;
    return kept;
}

static status encode(const struct backup_facts *facts, const BtAdmin__Backup *backup,
                     struct buffer *out)
{
    Backup__Facts message = BACKUP__FACTS__INIT;
    struct buffer packed = {0};
    proto_encode(&backup->base, &packed);
    message.backup = proto_data(buffer_bytes(&packed));
    message.operation = facts->operation == NULL ? protobuf_c_empty_string : facts->operation;
    message.is_automated = facts->is_automated;
    proto_encode(&message.base, out);
    bool failed = packed.failed || out->failed;
    buffer_free(&packed);
    return failed ? status_out_of_memory() : status_ok();
}

status backup_facts_encode(const struct backup_facts *facts, struct buffer *out)
{
    BtAdmin__Backup kept = kept_of(facts->backup);
    return encode(facts, &kept, out);
}

status backup_facts_encode_whole(const struct backup_facts *facts, struct buffer *out)
{
    return encode(facts, facts->backup, out);
}

status backup_facts_decode(bytes facts, struct arena *arena, struct backup_facts *out)
{
    ProtobufCMessage *base, *backup;
    TRY(proto_decode(&backup__facts__descriptor, facts, arena, &base));
    const Backup__Facts *message = (const void *)base;
    TRY(proto_decode(&bt_admin__backup__descriptor, proto_bytes(message->backup), arena, &backup));
    *out = (struct backup_facts){.backup = (void *)backup,
                                 .operation = message->operation,
                                 .is_automated = message->is_automated};
    return status_ok();
}

status backup_facts_of(const struct backup_info *info, struct arena *arena,
                       struct backup_facts *out)
{
    TRY(backup_facts_decode(info->extra, arena, out));
    BtAdmin__Backup *backup = out->backup;
    backup->name = info->name;
    backup->source_table = info->source_table;
    backup->size_bytes = (int64_t)info->size_bytes;
    backup->state =
        info->is_ready ? BT_ADMIN__BACKUP__STATE__READY : BT_ADMIN__BACKUP__STATE__CREATING;
    TRY(timestamp_message(info->start_us, arena, &backup->start_time));
    return info->is_ready ? timestamp_message(info->end_us, arena, &backup->end_time) : status_ok();
}

status find_backup(struct backups *backups, const char *name, struct arena *arena,
                   struct backup_facts *out)
{
    struct backup_info info;
    TRY(backup_describe(backups, name, arena, &info));
    return backup_facts_of(&info, arena, out);
}

status backup_info_message(const BtAdmin__Backup *backup, struct arena *arena,
                           BtAdmin__BackupInfo **out)
{
    PROTO_NEW(arena, *out, BT_ADMIN__BACKUP_INFO__INIT);
    (*out)->backup = backup->name;
    (*out)->start_time = backup->start_time;
    (*out)->end_time = backup->end_time;
    (*out)->source_table = backup->source_table;
    (*out)->source_backup = backup->source_backup;
    return status_ok();
}

/* --- names --- */

status check_backup_name(const char *name)
{
    return name_check_form(
        "backup", name,
        "projects/{project}/instances/{instance}/clusters/{cluster}/backups/{backup}");
}

status check_cluster_name(const char *name)
{
    return name_check_form("cluster", name,
                           "projects/{project}/instances/{instance}/clusters/{cluster}");
}

status check_no_backups(struct backups *backups, struct arena *arena, const char *label,
                        const char *name)
{
    char *prefix = name_join(arena, name, "", "");
    if (prefix == NULL)
        return status_out_of_memory();
    prefix[strlen(name) + 1] = '\0'; /* "<name>/" */
    if (!backups_have_any(backups, prefix))
        return status_ok();
    return status_make(STATUS_FAILED_PRECONDITION,
                       "%s \"%s\" cannot be deleted: it has backups, which must be deleted first",
                       label, name);
}
