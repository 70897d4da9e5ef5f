/* What a shard's commits leave in its stream's log: a record for each row of a table that has a
 * change stream at the commit's place. */
#ifndef TRESTLE_CLUSTER_STREAM_STREAM_OBSERVER_H
#define TRESTLE_CLUSTER_STREAM_STREAM_OBSERVER_H

#include "tablet/commit_observer.h"

struct stream_log;

/* Of the queue of the log's shard. */
struct commit_observer stream_observer_of(struct stream_log *log);

#endif
