/* A cluster's insides, for the files of cluster/: the catalog, the tables, and which tablets there
 * are. What belongs to one store is its shard's (shard.h).
 *
 * Locks, in the order in which they may be taken (docs/internals/threads.md):
 *   usage.lock   of one table, see usage_store.h; held over a read of what is kept, so for threads
 *                that may block; that of usage_counts.h is a leaf, and never taken within it
 *   admin        one administrative change, split or merge at a time; held across catalog writes
 *   index_lock   the array of tables; held for a search or a move of pointers
 *   traffic.lock what is told of tables' traffic
 *   map_lock     of one table, see table.h
 *   lineage.lock of one table, see stream/lineage.h
 *   dropped_lock  the list of dropped tables
 *   looking      of a shard: whether its store takes writes; held for a look and a note */
#ifndef TRESTLE_CLUSTER_CLUSTER_PRIVATE_H
#define TRESTLE_CLUSTER_CLUSTER_PRIVATE_H

#include <pthread.h>

#include "base/metrics.h"
#include "cluster/catalog_txn.h"
#include "cluster/clock_watch.h"
#include "cluster/heat/heat.h"
#include "cluster/maintenance.h"
#include "cluster/origin/origin_applied.h"
#include "cluster/shard.h"
#include "cluster/table.h"
#include "tablet/event.h"

struct cluster {
    uint32_t magic;
    struct cluster_options options;
    atomic_uint number;          /* cluster_number */
    atomic_ullong family_ids;    /* cluster_set_family_ids: `from` in the high half; 0: any */
    struct condition *condition; /* of the whole server */
    struct pool *rows;           /* work under row locks: see row_jobs.h */
    struct shard *home;          /* the shard that keeps the catalog */
    struct shard **shards;       /* by their numbers: the home, then the others */
    size_t shard_count;          /* so many of them are there */
    struct keyspace *catalog;    /* its keyspace `system` */
    struct heat *heat;
    atomic_bool usage_is_to_sweep; /* tables have gone: usage_store.h */
    struct maintenance *maintenance;
    struct cluster_traffic traffic;
    struct clock_watch clock_watch; /* only maintenance touches this */

    pthread_rwlock_t index_lock;
    struct table **tables; /* by name; each entry holds a reference */
    size_t table_count;
    size_t table_capacity;

    pthread_mutex_t admin;
    struct table **kept; /* see deletions.h: by falling age; each holds a reference; with admin */
    size_t kept_count;
    size_t kept_capacity;
    int64_t kept_cut_us;   /* when some last went since space was short; 0: never */
    int64_t kept_sized_us; /* when they were last measured; 0: not since the list changed */
    uint64_t next_id;      /* guarded by admin, as the next */
    unsigned next_shard;   /* whose turn it is to have a new table's first tablet */

    pthread_mutex_t dropped_lock;
    struct list dropped; /* dropped tables that nobody holds any more */
    /* Those whose keyspaces could not be dropped: folds in the background look at their rules until
     * the store is closed. */
    struct list undropped;

    /* As in row_rules, for all tables: from the options, until other clusters are followed. */
    _Atomic(uint64_t) tombstones_from;
    struct origins origins; /* what of others has been applied: origin/origin_applied.h */
};

#define CLUSTER_MAGIC 0x636c7573u

/* NOT_FOUND `Not found: <name>`. */
status cluster_not_found(bytes name);

/* cluster_write_catalog, as a commit of that kind (commit_write). For what frees no space: what
 * does calls commit_write itself. */
status cluster_write_change(struct cluster *cluster, enum commit_kind kind,
                            struct store_batch *batch, const struct catalog_change *change);

/* Versions of all shards are from now on greater than this one (commit_raise_version). Blocks. */
status cluster_raise_version(struct cluster *cluster, uint64_t version);

/* Whether a table may get the name: ALREADY_EXISTS, or RESOURCE_EXHAUSTED if its instance has too
 * many. With admin held. */
status cluster_check_is_new(struct cluster *cluster, const char *name);

/* cluster_create_table with admin held. */
status cluster_create_locked(struct cluster *cluster, const struct table_spec *spec,
                             struct table **out);
/* Records whether views read the table, which stands; with admin held. Of a table that is to be
 * viewed the log of changes has a segment then. Blocks. */
status cluster_set_viewed(struct table *table, bool is_viewed);

/* The batch of what others have begun, or one of our own; NULL without memory. Done with, our own
 * is freed. */
struct store_batch *cluster_batch_with(struct catalog_txn *txn);
void cluster_batch_done(struct store_batch *batch, const struct catalog_txn *txn);

/* Called with the last reference to a table gone: frees it, or, if it is dropped, leaves it to
 * maintenance, since dropping keyspaces blocks. Any thread. */
void cluster_free_table_deferred(struct cluster *cluster, struct table *table);

/* Whether there are dropped tables that nobody holds any more. */
bool cluster_has_doomed(struct cluster *cluster);
/* Drops the keyspaces of one of them; false: there was none. Blocks. */
bool cluster_drop_next_doomed(struct cluster *cluster);
void cluster_reclaim_dropped(struct cluster *cluster); /* of all of them */

/* The files that a keyspace was made of, for the change log; and what is missing in them, which is
 * out of service. */
struct taken_files {
    uint64_t keyspace;
    const struct event_file *files;
    size_t count;
    const struct damage_record *damages; /* of this keyspace: damages_adopt */
    size_t damage_count;
};

/* cluster_create_table with rows in it: in a keyspace that was imported for it, and is gone after a
 * failure. */
status cluster_create_table_from(struct cluster *cluster, const struct table_spec *spec,
                                 struct keyspace *keyspace, struct taken_files *files,
                                 struct table **out);

/* The table at or after the name, retained; NULL if there is none. For walks over all tables:
 * pass each table's name followed by a zero byte to get the next. */
struct table *cluster_table_from(struct cluster *cluster, bytes name);

#endif
