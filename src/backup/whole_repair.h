/* A repair that takes the rows that it gives up from a whole backup: which backup will do for a
 * table, and what is told of each range before it is given up. cluster/refill.h fills it.
 *
 * One thread at a time; all of it blocks. */
#ifndef TRESTLE_BACKUP_WHOLE_REPAIR_H
#define TRESTLE_BACKUP_WHOLE_REPAIR_H

#include "backup/whole.h"
#include "cluster/backup/backup_foreign.h"
#include "cluster/cluster.h"

struct whole_repair;

/* See whole_former_options. */
struct whole_repair_options {
    const char *directory;
    struct place *place;
    const char *name;
    const char *server;
    struct files *files;
    const char *scratch;
    struct whole_work *work;
};

struct whole_repair_table {
    const char *name;
    uint64_t id;
    uint64_t keyspace_id;
    const struct schema *schema; /* may lack names (cluster/refill.h); NULL: they are not wanted */
    /* Calls `visit` with each range of the table that is out of service. */
    status (*each)(void *context, status (*visit)(void *visitor, const struct lost_rows *lost),
                   void *visitor);
    void *context;
};

status whole_repair_create(const struct whole_repair_options *options, struct whole_repair **out);
void whole_repair_destroy(struct whole_repair *repair); /* NULL is fine */

/* Finds a backup from which all those ranges can be read; what was found for another table is let
 * go. `*source`: NULL if there are no such ranges; valid until the next call. Fails as
 * whole_former_open does, and with FAILED_PRECONDITION if the backup has another table of that
 * name. Without such ranges, of a table that wants names: one that has them, and no rows can be
 * read; NULL if there is none. */
status whole_repair_begin(struct whole_repair *repair, const struct whole_repair_table *table,
                          const struct foreign_table **source);

/* The same of a table of a cluster that is open; `names`: those alone are wanted, too. */
status whole_repair_begin_table(struct whole_repair *repair, struct table *table, bool names,
                                const struct foreign_table **source);
/* The name of the backup that has been found: whole_former_name. */
const char *whole_repair_name(const struct whole_repair *repair, int64_t *instant_us);

/* Whether a failure of whole_repair_begin says that no backup will do, for this table. */
bool whole_repair_is_refusal(status s);

/* Appends "the whole backup NAME, of DATE", or "the data directory DIR". */
void whole_repair_append_former(const struct whole_repair *repair, struct buffer *out);

/* Appends to the words of such a range what comes of it from where, and what does not; a string,
 * with its NUL. `*count`: how many rows come, or large cells; of these fewer, where their rows are
 * gone. Fails as whole_repair_begin does if it cannot be read. */
status whole_repair_describe(const struct whole_repair *repair, const struct lost_rows *lost,
                             struct buffer *out, uint64_t *count);

#endif
