/* Failures of backups, by table and by cause: the metrics backup_failures_total and
 * table_backup_failures_total. The first LIMIT_TABLE_METRICS of table and cause have a series of
 * their own since the start, the others are counted together. Any thread. */
#ifndef TRESTLE_BIGTABLE_BACKUP_FAILURES_H
#define TRESTLE_BIGTABLE_BACKUP_FAILURES_H

#include "base/metrics.h"

struct backup_failures;

status backup_failures_create(struct metrics *metrics, struct backup_failures **out);
void backup_failures_destroy(struct backup_failures *failures); /* NULL is fine */

/* Counts a backup of the table, or a copy or restore of one, that has failed: by the table's
 * policy, or by a request. `table`: a full name; NULL: not known. */
void backup_failures_note(struct backup_failures *failures, const char *table, bool by_policy);

#endif
