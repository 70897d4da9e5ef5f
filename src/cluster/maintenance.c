/* See maintenance.h.
 *
 * `lock` guards what other threads touch: the two flags, the count of rounds. */
#include "cluster/maintenance.h"

#include "base/check.h"
#include "cluster/balance.h"
#include "cluster/cluster_private.h"
#include "cluster/deletions.h"
#include "cluster/drop_pass.h"
#include "cluster/gc_pass.h"
#include "cluster/stream/stream_upkeep.h"
#include "os/thread.h"

#include <stdlib.h>
#include <time.h>

enum {
    SECOND_US = 1000 * 1000,
    TURNS_A_ROUND = 10,
    THREADS = 2,
    PIECE_BYTES = 64 << 20,
};

/* What is more urgent has less patience; a few pieces of collection, or one after the other of
 * tables that come to rest, go before one of dropped rows. */
static const struct job_kind KINDS[MAINTENANCE_KINDS] = {
    [MAINTENANCE_DROPPED_TABLES] = {.patience = 0, .at_once = 1},
    [MAINTENANCE_GARBAGE_COLLECTION] = {.patience = 2, .at_once = 1},
    [MAINTENANCE_IDLE_COMPACTION] = {.patience = 4, .at_once = 1},
    [MAINTENANCE_DROPPED_ROWS] = {.patience = 8, .at_once = 1},
};

struct maintenance {
    uint32_t magic;
    struct cluster *cluster;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    pthread_cond_t round_over;
    bool is_awake; /* there is something to do at once */
    bool is_stopping;
    unsigned turns; /* since the last round */
    uint64_t rounds_begun;
    uint64_t rounds_over;
    struct job_pool *jobs;
    struct pool_job dropping; /* of dropped tables */
};

#define MAINTENANCE_MAGIC 0x6d61696eu

static void delete_token_records(struct cluster *cluster)
{
    status s = status_ok();
    for (size_t i = 0; i < cluster->shard_count && status_is_ok(s); i++)
        s = tokens_delete_records(cluster->shards[i]->tokens);
    if (!status_is_ok(s))
        log_warn(cluster->options.log, "records of idempotency tokens are kept for now",
                 LOG_STR("cause", status_message(s)));
    status_free(s);
}

/* --- dropped tables --- */

static struct cluster *cluster_of(struct pool_job *job)
{
    return LIST_ENTRY(job, struct maintenance, dropping)->cluster;
}

static bool drop_next_table(struct pool_job *job)
{
    return cluster_drop_next_doomed(cluster_of(job)) && cluster_has_doomed(cluster_of(job));
}

static void keep_nothing(struct pool_job *job)
{
    DCHECK(job->kind == MAINTENANCE_DROPPED_TABLES);
}

static void drop_doomed(struct maintenance *maintenance)
{
    if (cluster_has_doomed(maintenance->cluster))
        job_pool_submit(maintenance->jobs, &maintenance->dropping);
}

/* --- rounds --- */

/* Until the time comes, if it does: 0 when the thread was woken. With the lock held. */
static int wait_until(struct maintenance *maintenance, const struct timespec *until)
{
    DCHECK(check_is_held(&maintenance->lock));
    if (maintenance->cluster->options.maintenance_by_hand)
        return pthread_cond_wait(&maintenance->wake, &maintenance->lock);
    return pthread_cond_timedwait(&maintenance->wake, &maintenance->lock, until);
}

/* Until it is woken, or for a tenth of a second. Returns whether to go on. */
static bool wait_for_turn(struct maintenance *maintenance, bool *begins_round)
{
    const struct timespec until = thread_time_in(SECOND_US / TURNS_A_ROUND);
    pthread_mutex_lock(&maintenance->lock);
    int waited = 0;
    while (!maintenance->is_awake && !maintenance->is_stopping && waited == 0)
        waited = wait_until(maintenance, &until);
    *begins_round = maintenance->is_awake || ++maintenance->turns == TURNS_A_ROUND;
    maintenance->is_awake = false;
    if (*begins_round) {
        maintenance->turns = 0;
        maintenance->rounds_begun++;
    }
    bool go_on = !maintenance->is_stopping;
    pthread_mutex_unlock(&maintenance->lock);
    return go_on;
}

static void end_round(struct maintenance *maintenance)
{
    pthread_mutex_lock(&maintenance->lock);
    DCHECK(maintenance->rounds_begun > maintenance->rounds_over);
    maintenance->rounds_over = maintenance->rounds_begun;
    pthread_cond_broadcast(&maintenance->round_over);
    pthread_mutex_unlock(&maintenance->lock);
}

static void run_round(struct maintenance *maintenance)
{
    clock_watch_run(maintenance->cluster);
    deletions_run(maintenance->cluster);
    drop_doomed(maintenance);
    balance_run(maintenance->cluster);
    heat_run(maintenance->cluster);
    traffic_run(maintenance->cluster);
    gc_pass_run(maintenance->cluster);
    drop_pass_run(maintenance->cluster);
    stream_upkeep_run(maintenance->cluster);
    delete_token_records(maintenance->cluster);
    end_round(maintenance);
}

static void *run(void *argument)
{
    struct maintenance *maintenance = argument;
    bool begins_round;
    while (wait_for_turn(maintenance, &begins_round)) {
        idle_compaction_run(maintenance->cluster);
        if (begins_round)
            run_round(maintenance);
    }
    return NULL;
}

/* --- life --- */

/* Once there are no jobs. */
static void free_maintenance(struct maintenance *maintenance)
{
    job_pool_destroy(maintenance->jobs);
    pthread_cond_destroy(&maintenance->round_over);
    pthread_cond_destroy(&maintenance->wake);
    pthread_mutex_destroy(&maintenance->lock);
    maintenance->magic = 0;
    free(maintenance);
}

static status start_threads(struct maintenance *maintenance)
{
    TRY(job_pool_create(THREADS, KINDS, MAINTENANCE_KINDS, "background", &maintenance->jobs));
    status s = thread_start(&maintenance->thread, "maintenance", run, maintenance);
    if (!status_is_ok(s))
        job_pool_stop(maintenance->jobs);
    return s;
}

status maintenance_start(struct cluster *cluster, struct maintenance **out)
{
    *out = NULL;
    struct maintenance *maintenance = calloc(1, sizeof *maintenance);
    if (maintenance == NULL)
        return status_out_of_memory();
    maintenance->magic = MAINTENANCE_MAGIC;
    maintenance->cluster = cluster;
    maintenance->dropping = (struct pool_job){
        .kind = MAINTENANCE_DROPPED_TABLES, .run = drop_next_table, .ended = keep_nothing};
    pthread_mutex_init(&maintenance->lock, NULL);
    thread_init_steady_wake(&maintenance->wake);
    pthread_cond_init(&maintenance->round_over, NULL);
    *out = maintenance; /* the thread looks there at once */
    status s = start_threads(maintenance);
    if (!status_is_ok(s)) {
        *out = NULL;
        free_maintenance(maintenance);
    }
    return s;
}

void maintenance_stop(struct maintenance *maintenance)
{
    if (maintenance == NULL)
        return;
    CHECK_MAGIC(maintenance, MAINTENANCE_MAGIC);
    pthread_mutex_lock(&maintenance->lock);
    maintenance->is_stopping = true;
    pthread_cond_signal(&maintenance->wake);
    pthread_mutex_unlock(&maintenance->lock);
    pthread_join(maintenance->thread, NULL);
    for (size_t i = 0; i < maintenance->cluster->shard_count; i++)
        store_interrupt_compactions(maintenance->cluster->shards[i]->store);
    job_pool_stop(maintenance->jobs);
    free_maintenance(maintenance);
}

void maintenance_wake(struct maintenance *maintenance)
{
    if (maintenance == NULL) /* the cluster is opening or closing */
        return;
    pthread_mutex_lock(&maintenance->lock);
    maintenance->is_awake = true;
    pthread_cond_signal(&maintenance->wake);
    pthread_mutex_unlock(&maintenance->lock);
}

void maintenance_run_round(struct maintenance *maintenance)
{
    DCHECK(!pthread_equal(pthread_self(), maintenance->thread));
    pthread_mutex_lock(&maintenance->lock);
    uint64_t round = maintenance->rounds_begun + 1; /* one that begins after this call */
    maintenance->is_awake = true;
    pthread_cond_signal(&maintenance->wake);
    while (maintenance->rounds_over < round)
        pthread_cond_wait(&maintenance->round_over, &maintenance->lock);
    pthread_mutex_unlock(&maintenance->lock);
}

void maintenance_run_once(struct maintenance *maintenance)
{
    maintenance_run_round(maintenance);
    job_pool_wait(maintenance->jobs);
}

bool maintenance_is_stopping(struct maintenance *maintenance)
{
    pthread_mutex_lock(&maintenance->lock);
    bool stopping = maintenance->is_stopping;
    pthread_mutex_unlock(&maintenance->lock);
    return stopping;
}

/* --- jobs --- */

void maintenance_submit(struct maintenance *maintenance, struct table *table, struct pool_job *job)
{
    if (maintenance == NULL)
        return;
    CHECK_MAGIC(maintenance, MAINTENANCE_MAGIC);
    table_retain(table);
    if (!job_pool_submit(maintenance->jobs, job))
        table_release(table);
}

uint64_t maintenance_piece_bytes(const struct cluster *cluster)
{
    return cluster->options.piece_bytes != 0 ? cluster->options.piece_bytes : PIECE_BYTES;
}

void maintenance_tell_failure(struct table *table, status s, const char *what)
{
    struct cluster *cluster = table->cluster;
    bool is_told = !status_is_ok(s) && !maintenance_is_stopping(cluster->maintenance);
    if (is_told)
        log_warn(cluster->options.log, what, LOG_STR("table", table->name),
                 LOG_STR("cause", status_message(s)));
    status_free(s);
}

/* --- measuring --- */

struct job_gauges {
    enum metric queued;
    enum metric running;
    enum metric begun;
    enum metric took;
};

#define GAUGES(kind)                                                                               \
    {                                                                                              \
        METRIC_maintenance_jobs_queued_##kind, METRIC_maintenance_jobs_running_##kind,             \
            METRIC_maintenance_pieces_total_##kind, METRIC_maintenance_seconds_total_##kind        \
    }

void maintenance_measure(struct maintenance *maintenance, struct metrics *metrics)
{
    static const struct job_gauges gauges[MAINTENANCE_KINDS] = {
        [MAINTENANCE_DROPPED_TABLES] = GAUGES(dropped_tables),
        [MAINTENANCE_GARBAGE_COLLECTION] = GAUGES(garbage_collection),
        [MAINTENANCE_IDLE_COMPACTION] = GAUGES(idle_compaction),
        [MAINTENANCE_DROPPED_ROWS] = GAUGES(dropped_rows),
    };
    if (maintenance == NULL)
        return;
    for (unsigned i = 0; i < MAINTENANCE_KINDS; i++) {
        const struct job_counts counts = job_pool_counts(maintenance->jobs, i);
        metrics_set(metrics, gauges[i].queued, (int64_t)counts.queued);
        metrics_set(metrics, gauges[i].running, (int64_t)counts.running);
        metrics_set(metrics, gauges[i].begun, (int64_t)counts.begun);
        metrics_set(metrics, gauges[i].took, counts.took_us);
    }
}
