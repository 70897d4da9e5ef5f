/* Rows that want maintenance (tablet/row_maintenance.h): what notices them, and what looks after
 * them.
 *
 * Noticed by the commit queue, which sees what is written, and by reads, which see records that are
 * large. A job waits for the row's lock, then runs on a pool for this, which all shards share:
 * while a job, or an update, holds a row lock it may need a thread, and threads of the common pool
 * may all be waiting for row locks (a repair). Threads of this pool never wait for one.
 *
 * Nothing depends on a job being done: there are at most JOBS_AT_ONCE, and what is not taken now is
 * noticed again, or met by the pass over rows at rest (gc_pass.h). */
#ifndef TRESTLE_CLUSTER_ROW_JOBS_H
#define TRESTLE_CLUSTER_ROW_JOBS_H

#include "cluster/cluster.h"
#include "os/pool.h"
#include "tablet/commit_observer.h"

struct row_jobs;
struct shard;

status row_jobs_create(struct shard *shard, struct row_jobs **out);
/* Takes no more jobs, and waits for those there are; updates that read must have ended. NULL is
 * fine. */
void row_jobs_stop(struct row_jobs *row_jobs);
void row_jobs_destroy(struct row_jobs *row_jobs); /* after the commit queue is gone; NULL is fine */

/* Notices what is written to rows of tables: of the queue, all of whose changes have a table. */
struct commit_observer row_jobs_observer(struct row_jobs *row_jobs);

/* A reader found that the row wants maintenance. Any thread that holds the table. */
void row_jobs_request(struct row_jobs *row_jobs, struct table *table, bytes row_key);

/* Looks after a row that is at rest, now and to its end: some thousand cells at a time, with the
 * row's lock in between free. Blocks; for maintenance, which holds no row lock. */
status row_jobs_maintain(struct table *table, bytes row_key);

/* The same for a row of a table whose deletions are recorded: deletes what its rules condemn, by
 * commits. */
status row_jobs_collect(struct table *table, bytes row_key);

/* The pool for reads of updates that miss the cache. */
struct pool *row_jobs_pool(struct row_jobs *row_jobs);

#endif
