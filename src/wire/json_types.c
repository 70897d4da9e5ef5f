/* What reading and writing JSON know of types. See json_private.h. */
#include "wire/json_private.h"

#include "google/bigtable/admin/v2/bigtable_instance_admin.pb-c.h"
#include "google/bigtable/admin/v2/bigtable_table_admin.pb-c.h"
#include "google/datastore/admin/v1/datastore_admin.pb-c.h"
#include "google/firestore/admin/v1/field.pb-c.h"
#include "google/firestore/admin/v1/operation.pb-c.h"
#include "google/protobuf/any.pb-c.h"
#include "google/protobuf/duration.pb-c.h"
#include "google/protobuf/empty.pb-c.h"
#include "google/protobuf/field_mask.pb-c.h"
#include "google/protobuf/struct.pb-c.h"
#include "google/protobuf/timestamp.pb-c.h"
#include "google/protobuf/wrappers.pb-c.h"
#include "google/rpc/error_details.pb-c.h"

enum json_form json_form_of(const ProtobufCMessageDescriptor *type)
{
    static const struct {
        const ProtobufCMessageDescriptor *type;
        enum json_form form;
    } forms[] = {
        {&pb__any__descriptor, FORM_ANY},
        {&pb__duration__descriptor, FORM_DURATION},
        {&pb__field_mask__descriptor, FORM_FIELD_MASK},
        {&pb__list_value__descriptor, FORM_LIST},
        {&pb__struct__descriptor, FORM_STRUCT},
        {&pb__timestamp__descriptor, FORM_TIMESTAMP},
        {&pb__value__descriptor, FORM_VALUE},
        {&pb__bool_value__descriptor, FORM_WRAPPER},
        {&pb__bytes_value__descriptor, FORM_WRAPPER},
        {&pb__double_value__descriptor, FORM_WRAPPER},
        {&pb__float_value__descriptor, FORM_WRAPPER},
        {&pb__int32_value__descriptor, FORM_WRAPPER},
        {&pb__int64_value__descriptor, FORM_WRAPPER},
        {&pb__string_value__descriptor, FORM_WRAPPER},
        {&pb__uint32_value__descriptor, FORM_WRAPPER},
        {&pb__uint64_value__descriptor, FORM_WRAPPER},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (type == forms[i].type)
            return forms[i].form;
    return FORM_OBJECT;
}

bool json_is_null(const ProtobufCFieldDescriptor *field)
{
    return field->type == PROTOBUF_C_TYPE_ENUM && field->descriptor == &pb__null_value__descriptor;
}

/* "column_families" and "ColumnFamiliesEntry". */
static bool is_entry_name(const char *field, const char *type)
{
    for (bool is_raised = true; *field != '\0'; field++) {
        if (*field == '_') {
            is_raised = true;
            continue;
        }
        char c = is_raised && *field >= 'a' && *field <= 'z' ? (char)(*field - 'a' + 'A') : *field;
        if (c != *type++)
            return false;
        is_raised = false;
    }
    return strcmp(type, "Entry") == 0;
}

bool json_is_map(const ProtobufCFieldDescriptor *field)
{
    if (field->label != PROTOBUF_C_LABEL_REPEATED || field->type != PROTOBUF_C_TYPE_MESSAGE)
        return false;
    const ProtobufCMessageDescriptor *type = field->descriptor;
    return type->n_fields == 2 && strcmp(type->fields[0].name, "key") == 0 &&
           strcmp(type->fields[1].name, "value") == 0 &&
           is_entry_name(field->name, type->short_name);
}

bool json_is_called(const char *name, bytes key)
{
    if (bytes_equal(key, bytes_of(name)))
        return true;
    size_t i = 0;
    for (bool is_raised = false; *name != '\0'; name++) {
        if (*name == '_') {
            is_raised = true;
            continue;
        }
        char c = is_raised && *name >= 'a' && *name <= 'z' ? (char)(*name - 'a' + 'A') : *name;
        if (i == key.size || key.data[i++] != (uint8_t)c)
            return false;
        is_raised = false;
    }
    return i == key.size;
}

const ProtobufCFieldDescriptor *json_find_field(const ProtobufCMessageDescriptor *type, bytes key)
{
    for (unsigned i = 0; i < type->n_fields; i++)
        if (json_is_called(type->fields[i].name, key))
            return &type->fields[i];
    return NULL;
}

/* What an Any of the interface may hold: results and progress of operations, details of errors. */
static const ProtobufCMessageDescriptor *const packable[] = {
    &bt_admin__instance__descriptor,
    &bt_admin__cluster__descriptor,
    &bt_admin__app_profile__descriptor,
    &bt_admin__logical_view__descriptor,
    &bt_admin__materialized_view__descriptor,
    &bt_admin__table__descriptor,
    &bt_admin__authorized_view__descriptor,
    &bt_admin__snapshot__descriptor,
    &bt_admin__backup__descriptor,
    &bt_admin__schema_bundle__descriptor,
    &bt_admin__memory_layer__descriptor,
    &bt_admin__copy_backup_metadata__descriptor,
    &bt_admin__create_authorized_view_metadata__descriptor,
    &bt_admin__create_backup_metadata__descriptor,
    &bt_admin__create_cluster_metadata__descriptor,
    &bt_admin__create_instance_metadata__descriptor,
    &bt_admin__create_logical_view_metadata__descriptor,
    &bt_admin__create_materialized_view_metadata__descriptor,
    &bt_admin__create_schema_bundle_metadata__descriptor,
    &bt_admin__create_table_from_snapshot_metadata__descriptor,
    &bt_admin__optimize_restored_table_metadata__descriptor,
    &bt_admin__partial_update_cluster_metadata__descriptor,
    &bt_admin__restore_table_metadata__descriptor,
    &bt_admin__snapshot_table_metadata__descriptor,
    &bt_admin__undelete_table_metadata__descriptor,
    &bt_admin__update_app_profile_metadata__descriptor,
    &bt_admin__update_authorized_view_metadata__descriptor,
    &bt_admin__update_cluster_metadata__descriptor,
    &bt_admin__update_instance_metadata__descriptor,
    &bt_admin__update_logical_view_metadata__descriptor,
    &bt_admin__update_materialized_view_metadata__descriptor,
    &bt_admin__update_memory_layer_metadata__descriptor,
    &bt_admin__update_schema_bundle_metadata__descriptor,
    &bt_admin__update_table_metadata__descriptor,
    &ds_admin__datastore_firestore_migration_metadata__descriptor,
    &ds_admin__export_entities_metadata__descriptor,
    &ds_admin__export_entities_response__descriptor,
    &ds_admin__import_entities_metadata__descriptor,
    &ds_admin__index__descriptor,
    &ds_admin__index_operation_metadata__descriptor,
    &fs_admin__field__descriptor,
    &fs_admin__field_operation_metadata__descriptor,
    &pb__empty__descriptor,
    &rpc__bad_request__descriptor,
    &rpc__debug_info__descriptor,
    &rpc__error_info__descriptor,
    &rpc__help__descriptor,
    &rpc__localized_message__descriptor,
    &rpc__precondition_failure__descriptor,
    &rpc__quota_failure__descriptor,
    &rpc__request_info__descriptor,
    &rpc__resource_info__descriptor,
    &rpc__retry_info__descriptor,
};

const ProtobufCMessageDescriptor *json_type_of_url(bytes url)
{
    for (size_t i = url.size; i > 0; i--)
        if (url.data[i - 1] == '/') {
            url = bytes_from(url, i);
            break;
        }
    for (size_t i = 0; i < sizeof packable / sizeof *packable; i++)
        if (bytes_equal(url, bytes_of(packable[i]->name)))
            return packable[i];
    return NULL;
}
