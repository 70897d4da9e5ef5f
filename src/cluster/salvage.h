/* The catalog of a store whose log has lost something (`serve --salvage`), or that is old data
 * (store/store.h), or that has lost records of its own (lost_records.h).
 *
 * RocksDB has keyspaces in its manifest, which lost nothing, and the catalog says in the log what
 * they are for: the two may say different things now. Every catalog change was one batch, but some
 * batches in the middle may be missing. What follows from that is put right before the catalog is
 * loaded, which then finds it as it must be:
 *
 *  1. A keyspace that no record names may be a table's whose record was lost: it becomes an
 *     unclaimed one, which is dropped only on request (`trestle repair`), instead of what a crash
 *     left.
 *  2. So does one that a record says is preallocated, but that has rows: a table had taken it.
 *  3. A table whose keyspace is gone had been deleted, since keyspaces are dropped after that was
 *     recorded: its records go. So do tablets without a table, and preallocated keyspaces that are
 *     gone. Old data does not tell that: such a table stays, and is empty.
 *  4. A table whose tablets leave a hole or overlap gets one tablet for all its rows: they are all
 *     in one keyspace.
 *  5. The change log ends: a log with a hole is none, and what was archived may be lost here.
 *
 * Which of its own records a catalog has lost is not known, so besides
 *
 *  6. A table without any tablet was not deleted: which keyspace has its rows is lost. Its records
 *     go, since they say nothing of its rows, and it is named; so do those of a table that is not
 *     there.
 *  7. Every keyspace was named as one without a table before. What is one stays so, if it has
 *     rows.
 *  8. Without the counter ids go on so far behind all that are seen that none was given before.
 *     Without the ceiling versions begin at the wall clock, which had better be right. */
#ifndef TRESTLE_CLUSTER_SALVAGE_H
#define TRESTLE_CLUSTER_SALVAGE_H

#include "cluster/cluster_private.h"

/* Nothing, if the store has lost nothing. Before the catalog is loaded. */
status salvage_catalog(struct cluster *cluster);

/* Says on the condition, and in the log, what the start has found. Afterwards. */
void salvage_tell(struct cluster *cluster);

/* Whether a keyspace has anything that can be read, or cannot be read. */
status salvage_is_empty(struct keyspace *keyspace, bool *is_empty);

#endif
