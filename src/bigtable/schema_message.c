/* See schema_message.h. */
#include "bigtable/schema_message.h"

#include "base/limits.h"
#include "bigtable/names.h"
#include "bigtable/stream_config.h"
#include "bigtable/table_extra.h"
#include "bigtable/value_type.h"
#include "wire/proto.h"
#include "wire/timestamps.h"

/* google.bigtable.admin.v2.ColumnFamily: a rule takes at most 500 bytes, an age at least a
 * millisecond. A rule of 500 bytes cannot nest deeper than the decoder allows, so the recursion
 * below is bounded. */
enum { SHORTEST_AGE_US = 1000 };

/* --- garbage-collection rules --- */

static status age_from_message(const Pb__Duration *age, int64_t *out)
{
    enum { LONGEST_SECONDS = INT32_MAX }; /* 68 years: beyond it, keep forever is meant */
    if (age->seconds < 0 || age->nanos < 0 || age->seconds > LONGEST_SECONDS)
        return status_make(STATUS_INVALID_ARGUMENT, "max_age is out of range");
    *out = age->seconds * 1000000 + age->nanos / 1000;
    if (*out < SHORTEST_AGE_US)
        return status_make(STATUS_INVALID_ARGUMENT, "max_age must be at least one millisecond");
    return status_ok();
}

static status fill_gc_rule(const BtAdmin__GcRule *message, struct arena *arena,
                           struct gc_rule *rule);

static status fill_children(BtAdmin__GcRule *const *messages, size_t count, struct arena *arena,
                            struct gc_rule *rule)
{
    struct gc_rule *children = arena_zalloc(arena, count * sizeof *children);
    if (children == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < count; i++)
        TRY(fill_gc_rule(messages[i], arena, &children[i]));
    rule->children = children;
    rule->child_count = count;
    return status_ok();
}

static status fill_gc_rule(const BtAdmin__GcRule *message, struct arena *arena,
                           struct gc_rule *rule)
{
    switch (message->rule_case) {
    case BT_ADMIN__GC_RULE__RULE_MAX_NUM_VERSIONS:
        if (message->max_num_versions <= 0)
            return status_make(STATUS_INVALID_ARGUMENT, "max_num_versions must be positive");
        rule->kind = GC_MAX_VERSIONS;
        rule->max_versions = message->max_num_versions;
        return status_ok();
    case BT_ADMIN__GC_RULE__RULE_MAX_AGE:
        rule->kind = GC_MAX_AGE;
        return age_from_message(message->max_age, &rule->max_age_us);
    case BT_ADMIN__GC_RULE__RULE_UNION:
        rule->kind = GC_UNION;
        return fill_children(message->union_->rules, message->union_->n_rules, arena, rule);
    case BT_ADMIN__GC_RULE__RULE_INTERSECTION:
        rule->kind = GC_INTERSECTION;
        return fill_children(message->intersection->rules, message->intersection->n_rules, arena,
                             rule);
    default:
        return status_make(STATUS_INVALID_ARGUMENT, "A nested gc_rule must not be empty");
    }
}

/* A rule that condemns nothing reads back as none, as in production. */
static bool is_no_rule(const BtAdmin__GcRule *message)
{
    if (message == NULL || message->rule_case == BT_ADMIN__GC_RULE__RULE__NOT_SET)
        return true;
    if (message->rule_case == BT_ADMIN__GC_RULE__RULE_UNION)
        return message->union_->n_rules == 0;
    if (message->rule_case == BT_ADMIN__GC_RULE__RULE_INTERSECTION)
        return message->intersection->n_rules == 0;
    return false;
}

status gc_rule_from_message(const BtAdmin__GcRule *message, struct arena *arena,
                            const struct gc_rule **out)
{
    *out = NULL;
    if (is_no_rule(message))
        return status_ok();
    if (protobuf_c_message_get_packed_size(&message->base) > LIMIT_GC_RULE_BYTES)
        return status_make(STATUS_INVALID_ARGUMENT, "gc_rule must take at most %d bytes serialised",
                           LIMIT_GC_RULE_BYTES);
    struct gc_rule *rule = arena_zalloc(arena, sizeof *rule);
    if (rule == NULL)
        return status_out_of_memory();
    TRY(fill_gc_rule(message, arena, rule));
    *out = rule;
    return status_ok();
}

status family_from_message(const char *id, const BtAdmin__ColumnFamily *message,
                           struct arena *arena, struct family *out)
{
    *out = (struct family){.name = bytes_of(id)};
    TRY(name_check_family(id));
    if (message == NULL)
        return status_ok();
    TRY(gc_rule_from_message(message->gc_rule, arena, &out->gc));
    return value_type_from_message(message->value_type, arena, out);
}

/* --- back to messages --- */

static status gc_rule_to_message(const struct gc_rule *rule, struct arena *arena,
                                 BtAdmin__GcRule **out);

static status children_to_messages(const struct gc_rule *rule, struct arena *arena,
                                   BtAdmin__GcRule ***out)
{
    BtAdmin__GcRule **children = arena_alloc(arena, rule->child_count * sizeof *children);
    if (children == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < rule->child_count; i++)
        TRY(gc_rule_to_message(&rule->children[i], arena, &children[i]));
    *out = children;
    return status_ok();
}

static status gc_rule_to_message(const struct gc_rule *rule, struct arena *arena,
                                 BtAdmin__GcRule **out)
{
    BtAdmin__GcRule *message;
    PROTO_NEW(arena, message, BT_ADMIN__GC_RULE__INIT);
    *out = message;
    switch (rule->kind) {
    case GC_MAX_VERSIONS:
        message->rule_case = BT_ADMIN__GC_RULE__RULE_MAX_NUM_VERSIONS;
        message->max_num_versions = rule->max_versions;
        return status_ok();
    case GC_MAX_AGE:
        message->rule_case = BT_ADMIN__GC_RULE__RULE_MAX_AGE;
        return duration_message(rule->max_age_us, arena, &message->max_age);
    case GC_UNION:
        message->rule_case = BT_ADMIN__GC_RULE__RULE_UNION;
        PROTO_NEW(arena, message->union_, BT_ADMIN__GC_RULE__UNION__INIT);
        message->union_->n_rules = rule->child_count;
        return children_to_messages(rule, arena, &message->union_->rules);
    case GC_INTERSECTION:
        message->rule_case = BT_ADMIN__GC_RULE__RULE_INTERSECTION;
        PROTO_NEW(arena, message->intersection, BT_ADMIN__GC_RULE__INTERSECTION__INIT);
        message->intersection->n_rules = rule->child_count;
        return children_to_messages(rule, arena, &message->intersection->rules);
    }
    return status_make(STATUS_INTERNAL, "a rule of unknown kind");
}

static status family_to_message(const struct family *family, struct arena *arena,
                                BtAdmin__Table__ColumnFamiliesEntry **out)
{
    BtAdmin__Table__ColumnFamiliesEntry *entry;
    PROTO_NEW(arena, entry, BT_ADMIN__TABLE__COLUMN_FAMILIES_ENTRY__INIT);
    PROTO_NEW(arena, entry->value, BT_ADMIN__COLUMN_FAMILY__INIT);
    entry->key = arena_string(arena, family->name);
    if (entry->key == NULL)
        return status_out_of_memory();
    if (family->gc != NULL)
        TRY(gc_rule_to_message(family->gc, arena, &entry->value->gc_rule));
    if (family->value_type.size > 0)
        TRY(value_type_to_message(family, arena, &entry->value->value_type));
    *out = entry;
    return status_ok();
}

static status add_families(const struct schema *schema, struct arena *arena, BtAdmin__Table *table)
{
    size_t count = schema->family_count;
    table->column_families = arena_alloc(arena, count * sizeof(*table->column_families));
    if (table->column_families == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < count; i++)
        TRY(family_to_message(&schema->families[i], arena, &table->column_families[i]));
    table->n_column_families = count;
    return status_ok();
}

/* The data is encrypted as the disk is, which production calls GOOGLE_DEFAULT_ENCRYPTION and
 * clients ask for. A cluster that names a key shows that, and that the key works: what it means is
 * up to the disk's owner. */
status cluster_encryption(const BtAdmin__Cluster *cluster, struct arena *arena,
                          BtAdmin__EncryptionInfo **out)
{
    BtAdmin__EncryptionInfo *info;
    PROTO_NEW(arena, info, BT_ADMIN__ENCRYPTION_INFO__INIT);
    *out = info;
    info->encryption_type = BT_ADMIN__ENCRYPTION_INFO__ENCRYPTION_TYPE__GOOGLE_DEFAULT_ENCRYPTION;
    if (cluster->encryption_config != NULL && *cluster->encryption_config->kms_key_name != '\0') {
        info->encryption_type =
            BT_ADMIN__ENCRYPTION_INFO__ENCRYPTION_TYPE__CUSTOMER_MANAGED_ENCRYPTION;
        info->kms_key_version = cluster->encryption_config->kms_key_name;
        PROTO_NEW(arena, info->encryption_status, RPC__STATUS__INIT);
    }
    return status_ok();
}

static status add_encryption(const BtAdmin__Cluster *cluster, struct arena *arena,
                             BtAdmin__Table__ClusterState *state)
{
    BtAdmin__EncryptionInfo *info;
    TRY(cluster_encryption(cluster, arena, &info));
    PROTO_NEW(arena, state->encryption_info, {info});
    state->n_encryption_info = 1;
    return status_ok();
}

static status cluster_state(const BtAdmin__Cluster *cluster, bool with_encryption,
                            struct arena *arena, BtAdmin__Table__ClusterStatesEntry **out)
{
    PROTO_NEW(arena, *out, BT_ADMIN__TABLE__CLUSTER_STATES_ENTRY__INIT);
    PROTO_NEW(arena, (*out)->value, BT_ADMIN__TABLE__CLUSTER_STATE__INIT);
    (*out)->key = name_id(cluster->name);
    (*out)->value->replication_state =
        cluster->state == BT_ADMIN__CLUSTER__STATE__CREATING
            ? BT_ADMIN__TABLE__CLUSTER_STATE__REPLICATION_STATE__INITIALIZING
            : BT_ADMIN__TABLE__CLUSTER_STATE__REPLICATION_STATE__READY;
    return with_encryption ? add_encryption(cluster, arena, (*out)->value) : status_ok();
}

static status add_cluster_states(const struct table_place *place, bool with_encryption,
                                 struct arena *arena, BtAdmin__Table *table)
{
    table->cluster_states = arena_alloc(arena, place->count * sizeof(*table->cluster_states));
    if (table->cluster_states == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < place->count; i++)
        TRY(cluster_state(place->clusters[i], with_encryption, arena, &table->cluster_states[i]));
    table->n_cluster_states = place->count;
    return status_ok();
}

/* Adds what the services keep of a table beside its schema. */
static status add_kept(const struct table_info *info, struct arena *arena, BtAdmin__Table *table)
{
    BtAdmin__Table *kept;
    if (info->extra.size == 0)
        return status_ok();
    TRY(table_extra_decode(info->extra, arena, &kept));
    table->restore_info = kept->restore_info;
    table->automated_backup_config_case = kept->automated_backup_config_case;
    table->automated_backup_policy = kept->automated_backup_policy;
    table->row_key_schema = kept->row_key_schema;
    table->tiered_storage_config = kept->tiered_storage_config;
    const BtAdmin__Table__AutomatedBackupPolicy *policy = table_backup_policy(kept);
    if (policy != NULL && !policy->disabled)
        table->effective_automated_backup_policy = kept->automated_backup_policy;
    return status_ok();
}

status table_to_message(const struct table_info *info, const struct table_place *place,
                        BtAdmin__Table__View view, struct arena *arena, BtAdmin__Table **out)
{
    bool is_full = view == BT_ADMIN__TABLE__VIEW__FULL;
    BtAdmin__Table *table;
    PROTO_NEW(arena, table, BT_ADMIN__TABLE__INIT);
    table->name = arena_string(arena, bytes_of(info->name));
    if (table->name == NULL)
        return status_out_of_memory();
    *out = table;
    if (is_full || view == BT_ADMIN__TABLE__VIEW__SCHEMA_VIEW) {
        table->granularity = info->schema->granularity == GRANULARITY_MICROS
                                 ? BT_ADMIN__TABLE__TIMESTAMP_GRANULARITY__MICROS
                                 : BT_ADMIN__TABLE__TIMESTAMP_GRANULARITY__MILLIS;
        table->deletion_protection = info->deletion_protection;
        TRY(add_families(info->schema, arena, table));
        TRY(add_kept(info, arena, table));
        TRY(stream_config_show(info->stream_retention_us, arena, table));
    }
    bool with_encryption = is_full || view == BT_ADMIN__TABLE__VIEW__ENCRYPTION_VIEW;
    if (with_encryption || view == BT_ADMIN__TABLE__VIEW__REPLICATION_VIEW)
        TRY(add_cluster_states(place, with_encryption, arena, table));
    return status_ok();
}
