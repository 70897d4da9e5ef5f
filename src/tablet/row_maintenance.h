/* Looking after single rows: keeps records small and reads cheap.
 *
 *     overflow  a record past the threshold: its cells move to records of their own
 *     purge     tombstones that cover overflow cells: those cells are deleted
 *     collect   cells of a row with overflow cells, which rules that count versions condemn: they
 *               are deleted
 *     replace   operands that pile up: a put of what they fold to
 *
 * None of them changes what a reader sees, except what the rules condemn. Each holds the row's
 * lock from its read until its write is acknowledged, so no change can fall in between; if the row
 * is dropped meanwhile, the write is not done. As long as something of a dropped row may be there
 * nothing is collected: it would be counted. A record that has something of it is left alone: what
 * is stored anew, or overflowed, might come after all that is older than the drop is thought to be
 * gone. */
#ifndef TRESTLE_TABLET_ROW_MAINTENANCE_H
#define TRESTLE_TABLET_ROW_MAINTENANCE_H

#include "row/fold.h"
#include "tablet/commit.h"
#include "tablet/overflow.h"
#include "tablet/row_locks.h"

struct row_maintenance {
    struct table *table; /* of row_maintenance_collect's commit; with `tablet` */
    struct tablet *tablet;
    struct keyspace *keyspace;
    bytes row_key;
    uint64_t row_hash;
    struct row_locks *locks;
    struct commit_queue *commits;
    uint64_t overflow_bytes;
    const struct row_rules *rules; /* NULL: nothing is collected */
    struct row_drops *drops;       /* the table's; NULL: no row is dropped */
    uint64_t read_as_of;           /* private: of what was read */
    uint64_t dropped;              /* private: what is older is not there; 0: all is */
    /* The place from where to collect, which is moved on; with is_long set, for rows at rest,
     * nothing is replaced except what had overflowed. NULL: the row's first columns. */
    struct overflow_place *place;
};

/* Deletes what the schema of `rules` condemns, from `place` on, some thousand cells at a time, by a
 * commit of kind COMMIT_COLLECT: for a table whose deletions are recorded, on behalf of which
 * row_maintenance_run has rules that condemn nothing. After that has been run. `*collected`: there
 * was something. With the row's lock held, which stays held. Blocks. */
status row_maintenance_collect(const struct row_maintenance *maintenance, bool *collected);

struct row_maintenance_report {
    bool overflow;
    bool purged;
    bool collected;
    bool replaced;
};

/* Does what the row needs, and replaces its operands, which hold what was overflowed, too. With the
 * row's lock held, which stays held. Blocks. */
status row_maintenance_run(const struct row_maintenance *maintenance,
                           struct row_maintenance_report *report);

/* Takes out of the record what it has in place of overflow cells that are lost, those whose keys
 * lie in [from, to): overflow.h. With the row's lock held. Blocks. */
status row_maintenance_cut_lost(const struct row_maintenance *maintenance, bytes from, bytes to);

#endif
