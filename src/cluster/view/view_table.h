/* Materialized views as the cluster keeps them: the table that has a view's rows, the keyspace that
 * has its records, and its source, which knows that it is viewed.
 *
 * A view's table is a table as any other to who reads it, under the view's own name
 * (projects/P/instances/I/materializedViews/V). It has no rules of garbage collection and no change
 * stream, is in no list of tables, is never kept once it is deleted, and no archive and no whole
 * backup has its rows: after a restore it is there and empty, and so are its records. Who upkeeps
 * views finds no state there, then, and begins anew.
 *
 * Invariants
 *  1. A view's rows and its records lie in the shard that has all of its source's rows. They come
 *     and go together, by one commit.
 *  2. A source is *viewed* before its first view is there, and until the last one is gone: so the
 *     feed (view_feed.h) has all that is committed while there is a view. A crash may leave one
 *     viewed that has none: the next start puts that right.
 *  3. A view whose source is there no more is gone after the next start.
 *
 * Functions that change something block: pool threads. The others are any thread's. */
#ifndef TRESTLE_CLUSTER_VIEW_VIEW_TABLE_H
#define TRESTLE_CLUSTER_VIEW_VIEW_TABLE_H

#include "cluster/cluster.h"

struct view_spec {
    const char *name;
    struct table *source;
    const char *const *families; /* of the view's table; none twice */
    size_t family_count;
    struct catalog_txn *txn; /* as in cluster.h */
};

/* The view's table, empty, with a reference. ALREADY_EXISTS; RESOURCE_EXHAUSTED if the instance has
 * too many tables and views; NOT_FOUND: the source is gone; FAILED_PRECONDITION: it is a view, or
 * its rows lie in several shards. */
status cluster_create_view(struct cluster *cluster, const struct view_spec *spec,
                           struct table **out);

/* The same for a view whose definition is there, and whose table was lost or is none of this
 * source, if it is: then that one goes first. `*is_new`: it was made now, so it is empty. */
status cluster_ensure_view(struct cluster *cluster, const struct view_spec *spec,
                           struct table **out, bool *is_new);

/* Deletes the view's table and its records for good; the space comes back in the background. Who
 * has a reference may go on reading what there was, and writes are refused with NOT_FOUND. Fine if
 * there is none of the name, then the transaction alone is written. */
status cluster_delete_view(struct cluster *cluster, bytes name, struct catalog_txn *txn);

/* Whether the table is a view's. Cheap. */
bool table_is_view(const struct table *table);
/* Its source's id. Cheap. */
uint64_t table_view_source_id(const struct table *view);
/* Its source, with a reference; NOT_FOUND. */
status table_view_source(struct table *view, struct table **out);

/* Whether the table is viewed. Cheap. */
bool table_is_viewed(const struct table *table);
/* How many views read it: a walk over all tables. */
size_t table_view_count(struct table *source);

/* Whether something of its rows or records is out of service: it has to be made anew. Cheap. */
bool table_view_is_damaged(const struct table *view);

/* Of a store that nobody serves: takes the tables of all views out of the catalog. The next start
 * drops their keyspaces. Blocks. */
status views_forget(struct keyspace *catalog, struct catalog_txn *txn);

/* At start, once there are queues: puts right what a crash or a loss has left (2, 3). A view whose
 * source was not viewed may have missed something, and goes, too, and so does one that is damaged.
 */
status views_sweep(struct cluster *cluster);

#endif
