/* Schema bundles of a table: kept, well-formed, and backward compatible when they change. */
#include "bigtable/children.h"
#include "bigtable/descriptor_set.h"
#include "bigtable/table_methods.h"

static bytes descriptors_of(const BtAdmin__SchemaBundle *bundle)
{
    return proto_bytes(bundle->proto_schema->proto_descriptors);
}

static status check_bundle(const BtAdmin__SchemaBundle *bundle, struct arena *arena)
{
    if (bundle->type_case == BT_ADMIN__SCHEMA_BUNDLE__TYPE_AVRO_SCHEMA)
        return status_make(STATUS_UNIMPLEMENTED, "avro_schema is not implemented");
    if (bundle->type_case != BT_ADMIN__SCHEMA_BUNDLE__TYPE_PROTO_SCHEMA)
        return status_make(STATUS_INVALID_ARGUMENT, "proto_schema must be set");
    return descriptor_set_check(descriptors_of(bundle), arena);
}

static status check(const struct admin_request *request, const ProtobufCMessage *before,
                    const ProtobufCMessage *after)
{
    const BtAdmin__SchemaBundle *was = (const void *)before, *is = (const void *)after;
    TRY(check_bundle(is, request->arena));
    if (was == NULL)
        return status_ok();
    const BtAdmin__UpdateSchemaBundleRequest *update = (const void *)request->message;
    if (update->ignore_warnings)
        return status_ok();
    return descriptor_set_check_successor(descriptors_of(was), descriptors_of(is), request->arena);
}

static const char *const allowed[] = {"proto_schema", NULL};

static const struct child_kind schema_bundles = {
    .kind = RESOURCE_SCHEMA_BUNDLE,
    .name = "schema_bundle",
    .create_metadata = &bt_admin__create_schema_bundle_metadata__descriptor,
    .update_metadata = &bt_admin__update_schema_bundle_metadata__descriptor,
    .list_response = &bt_admin__list_schema_bundles_response__descriptor,
    .allowed = allowed,
    .check = check,
};

CHILD_METHOD(create, schema_bundle, schema_bundles)
CHILD_METHOD(get, schema_bundle, schema_bundles)
CHILD_METHOD(list, schema_bundles, schema_bundles)
CHILD_METHOD(update, schema_bundle, schema_bundles)
CHILD_METHOD(delete, schema_bundle, schema_bundles)
