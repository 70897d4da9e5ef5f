/* google.bigtable.admin.v2.BigtableTableAdmin. Methods that are not in the table answer
 * UNIMPLEMENTED. */
#include "bigtable/backup_methods.h"
#include "bigtable/policy_methods.h"
#include "bigtable/table_methods.h"

ADMIN_LEADERS_HANDLER(create_table, bt_admin__create_table_request)
ADMIN_HANDLER(list_tables, bt_admin__list_tables_request)
ADMIN_HANDLER(get_table, bt_admin__get_table_request)
ADMIN_LEADERS_HANDLER(update_table, bt_admin__update_table_request)
ADMIN_LEADERS_HANDLER(delete_table, bt_admin__delete_table_request)
ADMIN_LEADERS_HANDLER(undelete_table, bt_admin__undelete_table_request)
ADMIN_LEADERS_HANDLER(modify_column_families, bt_admin__modify_column_families_request)
ADMIN_HANDLER(drop_row_range, bt_admin__drop_row_range_request)
ADMIN_HANDLER(generate_consistency_token, bt_admin__generate_consistency_token_request)
ADMIN_HANDLER(check_consistency, bt_admin__check_consistency_request)
ADMIN_LEADERS_HANDLER(create_authorized_view, bt_admin__create_authorized_view_request)
ADMIN_HANDLER(get_authorized_view, bt_admin__get_authorized_view_request)
ADMIN_HANDLER(list_authorized_views, bt_admin__list_authorized_views_request)
ADMIN_LEADERS_HANDLER(update_authorized_view, bt_admin__update_authorized_view_request)
ADMIN_LEADERS_HANDLER(delete_authorized_view, bt_admin__delete_authorized_view_request)
ADMIN_LEADERS_HANDLER(create_schema_bundle, bt_admin__create_schema_bundle_request)
ADMIN_HANDLER(get_schema_bundle, bt_admin__get_schema_bundle_request)
ADMIN_HANDLER(list_schema_bundles, bt_admin__list_schema_bundles_request)
ADMIN_LEADERS_HANDLER(update_schema_bundle, bt_admin__update_schema_bundle_request)
ADMIN_LEADERS_HANDLER(delete_schema_bundle, bt_admin__delete_schema_bundle_request)
ADMIN_HANDLER(create_backup, bt_admin__create_backup_request)
ADMIN_HANDLER(get_backup, bt_admin__get_backup_request)
ADMIN_HANDLER(list_backups, bt_admin__list_backups_request)
ADMIN_HANDLER(update_backup, bt_admin__update_backup_request)
ADMIN_HANDLER(delete_backup, bt_admin__delete_backup_request)
ADMIN_HANDLER(copy_backup, bt_admin__copy_backup_request)
ADMIN_LEADERS_HANDLER(restore_table, bt_admin__restore_table_request)
ADMIN_HANDLER(get_iam_policy, iam__get_iam_policy_request)
ADMIN_HANDLER(set_iam_policy, iam__set_iam_policy_request)
ADMIN_HANDLER(test_iam_permissions, iam__test_iam_permissions_request)

struct grpc_service bigtable_table_admin_service(struct bigtable *bigtable)
{
    static const struct grpc_method methods[] = {
        {"CreateTable", GRPC_UNARY, handle_create_table},
        {"ListTables", GRPC_UNARY, handle_list_tables},
        {"GetTable", GRPC_UNARY, handle_get_table},
        {"UpdateTable", GRPC_UNARY, handle_update_table},
        {"DeleteTable", GRPC_UNARY, handle_delete_table},
        {"UndeleteTable", GRPC_UNARY, handle_undelete_table},
        {"ModifyColumnFamilies", GRPC_UNARY, handle_modify_column_families},
        {"DropRowRange", GRPC_UNARY, handle_drop_row_range},
        {"GenerateConsistencyToken", GRPC_UNARY, handle_generate_consistency_token},
        {"CheckConsistency", GRPC_UNARY, handle_check_consistency},
        {"CreateAuthorizedView", GRPC_UNARY, handle_create_authorized_view},
        {"GetAuthorizedView", GRPC_UNARY, handle_get_authorized_view},
        {"ListAuthorizedViews", GRPC_UNARY, handle_list_authorized_views},
        {"UpdateAuthorizedView", GRPC_UNARY, handle_update_authorized_view},
        {"DeleteAuthorizedView", GRPC_UNARY, handle_delete_authorized_view},
        {"CreateSchemaBundle", GRPC_UNARY, handle_create_schema_bundle},
        {"GetSchemaBundle", GRPC_UNARY, handle_get_schema_bundle},
        {"ListSchemaBundles", GRPC_UNARY, handle_list_schema_bundles},
        {"UpdateSchemaBundle", GRPC_UNARY, handle_update_schema_bundle},
        {"DeleteSchemaBundle", GRPC_UNARY, handle_delete_schema_bundle},
        {"CreateBackup", GRPC_UNARY, handle_create_backup},
        {"GetBackup", GRPC_UNARY, handle_get_backup},
        {"ListBackups", GRPC_UNARY, handle_list_backups},
        {"UpdateBackup", GRPC_UNARY, handle_update_backup},
        {"DeleteBackup", GRPC_UNARY, handle_delete_backup},
        {"CopyBackup", GRPC_UNARY, handle_copy_backup},
        {"RestoreTable", GRPC_UNARY, handle_restore_table},
        {"GetIamPolicy", GRPC_UNARY, handle_get_iam_policy},
        {"SetIamPolicy", GRPC_UNARY, handle_set_iam_policy},
        {"TestIamPermissions", GRPC_UNARY, handle_test_iam_permissions},
    };
    return (struct grpc_service){.name = "google.bigtable.admin.v2.BigtableTableAdmin",
                                 .methods = methods,
                                 .method_count = sizeof methods / sizeof *methods,
                                 .context = bigtable,
                                 .rest = &bt_admin__bigtable_table_admin__descriptor};
}
