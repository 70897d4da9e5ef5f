/* Work that nobody waits for: one thread that makes a round once a second, and when it is told to;
 * and a pool for what may take long.
 *
 * The round is short. What it does itself is bounded by the number of tables and tablets: of rows
 * it reads a few dozen keys to split, and those that heat has time for, and it writes to the
 * catalog and what heat keeps. It does so in this order:
 *
 *     noticing that the clock was set (clock_watch.h)
 *     dooming deleted tables that are kept no longer (deletions.h)
 *     splitting and merging tablets (balance.h)
 *     what rows were asked for: ranges, keeping, hot tablets (heat.h); tables' traffic (traffic.h)
 *     tokens that are too old
 *
 * and ten times a second it looks which tables have come to rest (idle_compaction.h). What is done
 * to one row, or because somebody asked, is others': row maintenance and rows read in pieces
 * (row_jobs.h, row_rewrite.h), scrubbing (scrub.h), backups, repairs, and what is done for
 * Datastore's databases.
 *
 * What rewrites data is a job on the pool, in pieces (os/job_pool.h). The round, or
 * whoever has made something to do, submits it; it neither waits for jobs nor looks at what is
 * theirs, so a drop of 100 GB delays no split, no window of heat, and no garbage collection. The
 * kinds, from the most urgent on:
 *
 *     dropped tables      their keyspaces and files: a table a piece (deletions.c)
 *     garbage collection  64 MiB of a table a piece, and of each table a piece a second (gc_pass.h)
 *     idle compaction     a table at rest of at most 512 MiB as a whole (idle_compaction.h):
 *                         each of several pieces would rewrite what the one before it has written
 *     dropped rows        64 MiB of a range of rows that was dropped a piece (drop_pass.h), until
 *                         nothing is left of it and it is forgotten
 *
 * Of each kind one piece runs at a time, and of each table, on two threads: compactions run on the
 * store's own threads, which these wait for, and two at most are taken from its other compactions.
 * (Two of the same files would wait for each other in the store.) No clock decides what comes next;
 * what is due every so often is so by the steady clock, and for how long pieces took is told by it.
 *
 * A job holds its table by a reference, so the table's keyspaces stay; that a table is dropped it
 * sees between pieces. It takes `admin` and row locks as any request may, and is called with no
 * lock held. A keyspace that is damaged and left alone, or a store that is fenced, refuses the
 * compaction or does none: the job ends, and what time or traffic asks for is asked for anew.
 *
 * At a stop the thread ends first, then compactions that are under way are interrupted, then the
 * jobs are waited for: as long as it takes to look at a few rows more. What was left is done after
 * the next start, or needs no doing. */
#ifndef TRESTLE_CLUSTER_MAINTENANCE_H
#define TRESTLE_CLUSTER_MAINTENANCE_H

#include "base/status.h"
#include "os/job_pool.h"

#include <stdbool.h>

struct cluster;
struct table;
struct maintenance;

/* By falling urgency. */
enum maintenance_kind {
    MAINTENANCE_DROPPED_TABLES,
    MAINTENANCE_GARBAGE_COLLECTION,
    MAINTENANCE_IDLE_COMPACTION,
    MAINTENANCE_DROPPED_ROWS,
    MAINTENANCE_KINDS,
};

/* `*out` is the cluster's, and set before the thread runs, which looks there. */
status maintenance_start(struct cluster *cluster, struct maintenance **out);
/* Ends the thread and the pool; see above. NULL is fine. */
void maintenance_stop(struct maintenance *maintenance);

/* Soon, instead of within the second. Any thread. */
void maintenance_wake(struct maintenance *maintenance);

/* A round that begins after the call, and waits until it is over: not for jobs. Blocks; for tests,
 * as the next. */
void maintenance_run_round(struct maintenance *maintenance);
/* The same, and waits until the jobs have ended that there are then. */
void maintenance_run_once(struct maintenance *maintenance);

/* Whether it has been told to stop: for rounds and pieces that take long. */
bool maintenance_is_stopping(struct maintenance *maintenance);

/* --- jobs --- */

/* Submits a job that is a member of the table, and takes a reference, which its `ended` releases.
 * Nothing while the cluster opens or closes. Any thread that holds the table. */
void maintenance_submit(struct maintenance *maintenance, struct table *table, struct pool_job *job);

/* How large the pieces of jobs are that can be cut. */
uint64_t maintenance_piece_bytes(const struct cluster *cluster);

/* A piece has failed; `what` is put off. Takes the status. Tells nothing of an interruption. */
void maintenance_tell_failure(struct table *table, status s, const char *what);

/* Sets what is counted of jobs. NULL is fine. */
struct metrics;
void maintenance_measure(struct maintenance *maintenance, struct metrics *metrics);

#endif
