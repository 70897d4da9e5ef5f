/* What commits leave in the origin feed of their shard (origin_feed.h), while it is on: an entry
 * for each row that a client of this cluster has changed, with what was changed, and a range for
 * each keyspace in which rows are dropped (DropRowRange).
 *
 * Not what came from another cluster, which has it in its own feed; nor what rules of garbage
 * collection condemn, how rows are kept, what is repaired: each cluster does that for itself.
 *
 * The stream's observer asks for it (cluster/stream/stream_observer.c), which puts what was
 * prepared. */
#ifndef TRESTLE_CLUSTER_ORIGIN_ORIGIN_OBSERVER_H
#define TRESTLE_CLUSTER_ORIGIN_ORIGIN_OBSERVER_H

#include "tablet/commit_observer.h"

struct shard;

/* On the commit thread. False without memory: stream_log_cancel takes back what was prepared. */
bool origin_observer_prepare(struct shard *shard, const struct commit *commit,
                             const struct store_batch *records);

#endif
