/* Jobs in pieces: see job_pool.h.
 *
 * Invariants
 *  1. All fields after `mutex` are guarded by it, and so is the pool's part of each job that is not
 *     idle.
 *  2. A job that waits is in the list of its kind, once; one that runs is in none, and one thread
 *     runs it.
 *  3. No more pieces of a kind run than may at once.
 *  4. Of an owner's jobs one runs at a time.
 *  5. What is due first begins first, of what may begin. A job is due when as many pieces as its
 *     kind has patience for have begun since it came; so the list of a kind is in the order in
 * which its jobs are due.
 *  6. While a job may begin and a thread sleeps, one of these has been woken. */
#include "os/job_pool.h"

#include "base/check.h"
#include "base/clock.h"
#include "os/thread.h"

#include <pthread.h>
#include <stdlib.h>

struct kind {
    struct job_kind may;
    struct list jobs; /* that wait */
    struct job_counts counts;
};

struct worker {
    struct job_pool *pool;
    pthread_t thread;
    uint64_t number;   /* of the job that it has; 0: none */
    const void *owner; /* of that, while it runs */
};

struct job_pool {
    uint32_t magic;
    unsigned worker_count; /* threads that were started */
    unsigned kind_count;

    pthread_mutex_t mutex;
    pthread_cond_t wake;
    pthread_cond_t ended; /* some job has */
    bool is_stopping;
    uint64_t begun;     /* pieces, since the start */
    uint64_t submitted; /* jobs, since the start */
    struct kind kinds[JOB_KINDS_MOST];
    struct worker workers[];
};

#define JOB_POOL_MAGIC 0x4a4f4253u

/* --- what waits; with the mutex held --- */

static struct pool_job *job_at(struct link *const *place)
{
    return LIST_ENTRY(*place, struct pool_job, link);
}

static void queue(struct job_pool *pool, struct pool_job *job)
{
    DCHECK(check_is_held(&pool->mutex) && job->state != JOB_QUEUED);
    struct kind *kind = &pool->kinds[job->kind];
    job->state = JOB_QUEUED;
    job->is_asked_anew = false;
    job->due = pool->begun + kind->may.patience;
    list_append(&kind->jobs, &job->link);
    kind->counts.queued++;
}

/* Whether no job of the owner runs. */
static bool is_free(const struct job_pool *pool, const void *owner)
{
    for (unsigned i = 0; owner != NULL && i < pool->worker_count; i++)
        if (pool->workers[i].owner == owner)
            return false;
    return true;
}

/* Where the first of the kind is that may begin; NULL: none may. */
static struct link **find_in(struct job_pool *pool, struct kind *kind)
{
    if (kind->counts.running >= kind->may.at_once)
        return NULL;
    for (struct link **at = &kind->jobs.first; *at != NULL; at = &(*at)->next)
        if (is_free(pool, job_at(at)->owner))
            return at;
    return NULL;
}

/* Where the next job is; NULL: none may begin. */
static struct link **find_next(struct job_pool *pool)
{
    DCHECK(check_is_held(&pool->mutex));
    struct link **next = NULL;
    for (unsigned i = 0; i < pool->kind_count; i++) {
        struct link **at = find_in(pool, &pool->kinds[i]);
        if (at != NULL && (next == NULL || job_at(at)->due < job_at(next)->due))
            next = at;
    }
    return next;
}

static struct pool_job *take_at(struct job_pool *pool, struct link **place)
{
    struct pool_job *job = job_at(place);
    struct kind *kind = &pool->kinds[job->kind];
    DCHECK(job->state == JOB_QUEUED && kind->counts.queued > 0 && is_free(pool, job->owner));
    list_take_at(&kind->jobs, place);
    job->state = JOB_RUNNING;
    kind->counts.queued--;
    kind->counts.running++;
    kind->counts.begun++;
    pool->begun++;
    DCHECK(kind->counts.running <= kind->may.at_once);
    return job;
}

/* --- the threads --- */

/* The next job, which is the worker's; NULL when the pool has stopped. With the mutex held. */
static struct pool_job *next_job(struct worker *worker)
{
    struct job_pool *pool = worker->pool;
    struct link **place = NULL;
    while (!pool->is_stopping && (place = find_next(pool)) == NULL)
        pthread_cond_wait(&pool->wake, &pool->mutex);
    if (pool->is_stopping)
        return NULL;
    struct pool_job *job = take_at(pool, place);
    worker->number = job->number;
    worker->owner = job->owner;
    if (find_next(pool) != NULL)
        pthread_cond_signal(&pool->wake);
    return job;
}

/* Whether nothing is left of the job, which is idle then. With the mutex held. */
static bool end_piece(struct job_pool *pool, struct pool_job *job, bool is_more, int64_t took_us)
{
    struct kind *kind = &pool->kinds[job->kind];
    DCHECK(job->state == JOB_RUNNING && kind->counts.running > 0);
    kind->counts.running--;
    kind->counts.took_us += took_us;
    if (pool->is_stopping || (!is_more && !job->is_asked_anew)) {
        job->state = JOB_IDLE;
        job->is_asked_anew = false;
        return true;
    }
    queue(pool, job);
    return false;
}

/* With the mutex held, which it lets go of meanwhile. */
static void run_piece(struct worker *worker, struct pool_job *job)
{
    struct job_pool *pool = worker->pool;
    pthread_mutex_unlock(&pool->mutex);
    int64_t began_us = clock_steady_us(clock_system());
    bool is_more = job->run(job);
    int64_t took_us = clock_steady_us(clock_system()) - began_us;
    void (*ended)(struct pool_job *) = job->ended;
    pthread_mutex_lock(&pool->mutex);
    worker->owner = NULL;
    if (end_piece(pool, job, is_more, took_us)) {
        pthread_mutex_unlock(&pool->mutex);
        ended(job);
        pthread_mutex_lock(&pool->mutex);
    }
    worker->number = 0;
    pthread_cond_broadcast(&pool->ended);
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    struct pool_job *job;
    pthread_mutex_lock(&worker->pool->mutex);
    while ((job = next_job(worker)) != NULL)
        run_piece(worker, job);
    pthread_mutex_unlock(&worker->pool->mutex);
    return NULL;
}

/* --- life --- */

static void set_kinds(struct job_pool *pool, const struct job_kind *kinds, unsigned count)
{
    CHECK(count > 0 && count <= JOB_KINDS_MOST);
    pool->kind_count = count;
    for (unsigned i = 0; i < count; i++) {
        CHECK(kinds[i].at_once > 0);
        pool->kinds[i].may = kinds[i];
    }
}

status job_pool_create(unsigned threads, const struct job_kind *kinds, unsigned count,
                       const char *name, struct job_pool **out)
{
    *out = NULL;
    CHECK(threads > 0);
    struct job_pool *pool = calloc(1, sizeof *pool + threads * sizeof pool->workers[0]);
    if (pool == NULL)
        return status_out_of_memory();
    pool->magic = JOB_POOL_MAGIC;
    set_kinds(pool, kinds, count);
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->wake, NULL);
    pthread_cond_init(&pool->ended, NULL);
    for (unsigned i = 0; i < threads; i++) {
        struct worker *worker = &pool->workers[i];
        worker->pool = pool;
        status s = thread_start(&worker->thread, name, work, worker);
        if (!status_is_ok(s)) {
            job_pool_stop(pool);
            job_pool_destroy(pool);
            return s;
        }
        pool->worker_count++;
    }
    *out = pool;
    return status_ok();
}

/* The next of those that wait, which is idle now; NULL: none does. */
static struct pool_job *give_up_next(struct job_pool *pool)
{
    struct pool_job *job = NULL;
    pthread_mutex_lock(&pool->mutex);
    for (unsigned i = 0; i < pool->kind_count && job == NULL; i++) {
        struct link *link = list_take(&pool->kinds[i].jobs);
        if (link != NULL) {
            job = LIST_ENTRY(link, struct pool_job, link);
            job->state = JOB_IDLE;
            pool->kinds[i].counts.queued--;
        }
    }
    pthread_mutex_unlock(&pool->mutex);
    return job;
}

void job_pool_stop(struct job_pool *pool)
{
    CHECK_MAGIC(pool, JOB_POOL_MAGIC);
    pthread_mutex_lock(&pool->mutex);
    DCHECK(!pool->is_stopping);
    pool->is_stopping = true;
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->mutex);
    struct pool_job *job;
    while ((job = give_up_next(pool)) != NULL)
        job->ended(job);
    for (unsigned i = 0; i < pool->worker_count; i++)
        pthread_join(pool->workers[i].thread, NULL);
    pthread_mutex_lock(&pool->mutex);
    pthread_cond_broadcast(&pool->ended);
    pthread_mutex_unlock(&pool->mutex);
}

bool job_pool_is_stopping(struct job_pool *pool)
{
    CHECK_MAGIC(pool, JOB_POOL_MAGIC);
    pthread_mutex_lock(&pool->mutex);
    bool is_stopping = pool->is_stopping;
    pthread_mutex_unlock(&pool->mutex);
    return is_stopping;
}

void job_pool_destroy(struct job_pool *pool)
{
    if (pool == NULL)
        return;
    CHECK_MAGIC(pool, JOB_POOL_MAGIC);
    DCHECK(pool->is_stopping);
    pthread_cond_destroy(&pool->ended);
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->mutex);
    pool->magic = 0;
    free(pool);
}

/* --- what is asked of it --- */

bool job_pool_submit(struct job_pool *pool, struct pool_job *job)
{
    CHECK_MAGIC(pool, JOB_POOL_MAGIC);
    CHECK(job->kind < pool->kind_count && job->run != NULL && job->ended != NULL);
    pthread_mutex_lock(&pool->mutex);
    bool is_new = job->state == JOB_IDLE && !pool->is_stopping;
    job->is_asked_anew = job->state == JOB_RUNNING;
    if (is_new) {
        job->number = ++pool->submitted;
        queue(pool, job);
        pthread_cond_signal(&pool->wake);
    }
    pthread_mutex_unlock(&pool->mutex);
    return is_new;
}

/* Whether a job of that number or an older one has not ended. With the mutex held. */
static bool is_any_left(struct job_pool *pool, uint64_t number)
{
    DCHECK(check_is_held(&pool->mutex));
    for (unsigned i = 0; i < pool->worker_count; i++)
        if (pool->workers[i].number != 0 && pool->workers[i].number <= number)
            return true;
    for (unsigned i = 0; i < pool->kind_count; i++)
        for (struct link *at = pool->kinds[i].jobs.first; at != NULL; at = at->next)
            if (LIST_ENTRY(at, struct pool_job, link)->number <= number)
                return true;
    return false;
}

void job_pool_wait(struct job_pool *pool)
{
    CHECK_MAGIC(pool, JOB_POOL_MAGIC);
    pthread_mutex_lock(&pool->mutex);
    uint64_t number = pool->submitted;
    while (is_any_left(pool, number))
        pthread_cond_wait(&pool->ended, &pool->mutex);
    pthread_mutex_unlock(&pool->mutex);
}

struct job_counts job_pool_counts(struct job_pool *pool, unsigned kind)
{
    CHECK_MAGIC(pool, JOB_POOL_MAGIC);
    CHECK(kind < pool->kind_count);
    pthread_mutex_lock(&pool->mutex);
    struct job_counts counts = pool->kinds[kind].counts;
    pthread_mutex_unlock(&pool->mutex);
    return counts;
}
