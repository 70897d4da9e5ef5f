/* The table that an import writes to: made, or looked at. */
#include "cmd/import.h"

#include "google/bigtable/admin/v2/bigtable_table_admin.pb-c.h"

#define ADMIN "/google.bigtable.admin.v2.BigtableTableAdmin/"

static status make_family(const char *name, int versions, struct arena *arena,
                          BtAdmin__Table__ColumnFamiliesEntry **out)
{
    BtAdmin__ColumnFamily *family;
    PROTO_NEW(arena, *out, BT_ADMIN__TABLE__COLUMN_FAMILIES_ENTRY__INIT);
    PROTO_NEW(arena, family, BT_ADMIN__COLUMN_FAMILY__INIT);
    (*out)->key = name;
    (*out)->value = family;
    if (versions == 0)
        return status_ok();
    PROTO_NEW(arena, family->gc_rule, BT_ADMIN__GC_RULE__INIT);
    family->gc_rule->rule_case = BT_ADMIN__GC_RULE__RULE_MAX_NUM_VERSIONS;
    family->gc_rule->max_num_versions = versions;
    return status_ok();
}

static status create_table(struct client_session *session, const char *table_id,
                           const char *const *families, size_t count, int versions,
                           struct arena *arena)
{
    BtAdmin__CreateTableRequest request = BT_ADMIN__CREATE_TABLE_REQUEST__INIT;
    BtAdmin__Table table = BT_ADMIN__TABLE__INIT;
    const ProtobufCMessage *answer;
    request.parent = client_session_instance(session);
    request.table_id = table_id;
    request.table = &table;
    table.column_families = arena_alloc(arena, count * sizeof *table.column_families);
    if (table.column_families == NULL)
        return status_out_of_memory();
    for (; table.n_column_families < count; table.n_column_families++)
        TRY(make_family(families[table.n_column_families], versions, arena,
                        &table.column_families[table.n_column_families]));
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

static status check_families(const BtAdmin__Table *table, const char *const *families, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!has_family(table, families[i]))
            return status_make(STATUS_FAILED_PRECONDITION, "the table %s has no column family %s",
                               table->name, families[i]);
    return status_ok();
}

status import_prepare_table(struct client_session *session, const char *table_id,
                            const char *const *families, size_t count, int versions,
                            struct arena *arena)
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
    if (status_is_ok(s)) {
        s = check_families((const void *)answer, families, count);
    } else if (s.code == STATUS_NOT_FOUND) {
        status_free(s);
        s = create_table(session, table_id, families, count, versions, arena);
    }
    buffer_free(&name);
    return s;
}
