/* What a shard's commits leave in its stream's log: a record for each row of a table that has a
 * change stream at the commit's place. */
#ifndef TRESTLE_CLUSTER_STREAM_STREAM_OBSERVER_H
#define TRESTLE_CLUSTER_STREAM_STREAM_OBSERVER_H

#include "tablet/commit_observer.h"

struct shard;
struct stream_observer;

/* Of the shard's log, `streams`. */
status stream_observer_create(struct shard *shard, struct stream_observer **out);
void stream_observer_destroy(struct stream_observer *observer); /* NULL is fine; after the queue */
struct commit_observer stream_observer_of(struct stream_observer *observer);

#endif
