/* A table at run time: its description, and the map from row keys to tablets. Private to cluster/.
 *
 * Invariants
 *  1. Descriptions are immutable. The newest is published atomically; former ones stay until the
 *     table goes, since folds and requests in flight may look at them. (A change of schema thus
 *     costs its size in memory until the next start.)
 *  2. The tablets cover all keys without hole or overlap, in order. The array is changed in place
 *     under `map_lock`, which is held for a binary search, or for a move of pointers, and never
 *     across a call.
 *  3. A table is counted by reference. The index of the cluster holds one while the table has its
 *     name, and so does the list of those that are deleted and kept (deletions.h). The last
 *     reference to a dropped table hands it to maintenance, which drops its keyspaces: that may
 *     block, and references end on event loops.
 *  4. Its rows lie in the keyspaces of its `spaces`, which have nothing else; which of them has a
 *     row its tablet says. The list is made when the table is loaded or created and stays as it is,
 *     so it is looked at without a lock. The keyspaces are there as long as the table has a
 *     reference.
 *  5. Once there are queues the map changes on commit threads alone: what is in a shard on that
 *     shard's, at the place of the commit that changes it, with `admin` held by the thread that
 *     waits for it. So there it is what it was at the place of the commit that the thread is at.
 *     The newest description changes likewise on the home's. */
#ifndef TRESTLE_CLUSTER_TABLE_H
#define TRESTLE_CLUSTER_TABLE_H

#include <pthread.h>

#include "cluster/catalog.h"
#include "cluster/cluster.h"
#include "cluster/drop_pass.h"
#include "cluster/heat/heat_table.h"
#include "cluster/idle_compaction.h"
#include "cluster/stream/lineage.h"
#include "cluster/stream/telling.h"
#include "cluster/traffic.h"
#include "cluster/usage_store.h"
#include "row/fold.h"
#include "stream/feed.h"
#include "tablet/tablet.h"

struct description {
    struct description *older;
    struct schema *schema;
    /* Of a table whose deletions are recorded (docs/internals/deletions.md); else NULL. */
    struct schema *without_rules;
    struct row_rules rules; /* of all keyspaces, without drops */
    /* What the folds of each look at: by which they may collect. As many as the table's spaces, in
     * their order. */
    struct row_rules **of_spaces;
    size_t space_count;
    uint64_t generation;
    bool deletion_protection;
    bool records_deletions; /* whether it has a stream or not */
    struct table_stream stream;
    bool is_viewed; /* views read it: view/view_table.h */
    bytes extra;    /* behind the structure */
};

/* Where the background pass of garbage collection is: the job's, but for the first two. */
struct table_gc {
    struct pool_job job;
    /* When its next piece is, by the steady clock; 0: not yet known. Within a pass it is past. */
    _Atomic int64_t due_us;
    bool is_under_way;
    bool compacts;
    bool tends_rows;
    bool deletes_ranges;    /* of keys, in some files: those are compacted in any case */
    atomic_bool is_hurried; /* ranges have been deleted since the pass began; any thread says so */
    bool records;           /* what rules condemn goes by commits */
    struct buffer next;     /* the first row of the next piece */
    /* What had been written, and the description's generation, when this pass began, and when the
     * last one did that was finished (generation 0: none was). */
    uint64_t rows_written;
    uint64_t generation;
    uint64_t rows_written_before;
    uint64_t generation_before;
};

/* A keyspace that has rows of the table, and whose it is. */
struct table_space {
    struct shard *shard;
    struct keyspace *keyspace;
    /* Of those rows: by the versions and sequences of the shard's queue. The table's. */
    struct row_drops *drops;
    struct telling *telling; /* of these drops, to its change stream: the table's */
    struct drop_pass pass;   /* the table's job's */
    bool takes_no_writes; /* the table's deletion has been committed: its commit thread's alone */
};

/* What a view's table is beside a table (view/view_table.h). */
struct table_view {
    uint64_t source_id;       /* 0: it is no view's */
    struct shard *shard;      /* that has its records, and its rows */
    struct keyspace *records; /* there as long as the table has a reference */
    atomic_ullong keep;       /* view_feed_keep; 0 until that is said */
};

struct table {
    uint32_t magic;
    atomic_uint references;
    struct cluster *cluster;
    uint64_t id;
    uint64_t given_uid; /* 0: it follows from the id (shared_table.h) */
    char *name;
    struct description *_Atomic description;
    pthread_mutex_t map_lock;
    struct tablet **tablets; /* by start */
    size_t tablet_count;
    size_t tablet_capacity;
    struct table_space *spaces; /* of the tablets, each once */
    size_t space_count;
    struct table_gc gc;
    struct table_idleness idleness;
    struct table_drop_pass drop_pass;
    struct table_heat heat;
    struct table_usage usage;
    struct table_traffic traffic;
    struct lineage lineage;  /* of its tablets, for its change stream */
    struct table_view view;  /* does not change but for `keep` */
    struct stream_feed feed; /* for views that read it */
    atomic_bool is_being_repaired;
    bool is_deleted;        /* it is not in the index; with admin held, as the next */
    int64_t deleted_us;     /* when, if it is kept; 0: it is not */
    atomic_bool is_dropped; /* its records are gone; set before its last reference goes */
    struct link dropped;    /* on the cluster's list, once nobody holds it */
};

/* A table without tablets, one reference. */
status table_create(struct cluster *cluster, const struct table_record *record, struct table **out);

/* Frees the table, with tablets and descriptions; the keyspaces stay. For the last holder. */
void table_destroy(struct table *table);

/* Adds a tablet after all others; takes the reference. Only while no other thread has the table. */
status table_append_tablet(struct table *table, struct tablet *tablet);

/* The description of a record, copied; not yet published. `table`: whose it is to be, with all its
 * spaces; NULL: of one that has none yet. */
status description_create(struct cluster *cluster, const struct table_record *record,
                          const struct table *table, struct description **out);
void description_destroy(struct description *description);

/* Makes it the newest one and gives its rules to the table's keyspaces. On the commit thread, as
 * the next. */
void table_publish(struct table *table, struct description *description);
/* Whether writes of those of the table's rows that are in the shard are committed from here on. On
 * its commit thread. */
void table_let_write(struct table *table, const struct shard *shard, bool may);
/* Whether any of them may be there. */
bool table_is_in(const struct table *table, const struct shard *shard);
/* The newest description: valid as long as the table. */
const struct description *table_description(const struct table *table);
/* By what folds of one of its keyspaces go at present: the same. */
const struct row_rules *table_rules(const struct table *table, const struct keyspace *keyspace);
/* What was dropped of the rows in one of its keyspaces: the table's. */
struct row_drops *table_drops(const struct table *table, const struct keyspace *keyspace);
/* How its change stream is told of these. */
struct telling *table_telling(const struct table *table, const struct keyspace *keyspace);
/* How many drops there are in all its keyspaces, and whether so many more keep the limit of a table
 * (LIMIT_ROW_DROPS). A dropped range is one in each keyspace that has rows of it. */
size_t table_drop_count(const struct table *table);
bool table_has_room(const struct table *table, size_t drops);
struct table_record table_record_of(const struct table *table);
struct tablet_record tablet_record_of(const struct table *table, const struct tablet *tablet);

/* --- routing: each result is retained --- */

struct tablet *table_route(struct table *table, bytes row_key); /* whose range has the key */
/* The tablet to which a write belongs; for the commit thread. NOT_FOUND if the table takes none. */
status table_route_write(struct table *table, bytes row_key, struct tablet **out);
/* The tablet of the last keys before `end`; an empty `end` means the last tablet. */
struct tablet *table_route_before(struct table *table, bytes end);

/* In which keyspace the row's tablet is, and up to where it and its neighbours are; empty: to the
 * end of the table. `*end` is cleared first. */
status table_find_part(struct table *table, bytes from, struct table_space *out,
                       struct buffer *end);

/* A part of some rows: those of neighbours that share a keyspace. */
struct table_part {
    struct table_space space;
    bytes from;
    bytes to; /* exclusive; empty: no bound */
};
/* Calls `visit` with each part of the rows from `from` to `to` (empty: no bound), in order, until
 * it fails. */
status table_visit_parts(struct table *table, bytes from, bytes to,
                         status (*visit)(void *context, const struct table_part *part),
                         void *context);

/* All tablets at one instant, in order. `*out` is to be freed after releasing them. */
status table_tablets(struct table *table, struct tablet ***out, size_t *count);
size_t table_tablet_count(struct table *table);

/* Makes room for one tablet more, so that a swap that adds one cannot fail. With admin held, as for
 * the next. */
status table_make_room(struct table *table);

/* Puts `count` tablets (references taken) in place of the `old_count` that start at old[0], which
 * are released; both sides cover the same range. On the commit thread. */
void table_swap_tablets(struct table *table, struct tablet *const *old, size_t old_count,
                        struct tablet *const *fresh, size_t count);

#endif
