/* A thread pool: see pool.h.
 *
 * Invariants
 *  1. All fields after `mutex` are guarded by it.
 *  2. `queued` is the length of `tasks`. A thread waits only while it is 0.
 *  3. While tasks are queued and threads idle, one of those has been woken. It wakes the next if
 *     there is more to do when it comes: of many tasks that come at once a few threads that are
 *     awake do as much as they can, since waking one costs more than a short task. */
#include "os/pool.h"

#include "base/check.h"
#include "os/thread.h"

#include <pthread.h>
#include <stdlib.h>

struct pool {
    uint32_t magic;
    unsigned thread_count; /* those that were started */
    size_t queue_limit;

    pthread_mutex_t mutex;
    pthread_cond_t wake;
    struct list tasks;
    size_t queued;
    size_t running;
    uint64_t begun;     /* tasks, since the start */
    int64_t waited_us;  /* all of them together, up to `counted_us` */
    int64_t counted_us; /* by the steady clock */
    unsigned idle;      /* threads that wait */
    bool is_waking;     /* one of them has been woken, and has not come yet */
    bool ending;

    pthread_t threads[];
};

#define POOL_MAGIC 0x504f4f4cu

/* Before `queued` changes. With the mutex held. */
static void count_waiting(struct pool *pool)
{
    int64_t now_us = clock_steady_us(clock_system());
    pool->waited_us += (int64_t)pool->queued * (now_us - pool->counted_us);
    pool->counted_us = now_us;
}

/* Whether the caller is to signal `wake`. With the mutex held. */
static bool must_wake(struct pool *pool)
{
    bool must = pool->queued > 0 && pool->idle > 0 && !pool->is_waking;
    if (must)
        pool->is_waking = true;
    return must;
}

/* The next task; NULL when the pool ends and nothing is left. With the mutex held. */
static struct task *next_task(struct pool *pool)
{
    while (pool->queued == 0 && !pool->ending) {
        pool->idle++;
        pthread_cond_wait(&pool->wake, &pool->mutex);
        pool->idle--;
        pool->is_waking = false;
    }
    if (pool->queued == 0)
        return NULL;
    count_waiting(pool);
    pool->queued--;
    pool->begun++;
    return LIST_ENTRY(list_take(&pool->tasks), struct task, link);
}

static void *work(void *argument)
{
    struct pool *pool = argument;
    struct task *task;
    pthread_mutex_lock(&pool->mutex);
    while ((task = next_task(pool)) != NULL) {
        pool->running++;
        bool wakes = must_wake(pool);
        pthread_mutex_unlock(&pool->mutex);
        if (wakes)
            pthread_cond_signal(&pool->wake);
        task->run(task); /* may free or post the task: it is not touched again */
        pthread_mutex_lock(&pool->mutex);
        pool->running--;
    }
    pthread_mutex_unlock(&pool->mutex);
    return NULL;
}

status pool_create(unsigned threads, size_t queue_limit, const char *name, struct pool **out)
{
    *out = NULL;
    CHECK(threads > 0);
    struct pool *pool = malloc(sizeof *pool + threads * sizeof(pthread_t));
    if (pool == NULL)
        return status_out_of_memory();
    *pool = (struct pool){.magic = POOL_MAGIC, .queue_limit = queue_limit};
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->wake, NULL);
    for (; pool->thread_count < threads; pool->thread_count++) {
        status s = thread_start(&pool->threads[pool->thread_count], name, work, pool);
        if (!status_is_ok(s)) {
            pool_destroy(pool);
            return s;
        }
    }
    *out = pool;
    return status_ok();
}

void pool_destroy(struct pool *pool)
{
    if (pool == NULL)
        return;
    CHECK_MAGIC(pool, POOL_MAGIC);
    pthread_mutex_lock(&pool->mutex);
    pool->ending = true;
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->mutex);
    for (unsigned i = 0; i < pool->thread_count; i++)
        pthread_join(pool->threads[i], NULL);
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->mutex);
    pool->magic = 0;
    free(pool);
}

bool pool_submit(struct pool *pool, struct task *task)
{
    CHECK_MAGIC(pool, POOL_MAGIC);
    pthread_mutex_lock(&pool->mutex);
    bool room = pool->queued < pool->queue_limit;
    if (room) {
        count_waiting(pool);
        list_append(&pool->tasks, &task->link);
        pool->queued++;
    }
    bool wakes = must_wake(pool);
    pthread_mutex_unlock(&pool->mutex);
    if (wakes)
        pthread_cond_signal(&pool->wake);
    return room;
}

size_t pool_load(struct pool *pool)
{
    CHECK_MAGIC(pool, POOL_MAGIC);
    pthread_mutex_lock(&pool->mutex);
    size_t load = pool->queued + pool->running;
    pthread_mutex_unlock(&pool->mutex);
    return load;
}

void pool_measure(struct pool *pool, struct metrics *metrics, const struct pool_gauges *gauges)
{
    if (pool == NULL)
        return;
    CHECK_MAGIC(pool, POOL_MAGIC);
    pthread_mutex_lock(&pool->mutex);
    count_waiting(pool);
    size_t queued = pool->queued, running = pool->running;
    uint64_t begun = pool->begun;
    int64_t waited_us = pool->waited_us;
    pthread_mutex_unlock(&pool->mutex);
    metrics_set(metrics, gauges->queued, (int64_t)queued);
    metrics_set(metrics, gauges->running, (int64_t)running);
    metrics_set(metrics, gauges->begun, (int64_t)begun);
    metrics_set(metrics, gauges->waited, waited_us);
}
