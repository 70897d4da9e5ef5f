#include "transfer/table.h"

#include "google/bigtable/admin/v2/bigtable_table_admin.pb-c.h"
#include "google/longrunning/operations.pb-c.h"

#define ADMIN "/google.bigtable.admin.v2.BigtableTableAdmin/"

static status versions_rule(uint32_t versions, struct arena *arena, BtAdmin__GcRule **out)
{
    PROTO_NEW(arena, *out, BT_ADMIN__GC_RULE__INIT);
    (*out)->rule_case = BT_ADMIN__GC_RULE__RULE_MAX_NUM_VERSIONS;
    (*out)->max_num_versions = (int32_t)versions;
    return status_ok();
}

static status age_rule(int64_t age_us, struct arena *arena, BtAdmin__GcRule **out)
{
    const int64_t us_per_s = 1000 * 1000;
    PROTO_NEW(arena, *out, BT_ADMIN__GC_RULE__INIT);
    (*out)->rule_case = BT_ADMIN__GC_RULE__RULE_MAX_AGE;
    PROTO_NEW(arena, (*out)->max_age, PB__DURATION__INIT);
    (*out)->max_age->seconds = age_us / us_per_s;
    return status_ok();
}

/* What either rule takes goes. */
static status either_rule(const struct move_family *family, struct arena *arena,
                          BtAdmin__GcRule **out)
{
    enum { RULES = 2 };
    BtAdmin__GcRule__Union *either;
    PROTO_NEW(arena, *out, BT_ADMIN__GC_RULE__INIT);
    PROTO_NEW(arena, either, BT_ADMIN__GC_RULE__UNION__INIT);
    either->rules = arena_alloc(arena, RULES * sizeof *either->rules);
    if (either->rules == NULL)
        return status_out_of_memory();
    TRY(versions_rule(family->versions, arena, &either->rules[0]));
    TRY(age_rule(family->age_us, arena, &either->rules[1]));
    either->n_rules = RULES;
    (*out)->rule_case = BT_ADMIN__GC_RULE__RULE_UNION;
    (*out)->union_ = either;
    return status_ok();
}

static status make_family(const struct move_family *from, struct arena *arena,
                          BtAdmin__Table__ColumnFamiliesEntry **out)
{
    BtAdmin__ColumnFamily *family;
    PROTO_NEW(arena, *out, BT_ADMIN__TABLE__COLUMN_FAMILIES_ENTRY__INIT);
    PROTO_NEW(arena, family, BT_ADMIN__COLUMN_FAMILY__INIT);
    (*out)->key = from->name;
    (*out)->value = family;
    if (from->versions != 0 && from->age_us != 0)
        return either_rule(from, arena, &family->gc_rule);
    if (from->versions != 0)
        return versions_rule(from->versions, arena, &family->gc_rule);
    return from->age_us == 0 ? status_ok() : age_rule(from->age_us, arena, &family->gc_rule);
}

status transfer_make_schema(const struct move_family *families, size_t count, struct arena *arena,
                            const BtAdmin__Table **out)
{
    BtAdmin__Table *table;
    PROTO_NEW(arena, table, BT_ADMIN__TABLE__INIT);
    table->column_families = arena_alloc(arena, count * sizeof *table->column_families);
    if (table->column_families == NULL)
        return status_out_of_memory();
    for (; table->n_column_families < count; table->n_column_families++)
        TRY(make_family(&families[table->n_column_families], arena,
                        &table->column_families[table->n_column_families]));
    *out = table;
    return status_ok();
}

static uint32_t least_kept(const BtAdmin__GcRule *rule);

static uint32_t least_kept_of_any(BtAdmin__GcRule *const *rules, size_t count)
{
    uint32_t least = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t kept = least_kept(rules[i]);
        if (kept != 0 && (least == 0 || kept < least))
            least = kept;
    }
    return least;
}

static uint32_t least_kept(const BtAdmin__GcRule *rule)
{
    if (rule == NULL)
        return 0;
    switch (rule->rule_case) {
    case BT_ADMIN__GC_RULE__RULE_MAX_NUM_VERSIONS:
        return (uint32_t)rule->max_num_versions;
    case BT_ADMIN__GC_RULE__RULE_UNION:
        return least_kept_of_any(rule->union_->rules, rule->union_->n_rules);
    case BT_ADMIN__GC_RULE__RULE_INTERSECTION:
        return least_kept_of_any(rule->intersection->rules, rule->intersection->n_rules);
    default:
        return 0;
    }
}

uint32_t transfer_kept_versions(const BtAdmin__Table *schema, const char *family)
{
    for (size_t i = 0; i < schema->n_column_families; i++)
        if (strcmp(schema->column_families[i]->key, family) == 0)
            return least_kept(schema->column_families[i]->value->gc_rule);
    return 0;
}

status transfer_get_schema(struct client_session *session, const char *table_id,
                           struct arena *arena, const BtAdmin__Table **out)
{
    BtAdmin__GetTableRequest request = BT_ADMIN__GET_TABLE_REQUEST__INIT;
    const ProtobufCMessage *answer;
    struct buffer name = {0};
    buffer_append_format(&name, "%s/tables/%s%c", client_session_instance(session), table_id, 0);
    if (name.failed)
        return status_out_of_memory();
    request.name = (const char *)name.data;
    request.view = BT_ADMIN__TABLE__VIEW__SCHEMA_VIEW;
    status s = client_session_call(session, ADMIN "GetTable", NULL, &request.base,
                                   &bt_admin__table__descriptor, arena, &answer);
    buffer_free(&name);
    *out = (const void *)answer;
    return s;
}

static status make_splits(const struct transfer_table *table, struct arena *arena,
                          BtAdmin__CreateTableRequest *request)
{
    request->initial_splits =
        arena_alloc(arena, (table->split_count + 1) * sizeof *request->initial_splits);
    if (request->initial_splits == NULL)
        return status_out_of_memory();
    for (; request->n_initial_splits < table->split_count; request->n_initial_splits++) {
        BtAdmin__CreateTableRequest__Split *split;
        PROTO_NEW(arena, split, BT_ADMIN__CREATE_TABLE_REQUEST__SPLIT__INIT);
        split->key = proto_data(table->splits[request->n_initial_splits]);
        request->initial_splits[request->n_initial_splits] = split;
    }
    return status_ok();
}

static status create_table(struct client_session *session, const struct transfer_table *table,
                           struct arena *arena)
{
    BtAdmin__CreateTableRequest request = BT_ADMIN__CREATE_TABLE_REQUEST__INIT;
    BtAdmin__Table wanted = BT_ADMIN__TABLE__INIT;
    const ProtobufCMessage *answer;
    request.parent = client_session_instance(session);
    request.table_id = table->id;
    request.table = &wanted;
    wanted.column_families = table->schema->column_families;
    wanted.n_column_families = table->schema->n_column_families;
    TRY(make_splits(table, arena, &request));
    return client_session_call(session, ADMIN "CreateTable", NULL, &request.base,
                               &bt_admin__table__descriptor, arena, &answer);
}

static bool has_family(const BtAdmin__Table *table, const char *name)
{
    for (size_t i = 0; i < table->n_column_families; i++)
        if (strcmp(table->column_families[i]->key, name) == 0)
            return true;
    return false;
}

static status check_families(const BtAdmin__Table *table, const BtAdmin__Table *wanted)
{
    for (size_t i = 0; i < wanted->n_column_families; i++)
        if (!has_family(table, wanted->column_families[i]->key))
            return status_make(STATUS_FAILED_PRECONDITION, "the table %s has no column family %s",
                               table->name, wanted->column_families[i]->key);
    return status_ok();
}

status transfer_prepare_table(struct client_session *session, const struct transfer_table *table,
                              struct arena *arena, bool *is_made, const BtAdmin__Table **schema)
{
    *is_made = false;
    status s = transfer_get_schema(session, table->id, arena, schema);
    if (status_is_ok(s))
        return check_families(*schema, table->schema);
    if (s.code != STATUS_NOT_FOUND)
        return s;
    status_free(s);
    TRY(create_table(session, table, arena));
    *is_made = true;
    *schema = table->schema;
    return status_ok();
}

/* --- the change stream --- */

static status ask_for_stream(struct client_session *session, const char *name, int64_t retention_us,
                             struct arena *arena)
{
    enum { US_PER_S = 1000 * 1000 };
    const char *paths[] = {"change_stream_config.retention_period"};
    Pb__Duration retention = PB__DURATION__INIT;
    BtAdmin__ChangeStreamConfig config = BT_ADMIN__CHANGE_STREAM_CONFIG__INIT;
    BtAdmin__Table table = BT_ADMIN__TABLE__INIT;
    Pb__FieldMask mask = PB__FIELD_MASK__INIT;
    BtAdmin__UpdateTableRequest request = BT_ADMIN__UPDATE_TABLE_REQUEST__INIT;
    const ProtobufCMessage *answer;
    retention.seconds = retention_us / US_PER_S;
    config.retention_period = &retention;
    table.name = name;
    table.change_stream_config = &config;
    mask.paths = paths;
    mask.n_paths = 1;
    request.table = &table;
    request.update_mask = &mask;
    return client_session_call(session, ADMIN "UpdateTable", NULL, &request.base,
                               &lro__operation__descriptor, arena, &answer);
}

/* The operation may go on for a while: the table says when it is over. */
static status wait_for_stream(struct client_session *session, const char *table_id,
                              struct arena *arena)
{
    enum { TRIES = 60, WAIT_US = 500 * 1000 };
    for (int i = 0; i < TRIES; i++) {
        const BtAdmin__Table *table;
        TRY(transfer_get_schema(session, table_id, arena, &table));
        if (table->change_stream_config != NULL)
            return status_ok();
        TRY(client_session_wait(session, WAIT_US));
    }
    return status_make(STATUS_DEADLINE_EXCEEDED, "the change stream of %s is not on yet", table_id);
}

status transfer_switch_stream_on(struct client_session *session, const char *table_id,
                                 int64_t retention_us, struct arena *arena)
{
    struct buffer name = {0};
    buffer_append_format(&name, "%s/tables/%s%c", client_session_instance(session), table_id, 0);
    if (name.failed)
        return status_out_of_memory();
    status s = ask_for_stream(session, (const char *)name.data, retention_us, arena);
    buffer_free(&name);
    return status_is_ok(s) ? wait_for_stream(session, table_id, arena) : s;
}
