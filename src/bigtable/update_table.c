/* UpdateTable: deletion protection is what can be changed so far. */
#include "bigtable/field_mask.h"
#include "bigtable/names.h"
#include "bigtable/operations.h"
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

/* The only path that passes check_mask is deletion_protection. */
static status set_protection(void *context, const struct table_info *now, struct arena *arena,
                             struct table_change *next)
{
    const BtAdmin__Table *wanted = context;
    (void)arena;
    *next = (struct table_change){.families = now->schema->families,
                                  .family_count = now->schema->family_count,
                                  .deletion_protection = wanted->deletion_protection,
                                  .extra = now->extra};
    return status_ok();
}

status update_table(const struct admin_request *request, const ProtobufCMessage **response)
{
    const BtAdmin__UpdateTableRequest *message = (const void *)request->message;
    if (message->table == NULL)
        return status_make(STATUS_INVALID_ARGUMENT, "table must be set");
    TRY(name_check_table(message->table->name));
    TRY(check_mask(message->update_mask));
    struct table *table;
    TRY(cluster_table(request->bigtable->cluster, bytes_of(message->table->name), &table));
    status s = table_change_schema(table, request->arena, set_protection, message->table);
    table_release(table);
    TRY(s);
    return operation_of_update(request, message->table->name, response);
}
