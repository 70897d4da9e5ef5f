/* UpdateTable: deletion protection, change stream, automated backups, tiers, and how row keys are
 * read. */
#include "bigtable/field_mask.h"
#include "bigtable/names.h"
#include "bigtable/resource_call.h"
#include "bigtable/row_key_schema.h"
#include "bigtable/schema_message.h"
#include "bigtable/stream_config.h"
#include "bigtable/table_extra.h"
#include "bigtable/table_methods.h"
#include "bigtable/view_guard.h"

/* Unknown paths are refused later, when the mask is applied. */
static status check_path(const char *path)
{
    if (!field_path_is(path, "column_families"))
        return status_ok();
    return status_make(STATUS_UNIMPLEMENTED, "Updating '%s' is not implemented", path);
}

static status check_mask(const Pb__FieldMask *mask)
{
    if (mask == NULL || mask->n_paths == 0)
        return status_make(STATUS_INVALID_ARGUMENT, "A non-empty 'update_mask' must be specified");
    for (size_t i = 0; i < mask->n_paths; i++)
        TRY(check_path(mask->paths[i]));
    return status_ok();
}

struct update {
    const struct admin_request *request;
    const BtAdmin__Table *wanted;
    struct edit *edit;
    const ProtobufCMessage *operation;
};

/* The table as it is to be, as far as it can be changed here. */
static status apply_mask(const struct update *update, const struct table_info *now,
                         struct arena *arena, BtAdmin__Table **out)
{
    static const char *const allowed[] = {"deletion_protection",     "change_stream_config",
                                          "automated_backup_policy", "row_key_schema",
                                          "tiered_storage_config",   NULL};
    const BtAdmin__UpdateTableRequest *request = (const void *)update->request->message;
    BtAdmin__Table *before;
    TRY(table_extra_decode(now->extra, arena, &before));
    TRY(table_extra_decode(now->extra, arena, out));
    (*out)->deletion_protection = now->deletion_protection;
    TRY(stream_config_show(now->stream_retention_us, arena, *out));
    TRY(stream_config_check(update->wanted));
    TRY(field_mask_apply(request->update_mask, allowed, &update->wanted->base, &(*out)->base,
                         arena));
    TRY(row_key_schema_check_change(before->row_key_schema, (*out)->row_key_schema,
                                    request->ignore_warnings));
    if (!row_key_schema_is_same(before->row_key_schema, (*out)->row_key_schema))
        TRY(check_no_view_reads_keys(update->request, now->name));
    TRY(row_key_schema_check((*out)->row_key_schema, now->schema->families,
                             now->schema->family_count));
    TRY(complete_tiered_storage(*out));
    return complete_backup_policy(*out, arena);
}

/* The operation is staged here, where the table stands still, and written with it. */
static status change(void *context, const struct table_info *now, struct arena *arena,
                     struct table_change *next)
{
    struct update *update = context;
    BtAdmin__UpdateTableMetadata metadata = BT_ADMIN__UPDATE_TABLE_METADATA__INIT;
    const struct table_place nowhere = {.count = 0}; /* which the schema view does not show */
    struct table_info after = *now;
    BtAdmin__Table *table, *message = NULL;
    TRY(apply_mask(update, now, arena, &table));
    after.deletion_protection = table->deletion_protection;
    TRY(stream_config_read(table, &after.stream_retention_us));
    TRY(table_extra_encode(table, arena, &after.extra));
    TRY(table_to_message(&after, &nowhere, BT_ADMIN__TABLE__VIEW__SCHEMA_VIEW, arena, &message));
    metadata.name = message->name;
    TRY(finish_operation(update->edit, update->request, message->name, &metadata.base,
                         &message->base, &update->operation));
    *next = (struct table_change){.families = now->schema->families,
                                  .family_count = now->schema->family_count,
                                  .deletion_protection = after.deletion_protection,
                                  .extra = after.extra,
                                  .stream_retention_us = after.stream_retention_us};
    return edit_txn(update->edit, &next->txn);
}

static status change_table(void *context, struct edit *edit)
{
    struct update *update = context;
    struct table *table;
    update->edit = edit;
    TRY(cluster_table(update->request->bigtable->cluster, bytes_of(update->wanted->name), &table));
    status s = table_change_schema(table, update->request->arena, change, update);
    table_release(table);
    return s;
}

status update_table(const struct admin_request *request, const ProtobufCMessage **response)
{
    const BtAdmin__UpdateTableRequest *message = (const void *)request->message;
    if (message->table == NULL)
        return status_make(STATUS_INVALID_ARGUMENT, "table must be set");
    struct update update = {.request = request, .wanted = message->table};
    TRY(name_check_table(message->table->name));
    TRY(check_mask(message->update_mask));
    TRY(control_edit(request->bigtable->control, change_table, &update));
    *response = update.operation;
    return status_ok();
}
