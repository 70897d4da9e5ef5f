/* Tables out of a whole backup, made in a cluster that is open: a server's, or one in a directory
 * that is being made. Each comes with all its rows at once, or not at all.
 *
 * A table comes under its name or another one. Its instance, with clusters and app profiles, comes
 * with it unless there is one of that name; one that had no tables comes by itself. Left behind are
 * policies (IAM), authorized views, schema bundles, the deletion protection, the automated backup
 * policy and the tiers' settings, as RestoreTable does, unless they are asked for: then an instance
 * that is made has its policy and its views, too.
 *
 * Rows that the backup cannot give, because a file of it was damaged when it was made, or since
 * they were out of service then, are out of service in the table that is made (cluster/damage.h):
 * all else of it is there. So it is, if that is asked for, with those of a file that is damaged in
 * the place; else that is refused.
 *
 * A Datastore database is one table. It comes with its indexes and with what says when entities
 * expire; what was being done on an index is not gone on with. */
#ifndef TRESTLE_BACKUP_WHOLE_TABLES_H
#define TRESTLE_BACKUP_WHOLE_TABLES_H

#include "backup/whole.h"
#include "cluster/backup/backup.h"
#include "control/control.h"

struct whole_tables {
    struct place *place;
    const struct whole_backup *backup;
    const char *from; /* see whole_scope.h; of an instance all its tables */
    const char *to;   /* of the same kind; NULL: as it is called */
    bool with_policies;
    bool salvage; /* see whole_copy_options */
    struct files *files;
    const char *scratch; /* see whole_copy_options.directory */
    struct whole_work *work;
    /* The server in which they are made. */
    struct control *control;
    struct backups *backups;
};

/* INVALID_ARGUMENT unless `from` and `to` are names of the same kind. */
status whole_tables_check(const char *from, const char *to);

struct whole_tables_made {
    size_t tables;
    size_t closed; /* ranges of theirs that are out of service */
};

/* `*made`: what there is now, also on failure. NOT_FOUND; ALREADY_EXISTS if one of them is there:
 * then none is made. Blocking. */
status whole_restore_tables(const struct whole_tables *order, struct whole_tables_made *made);

#endif
