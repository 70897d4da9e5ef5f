/* UndeleteTable: the one last deleted of its name, with the views, schema bundles and policies that
 * it had. It takes one write, so its operation is finished when it is answered. */
#include "bigtable/names.h"
#include "bigtable/resource_call.h"
#include "bigtable/table_methods.h"
#include "bigtable/view_guard.h"
#include "cluster/shared_table.h"
#include "tablet/version.h"

struct undeletion {
    const struct admin_request *request;
    const ProtobufCMessage *operation;
};

/* The others keep a table that is deleted as well, unless it is of before there were any. */
static status check_is_kept_at_peers(const struct bigtable *bigtable, const struct table *table)
{
    bool was_shared = table_uid(table) % VERSION_CLUSTERS != 0;
    return was_shared ? status_ok()
                      : check_has_no_peers(bigtable, "a table that was made before it had any, "
                                                     "and comes back,");
}

static status bring_back(struct undeletion *undeletion, struct edit *edit, struct table *table)
{
    const struct admin_request *request = undeletion->request;
    BtAdmin__UndeleteTableMetadata metadata = BT_ADMIN__UNDELETE_TABLE_METADATA__INIT;
    BtAdmin__Table *message;
    struct catalog_txn *txn;
    TRY(check_is_kept_at_peers(request->bigtable, table));
    TRY(edit_put_back(edit, table_id(table)));
    TRY(table_message(request, table, BT_ADMIN__TABLE__VIEW__SCHEMA_VIEW, &message));
    metadata.name = message->name;
    TRY(finish_operation(edit, request, message->name, &metadata.base, &message->base,
                         &undeletion->operation));
    TRY(edit_txn(edit, &txn));
    return cluster_undelete_table(request->bigtable->cluster, table, txn);
}

static status undelete(void *context, struct edit *edit)
{
    struct undeletion *undeletion = context;
    const struct admin_request *request = undeletion->request;
    const char *name =
        ((const BtAdmin__UndeleteTableRequest *)(const void *)request->message)->name;
    struct table *table;
    const char *instance = name_parent(request->arena, name);
    if (instance == NULL)
        return status_out_of_memory();
    TRY(check_id_is_free(request->bigtable, request->arena, edit, (enum resource_kind)0, instance,
                         name_id(name)));
    TRY(cluster_deleted_table(request->bigtable->cluster, bytes_of(name), &table));
    status s = bring_back(undeletion, edit, table);
    table_release(table);
    return s;
}

status undelete_table(const struct admin_request *request, const ProtobufCMessage **response)
{
    const BtAdmin__UndeleteTableRequest *message = (const void *)request->message;
    struct undeletion undeletion = {.request = request};
    TRY(name_check_table(message->name));
    TRY(control_edit(request->bigtable->control, undelete, &undeletion));
    *response = undeletion.operation;
    return status_ok();
}
