/* A table's rows as they are at one moment, for a cluster that has none of them: as changes that it
 * applies (foreign_rows.h), with the versions that they have here, deletions that may still matter
 * among them, and with the places in all origins' feeds from which on it goes on by itself.
 *
 * What lies behind such a place may be in the copy as well. That counts once if adds of then are
 * apart in both: so as long as a copy lives, what folds go by (origin_applied.h) does not rise
 * here; and there all is kept apart until the copy is whole. */
#ifndef TRESTLE_CLUSTER_ORIGIN_ORIGIN_COPY_H
#define TRESTLE_CLUSTER_ORIGIN_ORIGIN_COPY_H

#include "cluster/origin/origin_applied.h"
#include "cluster/origin/origin_feed.h"

struct origin_copy;

/* At this moment, of the cluster that has that number. Blocks. */
status origin_copy_begin(struct cluster *cluster, unsigned own_number, struct origin_copy **out);
void origin_copy_end(struct origin_copy *copy); /* NULL is fine */

/* Whether it is known where to go on in all feeds that are followed here: else no rows may be read.
 */
bool origin_copy_knows_all(const struct origin_copy *copy);

/* Where to go on in the feed of each cluster, this one among them; false: it is not known here. */
bool origin_copy_place(const struct origin_copy *copy, unsigned number, struct origin_applied *out);

/* Calls `visit` with all that there is of the table, until it fails: ranges that were dropped, then
 * rows, of a large one several changes. Positions are 0. DATA_LOSS if something is damaged. Blocks,
 * and so may `visit`. */
status origin_copy_read(struct origin_copy *copy, struct table *table,
                        status (*visit)(void *context, const struct origin_change *change),
                        void *context);

#endif
