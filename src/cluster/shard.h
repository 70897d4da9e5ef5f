/* A shard: one store, and all that belongs to it alone. What is known of several of them, tables
 * and where their rows are, is the cluster's (cluster_private.h). Private to cluster/.
 *
 * Invariants
 *  1. A row lies in one shard, its tablet's (tablet.h), and so do its lock, its token, its place in
 *     the order of commits and what is remembered of its damage: nothing of another shard is needed
 *     to read or write it.
 *  2. What a store remembers of itself, for its next start, is in the keyspace `system` of that
 *     store: the ceilings of its versions and sequences, tokens, damage, preallocated and unclaimed
 *     keyspaces, its change log (catalog.h has the keys). In the home, and only there, the same
 *     keyspace has the catalog, too: `catalog` of struct cluster.
 *  3. A shard is fenced, full or damaged by itself. What is the matter with it is a part of the
 *     server's condition, which has the worst of all shards' levels (base/condition.h).
 *
 *  4. The catalog's records are commits of the home. What follows from a change of structure in
 *     another shard comes after that, at a place of that shard's queue (shard_apply): so each write
 *     is before or after it in the order of its own shard. A new table, and a new schema, have a
 *     place in the home's alone.
 *  5. The versions' clocks of all shards begin a start at the time of the one that is most ahead,
 *     and go on alike.
 *
 * What needs one store is refused in words if there are several: archives, checkpoints and with
 * them whole backups, --salvage; and a directory that has another number of shards
 * (shard_directories.h). Rows that change together lie in one (row_group.h).
 *
 * The parts begin in the order of the functions below, and end in the opposite one; a shard that
 * has begun only some of them may be ended all the same. */
#ifndef TRESTLE_CLUSTER_SHARD_H
#define TRESTLE_CLUSTER_SHARD_H

#include <pthread.h>
#include <stdatomic.h>

#include "archive/archiver.h"
#include "cluster/damage.h"
#include "cluster/data_directory.h"
#include "cluster/disk_reserve.h"
#include "cluster/idle_compaction.h"
#include "cluster/origin/origin_state.h"
#include "cluster/scrub.h"
#include "cluster/stream/telling.h"
#include "tablet/change_log.h"
#include "tablet/commit.h"
#include "tablet/commit_observer.h"
#include "tablet/row_locks.h"

struct row_jobs;
struct cluster;
struct row_rewriter;

struct shard {
    uint32_t magic;
    struct cluster *cluster;
    unsigned number;    /* 0: the home */
    struct buffer path; /* a string: its directory */
    struct store *store;
    struct keyspace *system;
    struct condition *condition; /* a part of the server's */
    pthread_mutex_t looking;     /* at the store, so that what is noted last is what is so */
    struct data_directory place;
    struct disk_reserve reserve;
    struct damages *damages;
    struct { /* with every row lock held; record NULL: nothing is */
        const struct damage_record *record;
        bool is_dropped; /* rows of it, since that began */
    } refilling;

    struct commit_queue *commits;
    struct commit_observer *observers; /* the queue's: ours, then those of the options */
    size_t observer_count;
    struct row_locks *locks;
    struct tokens *tokens;
    struct row_jobs *row_jobs;
    struct row_rewriter *row_rewriter;
    struct scrub *scrub;
    struct shard_idleness idleness; /* maintenance's */

    struct stream_log *streams; /* what change streams tell of its rows */
    struct origin_feed origin;  /* what other clusters are to be told of them */
    struct told_batch told;     /* the commit thread's: rows that they tell before their turn */
    struct change_log *log;     /* NULL: none is kept */
    uint64_t log_keyspace;      /* its id; 0: none */
    struct archiver *archiver;  /* NULL without a log */
    struct buffer archive_path; /* a string: where files wait to be archived */
    atomic_uint taking_files;   /* see kept_files.h, adding */

    uint64_t
        *preallocated; /* ids of keyspaces that wait for a table; guarded by the cluster's admin */
    size_t preallocated_count;
    size_t preallocated_capacity;
    uint64_t *unclaimed; /* ids of keyspaces whose tables were lost (salvage.h); since the start */
    size_t unclaimed_count;
    char *lost_records; /* what the catalog had lost, at this start; NULL: nothing */
};

#define SHARD_MAGIC 0x73686172u

/* --- its beginning and its end --- */

/* A shard without a store. */
status shard_create(struct cluster *cluster, unsigned number, struct shard **out);

/* Opens its store, with a keyspace `system`: the home's in the data directory, another's in a
 * directory of that. */
status shard_open_store(struct shard *shard);

/* Takes commits, once the catalog has been read: with row locks, tokens, row maintenance. */
status shard_start(struct shard *shard);
status shard_start_scrub(struct shard *shard);

/* Nothing begins in it by itself any more, but what maintenance begins. */
void shard_rest(struct shard *shard);
/* Finishes what was submitted. Called after the last request, and after maintenance and row_jobs
 * have ended. */
void shard_stop(struct shard *shard);
/* The keyspaces of tables may be dropped up to here. */
void shard_close_store(struct shard *shard);
void shard_destroy(struct shard *shard); /* NULL is fine */

/* --- what is asked of it --- */

/* All commits up to this sequence are in the store, and in the log of change streams: also those
 * that are just being acknowledged. Any thread. */
uint64_t shard_logged(const struct shard *shard);
/* A position in that log behind all that was submitted before: what is committed from now on is
 * behind it, too. Waits for the queue. */
status shard_log_end(struct shard *shard, struct stream_position *out);

/* Looks at it again, and notes what is the matter with it. May wait for the disk. Any thread. */
void shard_look(struct shard *shard);

/* Sets the metrics of all shards' stores and queues, added up or the worst of them. May wait for
 * the disk. */
void shards_measure(struct cluster *cluster);

/* How much their stores' caches may have, together. */
void shards_limit_cache(struct cluster *cluster, uint64_t bytes);
uint64_t shards_growth(struct cluster *cluster);

struct catalog_change;

/* Does in this shard what follows in memory from a change of structure (`apply`), whose records are
 * durable in the home: as a commit of that kind at a place of its own. It cannot fail: a shard that
 * takes no commits any more does it between two batches, and its observers do not hear of it.
 * Blocks. */
void shard_apply(struct shard *shard, enum commit_kind kind, const struct catalog_change *change);

/* --- preallocated.c: keyspaces in reserve, since making many at once costs little more than making
 * one. With the cluster's admin held --- */

status shard_add_preallocated(struct shard *shard, size_t count);
status shard_remember_preallocated(struct shard *shard, uint64_t id); /* one that exists already */
status shard_take_preallocated(struct shard *shard, struct keyspace **out);
/* Removes the record of one that was taken, where what names it then is in another store. */
status shard_forget_preallocated(struct shard *shard, struct keyspace *keyspace);

/* --- drop_range.c, refill.c: rows that go --- */

struct foreign_table;
struct key_bounds;
struct table;

/* Deletes records and overflow cells between these bounds, as one change of all of them. `table`:
 * whose they are; NULL: only the keyspace is known. Blocks. */
status shard_delete_keys(struct shard *shard, struct table *table, struct keyspace *keyspace,
                         const struct key_bounds *records, const struct key_bounds *overflow);

/* Deletes the rows of the range, and puts there what the source has of them: refill.h. The range is
 * closed, and stays so; one at a time. UNAVAILABLE if rows of it were dropped meanwhile; after any
 * failure it is to be told again. Blocks. */
status refill_run(struct shard *shard, struct keyspace *keyspace,
                  const struct damage_record *record, const struct foreign_table *source);
/* Keys from `from` to `to` are dropped. With every row lock held. */
void refill_note_drop(struct shard *shard, const struct keyspace *keyspace, bytes from, bytes to);

/* --- event_log.c --- */

/* Before orphans are dropped: whether there is a log to go on with. Then, after: opens it, or
 * begins one, if one is to be kept. */
status event_log_look(struct shard *shard);
status event_log_open(struct shard *shard);
/* Once there is a queue: begins to archive. */
status event_log_start(struct shard *shard);
/* The number by which the archived stream is known; 0: nothing is archived. */
uint64_t event_log_stream(struct shard *shard);
/* Around the making of a keyspace of files, up to the commit that names it. */
void event_log_begin_taking(struct shard *shard);
void event_log_end_taking(struct shard *shard);
/* Within that, before the keyspace is made: the files are to be archived with it. Blocks. */
status event_log_keep_files(struct shard *shard, uint64_t keyspace, const char *const *paths,
                            size_t count);
/* After a keyspace has gone. Blocks. */
void event_log_note_drop(struct shard *shard, uint64_t keyspace);

#endif
