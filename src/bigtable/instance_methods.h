/* The methods of BigtableInstanceAdmin, one file per kind of resource. See admin_call.h for their
 * form; the service's table is in instance_admin_service.c. */
#ifndef TRESTLE_BIGTABLE_INSTANCE_METHODS_H
#define TRESTLE_BIGTABLE_INSTANCE_METHODS_H

#include "bigtable/admin_call.h"
#include "google/bigtable/admin/v2/bigtable_instance_admin.pb-c.h"

/* instances.c */
admin_method create_instance;
admin_method get_instance;
admin_method list_instances;
admin_method update_instance;
admin_method partial_update_instance;
admin_method delete_instance;

/* clusters.c */
admin_method create_cluster;
admin_method get_cluster;
admin_method list_clusters;
admin_method update_cluster;
admin_method partial_update_cluster;
admin_method delete_cluster;

/* hot_tablets.c */
admin_method list_hot_tablets;

/* app_profiles.c */
admin_method create_app_profile;
admin_method get_app_profile;
admin_method list_app_profiles;
admin_method update_app_profile;
admin_method delete_app_profile;

/* query_views.c */
admin_method create_logical_view;
admin_method get_logical_view;
admin_method list_logical_views;
admin_method update_logical_view;
admin_method delete_logical_view;
admin_method create_materialized_view;
admin_method get_materialized_view;
admin_method list_materialized_views;
admin_method update_materialized_view;
admin_method delete_materialized_view;

#endif
