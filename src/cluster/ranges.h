/* How much of a table lies in a range of its keys. */
#ifndef TRESTLE_CLUSTER_RANGES_H
#define TRESTLE_CLUSTER_RANGES_H

#include "cluster/cluster.h"

/* Bytes of the rows from `from` on and before `to` (empty: no bound), on disk and in write buffers;
 * estimated. Any thread; reads memory and metadata only. */
status table_range_size(struct table *table, bytes from, bytes to, uint64_t *out);

#endif
