/* The shards' logs of change streams: opened, given new segments, truncated.
 *
 * What they may have (cluster_options.change_log_bytes) is divided among the shards. A log that has
 * more, or whose disk is short of space and has no deleted tables to give up first, loses its
 * oldest segments. Writes never wait for that: between two rounds a log may grow beyond its bound.
 * Segments are an eighth of it at most, so that no more than that goes at a time. When that has
 * taken what a table's retention promises, the shard's condition says so. */
#ifndef TRESTLE_CLUSTER_STREAM_STREAM_UPKEEP_H
#define TRESTLE_CLUSTER_STREAM_STREAM_UPKEEP_H

#include "base/status.h"

struct cluster;

/* Opens the logs, at a start, before keyspaces without a name are dropped. */
status stream_logs_open(struct cluster *cluster);

/* Sees to it that each shard's log has a segment to write to: before a stream is switched on. With
 * the cluster's admin held. Blocks. */
status stream_logs_begin(struct cluster *cluster);

/* The same at a start, once the shards take commits, if some table has a stream: a log whose last
 * segment is lost (a salvage) has none that is open. */
status stream_logs_resume(struct cluster *cluster);

/* A round of maintenance: begins segments where the open one is full or old, drops what no stream
 * keeps any more, and what is too much. */
void stream_upkeep_run(struct cluster *cluster);

/* Sets the metrics of the logs. */
void stream_upkeep_measure(struct cluster *cluster);

#endif
