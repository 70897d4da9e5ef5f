/* Writes of rows that another cluster took first: with the version that it gave them, which may be
 * older than what the row has seen (tablet/foreign_change.h). */
#ifndef TRESTLE_CLUSTER_FOREIGN_ROWS_H
#define TRESTLE_CLUSTER_FOREIGN_ROWS_H

#include "cluster/cluster.h"
#include "row/fragment.h"
#include "tablet/commit.h"
#include "tablet/foreign_change.h"

struct foreign_write {
    /* set by the caller */
    struct table *table;
    bytes row_key;
    struct packed_change *change;
    uint64_t version;
    bool is_lazy; /* it need not be durable before a synced commit behind it is */
    /* private */
    struct commit commit;
    struct foreign_change foreign;
    bool is_done;
};

/* Writes the change, of that version, and waits until it is durable. Versions from now on are
 * greater. Written twice it counts once, except for adds below row_rules.tombstones_from. The
 * change stays the caller's. Blocks, also for the row's lock: call it on threads that no holder of
 * a row lock waits for. */
status foreign_row_write(struct table *table, bytes row_key, struct packed_change *change,
                         uint64_t version);

/* The same of several, of which some may be of one row: they enter the commit queue together, as
 * far as their rows' locks are free, and have their order in any case. After a failure any of them
 * may have been written. */
status foreign_rows_write(struct foreign_write *writes, size_t count);

/* Drops the rows of [from, to), an empty `to` is no bound, as of that version: what is newer of
 * them stays. Dropped twice they are dropped once. UNAVAILABLE as table_drop_rows. Blocks. */
status foreign_rows_drop(struct table *table, bytes from, bytes to, uint64_t version);

/* Deletes all rows here, whatever their versions, and in no other cluster: those of a table that is
 * to be copied anew, or is another cluster's from now on. Views of it begin anew; a change stream
 * is told nothing, nor is the origin feed. What was dropped stays dropped. Blocks, and so does
 * every write meanwhile. */
status table_clear(struct table *table);

#endif
