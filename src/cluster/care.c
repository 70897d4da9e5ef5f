/* See care.h. `lock` guards the list of jobs. */
#include "cluster/care.h"

#include "base/check.h"
#include "cluster/cluster_private.h"
#include "tablet/hot_rows.h"
#include "tablet/row_care.h"

#include <stdlib.h>

enum {
    JOBS_AT_ONCE = 32,
};

struct care {
    struct shard *shard;
    struct hot_rows *hot; /* the commit thread's */
    pthread_mutex_t lock;
    pthread_cond_t idle;
    struct job *jobs[JOBS_AT_ONCE]; /* NULL: none */
    size_t job_count;
    bool is_stopping;
};

struct job {
    struct care *care;
    struct table *table;   /* held */
    struct tablet *tablet; /* held */
    struct row_lock_waiter waiter;
    struct task task;
    uint64_t row_hash;
    size_t key_size;
    uint8_t key[];
};

/* --- jobs --- */

static bool is_taken(const struct care *care, uint64_t row_hash)
{
    DCHECK(check_is_held(&care->lock));
    for (size_t i = 0; i < JOBS_AT_ONCE; i++)
        if (care->jobs[i] != NULL && care->jobs[i]->row_hash == row_hash)
            return true;
    return false;
}

static void put_job(struct care *care, struct job *job)
{
    DCHECK(check_is_held(&care->lock) && care->job_count < JOBS_AT_ONCE);
    size_t at = 0;
    while (care->jobs[at] != NULL)
        at++;
    care->jobs[at] = job;
    care->job_count++;
}

/* A job for the row; NULL if there is one, or are too many. */
static struct job *begin_job(struct care *care, uint64_t row_hash, bytes row_key)
{
    struct job *job = NULL;
    pthread_mutex_lock(&care->lock);
    if (!care->is_stopping && care->job_count < JOBS_AT_ONCE && !is_taken(care, row_hash))
        job = calloc(1, sizeof *job + row_key.size);
    if (job != NULL) {
        job->care = care;
        job->row_hash = row_hash;
        job->key_size = row_key.size;
        memcpy(job->key, row_key.data, row_key.size);
        put_job(care, job);
    }
    pthread_mutex_unlock(&care->lock);
    return job;
}

static void end_job(struct job *job)
{
    struct care *care = job->care;
    DCHECK(row_lock_is_held(care->shard->locks, job->row_hash));
    row_lock_release(care->shard->locks, job->row_hash);
    tablet_release(job->tablet);
    table_release(job->table);
    pthread_mutex_lock(&care->lock);
    DCHECK(care->job_count > 0);
    size_t at = 0;
    while (care->jobs[at] != job)
        at++;
    care->jobs[at] = NULL;
    care->job_count--;
    pthread_cond_signal(&care->idle);
    pthread_mutex_unlock(&care->lock);
    free(job);
}

static struct row_care care_of_row(struct table *table, struct tablet *tablet, uint64_t row_hash,
                                   bytes row_key)
{
    struct cluster *cluster = table->cluster;
    return (struct row_care){.table = table,
                             .tablet = tablet,
                             .keyspace = tablet->keyspace,
                             .row_key = row_key,
                             .row_hash = row_hash,
                             .locks = tablet->shard->locks,
                             .commits = tablet->shard->commits,
                             .spill_bytes = cluster->options.spill_bytes,
                             .rules = &table_description(table)->rules};
}

/* With the row's lock held. */
static status run_care(const struct row_care *care)
{
    DCHECK(row_lock_is_held(care->locks, care->row_hash));
    struct cluster *cluster = care->table->cluster;
    struct row_care_report report;
    status s = row_care_run(care, &report);
    metrics_add(cluster->options.metrics, METRIC_rows_spilled_total, report.spilled);
    return s;
}

static void run_job(struct task *task)
{
    struct job *job = LIST_ENTRY(&task->link, struct job, task.link);
    struct cluster *cluster = job->care->shard->cluster;
    const struct row_care care =
        care_of_row(job->table, job->tablet, job->row_hash, bytes_make(job->key, job->key_size));
    status s = run_care(&care);
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
    DCHECK(row_lock_is_held(job->care->shard->locks, job->row_hash));
    job->task.run = run_job;
    if (!pool_submit(care_pool(job->care), &job->task))
        end_job(job);
}

static void request(struct care *care, struct table *table, uint64_t row_hash, bytes row_key)
{
    struct job *job = begin_job(care, row_hash, row_key);
    if (job == NULL)
        return;
    table_retain(table);
    job->table = table;
    job->tablet = table_route(table, row_key);
    DCHECK(job->tablet->shard == care->shard);
    job->waiter.granted = start_job;
    if (row_lock_acquire(care->shard->locks, row_hash, &job->waiter))
        start_job(&job->waiter);
}

/* --- who notices --- */

void care_request(struct care *care, struct table *table, bytes row_key)
{
    struct tablet *tablet = table_route(table, row_key);
    uint64_t row_hash = row_lock_hash(keyspace_id(tablet->keyspace), row_key);
    tablet_release(tablet);
    request(care, table, row_hash, row_key);
}

static void note_row(struct care *care, const struct commit *row)
{
    if (hot_rows_note(care->hot, row->row_hash, row->change->fragment.size, !row->is_folded))
        request(care, row->table, row->row_hash, row->row_key);
}

static void note_applied(void *context, const struct commit *commit)
{
    note_row(context, commit);
    for (size_t i = 0; i < commit->other_count; i++)
        note_row(context, &commit->others[i]);
}

struct commit_observer care_observer(struct care *care)
{
    return (struct commit_observer){.context = care, .applied = note_applied};
}

/* --- rows at rest --- */

/* Does `step` with the row's lock held, by the rules of then, again and again up to the row's end.
 */
static status walk_row(struct table *table, bytes row_key,
                       status (*step)(const struct row_care *care))
{
    struct cluster *cluster = table->cluster;
    struct tablet *tablet = table_route(table, row_key);
    uint64_t row_hash = row_lock_hash(keyspace_id(tablet->keyspace), row_key);
    struct spill_place place = {.is_long = true};
    status s = status_ok();
    while (status_is_ok(s) && !place.is_over && !maintenance_is_stopping(cluster->maintenance)) {
        struct row_care care = care_of_row(table, tablet, row_hash, row_key);
        care.place = &place;
        row_lock_wait(tablet->shard->locks, row_hash);
        s = step(&care);
        row_lock_release(tablet->shard->locks, row_hash);
    }
    buffer_free(&place.qualifier);
    tablet_release(tablet);
    return s;
}

status care_tend(struct table *table, bytes row_key)
{
    return walk_row(table, row_key, run_care);
}

/* As its deletions left it: a spilled cell that was deleted counts for none. */
static status tidy(const struct row_care *of)
{
    struct spill_place place = {.is_long = true};
    struct row_care care = *of;
    care.place = &place;
    status s = run_care(&care);
    buffer_free(&place.qualifier);
    return s;
}

static status collect(const struct row_care *of)
{
    const struct row_rules rules = {.schema = table_schema(of->table),
                                    .clock = of->table->cluster->options.clock};
    struct row_care care = *of;
    bool collected;
    care.rules = &rules;
    TRY(tidy(of));
    TRY(row_care_collect(&care, &collected));
    return collected ? tidy(of) : status_ok();
}

status care_collect(struct table *table, bytes row_key)
{
    return walk_row(table, row_key, collect);
}

struct pool *care_pool(struct care *care)
{
    return care->shard->cluster->rows;
}

/* --- life --- */

status care_create(struct shard *shard, struct care **out)
{
    struct care *care = *out = calloc(1, sizeof *care);
    if (care == NULL)
        return status_out_of_memory();
    care->shard = shard;
    pthread_mutex_init(&care->lock, NULL);
    pthread_cond_init(&care->idle, NULL);
    status s = hot_rows_create(shard->cluster->options.spill_bytes, &care->hot);
    if (!status_is_ok(s)) {
        care_destroy(care);
        *out = NULL;
    }
    return s;
}

void care_stop(struct care *care)
{
    if (care == NULL)
        return;
    pthread_mutex_lock(&care->lock);
    care->is_stopping = true;
    while (care->job_count > 0)
        pthread_cond_wait(&care->idle, &care->lock);
    pthread_mutex_unlock(&care->lock);
}

void care_destroy(struct care *care)
{
    if (care == NULL)
        return;
    DCHECK(care->job_count == 0);
    hot_rows_destroy(care->hot);
    pthread_cond_destroy(&care->idle);
    pthread_mutex_destroy(&care->lock);
    free(care);
}
