/* A cluster's insides, for the files of cluster/.
 *
 * Locks, in the order in which they may be taken (docs/internals/threads.md):
 *   usage.lock   of one table, see usage_store.h; held over a read of what is kept, so for threads
 *                that may block; that of usage_counts.h is taken within it by nobody, and is a leaf
 *   admin        one administrative change, split or merge at a time; held across catalog writes
 *   index_lock   the array of tables; held for a search or a move of pointers
 *   traffic.lock what is told of tables' traffic
 *   map_lock     of one table, see table.h
 *   doomed_lock  the list of doomed tables
 *   looking      whether the store takes writes; held for a look and a note */
#ifndef TRESTLE_CLUSTER_CLUSTER_PRIVATE_H
#define TRESTLE_CLUSTER_CLUSTER_PRIVATE_H

#include <pthread.h>

#include "archive/archiver.h"
#include "base/metrics.h"
#include "cluster/catalog_txn.h"
#include "cluster/clock_watch.h"
#include "cluster/damage.h"
#include "cluster/data_directory.h"
#include "cluster/disk_reserve.h"
#include "cluster/heat.h"
#include "cluster/maintenance.h"
#include "cluster/scrub.h"
#include "cluster/settle.h"
#include "cluster/table.h"
#include "tablet/change_log.h"
#include "tablet/commit_observer.h"
#include "tablet/event.h"
#include "tablet/row_locks.h"

struct cluster {
    uint32_t magic;
    struct cluster_options options;
    struct store *store;
    struct keyspace *catalog;
    struct commit_queue *commits;
    struct commit_observer *observers; /* the queue's: ours, then those of the options */
    size_t observer_count;
    struct change_log *log;     /* NULL: none is kept */
    uint64_t log_keyspace;      /* its id; 0: none */
    struct archiver *archiver;  /* NULL without a log */
    struct buffer archive_path; /* a string: where files wait to be archived */
    atomic_uint taking_files;   /* see kept_files.h, adding */
    struct tokens *tokens;
    struct row_locks *locks;
    struct data_directory place;
    struct disk_reserve reserve;
    struct condition *condition;
    struct damages *damages;
    struct { /* with every row lock held; record NULL: nothing is */
        const struct damage_record *record;
        bool is_dropped; /* rows of it, since that began */
    } refilling;
    struct scrub *scrub;
    pthread_mutex_t looking; /* at the store, so that what is noted last is what is so */
    struct care *care;
    struct mender *mender;
    struct heat *heat;
    atomic_bool usage_is_to_sweep; /* tables have gone: usage_store.h */
    struct maintenance *maintenance;
    struct cluster_settling settling;
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
    uint64_t next_id;      /* guarded by admin */
    uint64_t *spares;      /* ids of keyspaces that wait for a table; guarded by admin */
    size_t spare_count;
    size_t spare_capacity;
    uint64_t *unclaimed; /* ids of keyspaces whose tables were lost (salvage.h); since the start */
    size_t unclaimed_count;
    char *lost_records; /* what the catalog had lost, at this start; NULL: nothing */

    pthread_mutex_t doomed_lock;
    struct list doomed; /* doomed tables that nobody holds any more */
    /* Those whose keyspaces could not be dropped: folds in the background look at their rules until
     * the store is closed. Maintenance's, and then the closing thread's. */
    struct list undropped;
};

#define CLUSTER_MAGIC 0x636c7573u

struct key_bounds;

/* Deletes records and spilled cells between these bounds, as one change of all of them. `table`:
 * whose they are; NULL: only the keyspace is known. Blocks. */
status cluster_delete_keys(struct cluster *cluster, struct table *table, struct keyspace *keyspace,
                           const struct key_bounds *records, const struct key_bounds *spilled);

/* --- refill.c --- */

struct foreign_table;

/* Deletes the rows of the range, and puts there what the source has of them: refill.h. The range is
 * closed, and stays so; one at a time. UNAVAILABLE if rows of it were dropped meanwhile; after any
 * failure it is to be told again. Blocks. */
status refill_run(struct cluster *cluster, struct keyspace *keyspace,
                  const struct damage_record *record, const struct foreign_table *source);
/* Keys from `from` to `to` are dropped. With every row lock held. */
void refill_note_drop(struct cluster *cluster, const struct keyspace *keyspace, bytes from,
                      bytes to);

/* NOT_FOUND `Not found: <name>`. */
status cluster_not_found(bytes name);

/* --- event_log.c --- */

/* Before orphans are dropped: whether there is a log to go on with. Then, after: opens it, or
 * begins one, if one is to be kept. */
status event_log_look(struct cluster *cluster);
status event_log_open(struct cluster *cluster);
/* Once there is a queue: begins to archive. */
status event_log_start(struct cluster *cluster);
/* What is archived is known by; 0: nothing is. */
uint64_t event_log_stream(struct cluster *cluster);
/* Around the making of a keyspace of files, up to the commit that names it. */
void event_log_begin_taking(struct cluster *cluster);
void event_log_end_taking(struct cluster *cluster);
/* Within that, before the keyspace is made: the files are to be archived with it. Blocks. */
status event_log_keep_files(struct cluster *cluster, uint64_t keyspace, const char *const *paths,
                            size_t count);
/* After a keyspace has gone. Blocks. */
void event_log_note_drop(struct cluster *cluster, uint64_t keyspace);

/* cluster_write_catalog, as a commit of that kind (commit_write). For what frees no space: what
 * does calls commit_write itself. */
status cluster_write_change(struct cluster *cluster, enum commit_kind kind,
                            struct store_batch *batch, const struct catalog_change *change);

/* Whether a table may get the name: ALREADY_EXISTS, or RESOURCE_EXHAUSTED if its instance has too
 * many. With admin held. */
status cluster_check_is_new(struct cluster *cluster, const char *name);

/* The batch of what others have begun, or one of our own; NULL without memory. Done with, our own
 * is freed. */
struct store_batch *cluster_batch_with(struct catalog_txn *also);
void cluster_batch_done(struct store_batch *batch, const struct catalog_txn *also);

/* Called with the last reference to a table gone: frees it, or, if it is doomed, leaves it to
 * maintenance, since dropping keyspaces blocks. Any thread. */
void cluster_bury_table(struct cluster *cluster, struct table *table);

/* Drops the keyspaces of doomed tables that nobody holds any more. Blocks. */
void cluster_drop_doomed(struct cluster *cluster);

/* Keeps some keyspaces in reserve, since making many at once costs little more than making one.
 * Called with admin held. */
status cluster_add_spares(struct cluster *cluster, size_t count);
status cluster_remember_spare(struct cluster *cluster, uint64_t id); /* one that exists already */
status cluster_take_spare(struct cluster *cluster, struct keyspace **out);

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
