/* How many bytes rows have: without those of which it is known that they were dropped, and that a
 * pass has yet to give back (row/drops.h). Estimates, as all sizes of ranges are. */
#ifndef TRESTLE_CLUSTER_LIVE_SIZE_H
#define TRESTLE_CLUSTER_LIVE_SIZE_H

#include "base/bytes.h"

struct keyspace;
struct row_drops;
struct table;
struct tablet;

/* Of the rows in that keyspace, whose drops these are, from `from` up to `to` (empty: no bound). 0
 * without memory. Any thread; may read an index from the disk. */
uint64_t live_size(struct keyspace *keyspace, struct row_drops *drops, bytes from, bytes to);
/* The same of the table's. */
uint64_t live_rows_size(const struct table *table, struct keyspace *keyspace, bytes from, bytes to);
/* Of the tablet, which is the table's. */
uint64_t live_tablet_size(const struct table *table, const struct tablet *tablet);
/* Of all of the table. */
uint64_t live_table_size(const struct table *table);

#endif
