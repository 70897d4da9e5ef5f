/* What a shard's commits leave in its stream's log: a record for each row of a table that has a
 * change stream at the commit's place. */
#ifndef TRESTLE_CLUSTER_STREAM_STREAM_OBSERVER_H
#define TRESTLE_CLUSTER_STREAM_STREAM_OBSERVER_H

#include "tablet/commit_observer.h"

struct shard;

/* Of the shard's queue. */
struct commit_observer stream_observer_of(struct shard *shard);

/* Calls `visit` with what it is going to put for the present commit, until it fails: for the change
 * log (change_log_options.visit_beside), with the shard as `context`. */
status stream_observer_visit_prepared(void *context,
                                      status (*visit)(void *visit_context,
                                                      const struct store_change *change),
                                      void *visit_context);

#endif
