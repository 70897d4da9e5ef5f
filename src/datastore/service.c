/* The methods of the services: which there are, and what runs them. A method that is not built has
 * NULL there. */
#include "datastore/admin/admin_methods.h"
#include "datastore/admin/transfers.h"
#include "datastore/methods.h"
#include "datastore/query/queries.h"

#include "google/datastore/admin/v1/datastore_admin.pb-c.h"
#include "google/datastore/v1/datastore.pb-c.h"
#include "google/firestore/admin/v1/firestore_admin.pb-c.h"

/* `handle_<type>`, the handler of a table of methods, for the request message of this C prefix. */
#define LOCATED_METHOD(method_name, prefix, runs, locates)                                         \
    static void handle_##prefix(void *context, struct grpc_call *call, bytes request)              \
    {                                                                                              \
        static const struct ds_method method = {.name = method_name,                               \
                                                .request = &prefix##_request__descriptor,          \
                                                .run = (runs),                                     \
                                                .locate = (locates)};                              \
        ds_call_start(context, call, request, &method);                                            \
    }
#define METHOD(method_name, prefix, runs) LOCATED_METHOD(method_name, prefix, runs, NULL)

METHOD("Lookup", ds__lookup, ds_lookup)
METHOD("RunQuery", ds__run_query, ds_run_query)
METHOD("RunAggregationQuery", ds__run_aggregation_query, ds_run_aggregation_query)
METHOD("BeginTransaction", ds__begin_transaction, ds_begin_transaction)
METHOD("Commit", ds__commit, ds_commit)
METHOD("Rollback", ds__rollback, ds_rollback)
METHOD("AllocateIds", ds__allocate_ids, ds_allocate_ids)
METHOD("ReserveIds", ds__reserve_ids, ds_reserve_ids)

METHOD("ExportEntities", ds_admin__export_entities, ds_export_entities)
METHOD("ImportEntities", ds_admin__import_entities, ds_import_entities)
METHOD("CreateIndex", ds_admin__create_index, ds_create_index)
METHOD("DeleteIndex", ds_admin__delete_index, ds_delete_index)
METHOD("GetIndex", ds_admin__get_index, ds_get_index)
METHOD("ListIndexes", ds_admin__list_indexes, ds_list_indexes)

LOCATED_METHOD("CreateIndex", fs_admin__create_index, fs_create_index, fs_create_index_locate)
LOCATED_METHOD("ListIndexes", fs_admin__list_indexes, fs_list_indexes, fs_list_indexes_locate)
LOCATED_METHOD("GetIndex", fs_admin__get_index, fs_get_index, fs_get_index_locate)
LOCATED_METHOD("DeleteIndex", fs_admin__delete_index, fs_delete_index, fs_delete_index_locate)
LOCATED_METHOD("GetField", fs_admin__get_field, ds_get_field, ds_get_field_locate)
LOCATED_METHOD("UpdateField", fs_admin__update_field, ds_update_field, ds_update_field_locate)
LOCATED_METHOD("ListFields", fs_admin__list_fields, ds_list_fields, ds_list_fields_locate)
LOCATED_METHOD("ListDatabases", fs_admin__list_databases, ds_list_databases,
               ds_list_databases_locate)

struct grpc_service datastore_service(struct datastore *datastore)
{
    static const struct grpc_method methods[] = {
        {"Lookup", GRPC_UNARY, handle_ds__lookup},
        {"RunQuery", GRPC_UNARY, handle_ds__run_query},
        {"RunAggregationQuery", GRPC_UNARY, handle_ds__run_aggregation_query},
        {"BeginTransaction", GRPC_UNARY, handle_ds__begin_transaction},
        {"Commit", GRPC_UNARY, handle_ds__commit},
        {"Rollback", GRPC_UNARY, handle_ds__rollback},
        {"AllocateIds", GRPC_UNARY, handle_ds__allocate_ids},
        {"ReserveIds", GRPC_UNARY, handle_ds__reserve_ids},
    };
    return (struct grpc_service){.name = "google.datastore.v1.Datastore",
                                 .methods = methods,
                                 .method_count = sizeof methods / sizeof *methods,
                                 .context = datastore,
                                 .is_data = true,
                                 .rest = &ds__datastore__descriptor};
}

struct grpc_service datastore_admin_service(struct datastore *datastore)
{
    static const struct grpc_method methods[] = {
        {"ExportEntities", GRPC_UNARY, handle_ds_admin__export_entities},
        {"ImportEntities", GRPC_UNARY, handle_ds_admin__import_entities},
        {"CreateIndex", GRPC_UNARY, handle_ds_admin__create_index},
        {"DeleteIndex", GRPC_UNARY, handle_ds_admin__delete_index},
        {"GetIndex", GRPC_UNARY, handle_ds_admin__get_index},
        {"ListIndexes", GRPC_UNARY, handle_ds_admin__list_indexes},
    };
    return (struct grpc_service){.name = "google.datastore.admin.v1.DatastoreAdmin",
                                 .methods = methods,
                                 .method_count = sizeof methods / sizeof *methods,
                                 .context = datastore,
                                 .rest = &ds_admin__datastore_admin__descriptor};
}

struct grpc_service datastore_firestore_service(struct datastore *datastore)
{
    static const struct grpc_method methods[] = {
        {"CreateIndex", GRPC_UNARY, handle_fs_admin__create_index},
        {"ListIndexes", GRPC_UNARY, handle_fs_admin__list_indexes},
        {"GetIndex", GRPC_UNARY, handle_fs_admin__get_index},
        {"DeleteIndex", GRPC_UNARY, handle_fs_admin__delete_index},
        {"GetField", GRPC_UNARY, handle_fs_admin__get_field},
        {"UpdateField", GRPC_UNARY, handle_fs_admin__update_field},
        {"ListFields", GRPC_UNARY, handle_fs_admin__list_fields},
        {"ListDatabases", GRPC_UNARY, handle_fs_admin__list_databases},
    };
    return (struct grpc_service){.name = "google.firestore.admin.v1.FirestoreAdmin",
                                 .methods = methods,
                                 .method_count = sizeof methods / sizeof *methods,
                                 .context = datastore,
                                 .rest = &fs_admin__firestore_admin__descriptor};
}
