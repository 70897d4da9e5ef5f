/* The row in the middle of a range, by bytes: where a tablet splits. Private to cluster/. */
#ifndef TRESTLE_CLUSTER_MIDPOINT_H
#define TRESTLE_CLUSTER_MIDPOINT_H

#include "base/bytes.h"
#include "base/status.h"
#include "store/store.h"

/* Sets `key` (cleared first) to a row key that parts the rows of [from, to) (empty `to`: no bound)
 * in two halves of about the same size, spilled cells included. `*found` false: there are no two
 * rows to part. Reads a few dozen keys, whatever the size. Blocks. */
status rows_midpoint(struct keyspace *keyspace, bytes from, bytes to, struct buffer *key,
                     bool *found);

/* Sets `out` (cleared first) to a string halfway between low < high: at or after `low`, before
 * `high`, with some bytes more than they share. */
void key_halfway(bytes low, bytes high, struct buffer *out);

#endif
