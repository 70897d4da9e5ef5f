/* The scheduler does what time asks of backups: those past their expire_time are deleted, hot ones
 * become standard at their hot_to_standard_time, and tables with an automated_backup_policy get
 * theirs.
 *
 * A thread looks at all of them when the server starts, and then once a minute.
 *
 * Automated backups are made one after the other, so that they leave a thread to what people ask
 * for. One is due when the newest that the policy has made of the table, and that is still there,
 * was begun longer ago than the policy's frequency. One that fails is tried again an hour later. */
#ifndef TRESTLE_BIGTABLE_BACKUP_SCHEDULER_H
#define TRESTLE_BIGTABLE_BACKUP_SCHEDULER_H

#include "bigtable/automated_backups.h"

struct backup_scheduler;

status backup_scheduler_start(struct bigtable *bigtable, struct backup_scheduler **out);
void backup_scheduler_stop(
    struct backup_scheduler *scheduler); /* waits for its thread; NULL is fine */

/* Takes one look, by the cluster's clock; what cannot be done is logged. `*has_more` if there was
 * more to do than one look does. For the thread, and for tests, which have none. */
void backup_scheduler_run_once(struct bigtable *bigtable, struct backup_attempts *attempts,
                               bool *has_more);

#endif
