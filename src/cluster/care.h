/* Rows that want care (tablet/row_care.h): who notices them, and who looks after them.
 *
 * Noticed by the commit queue, which sees what is written, and by reads, which see records that are
 * large. A job waits for the row's lock, then runs on a pool for this, which all shards share:
 * while a job, or an update, holds a row lock it may need a thread, and threads of the common pool
 * may all be waiting for row locks (DropRowRange). Threads of this pool never wait for one.
 *
 * Nothing depends on a job being done: there are at most JOBS_AT_ONCE, and what is not taken now is
 * noticed again, or met by the pass over rows at rest (gc_pass.h). */
#ifndef TRESTLE_CLUSTER_CARE_H
#define TRESTLE_CLUSTER_CARE_H

#include "cluster/cluster.h"
#include "os/pool.h"
#include "tablet/commit_observer.h"

struct care;
struct shard;

status care_create(struct shard *shard, struct care **out);
/* Takes no more jobs, and waits for those there are; updates that read must have ended. NULL is
 * fine. */
void care_stop(struct care *care);
void care_destroy(struct care *care); /* after the commit queue is gone; NULL is fine */

/* Notices what is written to rows of tables: of the queue, all of whose changes have a table. */
struct commit_observer care_observer(struct care *care);

/* A reader found that the row wants care. Any thread that holds the table. */
void care_request(struct care *care, struct table *table, bytes row_key);

/* Looks after a row that is at rest, now and to its end: some thousand cells at a time, with the
 * row's lock in between free. Blocks; for maintenance, which holds no row lock. */
status care_tend(struct table *table, bytes row_key);

/* The same for a row of a table whose deletions are recorded: deletes what its rules condemn, by
 * commits. */
status care_collect(struct table *table, bytes row_key);

/* For reads of updates that miss the cache. */
struct pool *care_pool(struct care *care);

#endif
