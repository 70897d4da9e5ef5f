/* A table as it was in a whole backup, for a repair that takes rows from it: the newest backup of
 * the server that has what is wanted, or one that is named; or in a data directory, which was
 * restored.
 *
 * One thread at a time; all of it blocks. */
#ifndef TRESTLE_BACKUP_WHOLE_FORMER_H
#define TRESTLE_BACKUP_WHOLE_FORMER_H

#include "backup/whole.h"
#include "cluster/backup/backup_foreign.h"

struct whole_former;

struct whole_former_options {
    /* A directory that no process has open; only `table` and what follows it count then. NULL:
     * `place` has backups. */
    const char *directory;
    struct place *place;
    const char *name;   /* of the backup; NULL: the newest that will do */
    const char *server; /* whose backups count unless one is named: store_identity */
    int64_t before_us;  /* of an earlier instant, unless one is named; 0: of any */
    const char *table;  /* full name */
    bool only_record;   /* what it is, and none of its rows */
    struct files *files;
    const char *scratch; /* see whole_copy_options.directory */
    struct whole_work *work;
    /* Whether it will do. After DATA_LOSS the next older one is looked at. */
    status (*look)(void *context, const struct foreign_table *table);
    void *context;
};

/* NOT_FOUND if there is no backup to look at, or none has the table; DATA_LOSS if what is wanted
 * cannot be read from any, with what is wrong with the newest; what `look` fails with. */
status whole_former_open(const struct whole_former_options *options, struct whole_former **out);
void whole_former_close(struct whole_former *former); /* NULL is fine */

const struct foreign_table *whole_former_table(const struct whole_former *former);
/* The backup's name and instant; the directory, and 0. */
const char *whole_former_name(const struct whole_former *former, int64_t *instant_us);
/* "the whole backup NAME, of DATE", "the data directory DIR". */
void whole_former_describe(const struct whole_former *former, struct buffer *out);

#endif
