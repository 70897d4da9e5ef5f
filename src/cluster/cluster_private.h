/* A cluster's insides, for the files of cluster/.
 *
 * Locks, in the order in which they may be taken (docs/internals/threads.md):
 *   admin        one administrative change, split or merge at a time; held across catalog writes
 *   index_lock   the array of tables; held for a search or a move of pointers
 *   map_lock     of one table, see table.h
 *   doomed_lock  the list of deleted tables */
#ifndef TRESTLE_CLUSTER_CLUSTER_PRIVATE_H
#define TRESTLE_CLUSTER_CLUSTER_PRIVATE_H

#include <pthread.h>

#include "base/metrics.h"
#include "cluster/disk_reserve.h"
#include "cluster/heat.h"
#include "cluster/maintenance.h"
#include "cluster/settle.h"
#include "cluster/table.h"
#include "tablet/commit.h"
#include "tablet/row_locks.h"

struct cluster {
    uint32_t magic;
    struct cluster_options options;
    struct store *store;
    struct keyspace *catalog;
    struct commit_queue *commits;
    struct tokens *tokens;
    struct row_locks *locks;
    struct disk_reserve reserve;
    struct care *care;
    struct mender *mender;
    struct heat *heat;
    struct maintenance *maintenance;
    struct cluster_settling settling;

    pthread_rwlock_t index_lock;
    struct table **tables; /* by name; each entry holds a reference */
    size_t table_count;
    size_t table_capacity;

    pthread_mutex_t admin;
    uint64_t next_id; /* guarded by admin */
    uint64_t *spares; /* ids of keyspaces that wait for a table; guarded by admin */
    size_t spare_count;
    size_t spare_capacity;

    pthread_mutex_t doomed_lock;
    struct list doomed; /* deleted tables that nobody holds any more */
    /* Those whose keyspaces could not be dropped: folds in the background look at their rules until
     * the store is closed. Maintenance's, and then the closing thread's. */
    struct list undropped;
};

#define CLUSTER_MAGIC 0x636c7573u

/* Called with the last reference to a table gone: frees it, or, if it was deleted, leaves it to
 * maintenance, since dropping keyspaces blocks. Any thread. */
void cluster_bury_table(struct cluster *cluster, struct table *table);

/* Drops the keyspaces of deleted tables that nobody holds any more. Blocks. */
void cluster_drop_doomed(struct cluster *cluster);

/* Keeps some keyspaces in reserve, since making many at once costs little more than making one.
 * Called with admin held. */
status cluster_add_spares(struct cluster *cluster, size_t count);
status cluster_remember_spare(struct cluster *cluster, uint64_t id); /* one that exists already */
status cluster_take_spare(struct cluster *cluster, struct keyspace **out);

/* cluster_create_table with rows in it: in a keyspace that was imported for it, and is gone after a
 * failure. */
status cluster_create_table_from(struct cluster *cluster, const struct table_spec *spec,
                                 struct keyspace *keyspace, struct table **out);

/* The table at or after the name, retained; NULL if there is none. For walks over all tables:
 * pass each table's name followed by a zero byte to get the next. */
struct table *cluster_table_from(struct cluster *cluster, bytes name);

#endif
