/* The data of one server: its store, catalog, tables and their tablets. What the services call.
 *
 * Administrative functions block (they wait for commits): call them on pool threads. Those on rows
 * never block: they finish by a callback. */
#ifndef TRESTLE_CLUSTER_CLUSTER_H
#define TRESTLE_CLUSTER_CLUSTER_H

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "os/pool.h"
#include "row/schema.h"
#include "store/store.h"

struct catalog_txn;
struct cluster;
struct table;
struct commit_observer;
struct condition;
struct metrics;
struct place;
struct archive_base;

struct cluster_options {
    const char *data_directory;
    bool salvage; /* opens it without what the log has lost; or old data, see store/store.h */
    bool accepts_old_data; /* as in store_options */
    /* What damage may have taken from the catalog is given up: lost_records.h. */
    bool accepts_lost_records;
    const struct log *log;
    struct clock *clock;
    struct metrics *metrics; /* may be NULL */
    struct pool *pool;       /* for maintenance and for reads that miss the cache */
    enum store_durability durability;
    uint64_t cache_bytes;
    uint64_t write_buffer_bytes;
    uint64_t commit_queue_bytes; /* mutations that may wait; 0: LIMIT_COMMIT_QUEUE_BYTES */
    int open_files;              /* file descriptors that the store's tables may take */
    int background_threads;      /* for flushes and compactions */
    uint64_t disk_reserve_bytes; /* free space under which writes are refused */
    uint64_t overflow_bytes; /* size of a record over which its cells get records of their own */
    uint64_t split_bytes;    /* size of a tablet over which it splits */
    uint64_t split_rows_per_second; /* load over which it splits */
    int64_t merge_after_us;         /* how long two small neighbours must be idle to merge */
    bool balance;                   /* whether tablets split and merge by themselves */
    bool gc_on_read;
    int64_t gc_interval_us;     /* between background passes over a table */
    bool heat;                  /* whether requests are counted by ranges of keys */
    int64_t heat_window_us;     /* that they are counted for */
    int64_t undelete_window_us; /* how long a deleted table is kept; 0: not at all */
    uint64_t change_log_bytes;  /* what change streams may keep; 0: no bound */
    bool maintenance_by_hand;   /* none by itself: a test says when (maintenance_run_once) */
    uint64_t piece_bytes;       /* a piece of maintenance, for tests; 0: 64 MiB */
    unsigned shards;            /* stores that tables may lie in; 0: one. See cluster/shard.h */
    bool spreads_tablets;    /* of new tables over the shards, in turn, where no shard is given */
    int64_t scrub_period_us; /* between two looks at each table file; 0: none is taken */
    void (*on_large_work)(void *context, enum store_large_work what); /* as in store_options, */
    uint64_t large_value_bytes;                                       /* and this */
    uint64_t large_commit_bytes;
    void *large_work_context;
    uint64_t tombstones_from; /* as in row_rules (row/fold.h), for all tables */
    unsigned number; /* of the cluster, which its versions name: less than VERSION_CLUSTERS */
    /* Besides our own; outlive the cluster. Called on each shard's commit thread. */
    const struct commit_observer *observers;
    size_t observer_count;
    struct {
        struct place *place; /* outlives the cluster; NULL: no archive is made */
        uint64_t buffer_bytes;
        bool has_no_thread; /* a test steps */
        int64_t retention_us;
        status (*look_for)(const char *place, const char *name, bool *is_there); /* archiver.h */
    } archive;
};

/* Opens the directory, repairs what a crash left half done (keyspaces without table, dropped
 * tables), starts the commit thread and maintenance. */
status cluster_open(const struct cluster_options *options, struct cluster **out);
/* For an orderly end, before cluster_close: makes again the files that the next start needs and
 * that were removed. DATA_LOSS names those that cannot be made. */
status cluster_await_files(struct cluster *cluster);

/* Finishes what was submitted, then closes. No table may be held any more. */
void cluster_close(struct cluster *cluster);

/* Words on a cluster whose list of tables was lost, so that all tables that there are are opened
 * instead ("old data" in store/store.h); NULL: it was not lost. */
const char *cluster_old_data(struct cluster *cluster);
/* Refuses all later changes of a cluster of old data: FAILED_PRECONDITION, and the condition says
 * why. Does nothing to other clusters. */
void cluster_seal_old_data(struct cluster *cluster);
/* That refusal, for what is changed beside the store: backups are neither made of it nor deleted,
 * and no archive is. */
status cluster_check_true(struct cluster *cluster);

/* From now on versions name that cluster, instead of the options' number: less than
 * VERSION_CLUSTERS. Any thread. */
void cluster_set_number(struct cluster *cluster, unsigned number);
unsigned cluster_number(const struct cluster *cluster);

/* What tables get of families from now on has ids from that one on, below the other, and still
 * above all that the table had (shared_table.h). Any thread. */
void cluster_set_family_ids(struct cluster *cluster, uint32_t from, uint32_t end);

struct pool *cluster_pool(struct cluster *cluster);
struct clock *cluster_clock(struct cluster *cluster);

/* Two clocks, which agree unless the wall clock was set back (docs/internals/clocks.md):
 *
 * What time it is. By it ages are judged: what has expired, what a rule condemns, how long
 * something is kept. It may go back. */
int64_t cluster_wall_us(struct cluster *cluster);
/* A time for what goes into the store and must be later than all that went before: the times of
 * cells that the server sets, Datastore's commit times. See commit_version_us. */
int64_t cluster_version_us(struct cluster *cluster);

/* What is the matter with the server; what the cluster knows of is looked at again: the store, the
 * disk's reserve, the clock. May wait for the disk. Any thread. */
struct condition *cluster_condition(struct cluster *cluster);

/* A whole backup has been made that has all up to this version: the archive goes on from there.
 * Does nothing without an archive. Blocks. */
status cluster_note_whole_backup(struct cluster *cluster, const struct archive_base *base);

/* How much waits to be committed: 0 to 1, where writes are refused. */
double cluster_write_load(struct cluster *cluster);

/* How much the caches of blocks may have from now on, together, instead of `cache_bytes` of the
 * options: what they have beyond goes. Any thread. */
void cluster_limit_cache(struct cluster *cluster, uint64_t bytes);

/* By how much these, and write buffers, may still grow, bytes. Cheap; any thread. */
uint64_t cluster_growth(struct cluster *cluster);

/* Sets the metrics of what is asked for rather than counted. May wait for the disk. */
void cluster_measure(struct cluster *cluster);

/* --- records that others keep beside the catalog's, in its keyspace (catalog.h lists the keys) ---
 *
 * Functions below that change tables take a transaction of such records, `txn`: it is written as a
 * whole with what they write themselves, or not at all, and must not be used again. NULL: nothing
 * else. */

/* To be passed on: see catalog_txn.h. */
struct keyspace *cluster_catalog(struct cluster *cluster);

/* Writes such records, synced; refuses when the disk is short of space. */
status cluster_write_catalog(struct cluster *cluster, struct catalog_txn *txn);
/* The same where records only go, which is how an operator makes space: never refused. */
status cluster_write_removal(struct cluster *cluster, struct catalog_txn *txn);

/* --- tables --- */

/* Full names: projects/P/instances/I/tables/T. The services check their form. What the server keeps
 * for itself is in tables of this prefix: no API lists them, no metric and no heat counts them. */
#define CLUSTER_OWN_TABLES "system/"

/* What is known of a table, as the catalog has it. */
struct table_info {
    const char *name;
    const struct schema *schema;
    bool deletion_protection;
    /* Serialised google.bigtable.admin.v2.Table with the fields that the cluster itself does not
     * use (row_key_schema, …), as the services last stored them. */
    bytes extra;
    uint64_t generation; /* rises with each change: an etag */
    /* How long its change stream keeps what happened, microseconds; 0: it has none. */
    int64_t stream_retention_us;
};

/* The table by its name, with a reference that keeps it usable, also if it is deleted meanwhile.
 * NOT_FOUND `Not found: <name>`. Cheap, any thread. */
status cluster_table(struct cluster *cluster, bytes name, struct table **out);
/* The same by its id; looks at all tables. */
status cluster_table_of_id(struct cluster *cluster, uint64_t id, struct table **out);
void table_retain(struct table *table);
void table_release(struct table *table);

const char *table_name(const struct table *table);
/* Never given to another table. */
uint64_t table_id(const struct table *table);
/* The newest schema; stays valid as long as the table is held. */
const struct schema *table_schema(const struct table *table);
struct cluster *table_cluster(const struct table *table);
/* Whether it has a change stream now: what is asked for is to be listed then (row/change_list.h).
 * Cheap, any thread. */
bool table_has_stream(const struct table *table);
/* Whether all of its rows may change together: row_group.h. */
bool table_is_in_one_shard(const struct table *table);
/* Copies into the arena, at one instant. */
status table_describe(struct table *table, struct arena *arena, struct table_info *out);

struct table_spec {
    const char *name;
    const struct schema *schema; /* copied */
    bool deletion_protection;
    /* Cells that the rules condemn are deleted by commits, which observers see, and by nothing else
     * (docs/internals/deletions.md). It stays so; a table with a change stream has it in any case.
     */
    bool records_deletions;
    /* How long its change stream keeps what happened, microseconds; 0: it has none. */
    int64_t stream_retention_us;
    bytes extra;
    const bytes *split_keys; /* rising, none empty */
    size_t split_count;
    /* The number of each tablet's shard; NULL: all are in the home, or the options spread them. */
    const unsigned *shards;
    struct table *view_source; /* for view/view_table.c; NULL: it is no view's table */
    uint64_t uid;              /* of a peer's table (shared_table.h); 0: it is made here */
    struct catalog_txn *txn;   /* see above */
};

/* ALREADY_EXISTS if it does. Families have the ids that the spec's schema gives them. */
status cluster_create_table(struct cluster *cluster, const struct table_spec *spec,
                            struct table **out);

/* Deletes the table: at once no lookup by name finds it, and its name is free; but it is kept for
 * the undelete window, unless that is 0 or space is short (see deletions.h). NOT_FOUND;
 * FAILED_PRECONDITION if protected. */
status cluster_delete_table(struct cluster *cluster, bytes name, struct catalog_txn *txn);

/* Deletes all tables whose name starts with the prefix, in one change and for good, with those that
 * are deleted and kept, and with the views that read them: nothing is deleted if one of them is
 * protected, or has a change stream. Fine without any. The space is returned in the background. */
status cluster_delete_tables(struct cluster *cluster, bytes prefix, struct catalog_txn *txn);

/* The one last deleted of the name, with a reference: what cluster_undelete_table would bring back.
 * ALREADY_EXISTS if there is a table of that name; NOT_FOUND if none is kept. */
status cluster_deleted_table(struct cluster *cluster, bytes name, struct table **out);

/* Brings it back as it was. ALREADY_EXISTS, RESOURCE_EXHAUSTED as for a new table; NOT_FOUND if it
 * is not kept any more. */
status cluster_undelete_table(struct cluster *cluster, struct table *table,
                              struct catalog_txn *txn);

/* Calls `visit` for each table whose name starts with `prefix`, by rising name, from the first
 * after `after` (empty: from the start), until it returns false. The references are the
 * cluster's: retain what is kept. */
status cluster_list_tables(struct cluster *cluster, bytes prefix, bytes after,
                           bool (*visit)(void *context, struct table *table), void *context);

/* One change of a table's description, wholly or not at all: `change` gets what stands and a
 * schema builder's worth of freedom: it fills `*next` (memory from the arena); families keep their
 * ids by carrying them over, new ones have id 0 and get one. It may run again if the table changed
 * meanwhile. Serialised with other changes; requests in flight see the old or the new schema. */
struct table_change {
    const struct family *families;
    size_t family_count;
    uint32_t next_family_id; /* so many have been given elsewhere; 0: as it comes */
    bool deletion_protection;
    bytes extra;
    /* How long its change stream keeps what happened, microseconds; 0: it has none. */
    int64_t stream_retention_us;
    struct catalog_txn *txn; /* see above */
};
status table_change_schema(struct table *table, struct arena *arena,
                           status (*change)(void *context, const struct table_info *now,
                                            struct arena *arena, struct table_change *next),
                           void *context);

/* Deletes all rows whose key starts with `prefix` (empty: all rows), as one change: whatever was
 * acknowledged before is gone, whatever is submitted after the return stays. Blocks. */
status table_drop_rows(struct table *table, bytes prefix);

/* --- damage: docs/operating/repair.md --- */

/* Rows that are out of service, and lost if no backup has them. */
struct lost_rows {
    const char *table; /* its name, or what there is instead of one */
    bytes from;
    bytes to;            /* exclusive, or of large cells the last row; empty: no bound */
    bool is_large_cells; /* of these rows: the rest of them is there */
    bytes first_key;     /* of the store */
    bytes end_key;       /* exclusive, never empty */
    uint64_t file;       /* the table file that was damaged */
    const char *words;   /* all of it, for people */
    int64_t found_us;    /* since 1970 */
};

/* Rows that are given up: they are deleted, and out of service still. */
struct given_up {
    bytes from;
    bytes to;            /* exclusive; empty: no bound */
    bool is_large_cells; /* of these rows alone: what else they have is there, and in service */
};

struct foreign_table;
struct table_repair_options {
    /* What other table files have of the rows stays: it may have been deleted or overwritten by
     * what was damaged. Else the rows are deleted. */
    bool accepts_old_data;
    /* What comes in place of the rows that are deleted, as far as it has them (refill.h). NULL:
     * nothing does. FAILED_PRECONDITION unless it fits. */
    const struct foreign_table *source;
    bool is_trial; /* only tells */
    /* Told of each range before it is given up; not OK leaves it, and ends the repair. */
    status (*lost)(void *context, const struct lost_rows *lost);
    void *context;
    /* Of a table in which rows follow from others, as a database's indexes do: makes what follows
     * from what has been given up, and of that what follows from the rest. Called with all that is
     * out of service, deleted (or filled from `source`), and before any of it is back. If it fails
     * all stays out of service, and the next repair passes it again. Not with accepts_old_data.
     * NULL: nothing follows. */
    status (*heal)(void *context, const struct given_up *ranges, size_t count);
    void *heal_context;
};

/* Calls `visit` with each range of all tables, the oldest first, until it fails. */
status cluster_list_damage(struct cluster *cluster,
                           status (*visit)(void *context, const struct lost_rows *lost),
                           void *context);

/* Reads all table files, and takes out of service what is damaged. Blocks. */
status cluster_look_for_damage(struct cluster *cluster);

/* The same of one table. */
status table_list_damage(struct table *table,
                         status (*visit)(void *context, const struct lost_rows *lost),
                         void *context);

/* Whether writers of the row are refused, since something of it is out of service. */
bool table_row_is_closed(struct table *table, bytes row_key);

/* Claims the table for a repair, where another caller might repair it, too: FAILED_PRECONDITION if
 * another one has claimed it. */
status table_claim_repair(struct table *table);
void table_end_repair(struct table *table);

/* Brings back into service what of the table is not. Blocks, for as long as it takes to compact the
 * files around the damage. */
status table_repair(struct table *table, const struct table_repair_options *options);

/* Tablet boundaries with sizes: calls `visit` with each tablet's end (empty for the last) and the
 * bytes of the tablets up to there. Any thread; reads memory and metadata only. */
status table_sample(struct table *table,
                    bool (*visit)(void *context, bytes end, uint64_t offset_bytes), void *context);

#endif
