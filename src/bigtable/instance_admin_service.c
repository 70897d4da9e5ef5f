/* google.bigtable.admin.v2.BigtableInstanceAdmin. Methods that are not in the table answer
 * UNIMPLEMENTED. */
#include "bigtable/instance_methods.h"
#include "bigtable/policy_methods.h"

ADMIN_LEADERS_HANDLER(create_instance, bt_admin__create_instance_request)
ADMIN_HANDLER(get_instance, bt_admin__get_instance_request)
ADMIN_HANDLER(list_instances, bt_admin__list_instances_request)
ADMIN_LEADERS_HANDLER(update_instance, bt_admin__instance)
ADMIN_LEADERS_HANDLER(partial_update_instance, bt_admin__partial_update_instance_request)
ADMIN_LEADERS_HANDLER(delete_instance, bt_admin__delete_instance_request)
ADMIN_LEADERS_HANDLER(create_cluster, bt_admin__create_cluster_request)
ADMIN_HANDLER(get_cluster, bt_admin__get_cluster_request)
ADMIN_HANDLER(list_clusters, bt_admin__list_clusters_request)
ADMIN_LEADERS_HANDLER(update_cluster, bt_admin__cluster)
ADMIN_LEADERS_HANDLER(partial_update_cluster, bt_admin__partial_update_cluster_request)
ADMIN_LEADERS_HANDLER(delete_cluster, bt_admin__delete_cluster_request)
ADMIN_LEADERS_HANDLER(create_app_profile, bt_admin__create_app_profile_request)
ADMIN_HANDLER(get_app_profile, bt_admin__get_app_profile_request)
ADMIN_HANDLER(list_app_profiles, bt_admin__list_app_profiles_request)
ADMIN_LEADERS_HANDLER(update_app_profile, bt_admin__update_app_profile_request)
ADMIN_LEADERS_HANDLER(delete_app_profile, bt_admin__delete_app_profile_request)
ADMIN_HANDLER(list_hot_tablets, bt_admin__list_hot_tablets_request)
ADMIN_LEADERS_HANDLER(create_logical_view, bt_admin__create_logical_view_request)
ADMIN_HANDLER(get_logical_view, bt_admin__get_logical_view_request)
ADMIN_HANDLER(list_logical_views, bt_admin__list_logical_views_request)
ADMIN_LEADERS_HANDLER(update_logical_view, bt_admin__update_logical_view_request)
ADMIN_LEADERS_HANDLER(delete_logical_view, bt_admin__delete_logical_view_request)
ADMIN_LEADERS_HANDLER(create_materialized_view, bt_admin__create_materialized_view_request)
ADMIN_HANDLER(get_materialized_view, bt_admin__get_materialized_view_request)
ADMIN_HANDLER(list_materialized_views, bt_admin__list_materialized_views_request)
ADMIN_LEADERS_HANDLER(update_materialized_view, bt_admin__update_materialized_view_request)
ADMIN_LEADERS_HANDLER(delete_materialized_view, bt_admin__delete_materialized_view_request)
ADMIN_HANDLER(get_iam_policy, iam__get_iam_policy_request)
ADMIN_HANDLER(set_iam_policy, iam__set_iam_policy_request)
ADMIN_HANDLER(test_iam_permissions, iam__test_iam_permissions_request)

struct grpc_service bigtable_instance_admin_service(struct bigtable *bigtable)
{
    static const struct grpc_method methods[] = {
        {"CreateInstance", GRPC_UNARY, handle_create_instance},
        {"GetInstance", GRPC_UNARY, handle_get_instance},
        {"ListInstances", GRPC_UNARY, handle_list_instances},
        {"UpdateInstance", GRPC_UNARY, handle_update_instance},
        {"PartialUpdateInstance", GRPC_UNARY, handle_partial_update_instance},
        {"DeleteInstance", GRPC_UNARY, handle_delete_instance},
        {"CreateCluster", GRPC_UNARY, handle_create_cluster},
        {"GetCluster", GRPC_UNARY, handle_get_cluster},
        {"ListClusters", GRPC_UNARY, handle_list_clusters},
        {"UpdateCluster", GRPC_UNARY, handle_update_cluster},
        {"PartialUpdateCluster", GRPC_UNARY, handle_partial_update_cluster},
        {"DeleteCluster", GRPC_UNARY, handle_delete_cluster},
        {"CreateAppProfile", GRPC_UNARY, handle_create_app_profile},
        {"GetAppProfile", GRPC_UNARY, handle_get_app_profile},
        {"ListAppProfiles", GRPC_UNARY, handle_list_app_profiles},
        {"UpdateAppProfile", GRPC_UNARY, handle_update_app_profile},
        {"DeleteAppProfile", GRPC_UNARY, handle_delete_app_profile},
        {"ListHotTablets", GRPC_UNARY, handle_list_hot_tablets},
        {"CreateLogicalView", GRPC_UNARY, handle_create_logical_view},
        {"GetLogicalView", GRPC_UNARY, handle_get_logical_view},
        {"ListLogicalViews", GRPC_UNARY, handle_list_logical_views},
        {"UpdateLogicalView", GRPC_UNARY, handle_update_logical_view},
        {"DeleteLogicalView", GRPC_UNARY, handle_delete_logical_view},
        {"CreateMaterializedView", GRPC_UNARY, handle_create_materialized_view},
        {"GetMaterializedView", GRPC_UNARY, handle_get_materialized_view},
        {"ListMaterializedViews", GRPC_UNARY, handle_list_materialized_views},
        {"UpdateMaterializedView", GRPC_UNARY, handle_update_materialized_view},
        {"DeleteMaterializedView", GRPC_UNARY, handle_delete_materialized_view},
        {"GetIamPolicy", GRPC_UNARY, handle_get_iam_policy},
        {"SetIamPolicy", GRPC_UNARY, handle_set_iam_policy},
        {"TestIamPermissions", GRPC_UNARY, handle_test_iam_permissions},
    };
    return (struct grpc_service){.name = "google.bigtable.admin.v2.BigtableInstanceAdmin",
                                 .methods = methods,
                                 .method_count = sizeof methods / sizeof *methods,
                                 .context = bigtable,
                                 .rest = &bt_admin__bigtable_instance_admin__descriptor};
}
