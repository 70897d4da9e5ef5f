/* Which tablets a table had: those that were split or merged while it had a change stream. Records
 * of the stream's log lie under the tablet that had their row (stream/log.h), so a reader of a
 * range looks under all that ever met it.
 *
 * Invariants
 *  1. A former tablet is recorded in the batch of the split or merge that ends it, and is here
 * before the map is without it: a reader that looks at the map first, and then here, misses none.
 *  2. It is forgotten once nothing can be read any more that was recorded under it. */
#ifndef TRESTLE_CLUSTER_STREAM_LINEAGE_H
#define TRESTLE_CLUSTER_STREAM_LINEAGE_H

#include <pthread.h>

#include "cluster/catalog.h"

struct catalog_change;
struct table;

struct former_tablet;

struct lineage {
    pthread_mutex_t lock; /* held for a walk over the list */
    struct former_tablet *first;
};

void lineage_init(struct lineage *lineage);
void lineage_free(struct lineage *lineage);

/* As the catalog has it; copied. */
status lineage_remember(struct lineage *lineage, const struct former_tablet_record *record);

bool lineage_is_empty(struct lineage *lineage);

/* The tablets that go by the change, if the table has a stream: recorded in the batch, and
 * remembered already. What is not committed then is taken back. With the cluster's admin held. */
status lineage_record(struct table *table, const struct catalog_change *change,
                      struct store_batch *batch);
void lineage_take_back(struct table *table, const struct catalog_change *change);

/* Calls `visit` with the id of each former tablet of the shard that meets [start, end), until it
 * fails. */
status lineage_visit(struct lineage *lineage, unsigned shard, bytes start, bytes end,
                     status (*visit)(void *context, uint64_t tablet), void *context);

/* Forgets those that had gone before `before_us`, in the batch and here: what cannot be written is
 * found again at the next start. With admin held. `*count`: how many. */
void lineage_forget(struct table *table, int64_t before_us, struct store_batch *batch,
                    size_t *count);

#endif
