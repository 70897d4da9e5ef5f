/* Changes of several rows of a table, of whatever tablets: all of them or none.
 *
 * They share one place in the commit queue, one version and one batch of the store, so that a crash
 * at any moment leaves all or nothing. This is the seam for transactions: rows of several shards
 * are refused with FAILED_PRECONDITION so far; a form in two phases will go here.
 *
 *     locks of all rows ─► commit_submit ─► unlock          (the caller's thread)
 *     … batch written and synced …                          (commit thread)
 *     done                                                  (loop thread)
 *
 * The caller must protect what it reads before: the locks last only until the changes are in the
 * queue, in an order that is that of their versions. */
#ifndef TRESTLE_CLUSTER_ROW_GROUP_H
#define TRESTLE_CLUSTER_ROW_GROUP_H

#include "cluster/cluster.h"
#include "cluster/heat/heat.h"
#include "os/loop.h"
#include "row/fragment.h"
#include "tablet/commit.h"

#include <stdatomic.h>

struct grouped_row {
    bytes row_key;
    struct packed_change change; /* ended by the group: its buffer is freed */
};

struct row_group {
    /* set by the caller, for row_group_write without `loop` and `done` */
    struct table *table; /* held until `done` */
    struct grouped_row *rows;
    size_t count;        /* at least one, of no row two: they would have the same version */
    struct arena *arena; /* for the group itself; stays until `done` */
    int64_t at_us;       /* the time of its cells: see commit.h, least_us. 0: any */
    bool is_own;         /* what the server keeps of itself: COMMIT_OWN. No heat, and no stream */
    bool is_repair;      /* see commit.h, as the next */
    bool frees_space;
    struct loop *loop; /* where `done` runs; NULL: on the commit thread, where it must be quick */
    void (*done)(struct row_group *group, status result); /* takes the status */
    /* private */
    atomic_int holders; /* the queue, and row_group_submit: the last one ends it */
    struct heat_mark heat;
    struct commit commit; /* of the first row */
    struct commit *others;
    uint64_t *hashes;
    struct row_group_waiting *waiting; /* the caller of row_group_write */
};

/* Waits for the rows' locks: call it on threads that no holder of one waits for, so not the
 * cluster's pool. On failure nothing was taken, `done` is not called, and the changes are freed all
 * the same. */
status row_group_submit(struct row_group *group);

/* Whether the row is as the commit of that sequence, which wrote it, has left it: nothing that
 * changes it has entered the queue since, and it is not dropped. False, too, if that cannot be told
 * without waiting. */
bool row_group_is_newest(struct table *table, bytes row_key, uint64_t sequence);

/* Submits it and waits for its end, whose result it gives: on threads that may block. */
status row_group_write(struct row_group *group);

#endif
