/* Threads for long work that nobody waits for: compactions, passes over tables.
 *
 * What is to be done is a job, which is a member of what it works on. It is idle, waits once, or
 * runs: so as many wait at most as there are such things, and neither to submit one nor to go on
 * with it can fail. A job is done in pieces; after each its thread looks anew for what is most
 * urgent, and a job that has more to do waits again, behind the others of its kind. A piece is as
 * long as its job makes it: whoever cuts them short lets others on.
 *
 * Kinds of jobs have a patience each, in pieces: a job is overtaken by no piece that comes later
 * than so many have begun while it waited. So what has little patience comes first, and nothing
 * waits for ever, whatever else there is. No clock is asked for that. And of each kind only so many
 * pieces run at once: one kind alone cannot take all threads. Of jobs that have the same owner one
 * runs at a time; the others let those behind them pass. */
#ifndef TRESTLE_OS_JOB_POOL_H
#define TRESTLE_OS_JOB_POOL_H

#include "base/list.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

enum { JOB_KINDS_MOST = 8 };

struct job_pool;

/* All zeroes but for the first four is idle; these stay as they are. */
struct pool_job {
    unsigned kind;     /* its number in the pool's list */
    const void *owner; /* NULL: none, so it runs beside all others */
    /* Does a piece, and says whether there is more to do. On a thread of the pool, never twice at
     * a time. */
    bool (*run)(struct pool_job *job);
    /* Nothing is left of it, or the pool has stopped: it is idle, and the pool has forgotten it, so
     * it may be freed here, or be waiting again already. On a thread of the pool, or in
     * job_pool_stop. */
    void (*ended)(struct pool_job *job);

    /* The pool's, guarded by its mutex. */
    enum job_state { JOB_IDLE, JOB_QUEUED, JOB_RUNNING } state;
    bool is_asked_anew; /* submitted while it ran */
    struct link link;
    uint64_t due;
    uint64_t number;
};

struct job_kind {
    unsigned patience;
    unsigned at_once; /* at least 1 */
};

/* `threads` at least 1, `count` kinds, 1 to JOB_KINDS_MOST; of two that have waited as long as they
 * may the one with the lower number comes first. `name` is shown with each thread; at most 15 bytes
 * of it. */
status job_pool_create(unsigned threads, const struct job_kind *kinds, unsigned count,
                       const char *name, struct job_pool **out);

/* True: it was idle, and waits now; `ended` will be called. False: it waits already, or runs, and
 * runs once more when that piece is over; or the pool has stopped, and it stays idle. Any thread.
 */
bool job_pool_submit(struct job_pool *pool, struct pool_job *job);

/* Ends what waits, waits for the pieces that run, and ends the threads. These pieces should look at
 * job_pool_is_stopping now and then. What is submitted meanwhile, and later, stays idle. Once. */
void job_pool_stop(struct job_pool *pool);
bool job_pool_is_stopping(struct job_pool *pool);
/* After job_pool_stop. NULL is fine. */
void job_pool_destroy(struct job_pool *pool);

/* Waits until all that was submitted before has ended. For tests, and not in a job. */
void job_pool_wait(struct job_pool *pool);

struct job_counts {
    uint64_t queued;
    uint64_t running;
    uint64_t begun;  /* pieces, since the start */
    int64_t took_us; /* those that are over, all together, by the steady clock */
};
struct job_counts job_pool_counts(struct job_pool *pool, unsigned kind);

#endif
