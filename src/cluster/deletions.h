/* Deleting tables, keeping them for a while, bringing them back. Private to cluster/.
 *
 *                 DeleteTable            its time is over, space is short, too many
 *        stands ───────────────> kept ────────────────────────────────────────────> dropped
 *           ^                     │      are kept, its instance is deleted
 *           └─────────────────────┘
 *                UndeleteTable
 *
 * Without a window, and when its instance is deleted, a table that stands is dropped at once.
 *
 *  1. A table that is kept is not in the index: its name is free, and several may be kept of one
 *     name. Its records stand, with the time of its deletion in them; so do its id, its tablets and
 *     its keyspace, and with these its rows, their versions, its idempotency tokens. What the
 *     control plane had under its name is kept under its id (control/kept.c).
 *  2. Folds in the background go on by its rules, so that nothing that they condemn comes back with
 *     it. The pass of garbage collection leaves it alone, and comes when it stands again.
 *  3. A dropped table has no records. Its keyspace is dropped after its last reference is gone, by
 *     maintenance or else by the next start. */
#ifndef TRESTLE_CLUSTER_DELETIONS_H
#define TRESTLE_CLUSTER_DELETIONS_H

#include "base/status.h"

struct catalog_txn;
struct cluster;
struct table;

/* Takes what is deleted out of the array of tables, where the catalog's reading has put all: at
 * start. */
status deletions_load(struct cluster *cluster);

/* Drops them for good, in one commit; with admin held. They stand, or are kept. */
status deletions_drop(struct cluster *cluster, struct table *const *tables, size_t count,
                      struct catalog_txn *txn);

/* Drops the tables that are kept no longer, and measures the others. Blocks. */
void deletions_run(struct cluster *cluster);

#endif
