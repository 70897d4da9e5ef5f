/* Rows of a range that is given up (damage.h), taken from another store that has the table as it
 * was: a whole backup's. What it has of them comes with the versions that it had; what it does not
 * have is gone.
 *
 * Of large cells whose rows are in service those come that counted then, to rows that have large
 * cells still. If nothing has been done with the row's large cells since, by the mark of its
 * record, that is exactly what was lost, and nothing else of the row changes. Else the record loses
 * what they may have replaced, as it does when they are given up; and those come, too, that were
 * in the record then and have been moved out of it since. */
#ifndef TRESTLE_CLUSTER_REFILL_H
#define TRESTLE_CLUSTER_REFILL_H

#include "cluster/backup/backup_foreign.h"

/* The keyspace of all rows of the table; no other table ever has it. */
uint64_t table_keyspace_id(struct table *table);

/* The table that is to get rows. */
struct refill_target {
    uint64_t id;
    uint64_t keyspace_id;
    const struct schema *schema; /* what it is now; NULL: not looked at */
};

/* OK, or FAILED_PRECONDITION unless the source is this very table as it was once: a later table of
 * that name has other rows. It is, too, if it has the keyspace, which no other ever gets: its
 * records were lost, and it was claimed (cmd/repair/repair_keyspaces.c). */
status refill_check(const struct foreign_table *source, const struct refill_target *target);

/* Whether a family is called by its number, f1, as all are of a table that was claimed, or there is
 * none. A user may have named a family so, too. */
bool refill_may_lack_names(const struct schema *schema);

/* Whether it is that table by its keyspace alone, since its records were lost and it was claimed,
 * and refill_name_families has something to give it. */
bool refill_names(const struct foreign_table *source, const struct refill_target *target);

/* Of a table that was claimed: its families, which are called by their numbers, get their names,
 * types and rules back, except rules that were set since; families without cells are made again.
 * Does nothing to other tables, or without a source. Blocking. */
status refill_name_families(struct table *table, const struct foreign_table *source);

/* How many of the rows from `from` to `to` (exclusive; empty: no bound) it has: reads them all,
 * with their large cells. DATA_LOSS if some cannot be read. Blocking. */
status refill_count(const struct foreign_table *source, bytes from, bytes to, uint64_t *rows);

/* How many large cells it has between two keys of OVERFLOW_SPACE: reads them all, and the records
 * of the rows from `first` to `last` (inclusive; empty: no bound). Fails and blocks likewise. */
struct refill_cells {
    bytes from;
    bytes to;
    bytes first;
    bytes last;
};
status refill_count_cells(const struct foreign_table *source, const struct refill_cells *cells,
                          uint64_t *count);

#endif
