/* Threads for work that may block: reads that miss the cache, administration, maintenance.
 *
 * Tasks start in the order they came; the queue is bounded. Work that may hold a thread for long
 * (maintenance) gets a pool of its own, so that reads never wait behind it. */
#ifndef TRESTLE_OS_POOL_H
#define TRESTLE_OS_POOL_H

#include "base/metrics.h"
#include "os/loop.h"

struct pool;

/* `threads` at least 1. `queue_limit`: tasks that may wait for a thread. `name` is shown with each
 * thread; at most 15 bytes of it. */
status pool_create(unsigned threads, size_t queue_limit, const char *name, struct pool **out);

/* Runs what is queued, then ends the threads. Only the pool's own tasks may still submit. NULL is
 * fine. */
void pool_destroy(struct pool *pool);

/* False if the queue is full: the caller then answers pool_full or tries later. Any thread. */
__attribute__((warn_unused_result)) bool pool_submit(struct pool *pool, struct task *task);

/* RESOURCE_EXHAUSTED, with RetryInfo. */
static inline status pool_full(void)
{
    enum { RETRY_MS = 100 };
    status s = status_make(STATUS_RESOURCE_EXHAUSTED, "Too many requests wait for a thread");
    status_add_retry_info(&s, RETRY_MS);
    return s;
}

/* Tasks queued and running. Any thread. */
size_t pool_load(struct pool *pool);

/* Sets what is counted of the pool: tasks queued and running now, those begun, and how long all
 * have waited. Any thread; NULL is fine. */
struct pool_gauges {
    enum metric queued;
    enum metric running;
    enum metric begun;
    enum metric waited;
};
void pool_measure(struct pool *pool, struct metrics *metrics, const struct pool_gauges *gauges);

/* The gauges of the pool that metrics.def calls so. */
#define POOL_GAUGES(pool)                                                                          \
    (&(const struct pool_gauges){METRIC_pool_queued_##pool, METRIC_pool_running_##pool,            \
                                 METRIC_pool_tasks_total_##pool,                                   \
                                 METRIC_pool_wait_seconds_total_##pool})

#endif
