/* Tables as the peers of a server have them, too: other clusters, with which it copies changes.
 *
 * All tables are shared but those that each cluster has for itself: the server's own and views'.
 *
 * Invariants
 *  1. A shared table has a *uid*, the same at all peers, and never another table's. Where a table
 *     was made it is the table's id and behind it the number that the cluster had then, in the five
 *     bits that such numbers take in versions: 0 without peers. What is not of number 0 is stored.
 *     Where that is the uid of a table that was a peer's, as in the restored directory of one, the
 *     highest bit is set besides.
 *  2. A family has the same id at all peers: what was changed is applied as it comes. So at a peer
 *     that follows, ids are given by the record of the one that leads, and by nothing else. And two
 *     that lead, one after the other or each for itself for a while, never give the same id: what a
 *     table gets of families after it was made has ids of a range that is the leader's and of the
 *     epoch in which it leads (shared_family_ids). Of two the range of the one whose list counts in
 *     the end is the later one. So an id that is not known, and not below all that a table had, is
 *     of a family that is to come; or one gave it and nobody else has heard of it: then it stays
 *     nobody else's, and what that one's clients have written there is of no family wherever it
 *     comes.
 *  3. What is shared of a table's description is its *record*: a trestle.catalog.Table, without
 *     what each cluster has for itself (its id, its generation, the life of its change stream,
 *     whether views read it, when it was deleted). Two peers have the same if these bytes are the
 *     same.
 *
 * Where its tablets begin is each peer's own matter once the table is there. */
#ifndef TRESTLE_CLUSTER_SHARED_TABLE_H
#define TRESTLE_CLUSTER_SHARED_TABLE_H

#include "cluster/cluster.h"

/* The range of a leader in its epoch, for cluster_set_family_ids: of the first epoch, in which
 * there is one leader, what comes after the ids that tables had before; of each later one 4,096 for
 * each number. Empty if there were too many epochs (32,768). */
void shared_family_ids(uint64_t epoch, unsigned leader, uint32_t *from, uint32_t *end);

/* 0: it is not shared. Cheap, any thread. */
uint64_t table_uid(const struct table *table);

/* What is to be stored of it, of a table that is made; 0: nothing. With the cluster's admin held.
 */
uint64_t shared_table_uid_to_keep(struct cluster *cluster, const struct table_spec *spec,
                                  uint64_t id);

/* The table that stands of that uid, with a reference; NOT_FOUND. A walk over all tables, which
 * waits for no disk. Any thread. */
status cluster_table_of_uid(struct cluster *cluster, uint64_t uid, struct table **out);

/* The one that is deleted and kept, to be brought back (cluster_undelete_table), with a reference;
 * NOT_FOUND. Only of those whose uid is stored: what a server kept before it had peers may have
 * the uid of a peer's table. */
status cluster_deleted_table_of_uid(struct cluster *cluster, uint64_t uid, struct table **out);

/* Appends its record. */
status shared_table_encode(struct table *table, struct buffer *out);

/* Where its tablets begin now, but for the first: in the arena. */
status shared_table_splits(struct table *table, struct arena *arena, bytes **keys, size_t *count);

/* A peer's table. */
struct shared_table {
    uint64_t uid; /* not 0 */
    const char *name;
    bytes record;
    const bytes *split_keys; /* rising, none empty: of one that is made */
    size_t split_count;
};

/* Makes it here, empty, with a reference. ALREADY_EXISTS; RESOURCE_EXHAUSTED as for any table;
 * DATA_LOSS, INVALID_ARGUMENT: the record is none. Blocks. */
status cluster_create_shared(struct cluster *cluster, const struct shared_table *shared,
                             struct catalog_txn *txn, struct table **out);

/* Changes the table to what the record says. If it is so, nothing is done, but `*is_changed` says.
 * Blocks. */
status table_follow_shared(struct table *table, bytes record, bool *is_changed);

/* Takes away what keeps a table from being deleted: its protection and its change stream. Blocks.
 */
status table_unprotect(struct table *table);

#endif
