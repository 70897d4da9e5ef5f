/* Where a range of rows lies in its keyspace: once in the space of records, once in that of
 * overflow cells. */
#ifndef TRESTLE_TABLET_KEY_BOUNDS_H
#define TRESTLE_TABLET_KEY_BOUNDS_H

#include "base/bytes.h"
#include "store/store.h"

/* Keys from `lower` up to but not including `upper`. */
struct key_bounds {
    struct buffer lower;
    struct buffer upper;
};

/* Rows from `from` up to but not including `to` (empty: no bound). False without memory; either way
 * `out` is to be freed. */
__attribute__((warn_unused_result)) bool record_bounds(bytes from, bytes to,
                                                       struct key_bounds *out);
__attribute__((warn_unused_result)) bool overflow_bounds(bytes from, bytes to,
                                                         struct key_bounds *out);
void key_bounds_free(struct key_bounds *bounds);

/* A cursor over the records of these rows for a background pass: it leaves the cache alone, and may
 * wait for the disk. */
status record_cursor_create(struct keyspace *keyspace, bytes from, bytes to,
                            struct store_cursor **out);

/* OK, or DATA_LOSS if something of the row is out of service. */
status row_check_open(struct keyspace *keyspace, bytes row_key);

/* Compacts the rows in the range, and then their overflow cells, in write buffers and tables: see
 * keyspace_compact. What folds throw away goes, but for what snapshots of the store keep. Blocks.
 */
status rows_compact(struct keyspace *keyspace, bytes from, bytes to);

/* Bytes of the rows in the range on disk and in write buffers, overflow cells included; estimated,
 * 0 without memory. */
uint64_t rows_size(struct keyspace *keyspace, bytes from, bytes to);

/* The same of their overflow cells alone. */
uint64_t rows_overflow_size(struct keyspace *keyspace, bytes from, bytes to);

#endif
