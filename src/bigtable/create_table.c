/* CreateTable. */
#include "base/limits.h"
#include "bigtable/default_instance.h"
#include "bigtable/names.h"
#include "bigtable/row_key_schema.h"
#include "bigtable/schema_message.h"
#include "bigtable/stream_config.h"
#include "bigtable/table_extra.h"
#include "bigtable/table_methods.h"
#include "bigtable/view_guard.h"

#include <stdlib.h>

static int compare_names(const void *a, const void *b)
{
    return bytes_compare(((const struct family *)a)->name, ((const struct family *)b)->name);
}

/* By name, whatever order the request's map has them in: a row that is stored in the order in which
 * it is read can be left after its first cells. */
static void sort_and_number(struct family *families, size_t count)
{
    if (count > 0)
        qsort(families, count, sizeof *families, compare_names);
    for (size_t i = 0; i < count; i++)
        families[i].id = (uint32_t)i + 1;
}

static status families_from_table(const BtAdmin__Table *table, struct arena *arena,
                                  struct family **out)
{
    struct family *families = arena_alloc(arena, table->n_column_families * sizeof *families);
    if (families == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < table->n_column_families; i++) {
        const BtAdmin__Table__ColumnFamiliesEntry *entry = table->column_families[i];
        TRY(family_from_message(entry->key, entry->value, arena, &families[i]));
    }
    sort_and_number(families, table->n_column_families);
    *out = families;
    return status_ok();
}

static status schema_from_table(const BtAdmin__Table *table, struct arena *arena,
                                struct schema **out)
{
    struct family *families = NULL;
    TRY(families_from_table(table, arena, &families));
    bool is_micros = table->granularity == BT_ADMIN__TABLE__TIMESTAMP_GRANULARITY__MICROS;
    return schema_create(is_micros ? GRANULARITY_MICROS : GRANULARITY_MILLIS, families,
                         table->n_column_families, (uint32_t)table->n_column_families + 1, out);
}

/* Takes the policy of backups, the schema of keys and the tiers; where it was restored from is not
 * the client's to say. */
static status extra_from_table(const BtAdmin__Table *table, struct arena *arena, bytes *out)
{
    BtAdmin__Table kept = *table;
    kept.restore_info = NULL;
    TRY(complete_backup_policy(&kept, arena));
    TRY(complete_tiered_storage(&kept));
    return table_extra_encode(&kept, arena, out);
}

static int compare_keys(const void *a, const void *b)
{
    return bytes_compare(*(const bytes *)a, *(const bytes *)b);
}

/* Split keys may come in any order, and twice. */
static status sorted_splits(const BtAdmin__CreateTableRequest *message, struct arena *arena,
                            struct table_spec *spec)
{
    bytes *keys = arena_alloc(arena, message->n_initial_splits * sizeof *keys);
    if (keys == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < message->n_initial_splits; i++) {
        keys[i] = proto_bytes(message->initial_splits[i]->key);
        if (keys[i].size == 0 || keys[i].size > LIMIT_ROW_KEY_BYTES)
            return status_make(STATUS_INVALID_ARGUMENT,
                               "initial_splits: a key must have 1 to %d bytes",
                               LIMIT_ROW_KEY_BYTES);
    }
    if (message->n_initial_splits > 0)
        qsort(keys, message->n_initial_splits, sizeof *keys, compare_keys);
    size_t count = 0;
    for (size_t i = 0; i < message->n_initial_splits; i++)
        if (count == 0 || !bytes_equal(keys[count - 1], keys[i]))
            keys[count++] = keys[i];
    spec->split_keys = keys;
    spec->split_count = count;
    return status_ok();
}

struct creation {
    const struct admin_request *request;
    const char *instance;
    struct table_spec spec;
    struct table *table;
};

/* The instance, if it is not there yet, comes with the table or not at all. */
static status create(void *context, struct edit *edit)
{
    struct creation *creation = context;
    const struct admin_request *request = creation->request;
    TRY(require_instance(request->bigtable, edit, request->arena, creation->instance));
    TRY(check_id_is_free(request->bigtable, request->arena, edit, (enum resource_kind)0,
                         creation->instance, name_id(creation->spec.name)));
    TRY(edit_txn(edit, &creation->spec.txn));
    return cluster_create_table(request->bigtable->cluster, &creation->spec, &creation->table);
}

static status create_and_describe(struct creation *creation, const ProtobufCMessage **response)
{
    const struct admin_request *request = creation->request;
    BtAdmin__Table *message = NULL;
    TRY(control_edit(request->bigtable->control, create, creation));
    status s =
        table_message(request, creation->table, BT_ADMIN__TABLE__VIEW__SCHEMA_VIEW, &message);
    table_release(creation->table);
    if (status_is_ok(s))
        *response = &message->base;
    return s;
}

status create_table(const struct admin_request *request, const ProtobufCMessage **response)
{
    const BtAdmin__CreateTableRequest *message = (const void *)request->message;
    static const BtAdmin__Table empty_table = BT_ADMIN__TABLE__INIT;
    const BtAdmin__Table *table = message->table == NULL ? &empty_table : message->table;
    TRY(name_check_instance(message->parent));
    TRY(name_check_table_id(message->table_id));
    struct creation creation = {.request = request,
                                .instance = message->parent,
                                .spec.deletion_protection = table->deletion_protection};
    creation.spec.name = name_of_table(request->arena, message->parent, message->table_id);
    if (creation.spec.name == NULL)
        return status_out_of_memory();
    TRY(extra_from_table(table, request->arena, &creation.spec.extra));
    TRY(stream_config_check(table));
    TRY(stream_config_read(table, &creation.spec.stream_retention_us));
    TRY(sorted_splits(message, request->arena, &creation.spec));
    struct schema *schema;
    TRY(schema_from_table(table, request->arena, &schema));
    creation.spec.schema = schema;
    status s = row_key_schema_check(table->row_key_schema, schema->families, schema->family_count);
    if (status_is_ok(s))
        s = create_and_describe(&creation, response);
    schema_destroy(schema);
    return s;
}
