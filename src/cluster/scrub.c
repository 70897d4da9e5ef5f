/* See scrub.h.
 *
 * When it is a file's turn follows from its number and the wall clock alone: its turns are a period
 * apart, those of all files spread over the period. So nothing is remembered, and a server that is
 * restarted every day comes to each file, too. A file whose turn comes while the server is down
 * waits for the next one. */
#include "cluster/scrub.h"

#include "base/check.h"
#include "cluster/cluster_private.h"
#include "os/thread.h"

#include <stdlib.h>
#include <time.h>

enum {
    SCRUB_MAGIC = 0x73637275,
    LOOKS = 8, /* a period, at whose turn it was: within the next two */
    LOOK_LEAST_US = 1000 * 1000,
    LOOK_MOST_US = 60 * 1000 * 1000,
    PIECE_BYTES = 1 << 20, /* between rests */
    RESTS = 200,
};

struct scrub {
    uint32_t magic;
    struct shard *shard;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool is_stopping;  /* with the lock */
    uint64_t piece;    /* bytes since the last rest; the thread's own, as the next */
    int64_t rested_us; /* thread_cpu_us then */
};

/* False if it is to stop. By the steady clock. */
static bool rest(struct scrub *scrub, int64_t us)
{
    const struct timespec until = thread_time_in(us);
    pthread_mutex_lock(&scrub->lock);
    int waited = 0;
    while (!scrub->is_stopping && waited == 0)
        waited = pthread_cond_timedwait(&scrub->wake, &scrub->lock, &until);
    bool go_on = !scrub->is_stopping;
    pthread_mutex_unlock(&scrub->lock);
    return go_on;
}

static bool go_on(void *context, uint64_t bytes)
{
    struct scrub *scrub = context;
    metrics_add(scrub->shard->cluster->options.metrics, METRIC_scrubbed_bytes_total,
                (int64_t)bytes);
    scrub->piece += bytes;
    if (scrub->piece < PIECE_BYTES)
        return rest(scrub, 0);
    int64_t took_us = thread_cpu_us() - scrub->rested_us;
    bool goes_on = rest(scrub, RESTS * took_us);
    scrub->piece = 0;
    scrub->rested_us = thread_cpu_us();
    return goes_on;
}

/* Scrubs the table files whose turn it was between two moments. */
static void scrub_turns(struct scrub *scrub, int64_t from_us, int64_t to_us)
{
    int64_t period_us = scrub->shard->cluster->options.scrub_period_us;
    const struct store_pacer pacer = {.go_on = go_on, .context = scrub};
    const struct store_turn turn = {.from_us = from_us, .to_us = to_us, .period_us = period_us};
    status s = store_scrub(scrub->shard->store, &turn, &pacer);
    if (!status_is_ok(s) && s.code != STATUS_CANCELLED)
        log_warn(scrub->shard->cluster->options.log, "table files are not scrubbed",
                 LOG_STR("cause", status_message(s)));
    status_free(s);
}

/* A look asks all keyspaces for their files. */
static int64_t time_between_looks(const struct scrub *scrub)
{
    int64_t us = scrub->shard->cluster->options.scrub_period_us / LOOKS;
    us = us < LOOK_LEAST_US ? LOOK_LEAST_US : us;
    return us > LOOK_MOST_US ? LOOK_MOST_US : us;
}

static void *run(void *argument)
{
    struct scrub *scrub = argument;
    int64_t before_us = cluster_wall_us(scrub->shard->cluster);
    while (rest(scrub, time_between_looks(scrub))) {
        int64_t now_us = cluster_wall_us(scrub->shard->cluster);
        if (now_us > before_us)
            scrub_turns(scrub, before_us, now_us);
        before_us = now_us;
    }
    return NULL;
}

static void free_scrub(struct scrub *scrub)
{
    pthread_cond_destroy(&scrub->wake);
    pthread_mutex_destroy(&scrub->lock);
    scrub->magic = 0;
    free(scrub);
}

status scrub_start(struct shard *shard, struct scrub **out)
{
    *out = NULL;
    if (shard->cluster->options.scrub_period_us == 0)
        return status_ok();
    struct scrub *scrub = calloc(1, sizeof *scrub);
    if (scrub == NULL)
        return status_out_of_memory();
    scrub->magic = SCRUB_MAGIC;
    scrub->shard = shard;
    pthread_mutex_init(&scrub->lock, NULL);
    thread_init_steady_wake(&scrub->wake);
    status s = thread_start(&scrub->thread, "scrub", run, scrub);
    if (status_is_ok(s))
        *out = scrub;
    else
        free_scrub(scrub);
    return s;
}

void scrub_stop(struct scrub *scrub)
{
    if (scrub == NULL)
        return;
    CHECK_MAGIC(scrub, SCRUB_MAGIC);
    pthread_mutex_lock(&scrub->lock);
    scrub->is_stopping = true;
    pthread_cond_signal(&scrub->wake);
    pthread_mutex_unlock(&scrub->lock);
    pthread_join(scrub->thread, NULL);
    free_scrub(scrub);
}
