/* How much of a table lies in a range of its keys. */
#ifndef TRESTLE_CLUSTER_RANGES_H
#define TRESTLE_CLUSTER_RANGES_H

#include "cluster/cluster.h"

/* Bytes of the rows from `from` on and before `to` (empty: no bound), on disk and in write buffers;
 * estimated. Any thread; reads memory and metadata only. */
status table_range_size(struct table *table, bytes from, bytes to, uint64_t *out);

/* Bytes of all that is stored of its rows, dead entries too, and of the write buffers that hold
 * them. Any thread. */
uint64_t table_stored_bytes(const struct table *table);

/* Row keys, rising, that divide the rows from `from` on and before `to` (empty: no bound) into
 * parts of about the same size, at most `most`, and of about TABLE_PART_BYTES at least; so one key
 * less, in the arena. None if they have less than twice that. As the above; may read an index from
 * the disk. */
enum { TABLE_PART_BYTES = 4 << 20 };
status table_divide(struct table *table, bytes from, bytes to, size_t most, struct arena *arena,
                    bytes **borders, size_t *count);

#endif
