/* The methods of BigtableTableAdmin, one file per family of them. See admin_call.h for their form;
 * the service's table is in table_admin_service.c. */
#ifndef TRESTLE_BIGTABLE_TABLE_METHODS_H
#define TRESTLE_BIGTABLE_TABLE_METHODS_H

#include "bigtable/admin_call.h"
#include "google/bigtable/admin/v2/bigtable_table_admin.pb-c.h"

admin_method create_table;               /* create_table.c */
admin_method list_tables;                /* tables.c */
admin_method get_table;                  /* tables.c */
admin_method delete_table;               /* tables.c */
admin_method undelete_table;             /* undelete_table.c */
admin_method update_table;               /* update_table.c */
admin_method modify_column_families;     /* families.c */
admin_method drop_row_range;             /* drop_row_range.c */
admin_method generate_consistency_token; /* consistency.c */
admin_method check_consistency;          /* consistency.c */

/* authorized_views.c */
admin_method create_authorized_view;
admin_method get_authorized_view;
admin_method list_authorized_views;
admin_method update_authorized_view;
admin_method delete_authorized_view;

/* schema_bundles.c */
admin_method create_schema_bundle;
admin_method get_schema_bundle;
admin_method list_schema_bundles;
admin_method update_schema_bundle;
admin_method delete_schema_bundle;

/* Before what a table has is listed: its name has the form, and it exists. */
status check_table_to_list(const struct admin_request *request, const char *name);

/* The table as the view shows it. */
status table_message(const struct admin_request *request, struct table *table,
                     BtAdmin__Table__View view, BtAdmin__Table **out);

/* The table under a name that was given as a resource name: checked, found, described, as the view
 * shows it. */
status describe_table(const struct admin_request *request, const char *name,
                      BtAdmin__Table__View view, BtAdmin__Table **out);

#endif
