/* The methods of BigtableTableAdmin that are about backups. See admin_call.h for their form. */
#ifndef TRESTLE_BIGTABLE_BACKUP_METHODS_H
#define TRESTLE_BIGTABLE_BACKUP_METHODS_H

#include "bigtable/admin_call.h"

admin_method create_backup; /* create_backup.c */
admin_method get_backup;    /* backups.c */
admin_method update_backup; /* backups.c */
admin_method delete_backup; /* backups.c */
admin_method list_backups;  /* list_backups.c */
admin_method copy_backup;   /* copy_backup.c */
admin_method restore_table; /* restore_table.c */

#endif
