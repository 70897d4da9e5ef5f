/* A table, or an instance's tables, out of a whole backup, to be read: the backup's catalog and the
 * files of those tables are fetched into a directory, and opened there as a store that is only
 * read. The rest of the backup is left where it is. Rows that were out of service when the backup
 * was made cannot be read: its files may not show that they are missing.
 *
 * One thread at a time; all of it blocks. */
#ifndef TRESTLE_BACKUP_WHOLE_COPY_H
#define TRESTLE_BACKUP_WHOLE_COPY_H

#include "backup/whole.h"
#include "cluster/backup/backup_foreign.h"

struct whole_copy;

struct whole_copy_options {
    /* NULL: there is no backup; the directory is a data directory that no process has open. It is
     * read as it is, and stays. */
    struct place *place;
    const struct whole_backup *backup;
    struct files *files;
    /* Made for it, and removed by whole_copy_close; what a killed one has left there, which the
     * mark says (unfinished.h), is removed before. Its parent is there, with room for those tables.
     */
    const char *directory;
    /* A table's full name, or an instance's, which stands for all tables that are in it. One that
     * is deleted, and kept, is none. */
    const char *name;
    struct whole_work *work; /* of what is fetched */
    /* Rows that lie in files of the tables that are damaged in the place cannot be read: all others
     * can. Else it is refused, with `way_out`, which may be NULL, at the end of the words. */
    bool salvage;
    const char *way_out;
    bool only_records; /* of the tables: no row can be read */
};

/* NOT_FOUND if the backup has no such table, nor an instance of that name, which may have none;
 * FAILED_PRECONDITION if something in the directory is not ours; DATA_LOSS. */
status whole_copy_open(const struct whole_copy_options *options, struct whole_copy **out);
void whole_copy_close(struct whole_copy *copy); /* NULL is fine */

/* The tables, by rising id; keyspaces and all else as long as the copy is open. A keyspace reads
 * (store_cursor_create, store_get) as it was at the backup's instant. */
const struct foreign_table *whole_copy_tables(const struct whole_copy *copy, size_t *count);

/* The catalog, with the records of all that the backup has. */
struct keyspace *whole_copy_catalog(const struct whole_copy *copy);

#endif
