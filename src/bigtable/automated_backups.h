/* Backups that tables' policies ask for: see backup_scheduler.h, which looks after them. */
#ifndef TRESTLE_BIGTABLE_AUTOMATED_BACKUPS_H
#define TRESTLE_BIGTABLE_AUTOMATED_BACKUPS_H

#include "bigtable/backup_facts.h"

/* For which tables a backup was begun within the last two hours, and what became of it. */
struct backup_attempts {
    struct backup_attempt *first;
};
void backup_attempts_free(struct backup_attempts *attempts); /* all zeroes are fine */

/* Begins the backup of a table whose policy wants one now, unless one is being made. `backups` are
 * all that there are, of which the arena has the facts. `*has_more` is set if others wait. Notes in
 * the server's condition whether a table's backup is overdue: an attempt has failed, or it is an
 * hour late. */
status begin_automated_backups(struct bigtable *bigtable, struct backup_attempts *attempts,
                               const struct backup_facts *backups, size_t count,
                               struct arena *arena, bool *has_more);

#endif
