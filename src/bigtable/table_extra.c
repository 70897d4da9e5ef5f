/* See table_extra.h. */
#include "bigtable/table_extra.h"

#include "bigtable/names.h"
#include "wire/proto.h"

status table_extra_decode(bytes extra, struct arena *arena, BtAdmin__Table **out)
{
    ProtobufCMessage *message;
    TRY(proto_decode(&bt_admin__table__descriptor, extra, arena, &message));
    *out = (void *)message;
    return status_ok();
}

status table_extra_encode(const BtAdmin__Table *table, struct arena *arena, bytes *out)
{
    BtAdmin__Table kept = BT_ADMIN__TABLE__INIT;
    struct buffer packed = {0};
    kept.restore_info = table->restore_info;
    kept.automated_backup_config_case = table->automated_backup_config_case;
    kept.automated_backup_policy = table->automated_backup_policy;
    kept.row_key_schema = table->row_key_schema;
    kept.tiered_storage_config = table->tiered_storage_config;
    proto_encode(&kept.base, &packed);
    *out = packed.failed ? bytes_make(NULL, 0) : arena_copy(arena, buffer_bytes(&packed));
    buffer_free(&packed);
    return out->data == NULL ? status_out_of_memory() : status_ok();
}

/* --- policies --- */

BtAdmin__Table__AutomatedBackupPolicy *table_backup_policy(const BtAdmin__Table *table)
{
    bool has = table->automated_backup_config_case ==
               BT_ADMIN__TABLE__AUTOMATED_BACKUP_CONFIG_AUTOMATED_BACKUP_POLICY;
    return has ? table->automated_backup_policy : NULL;
}

static bool is_within(const Pb__Duration *span, int64_t least_seconds, int64_t most_seconds)
{
    return span->seconds >= least_seconds && span->seconds <= most_seconds && span->nanos >= 0 &&
           (span->seconds < most_seconds || span->nanos == 0);
}

static status refuse(const char *field, const char *expected)
{
    return status_make(STATUS_INVALID_ARGUMENT, "automated_backup_policy.%s must be %s", field,
                       expected);
}

static status check_policy(const BtAdmin__Table__AutomatedBackupPolicy *policy)
{
    enum { DAY = 24 * 3600 };
    if (policy->retention_period == NULL || !is_within(policy->retention_period, 3 * DAY, 90 * DAY))
        return refuse("retention_period", "3 to 90 days");
    if (policy->frequency != NULL && !is_within(policy->frequency, DAY, DAY))
        return refuse("frequency", "24 hours");
    if (policy->keep_hot_duration != NULL &&
        !is_within(policy->keep_hot_duration, DAY, policy->retention_period->seconds))
        return refuse("keep_hot_duration",
                      "at least 24 hours, and no more than the retention_period");
    for (size_t i = 0; i < policy->n_locations; i++)
        TRY(name_check_form("location", policy->locations[i],
                            "projects/{project}/locations/{zone}"));
    return status_ok();
}

status complete_backup_policy(BtAdmin__Table *table, struct arena *arena)
{
    enum { DAY = 24 * 3600 };
    BtAdmin__Table__AutomatedBackupPolicy *policy = table_backup_policy(table);
    if (policy == NULL || protobuf_c_message_get_packed_size(&policy->base) == 0) {
        table->automated_backup_config_case = BT_ADMIN__TABLE__AUTOMATED_BACKUP_CONFIG__NOT_SET;
        return status_ok();
    }
    TRY(check_policy(policy));
    if (policy->frequency != NULL)
        return status_ok();
    PROTO_NEW(arena, policy->frequency, PB__DURATION__INIT);
    policy->frequency->seconds = DAY;
    return status_ok();
}

/* --- tiers --- */

status complete_tiered_storage(BtAdmin__Table *table)
{
    enum { LEAST_SECONDS = 30 * 24 * 3600 };
    const BtAdmin__TieredStorageConfig *config = table->tiered_storage_config;
    const BtAdmin__TieredStorageRule *rule = config == NULL ? NULL : config->infrequent_access;
    if (rule == NULL) {
        table->tiered_storage_config = NULL;
        return status_ok();
    }
    bool has_age = rule->rule_case == BT_ADMIN__TIERED_STORAGE_RULE__RULE_INCLUDE_IF_OLDER_THAN &&
                   rule->include_if_older_than->seconds >= LEAST_SECONDS &&
                   rule->include_if_older_than->nanos >= 0;
    return has_age ? status_ok()
                   : status_make(STATUS_INVALID_ARGUMENT,
                                 "tiered_storage_config.infrequent_access.include_if_older_than "
                                 "must be at least 30 days");
}
