/* Rows in many pieces: a reader that found one puts it together.
 *
 * A change of a row becomes an operand on its record, and a reader folds all there are. So a row
 * that is written over and over costs readers more and more, until a compaction comes to it. Here
 * the first reader that pays for it stores what it got, as a commit of its own that no request
 * waits for (commit.h, 7).
 *
 * That must not undo a change that came in between, and the reader had no lock. But a stripe knows
 * the newest sequence that was submitted under it (row_locks.h), and the reader knows up to which
 * sequence everything was applied when it began (row.as_of). If the first is not greater, then all
 * that was ever submitted for the row is in the record; and while the stripe is held nothing more
 * is, so the record's place in the queue is behind all of it, and before whatever comes. This
 * covers everything that changes rows: writes, updates, overflows, and ranges that are deleted,
 * which leave their sequence on all stripes. (A rewriting leaves none, for it changes nothing.) Of
 * rows that were dropped the queue knows (commit.h, 10).
 *
 * Who goes through a range offers one in some of its rows (scan.c): to store one anew costs as much
 * as to read it several times over, and a range that is gone through often is compacted.
 *
 * Nothing depends on it being done. It is not done while the stripe is held, when too many rewrites
 * are under way, or when the queue has enough to do: the next reader will find the row again. */
#ifndef TRESTLE_CLUSTER_ROW_REWRITE_H
#define TRESTLE_CLUSTER_ROW_REWRITE_H

#include "cluster/cluster.h"
#include "tablet/row_read.h"

struct row_rewriter;
struct shard;

status row_rewriter_create(struct shard *shard, struct row_rewriter **out);
/* Takes no more rows, and waits for those that are under way. NULL is fine. */
void row_rewriter_stop(struct row_rewriter *row_rewriter);
void row_rewriter_destroy(struct row_rewriter *row_rewriter); /* NULL is fine */

/* The row was read and wants a rewrite. What it needs is copied. Any thread that holds the table;
 * never waits. */
void row_rewriter_offer(struct row_rewriter *row_rewriter, struct table *table,
                        struct keyspace *keyspace, const struct row *row);

#endif
