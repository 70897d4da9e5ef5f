/* What commits leave in the feeds of tables that views read (view_feed.h): an entry for each row of
 * a viewed table that a commit of rows changes, and a range where
 *
 *   - rows are dropped (DropRowRange): one range for each of the table's keyspaces;
 *   - something damaged is deleted, or filled again: all of the table;
 *   - rules of garbage collection change: all of the table. What a former rule hid may be there
 *     again, and no commit brings it back;
 *   - a family is dropped: all of the table, too. Rows that had cells of that one alone are gone.
 *
 * The stream's observer asks for it (stream/stream_observer.c), which puts what was prepared. */
#ifndef TRESTLE_CLUSTER_VIEW_VIEW_OBSERVER_H
#define TRESTLE_CLUSTER_VIEW_VIEW_OBSERVER_H

#include "tablet/commit_observer.h"

struct shard;

/* On the commit thread. False without memory: stream_log_cancel takes back what was prepared. */
bool view_observer_prepare(struct shard *shard, const struct commit *commit,
                           const struct store_batch *records);

#endif
