/* Threads for work that may block: reads that miss the cache, administration, maintenance.
 *
 * Tasks start in the order they came, per priority; the queue is bounded. */
#ifndef TRESTLE_OS_POOL_H
#define TRESTLE_OS_POOL_H

#include "os/loop.h"

struct pool;

status pool_create(unsigned threads, size_t queue_limit, const char *name, struct pool **out);

/* Runs what is queued, then ends the threads. */
void pool_destroy(struct pool *pool);

/* False if the queue is full: the caller then answers RESOURCE_EXHAUSTED or tries later. Any
 * thread. */
__attribute__((warn_unused_result)) bool pool_submit(struct pool *pool, struct task *task);

/* Tasks queued and running, for metrics. */
size_t pool_load(const struct pool *pool);

#endif
