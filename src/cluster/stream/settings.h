/* The change stream in a table's record: switched on, changed, off. */
#ifndef TRESTLE_CLUSTER_STREAM_SETTINGS_H
#define TRESTLE_CLUSTER_STREAM_SETTINGS_H

#include "cluster/catalog.h"

struct cluster;

/* `*stream` as it is to be once its retention is so long (0: there is none). A stream that is
 * switched on is a new one, which has nothing from before; one whose retention gets longer does not
 * get back what it had given up. With the cluster's admin held. Blocks. */
status table_stream_change(struct cluster *cluster, int64_t retention_us,
                           struct table_stream *stream);

/* Nothing of the stream from before this time can be read now: since 1970, by the versions'
 * clock. */
int64_t table_stream_oldest(const struct table_stream *stream, int64_t now_us);

#endif
