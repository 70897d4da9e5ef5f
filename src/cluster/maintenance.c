/* See maintenance.h.
 *
 * `lock` guards what other threads touch: the list of jobs, the two flags, the count of rounds. */
#include "cluster/maintenance.h"

#include "base/check.h"
#include "cluster/balance.h"
#include "cluster/cluster_private.h"
#include "cluster/deletions.h"
#include "cluster/gc_pass.h"
#include "os/thread.h"
#include "row/row_key.h"
#include "tablet/key_bounds.h"

#include <stdlib.h>
#include <time.h>

enum { SECOND_NS = 1000 * 1000 * 1000, TURNS_A_ROUND = 10 };

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
    struct list reclaims;
};

#define MAINTENANCE_MAGIC 0x6d61696eu

/* Space to give back: rows with this prefix were deleted. */
struct reclaim {
    struct link link;
    struct table *table; /* held */
    size_t prefix_size;
    uint8_t prefix[];
};

/* By compaction, which keeps what was written since. Whole files must not be deleted here: a
 * compaction may have put new rows into them. */
static void reclaim_bounds(const struct log *log, struct keyspace *keyspace,
                           const struct key_bounds *bounds)
{
    status s =
        keyspace_compact(keyspace, buffer_bytes(&bounds->lower), buffer_bytes(&bounds->upper));
    if (!status_is_ok(s))
        log_warn(log, "space of dropped rows is kept for now", LOG_STR("cause", status_message(s)));
    status_free(s);
}

static status reclaim_part(void *context, const struct table_part *part)
{
    const struct log *log = ((const struct cluster *)context)->options.log;
    struct key_bounds bounds;
    if (record_bounds(part->from, part->to, &bounds))
        reclaim_bounds(log, part->space.keyspace, &bounds);
    key_bounds_free(&bounds);
    if (spill_bounds(part->from, part->to, &bounds))
        reclaim_bounds(log, part->space.keyspace, &bounds);
    key_bounds_free(&bounds);
    return status_ok();
}

static void run_reclaim(const struct reclaim *reclaim)
{
    bytes prefix = bytes_make(reclaim->prefix, reclaim->prefix_size);
    struct buffer end = {0};
    key_after_prefix(&end, prefix);
    if (!end.failed)
        status_ignore(table_visit_parts(reclaim->table, prefix, buffer_bytes(&end), reclaim_part,
                                        reclaim->table->cluster));
    buffer_free(&end);
}

static struct reclaim *next_reclaim(struct maintenance *maintenance)
{
    pthread_mutex_lock(&maintenance->lock);
    struct link *link = list_take(&maintenance->reclaims);
    pthread_mutex_unlock(&maintenance->lock);
    return link == NULL ? NULL : LIST_ENTRY(link, struct reclaim, link);
}

static void free_reclaim(struct reclaim *reclaim)
{
    table_release(reclaim->table);
    free(reclaim);
}

static void run_reclaims(struct maintenance *maintenance)
{
    struct reclaim *reclaim;
    while (!maintenance_is_stopping(maintenance) && (reclaim = next_reclaim(maintenance)) != NULL) {
        run_reclaim(reclaim);
        free_reclaim(reclaim);
    }
}

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

static struct timespec next_turn(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_nsec += SECOND_NS / TURNS_A_ROUND;
    at.tv_sec += at.tv_nsec / SECOND_NS;
    at.tv_nsec %= SECOND_NS;
    return at;
}

/* Until the time comes, if it does: 0 when somebody has woken the thread. With the lock held. */
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
    const struct timespec until = next_turn();
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
    cluster_drop_doomed(maintenance->cluster);
    run_reclaims(maintenance);
    balance_run(maintenance->cluster);
    heat_run(maintenance->cluster);
    traffic_run(maintenance->cluster);
    gc_pass_run(maintenance->cluster);
    delete_token_records(maintenance->cluster);
    end_round(maintenance);
}

static void *run(void *argument)
{
    struct maintenance *maintenance = argument;
    bool begins_round;
    while (wait_for_turn(maintenance, &begins_round)) {
        settle_run(maintenance->cluster);
        if (begins_round)
            run_round(maintenance);
    }
    return NULL;
}

static void free_maintenance(struct maintenance *maintenance)
{
    DCHECK(list_is_empty(&maintenance->reclaims));
    pthread_cond_destroy(&maintenance->round_over);
    pthread_cond_destroy(&maintenance->wake);
    pthread_mutex_destroy(&maintenance->lock);
    maintenance->magic = 0;
    free(maintenance);
}

status maintenance_start(struct cluster *cluster, struct maintenance **out)
{
    *out = NULL;
    struct maintenance *maintenance = calloc(1, sizeof *maintenance);
    if (maintenance == NULL)
        return status_out_of_memory();
    maintenance->magic = MAINTENANCE_MAGIC;
    maintenance->cluster = cluster;
    pthread_mutex_init(&maintenance->lock, NULL);
    thread_init_steady_wake(&maintenance->wake);
    pthread_cond_init(&maintenance->round_over, NULL);
    *out = maintenance; /* the thread looks there at once */
    status s = thread_start(&maintenance->thread, "maintenance", run, maintenance);
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
    struct link *link;
    while ((link = list_take(&maintenance->reclaims)) != NULL)
        free_reclaim(LIST_ENTRY(link, struct reclaim, link));
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

void maintenance_run_once(struct maintenance *maintenance)
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

void maintenance_reclaim(struct maintenance *maintenance, struct table *table, bytes prefix)
{
    struct reclaim *reclaim = malloc(sizeof *reclaim + prefix.size);
    if (reclaim == NULL)
        return;
    table_retain(table);
    reclaim->table = table;
    reclaim->prefix_size = prefix.size;
    if (prefix.size > 0)
        memcpy(reclaim->prefix, prefix.data, prefix.size);
    pthread_mutex_lock(&maintenance->lock);
    list_append(&maintenance->reclaims, &reclaim->link);
    pthread_mutex_unlock(&maintenance->lock);
    maintenance_wake(maintenance);
}

bool maintenance_is_stopping(struct maintenance *maintenance)
{
    pthread_mutex_lock(&maintenance->lock);
    bool stopping = maintenance->is_stopping;
    pthread_mutex_unlock(&maintenance->lock);
    return stopping;
}
