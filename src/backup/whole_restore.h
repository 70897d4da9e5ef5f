/* Restoring a whole backup into a data directory, for a server that is another one than that which
 * was backed up:
 *
 *  1. its identity is new;
 *  2. operations that were under way end as ABORTED when it starts: what they were about to make is
 *     not there, or was made by the server that was backed up;
 *  3. commit versions and sequences begin above the backup's last.
 *
 * The directory is made under another name, `<directory>.restoring`, and gets its own when it is
 * complete (unfinished.h): a restore that was killed has left no data directory. */
#ifndef TRESTLE_BACKUP_WHOLE_RESTORE_H
#define TRESTLE_BACKUP_WHOLE_RESTORE_H

#include "backup/whole.h"

struct whole_harm;

/* A file in the directory: the settings of the server that was backed up, as far as they could be
 * told. */
#define WHOLE_SETTINGS_FILE "settings-of-the-backup.txt"

struct whole_restore {
    struct place *place;
    const struct whole_backup *backup;
    struct files *files;
    const char *directory; /* not there, or empty; its parent is there. No slash at its end */
    const struct log *log;
    struct whole_work *work;
    /* Changes what was backed up before it becomes another server: the store is open, in the
     * directory, and has no other user. May be NULL. */
    status (*take_on)(void *context, struct store *store, const char *directory);
    void *context;
    /* Of what is damaged in the place, which was taken as it is (whole_harm.h): makes the directory
     * one that opens as others do, as a start with --salvage would; `harm` is what was damaged, of
     * which tables' files may have been removed since. NULL: it is refused, and the
     * words end with `way_out`; so it is if there is `take_on`, and more is damaged than tables'
     * files: what it takes on is to be all that there was. That comes before, since it goes on with
     * the log of changes, which a salvage ends. */
    status (*salvage)(void *salvage_context, const char *directory, const struct whole_harm *harm);
    void *salvage_context;
    const char *way_out;
    void (*tell)(const char *path); /* see unfinished.h */
};

/* FAILED_PRECONDITION if there is something in the directory, or the backup is of a part of a
 * server; DATA_LOSS. Blocking. */
status whole_restore(const struct whole_restore *restore);

#endif
