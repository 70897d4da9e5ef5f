/* Restoring a table from another store that is not written to: that of a whole backup. Staged files
 * become a table as those of any staged backup do (backup.h). */
#ifndef TRESTLE_CLUSTER_BACKUP_BACKUP_FOREIGN_H
#define TRESTLE_CLUSTER_BACKUP_BACKUP_FOREIGN_H

#include "cluster/backup/backup.h"
#include "cluster/catalog.h"
#include "row/drops.h"

struct foreign_table {
    struct keyspace *keyspace;
    struct row_drops *drops; /* what was dropped of its rows; NULL: nothing */
    const struct table_record *record;
    const bytes *split_keys; /* rising, none empty */
    size_t split_count;
    int64_t newest_us; /* all of it was written before, by that server's clock of versions */
};

/* Its rows are read through a cursor, as they are stored; what rules condemn in them goes later.
 * What was dropped is left out. Those that cannot be read, since something there is damaged or was
 * out of service, are out of service in the table that is made of it. The source may go afterwards.
 * Blocking. */
status backup_stage_foreign(struct backups *backups, const struct foreign_table *source,
                            struct backup_work *work, struct staged_backup **out);

#endif
