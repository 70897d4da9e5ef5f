/* Lines of the audit log about whole backups and tables that come out of them: as a call that
 * begins one ends, and as the run itself ends, which is later.
 *
 *     resource   the place, and once it is there the backup; or the tables that come of it
 *     source     what is backed up; or the place, and the backup */
#ifndef TRESTLE_BACKUP_RUN_AUDIT_H
#define TRESTLE_BACKUP_RUN_AUDIT_H

#include "access/audit.h"
#include "backup/runner.h"
#include "base/arena.h"

/* Has the line of a call that asks for it say so. Names that the wish lacks stay as the caller has
 * them. The names are in the arena. RESOURCE_EXHAUSTED. */
status run_audit_ask(const struct whole_wish *wish, struct arena *arena,
                     struct access_caller *caller);

/* A run that `principal` has asked for has ended. Without memory the line is lost. Any thread. */
void run_audit_end(struct audit *audit, const struct whole_run *run, bytes principal);

#endif
