/* Space of rows that were dropped: see reclaim.c. Private to cluster/. */
#ifndef TRESTLE_CLUSTER_RECLAIM_H
#define TRESTLE_CLUSTER_RECLAIM_H

#include "base/bytes.h"
#include "base/list.h"
#include "os/job_pool.h"

#include <pthread.h>

struct table;

/* A part of struct table. */
struct table_reclaim {
    struct pool_job job;
    pthread_mutex_t lock; /* guards the next two */
    struct list prefixes; /* what was dropped, the oldest first */
    size_t count;         /* of these */
    /* The job's: the prefix that it is at, NULL: none; and the first row of the next piece. */
    struct dropped_prefix *current;
    struct buffer next;
};

void reclaim_init(struct table *table);
void reclaim_free(struct table *table);

/* Gives back the space of rows that were deleted by prefix (empty: all). Without memory, or if very
 * many wait, the space comes back by ordinary compaction, later. Any thread that holds the table.
 */
void reclaim_prefix(struct table *table, bytes prefix);

#endif
