/* Work that nobody waits for: one thread that wakes once a second, and when it is told to.
 *
 *     putting tables together that have come to rest (settle.h): looked at ten times a second
 *     dropping deleted tables that are kept no longer (deletions.h)
 *     giving back the space of dropped row ranges
 *     splitting and merging tablets (balance.h)
 *     what rows were asked for: ranges, keeping, hot tablets (heat.h)
 *     collecting garbage without traffic (gc_pass.h) */
#ifndef TRESTLE_CLUSTER_MAINTENANCE_H
#define TRESTLE_CLUSTER_MAINTENANCE_H

#include "base/bytes.h"
#include "base/status.h"

struct cluster;
struct table;
struct maintenance;

/* `*out` is the cluster's, and set before the thread runs, which looks there. */
status maintenance_start(struct cluster *cluster, struct maintenance **out);
/* Ends the thread after what it is at. What was left is done after the next start, or needs no
 * doing. NULL is fine. */
void maintenance_stop(struct maintenance *maintenance);

/* Soon, instead of within the second. Any thread. */
void maintenance_wake(struct maintenance *maintenance);

/* The same, and waits until it has seen to everything once. Blocks; for tests. */
void maintenance_run_once(struct maintenance *maintenance);

/* Gives back the space of rows that were deleted by prefix (empty: all). Without memory the space
 * comes back by ordinary compaction, later. */
void maintenance_reclaim(struct maintenance *maintenance, struct table *table, bytes prefix);

/* Whether it has been told to stop: for passes that take long. */
bool maintenance_is_stopping(struct maintenance *maintenance);

#endif
