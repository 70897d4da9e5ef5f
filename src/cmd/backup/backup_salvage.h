/* A restored directory of which something was damaged in the place becomes one that opens as others
 * do, and what it lacks is told on standard output: "out of service:" and "lost:".
 *
 * Without what says which tables' files count it is made of all of them (docs/operating/repair.md,
 * "Without a list of tables"), if that was asked for by name: it may bring back what was deleted.
 */
#ifndef TRESTLE_CMD_BACKUP_BACKUP_SALVAGE_H
#define TRESTLE_CMD_BACKUP_BACKUP_SALVAGE_H

#include "backup/whole_harm.h"
#include "base/log.h"
#include "cluster/cluster.h"

struct backup_salvage {
    const struct log *log;
    bool accepts_old_data;
    size_t named; /* what was told so far */
};

/* For whole_restore.salvage: the context is a backup_salvage. */
status backup_salvage(void *context, const char *directory, const struct whole_harm *harm);

/* Tells one; the context is a backup_salvage. */
status backup_salvage_tell_closed(void *context, const struct lost_rows *lost);

#endif
