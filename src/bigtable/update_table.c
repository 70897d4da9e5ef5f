/* UpdateTable: deletion protection is what can be changed so far. */
#include "bigtable/field_mask.h"
#include "bigtable/names.h"
#include "bigtable/resource_call.h"
#include "bigtable/schema_message.h"
#include "bigtable/table_methods.h"

static status check_path(const char *path)
{
    static const char *const unbuilt[] = {
        "column_families",
        "change_stream_config",
        "change_stream_config.retention_period",
        "automated_backup_policy",
        "automated_backup_policy.retention_period",
        "automated_backup_policy.frequency",
        "tiered_storage_config",
        "row_key_schema",
    };
    if (field_path_is(path, "deletion_protection"))
        return status_ok();
    for (size_t i = 0; i < sizeof unbuilt / sizeof *unbuilt; i++)
        if (field_path_is(path, unbuilt[i]))
            return status_make(STATUS_UNIMPLEMENTED, "Updating '%s' is not implemented", path);
    return status_make(STATUS_INVALID_ARGUMENT, "Invalid path '%s' in update_mask", path);
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

/* The only path that passes check_mask is deletion_protection. The operation is staged here, where
 * the table stands still, and written with it. */
static status set_protection(void *context, const struct table_info *now, struct arena *arena,
                             struct table_change *next)
{
    struct update *update = context;
    BtAdmin__UpdateTableMetadata metadata = BT_ADMIN__UPDATE_TABLE_METADATA__INIT;
    const struct table_place nowhere = {.count = 0}; /* which the schema view does not show */
    struct table_info after = *now;
    BtAdmin__Table *message = NULL;
    after.deletion_protection = update->wanted->deletion_protection;
    TRY(table_to_message(&after, &nowhere, BT_ADMIN__TABLE__VIEW__SCHEMA_VIEW, arena, &message));
    metadata.name = message->name;
    TRY(finish_operation(update->edit, update->request, message->name, &metadata.base,
                         &message->base, &update->operation));
    *next = (struct table_change){.families = now->schema->families,
                                  .family_count = now->schema->family_count,
                                  .deletion_protection = after.deletion_protection,
                                  .extra = now->extra};
    return edit_batch(update->edit, &next->also);
}

static status change_table(void *context, struct edit *edit)
{
    struct update *update = context;
    struct table *table;
    update->edit = edit;
    TRY(cluster_table(update->request->bigtable->cluster, bytes_of(update->wanted->name), &table));
    status s = table_change_schema(table, update->request->arena, set_protection, update);
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
