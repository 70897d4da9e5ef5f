/* Schema bundles of a table: kept, well-formed, and backward compatible when they change. */
#include "bigtable/descriptor_set.h"
#include "bigtable/quick_change.h"
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

status create_schema_bundle(const struct admin_request *request, const ProtobufCMessage **response)
{
    const BtAdmin__CreateSchemaBundleRequest *message = (const void *)request->message;
    BtAdmin__CreateSchemaBundleMetadata metadata = BT_ADMIN__CREATE_SCHEMA_BUNDLE_METADATA__INIT;
    BtAdmin__SchemaBundle bundle = BT_ADMIN__SCHEMA_BUNDLE__INIT;
    if (message->schema_bundle != NULL)
        bundle = *message->schema_bundle;
    TRY(name_new_resource(request, RESOURCE_SCHEMA_BUNDLE, message->parent,
                          message->schema_bundle_id, &bundle.name));
    TRY(check_bundle(&bundle, request->arena));
    metadata.name = bundle.name;
    struct resource_creation creation = {RESOURCE_SCHEMA_BUNDLE, message->parent, &bundle.base,
                                         &metadata.base};
    return create_quickly(request, &creation, response);
}

status get_schema_bundle(const struct admin_request *request, const ProtobufCMessage **response)
{
    const BtAdmin__GetSchemaBundleRequest *message = (const void *)request->message;
    ProtobufCMessage *bundle = NULL;
    TRY(get_resource(request, RESOURCE_SCHEMA_BUNDLE, message->name, &bundle));
    *response = bundle;
    return status_ok();
}

status list_schema_bundles(const struct admin_request *request, const ProtobufCMessage **response)
{
    const BtAdmin__ListSchemaBundlesRequest *message = (const void *)request->message;
    struct resource_page page;
    BtAdmin__ListSchemaBundlesResponse *list;
    TRY(check_table_to_list(request, message->parent));
    TRY(list_resources(request, RESOURCE_SCHEMA_BUNDLE, message->parent, message->page_size,
                       message->page_token, &page));
    PROTO_NEW(request->arena, list, BT_ADMIN__LIST_SCHEMA_BUNDLES_RESPONSE__INIT);
    list->schema_bundles = (void *)page.messages;
    list->n_schema_bundles = page.count;
    list->next_page_token = page.next_token;
    *response = &list->base;
    return status_ok();
}

static status check_change(const struct admin_request *request, const ProtobufCMessage *before,
                           const ProtobufCMessage *after)
{
    const BtAdmin__UpdateSchemaBundleRequest *message = (const void *)request->message;
    const BtAdmin__SchemaBundle *was = (const void *)before, *is = (const void *)after;
    TRY(check_bundle(is, request->arena));
    if (message->ignore_warnings)
        return status_ok();
    return descriptor_set_check_successor(descriptors_of(was), descriptors_of(is), request->arena);
}

status update_schema_bundle(const struct admin_request *request, const ProtobufCMessage **response)
{
    static const char *const allowed[] = {"proto_schema", NULL};
    const BtAdmin__UpdateSchemaBundleRequest *message = (const void *)request->message;
    const BtAdmin__SchemaBundle *wanted = message->schema_bundle;
    BtAdmin__UpdateSchemaBundleMetadata metadata = BT_ADMIN__UPDATE_SCHEMA_BUNDLE_METADATA__INIT;
    if (wanted == NULL)
        return status_make(STATUS_INVALID_ARGUMENT, "schema_bundle must be set");
    metadata.name = wanted->name;
    struct resource_update update = {.kind = RESOURCE_SCHEMA_BUNDLE,
                                     .name = wanted->name,
                                     .etag = wanted->etag,
                                     .wanted = &wanted->base,
                                     .mask = message->update_mask,
                                     .allowed = allowed,
                                     .check = check_change,
                                     .metadata = &metadata.base};
    return update_quickly(request, &update, response);
}

status delete_schema_bundle(const struct admin_request *request, const ProtobufCMessage **response)
{
    const BtAdmin__DeleteSchemaBundleRequest *message = (const void *)request->message;
    return delete_resource(request, RESOURCE_SCHEMA_BUNDLE, message->name, message->etag, response);
}
