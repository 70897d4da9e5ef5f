/* See row_jobs.h. `lock` guards the list of jobs. */
#include "cluster/row_jobs.h"

#include "base/check.h"
#include "cluster/cluster_private.h"
#include "tablet/hot_rows.h"
#include "tablet/row_maintenance.h"

#include <stdlib.h>

enum {
    JOBS_AT_ONCE = 32,
};

struct row_jobs {
    struct shard *shard;
    struct hot_rows *hot; /* the commit thread's */
    pthread_mutex_t lock;
    pthread_cond_t idle;
    struct job *jobs[JOBS_AT_ONCE]; /* NULL: none */
    size_t job_count;
    bool is_stopping;
};

struct job {
    struct row_jobs *row_jobs;
    struct table *table;   /* held */
    struct tablet *tablet; /* held */
    struct row_lock_waiter waiter;
    struct task task;
    uint64_t row_hash;
    size_t key_size;
    uint8_t key[];
};

/* --- jobs --- */

static bool is_taken(const struct row_jobs *row_jobs, uint64_t row_hash)
{
    DCHECK(check_is_held(&row_jobs->lock));
    for (size_t i = 0; i < JOBS_AT_ONCE; i++)
        if (row_jobs->jobs[i] != NULL && row_jobs->jobs[i]->row_hash == row_hash)
            return true;
    return false;
}

static void put_job(struct row_jobs *row_jobs, struct job *job)
{
    DCHECK(check_is_held(&row_jobs->lock) && row_jobs->job_count < JOBS_AT_ONCE);
    size_t at = 0;
    while (row_jobs->jobs[at] != NULL)
        at++;
    row_jobs->jobs[at] = job;
    row_jobs->job_count++;
}

/* A job for the row; NULL if there is one, or are too many. */
static struct job *begin_job(struct row_jobs *row_jobs, uint64_t row_hash, bytes row_key)
{
    struct job *job = NULL;
    pthread_mutex_lock(&row_jobs->lock);
    if (!row_jobs->is_stopping && row_jobs->job_count < JOBS_AT_ONCE &&
        !is_taken(row_jobs, row_hash))
        job = calloc(1, sizeof *job + row_key.size);
    if (job != NULL) {
        job->row_jobs = row_jobs;
        job->row_hash = row_hash;
        job->key_size = row_key.size;
        memcpy(job->key, row_key.data, row_key.size);
        put_job(row_jobs, job);
    }
    pthread_mutex_unlock(&row_jobs->lock);
    return job;
}

static void end_job(struct job *job)
{
    struct row_jobs *row_jobs = job->row_jobs;
    DCHECK(row_lock_is_held(row_jobs->shard->locks, job->row_hash));
    row_lock_release(row_jobs->shard->locks, job->row_hash);
    tablet_release(job->tablet);
    table_release(job->table);
    pthread_mutex_lock(&row_jobs->lock);
    DCHECK(row_jobs->job_count > 0);
    size_t at = 0;
    while (row_jobs->jobs[at] != job)
        at++;
    row_jobs->jobs[at] = NULL;
    row_jobs->job_count--;
    pthread_cond_signal(&row_jobs->idle);
    pthread_mutex_unlock(&row_jobs->lock);
    free(job);
}

static struct row_maintenance maintenance_of_row(struct table *table, struct tablet *tablet,
                                                 uint64_t row_hash, bytes row_key)
{
    struct cluster *cluster = table->cluster;
    return (struct row_maintenance){.table = table,
                                    .tablet = tablet,
                                    .keyspace = tablet->keyspace,
                                    .row_key = row_key,
                                    .row_hash = row_hash,
                                    .locks = tablet->shard->locks,
                                    .commits = tablet->shard->commits,
                                    .overflow_bytes = cluster->options.overflow_bytes,
                                    .rules = table_rules(table, tablet->keyspace),
                                    .drops = table_drops(table, tablet->keyspace)};
}

/* With the row's lock held. */
static status run_maintenance(const struct row_maintenance *row_jobs)
{
    DCHECK(row_lock_is_held(row_jobs->locks, row_jobs->row_hash));
    struct cluster *cluster = row_jobs->table->cluster;
    struct row_maintenance_report report;
    status s = row_maintenance_run(row_jobs, &report);
    metrics_add(cluster->options.metrics, METRIC_rows_spilled_total, report.overflow);
    return s;
}

static void run_job(struct task *task)
{
    struct job *job = LIST_ENTRY(&task->link, struct job, task.link);
    struct cluster *cluster = job->row_jobs->shard->cluster;
    const struct row_maintenance row_jobs = maintenance_of_row(
        job->table, job->tablet, job->row_hash, bytes_make(job->key, job->key_size));
    status s = run_maintenance(&row_jobs);
    if (!status_is_ok(s))
        log_warn(cluster->options.log, "a large or busy row stays as it is for now",
                 LOG_STR("table", job->table->name), LOG_STR("cause", status_message(s)));
    status_free(s);
    end_job(job);
}

/* With the row's lock held, on any thread. */
static void start_job(struct row_lock_waiter *waiter)
{
    struct job *job = LIST_ENTRY(&waiter->link, struct job, waiter.link);
    DCHECK(row_lock_is_held(job->row_jobs->shard->locks, job->row_hash));
    job->task.run = run_job;
    if (!pool_submit(row_jobs_pool(job->row_jobs), &job->task))
        end_job(job);
}

static void request(struct row_jobs *row_jobs, struct table *table, uint64_t row_hash,
                    bytes row_key)
{
    struct job *job = begin_job(row_jobs, row_hash, row_key);
    if (job == NULL)
        return;
    table_retain(table);
    job->table = table;
    job->tablet = table_route(table, row_key);
    DCHECK(job->tablet->shard == row_jobs->shard);
    job->waiter.granted = start_job;
    if (row_lock_acquire(row_jobs->shard->locks, row_hash, &job->waiter))
        start_job(&job->waiter);
}

/* --- noticing rows --- */

void row_jobs_request(struct row_jobs *row_jobs, struct table *table, bytes row_key)
{
    struct tablet *tablet = table_route(table, row_key);
    uint64_t row_hash = row_lock_hash(keyspace_id(tablet->keyspace), row_key);
    tablet_release(tablet);
    request(row_jobs, table, row_hash, row_key);
}

static void note_row(struct row_jobs *row_jobs, const struct commit *row)
{
    if (hot_rows_note(row_jobs->hot, row->row_hash, row->change->fragment.size, !row->is_folded))
        request(row_jobs, row->table, row->row_hash, row->row_key);
}

static void note_applied(void *context, const struct commit *commit)
{
    note_row(context, commit);
    for (size_t i = 0; i < commit->other_count; i++)
        note_row(context, &commit->others[i]);
}

struct commit_observer row_jobs_observer(struct row_jobs *row_jobs)
{
    return (struct commit_observer){.context = row_jobs, .applied = note_applied};
}

/* --- rows at rest --- */

/* Does `step` with the row's lock held, by the rules of then, again and again up to the row's end.
 */
static status walk_row(struct table *table, bytes row_key,
                       status (*step)(const struct row_maintenance *row_jobs))
{
    struct cluster *cluster = table->cluster;
    struct tablet *tablet = table_route(table, row_key);
    uint64_t row_hash = row_lock_hash(keyspace_id(tablet->keyspace), row_key);
    struct overflow_place place = {.bypasses_cache = true};
    status s = status_ok();
    while (status_is_ok(s) && !place.is_over && !maintenance_is_stopping(cluster->maintenance)) {
        struct row_maintenance row_jobs = maintenance_of_row(table, tablet, row_hash, row_key);
        row_jobs.place = &place;
        row_lock_wait(tablet->shard->locks, row_hash);
        s = step(&row_jobs);
        row_lock_release(tablet->shard->locks, row_hash);
    }
    buffer_free(&place.qualifier);
    tablet_release(tablet);
    return s;
}

status row_jobs_maintain(struct table *table, bytes row_key)
{
    return walk_row(table, row_key, run_maintenance);
}

/* As its deletions left it: an overflow cell that was deleted counts for none. */
static status tidy(const struct row_maintenance *of)
{
    struct overflow_place place = {.bypasses_cache = true};
    struct row_maintenance row_jobs = *of;
    row_jobs.place = &place;
    status s = run_maintenance(&row_jobs);
    buffer_free(&place.qualifier);
    return s;
}

static status collect(const struct row_maintenance *of)
{
    const struct row_rules rules = {.schema = table_schema(of->table),
                                    .clock = of->table->cluster->options.clock};
    struct row_maintenance row_jobs = *of;
    bool collected;
    row_jobs.rules = &rules;
    TRY(tidy(of));
    TRY(row_maintenance_collect(&row_jobs, &collected));
    return collected ? tidy(of) : status_ok();
}

status row_jobs_collect(struct table *table, bytes row_key)
{
    return walk_row(table, row_key, collect);
}

struct pool *row_jobs_pool(struct row_jobs *row_jobs)
{
    return row_jobs->shard->cluster->rows;
}

/* --- life --- */

status row_jobs_create(struct shard *shard, struct row_jobs **out)
{
    struct row_jobs *row_jobs = *out = calloc(1, sizeof *row_jobs);
    if (row_jobs == NULL)
        return status_out_of_memory();
    row_jobs->shard = shard;
    pthread_mutex_init(&row_jobs->lock, NULL);
    pthread_cond_init(&row_jobs->idle, NULL);
    status s = hot_rows_create(shard->cluster->options.overflow_bytes, &row_jobs->hot);
    if (!status_is_ok(s)) {
        row_jobs_destroy(row_jobs);
        *out = NULL;
    }
    return s;
}

void row_jobs_stop(struct row_jobs *row_jobs)
{
    if (row_jobs == NULL)
        return;
    pthread_mutex_lock(&row_jobs->lock);
    row_jobs->is_stopping = true;
    while (row_jobs->job_count > 0)
        pthread_cond_wait(&row_jobs->idle, &row_jobs->lock);
    pthread_mutex_unlock(&row_jobs->lock);
}

void row_jobs_destroy(struct row_jobs *row_jobs)
{
    if (row_jobs == NULL)
        return;
    DCHECK(row_jobs->job_count == 0);
    hot_rows_destroy(row_jobs->hot);
    pthread_cond_destroy(&row_jobs->idle);
    pthread_mutex_destroy(&row_jobs->lock);
    free(row_jobs);
}
