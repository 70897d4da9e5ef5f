/* The row in the middle of a range, by bytes, where a tablet splits; and where a piece of a range
 * ends. Private to cluster/. */
#ifndef TRESTLE_CLUSTER_MIDPOINT_H
#define TRESTLE_CLUSTER_MIDPOINT_H

#include "base/bytes.h"
#include "base/status.h"
#include "store/store.h"

/* Sets `key` (cleared first) to a row key that parts the rows of [from, to) (empty `to`: no bound)
 * in two halves of about the same size, overflow cells included. `*found` false: there are no two
 * rows to part. Reads a few dozen keys, whatever the size. Blocks. */
status rows_midpoint(struct keyspace *keyspace, bytes from, bytes to, struct buffer *key,
                     bool *found);

/* Moves `*end`, before which the rows from `from` on are looked at (empty: no bound), towards
 * `from`, so that those between take `most` bytes by the store's estimate, or less: at least half
 * of that where a string can be found that parts them so. Reads metadata only, so rows that were
 * deleted count as long as their bytes are there. */
status rows_piece_end(struct keyspace *keyspace, bytes from, uint64_t most, struct buffer *end);

/* Sets `out` (cleared first) to a string halfway between low < high: at or after `low`, before
 * `high`, with some bytes more than they share. */
void key_halfway(bytes low, bytes high, struct buffer *out);

#endif
