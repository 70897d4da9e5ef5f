/* DropRowRange in a table with a change stream: a deletion of each row that is there, which readers
 * are told of, instead of one record over all of them. It takes as long as there are rows. */
#ifndef TRESTLE_CLUSTER_STREAM_DROP_STREAMED_H
#define TRESTLE_CLUSTER_STREAM_DROP_STREAMED_H

#include "base/bytes.h"
#include "base/status.h"

struct table;

/* Deletes the rows from `from` up to `to` (empty: no bound) that are there when it begins; some of
 * them if it fails. UNAVAILABLE while another does the same in the table. Blocks. */
status stream_drop_rows(struct table *table, bytes from, bytes to);

#endif
