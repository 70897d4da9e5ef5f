/* The shards' logs of change streams: opened, given new segments, truncated. */
#ifndef TRESTLE_CLUSTER_STREAM_STREAM_UPKEEP_H
#define TRESTLE_CLUSTER_STREAM_STREAM_UPKEEP_H

#include "base/status.h"

struct cluster;

/* Opens the logs, at a start, before keyspaces without a name are dropped. */
status stream_logs_open(struct cluster *cluster);

/* Sees to it that each shard's log has a segment to write to: before a stream is switched on. With
 * the cluster's admin held. Blocks. */
status stream_logs_begin(struct cluster *cluster);

/* A round of maintenance: begins segments where the open one is full or old, drops what no stream
 * keeps any more. */
void stream_upkeep_run(struct cluster *cluster);

#endif
