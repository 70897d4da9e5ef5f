/* The commit queue: see commit.h. What goes into a batch, and how, is in commit_batch.c. */
#include "tablet/commit.h"

#include "base/check.h"
#include "os/thread.h"
#include "tablet/change_log.h"
#include "tablet/commit_private.h"
#include "tablet/tablet.h"

#include <stdatomic.h>
#include <stdlib.h>

enum {
    COMMIT_QUEUE_MAGIC = 0x636f6d6d,
    /* More than this waits for the next batch: a batch is in memory three times, here, in the
     * store's batch and in its log buffer. */
    BATCH_BYTES = 16 << 20,
    LARGE_BATCH = 4 << 20, /* bytes that are not kept for the next */
    RETRY_MS = 100,
};

struct commit_queue {
    uint32_t magic;
    struct commit_options options;
    pthread_t thread;

    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct list waiting; /* lock */
    size_t bytes;        /* lock; of what waits and of the batch under way */
    bool is_asleep;      /* lock; the thread waits for `wake` */
    bool is_stopping;    /* lock */
    bool is_held;        /* lock; see commit_hold */
    pthread_cond_t idle; /* the holder waits for the batch under way */
    int64_t begun_us;    /* lock; clock_steady_us when the batch under way was taken; 0: none is */

    /* The newest version given out, or raised to. Only rises; written under the lock. */
    atomic_ullong newest;
    uint64_t newest_sequence; /* lock; the same */
    unsigned cluster;         /* lock; that versions are to name */
    /* At the steady time s it is `origin_us` + s / 2 on the versions' clock. Only rises: see
     * time_at. */
    atomic_llong origin_us;
    atomic_ullong applied; /* a sequence */
    atomic_ullong settled; /* a version: commit_settled_version */

    /* The commit thread's own. */
    struct commit_ceilings ceilings; /* durable */
    bool marks_clusters;             /* the next batch records from where on versions name them */
    bool ends_log;                   /* it removes the record of a log that is not kept any more */
    struct commit_batch batch;
};

/* --- the versions' clock --- */

/* The clock shows at least `time_us` at the steady time, and goes on from there. */
static int64_t raise_time(struct commit_queue *queue, int64_t time_us, int64_t steady_us)
{
    int64_t gone_us = steady_us / 2;
    long long origin_us = atomic_load_explicit(&queue->origin_us, memory_order_relaxed);
    while (time_us - gone_us > origin_us &&
           !atomic_compare_exchange_weak(&queue->origin_us, &origin_us, time_us - gone_us))
        ;
    return time_us - gone_us > origin_us ? time_us : origin_us + gone_us;
}

/* The wall clock, or, while that is behind what was shown before, half as fast as the steady one.
 * Both hands only rise, so this does. */
static int64_t time_at(struct commit_queue *queue, int64_t steady_us)
{
    int64_t wall_us = clock_wall_us(queue->options.clock);
    return raise_time(queue, wall_us < 0 ? 0 : wall_us, steady_us);
}

/* What both clocks show, of which commits that come together have the same. */
struct moment {
    int64_t steady_us;
    int64_t time_us; /* the versions' */
};

static struct moment moment_now(struct commit_queue *queue)
{
    struct moment now = {.steady_us = clock_steady_us(queue->options.clock)};
    now.time_us = time_at(queue, now.steady_us);
    return now;
}

int64_t commit_version_us(struct commit_queue *queue)
{
    int64_t now_us = moment_now(queue).time_us;
    int64_t newest_us = version_time_us(atomic_load_explicit(&queue->newest, memory_order_relaxed));
    return now_us > newest_us ? now_us : newest_us;
}

int64_t commit_clock_lead_us(struct commit_queue *queue)
{
    int64_t lead_us = commit_version_us(queue) - clock_wall_us(queue->options.clock);
    return lead_us > 0 ? lead_us : 0;
}

/* With the lock held, as the next two. */
static int64_t time_for(struct commit_queue *queue, int64_t least_us, struct moment now)
{
    DCHECK(check_is_held(&queue->lock));
    return now.time_us < least_us ? raise_time(queue, least_us, now.steady_us) : now.time_us;
}

static uint64_t next_version(struct commit_queue *queue, int64_t now_us)
{
    DCHECK(check_is_held(&queue->lock));
    uint64_t newest = atomic_load_explicit(&queue->newest, memory_order_relaxed);
    uint64_t next = version_after(newest, queue->cluster);
    if (version_at(now_us) > newest)
        next = version_at(now_us) + queue->cluster;
    DCHECK(next > newest && next % VERSION_STEP == queue->cluster);
    atomic_store_explicit(&queue->newest, next, memory_order_relaxed);
    return next;
}

/* Takes a version: later ones are greater, also after a restart. */
static uint64_t take_version(struct commit_queue *queue, uint64_t version, int64_t steady_us)
{
    DCHECK(check_is_held(&queue->lock));
    DCHECK(version != 0);
    if (atomic_load_explicit(&queue->newest, memory_order_relaxed) < version)
        atomic_store_explicit(&queue->newest, version, memory_order_relaxed);
    raise_time(queue, version_time_us(version), steady_us);
    return version;
}

static uint64_t next_sequence(struct commit_queue *queue, int64_t now_us)
{
    DCHECK(check_is_held(&queue->lock));
    uint64_t at = version_at(now_us), newest = queue->newest_sequence;
    queue->newest_sequence = at > newest ? at : newest + 1;
    DCHECK(queue->newest_sequence > newest);
    return queue->newest_sequence;
}

uint64_t commit_applied(const struct commit_queue *queue)
{
    return atomic_load_explicit(&queue->applied, memory_order_acquire);
}

uint64_t commit_settled_version(const struct commit_queue *queue)
{
    return atomic_load(&queue->settled);
}

uint64_t commit_submitted(struct commit_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    uint64_t newest = queue->newest_sequence;
    pthread_mutex_unlock(&queue->lock);
    return newest;
}

/* --- what it keeps of itself: commit_records.c --- */

static uint64_t greater(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* All versions that a store without a record of clusters has are below the ceiling. */
static status load_records(struct commit_queue *queue)
{
    struct commit_ceilings *ceilings = &queue->ceilings;
    uint64_t from = 0;
    status s = commit_read_ceilings(queue->options.catalog, ceilings);
    if (status_is_ok(s))
        s = commit_read_clusters_from(queue->options.catalog, &from);
    queue->marks_clusters = from == UINT64_MAX;
    queue->newest_sequence = ceilings->sequence;
    atomic_init(&queue->newest, ceilings->version);
    atomic_init(&queue->settled, ceilings->version);
    atomic_init(&queue->applied, ceilings->sequence);
    /* Rounded up: also times are later than all that were given below the ceilings. */
    int64_t least_us = version_time_us(greater(ceilings->version, ceilings->sequence)) + 1;
    atomic_init(&queue->origin_us, least_us - clock_steady_us(queue->options.clock) / 2);
    return s;
}

/* Puts into the batch what the queue keeps of itself, as far as it is not durable as it is to be.
 */
static struct commit_ceilings put_records(struct commit_queue *queue)
{
    const struct commit_batch *batch = &queue->batch;
    struct keyspace *catalog = queue->options.catalog;
    struct commit_ceilings ceilings = queue->ceilings;
    bool is_reached =
        batch->newest_version >= ceilings.version || batch->newest_sequence >= ceilings.sequence;
    if (is_reached) {
        ceilings.version = greater(ceilings.version, ceiling_above(batch->newest_version));
        ceilings.sequence = ceiling_above(batch->newest_sequence);
        commit_put_ceilings(batch->store_batch, catalog, &ceilings);
    }
    if (queue->marks_clusters)
        commit_put_clusters_from(batch->store_batch, catalog, queue->ceilings.version);
    if (queue->ends_log)
        change_log_end(batch->store_batch, catalog);
    DCHECK(ceilings.version > batch->newest_version && ceilings.sequence > batch->newest_sequence);
    return ceilings;
}

/* --- submitting --- */

static status refuse(struct commit_queue *queue, enum status_code code, const char *why)
{
    metrics_add(queue->options.metrics, METRIC_commit_refused_total, 1);
    status s = status_make(code, "%s", why);
    status_add_retry_info(&s, RETRY_MS);
    return s;
}

static status refuse_for_stall(struct commit_queue *queue)
{
    return refuse(queue, STATUS_UNAVAILABLE, "The store is busy: a write takes too long");
}

static void acknowledge(struct commit_queue *queue, struct list *commits, status written,
                        struct write_times times);

/* Refuses commits that wait behind the batch that does not end. */
static void refuse_waiting(struct commit_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    struct list refused = queue->waiting;
    queue->waiting = (struct list){0};
    for (struct link *at = refused.first; at != NULL; at = at->next)
        queue->bytes -= LIST_ENTRY(at, struct commit, link)->bytes;
    pthread_mutex_unlock(&queue->lock);
    for (struct link *at = refused.first; at != NULL; at = at->next)
        LIST_ENTRY(at, struct commit, link)->result = refuse_for_stall(queue);
    acknowledge(queue, &refused, status_ok(), (struct write_times){0, 0});
}

enum queue_state { QUEUE_OPEN, QUEUE_FULL, QUEUE_STALLED };

/* With the lock held. */
static enum queue_state state_of(const struct commit_queue *queue, size_t bytes, size_t limit_bytes,
                                 int64_t now_us)
{
    DCHECK(check_is_held(&queue->lock));
    if (queue->begun_us != 0 && now_us - queue->begun_us > queue->options.stall_limit_us)
        return QUEUE_STALLED;
    /* a commit that is bigger than the queue goes in alone */
    bool is_full = queue->bytes > 0 && queue->bytes + bytes > limit_bytes;
    return is_full ? QUEUE_FULL : QUEUE_OPEN;
}

/* With the lock held. */
static void append(struct commit_queue *queue, struct commit *commit, struct moment now)
{
    DCHECK(check_is_held(&queue->lock));
    int64_t now_us = time_for(queue, commit->least_us, now);
    commit->sequence = next_sequence(queue, now_us);
    commit->version = commit->given_version != 0
                          ? take_version(queue, commit->given_version, now.steady_us)
                          : next_version(queue, now_us);
    for (size_t i = 0; i < commit->other_count; i++) {
        commit->others[i].sequence = commit->sequence;
        commit->others[i].version = commit->version;
    }
    queue->bytes += commit->bytes;
    list_append(&queue->waiting, &commit->link);
    if (queue->is_asleep)
        pthread_cond_signal(&queue->wake);
    queue->is_asleep = false;
}

static void make_ready(const struct commit_queue *queue, struct commit *commit)
{
    CHECK(commit_is_well_formed(commit));
    DCHECK(commit_is_of_store(commit, queue->options.store));
    commit->bytes = commit_size(commit);
}

/* Appends it if the queue is open. With the lock held. */
static enum queue_state enter_locked(struct commit_queue *queue, struct commit *commit,
                                     size_t limit_bytes, struct moment now)
{
    enum queue_state state = state_of(queue, commit->bytes, limit_bytes, now.steady_us);
    if (state == QUEUE_OPEN)
        append(queue, commit, now);
    return state;
}

static enum queue_state enter(struct commit_queue *queue, struct commit *commit, size_t limit_bytes)
{
    CHECK_MAGIC(queue, COMMIT_QUEUE_MAGIC);
    make_ready(queue, commit);
    pthread_mutex_lock(&queue->lock);
    enum queue_state state = enter_locked(queue, commit, limit_bytes, moment_now(queue));
    pthread_mutex_unlock(&queue->lock);
    return state;
}

bool commit_offer(struct commit_queue *queue, struct commit *commit)
{
    return enter(queue, commit, queue->options.queue_limit_bytes / 2) == QUEUE_OPEN;
}

static status refusal(struct commit_queue *queue, enum queue_state state)
{
    if (state == QUEUE_FULL)
        return refuse(queue, STATUS_RESOURCE_EXHAUSTED, "Too many writes wait to be committed");
    return refuse_for_stall(queue);
}

status commit_submit(struct commit_queue *queue, struct commit *commit)
{
    TRY(commit_check_in_service(commit));
    enum queue_state state = enter(queue, commit, queue->options.queue_limit_bytes);
    if (state == QUEUE_OPEN)
        return status_ok();
    if (state == QUEUE_STALLED)
        refuse_waiting(queue);
    return refusal(queue, state);
}

/* Those that are in service; the others stay in the list with their results. */
static struct list take_sound(struct commit_queue *queue, struct list *commits)
{
    struct list sound = {0}, refused = {0};
    struct link *link;
    while ((link = list_take(commits)) != NULL) {
        struct commit *commit = LIST_ENTRY(link, struct commit, link);
        commit->result = commit_check_in_service(commit);
        commit->sequence = 0;
        if (status_is_ok(commit->result))
            make_ready(queue, commit);
        list_append(status_is_ok(commit->result) ? &sound : &refused, link);
    }
    *commits = refused;
    return sound;
}

/* Those that do not find the queue open are left in the list. */
static enum queue_state enter_all(struct commit_queue *queue, struct list *commits)
{
    struct list left = {0};
    struct link *link;
    enum queue_state state = QUEUE_OPEN;
    pthread_mutex_lock(&queue->lock);
    struct moment now = moment_now(queue);
    while ((link = list_take(commits)) != NULL) {
        enum queue_state found = enter_locked(queue, LIST_ENTRY(link, struct commit, link),
                                              queue->options.queue_limit_bytes, now);
        if (found == QUEUE_OPEN)
            continue;
        state = found;
        list_append(&left, link);
    }
    pthread_mutex_unlock(&queue->lock);
    *commits = left;
    return state;
}

void commit_submit_all(struct commit_queue *queue, struct list *commits)
{
    CHECK_MAGIC(queue, COMMIT_QUEUE_MAGIC);
    struct list sound = take_sound(queue, commits);
    enum queue_state state = enter_all(queue, &sound);
    if (state == QUEUE_STALLED)
        refuse_waiting(queue);
    for (struct link *at = sound.first; at != NULL; at = at->next)
        LIST_ENTRY(at, struct commit, link)->result = refusal(queue, state);
    list_append_all(commits, &sound);
}

status commit_submit_beyond(struct commit_queue *queue, struct commit *commit)
{
    return enter(queue, commit, SIZE_MAX) == QUEUE_OPEN ? status_ok() : refuse_for_stall(queue);
}

struct store *commit_queue_store(const struct commit_queue *queue)
{
    return queue->options.store;
}

/* --- the commit thread --- */

/* Whether the next goes into a batch that has so much, with the lock held. What is larger than a
 * batch goes alone. */
static bool fits_batch(const struct commit_queue *queue, size_t bytes)
{
    DCHECK(check_is_held(&queue->lock));
    if (list_is_empty(&queue->waiting))
        return false;
    size_t next = LIST_ENTRY(queue->waiting.first, struct commit, link)->bytes;
    return bytes == 0 || bytes + next <= BATCH_BYTES;
}

/* The oldest that wait, up to BATCH_BYTES or a change of structure; empty once the queue is
 * stopping and nothing waits. */
static struct list take_batch(struct commit_queue *queue)
{
    struct list taken = {0};
    pthread_mutex_lock(&queue->lock);
    while ((list_is_empty(&queue->waiting) || queue->is_held) && !queue->is_stopping) {
        queue->is_asleep = true;
        pthread_cond_wait(&queue->wake, &queue->lock);
    }
    queue->is_asleep = false;
    bool is_last = false;
    for (size_t bytes = 0; !is_last && fits_batch(queue, bytes);) {
        struct link *link = list_take(&queue->waiting);
        const struct commit *commit = LIST_ENTRY(link, struct commit, link);
        bytes += commit->bytes;
        is_last = commit_ends_batch(commit->kind);
        list_append(&taken, link);
    }
    queue->begun_us = clock_steady_us(queue->options.clock);
    pthread_mutex_unlock(&queue->lock);
    return taken;
}

static enum store_durability durability_of(const struct commit_queue *queue,
                                           const struct commit_batch *batch)
{
    if (batch->must_sync)
        return STORE_SYNCED;
    return batch->wants_sync ? queue->options.durability : STORE_ASYNC;
}

/* Writes what the batch holds, durably; `*written_us`: when it was, 0 if there is nothing. */
static status write_batch(struct commit_queue *queue, int64_t *written_us)
{
    struct commit_batch *batch = &queue->batch;
    DCHECK(batch->head_count == 0);
    *written_us = 0;
    if (!batch->has_content)
        return status_ok();
    struct commit_ceilings ceilings = put_records(queue);
    int64_t started_us = clock_steady_us(queue->options.clock);
    TRY(store_write(queue->options.store, batch->store_batch, durability_of(queue, batch)));
    queue->ceilings = ceilings;
    if (batch->newest_version > atomic_load_explicit(&queue->settled, memory_order_relaxed))
        atomic_store(&queue->settled, batch->newest_version);
    queue->marks_clusters = false;
    queue->ends_log = false;
    *written_us = clock_steady_us(queue->options.clock);
    struct metrics *metrics = queue->options.metrics;
    metrics_observe(metrics, METRIC_HISTOGRAM_commit_seconds, (uint64_t)(*written_us - started_us));
    metrics_add(metrics, METRIC_commits_total, 1);
    metrics_add(metrics, METRIC_commit_mutations_total, (int64_t)batch->row_count);
    size_t size = store_batch_size(batch->store_batch);
    metrics_add(metrics, METRIC_commit_bytes_total, (int64_t)size);
    if (size > LARGE_BATCH)
        store_batch_clear(batch->store_batch); /* the next one may be long in coming */
    return status_ok();
}

/* Finds the tablet in place of the one that is in the map no more. */
static __attribute__((noinline)) status route_anew(const struct commit_queue *queue,
                                                   struct commit *commit)
{
    struct tablet *tablet;
    TRY(queue->options.route(commit->table, commit->row_key, &tablet));
    CHECK(tablet->keyspace == commit->keyspace);
    tablet_release(commit->tablet);
    commit->tablet = tablet;
    return status_ok();
}

static inline status route_row(const struct commit_queue *queue, struct commit *commit)
{
    bool is_former = commit->tablet != NULL && commit->tablet->is_former;
    return is_former ? route_anew(queue, commit) : status_ok();
}

/* To where its rows are at its place. */
static status route(const struct commit_queue *queue, struct commit *commit)
{
    TRY(route_row(queue, commit));
    for (size_t i = 0; i < commit->other_count; i++)
        TRY(route_row(queue, &commit->others[i]));
    return status_ok();
}

/* A commit that follows from a read is refused if its row was dropped since. (Other changes of the
 * row are kept away by its lock.) */
static inline status check_read(struct commit *commit)
{
    commit->is_outdated = commit->drops != NULL &&
                          row_drops_since(commit->drops, commit->row_key, commit->read_as_of);
    return commit->is_outdated
               ? status_make(STATUS_ABORTED, "The row was dropped after it had been read")
               : status_ok();
}

static status prepare(const struct commit_queue *queue, struct commit *commit)
{
    if (commit_has_rows(commit->kind))
        TRY(route(queue, commit));
    return check_read(commit);
}

/* Refuses, or puts into the batch, each commit. */
static void fill_batch(struct commit_queue *queue, const struct list *commits)
{
    DCHECK(!list_is_empty(commits));
    status admitted = queue->options.admit == NULL
                          ? status_ok()
                          : queue->options.admit(queue->options.admit_context);
    commit_batch_clear(&queue->batch);
    for (struct link *at = commits->first; at != NULL; at = at->next) {
        struct commit *commit = LIST_ENTRY(at, struct commit, link);
        commit->result = status_ok();
        if (commit->kind != COMMIT_BARRIER && !commit->frees_space && !status_is_ok(admitted)) {
            commit->result = status_copy(admitted);
            metrics_add(queue->options.metrics, METRIC_commit_refused_total, 1);
        } else {
            commit->result = prepare(queue, commit);
        }
        commit_batch_add(&queue->batch, commit);
    }
    commit_batch_finish(&queue->batch);
    commit_batch_end(&queue->batch);
    status_free(admitted);
}

/* Sets the results, tells the observers, and wakes the owners. */
static void acknowledge(struct commit_queue *queue, struct list *commits, status written,
                        struct write_times times)
{
    struct commit_posts posts = {.count = 0};
    struct link *link;
    while ((link = list_take(commits)) != NULL) {
        struct commit *commit = LIST_ENTRY(link, struct commit, link);
        commit->times = times;
        if (!status_is_ok(written) && status_is_ok(commit->result))
            commit->result = status_copy(written);
        if (commit->tokens != NULL && !status_is_ok(commit->result))
            tokens_forget(commit->tokens, commit->token);
        if (status_is_ok(commit->result))
            commit_batch_tell_applied(&queue->batch, commit);
        DCHECK(!status_is_ok(commit->result) || commit->sequence <= commit_applied(queue));
        if (commit->loop == NULL)
            commit->done.run(&commit->done);
        else
            commit_posts_add(&posts, commit);
    }
    commit_posts_send(&posts);
}

/* Applies to memory what follows from the last commit, which alone may be a change of structure. */
static void apply(const struct commit *last)
{
    if (commit_ends_batch(last->kind) && status_is_ok(last->result) && last->catalog->apply != NULL)
        last->catalog->apply(last->catalog);
}

static void commit_batch_of(struct commit_queue *queue, struct list *commits)
{
    size_t bytes = 0;
    uint64_t newest = 0;
    const struct commit *last = NULL;
    for (struct link *at = commits->first; at != NULL; at = at->next) {
        struct commit *commit = LIST_ENTRY(at, struct commit, link);
        bytes += commit->bytes;
        DCHECK(commit->sequence > newest);
        DCHECK(last == NULL || !commit_ends_batch(last->kind));
        newest = commit->sequence;
        last = commit;
    }
    DCHECK(newest > commit_applied(queue));
    fill_batch(queue, commits);
    struct write_times times;
    status written = write_batch(queue, &times.written_us);
    commit_batch_tell_written(&queue->batch, status_is_ok(written));
    if (status_is_ok(written))
        apply(last);
    atomic_store_explicit(&queue->applied, newest, memory_order_release);
    pthread_mutex_lock(&queue->lock);
    DCHECK(queue->bytes >= bytes);
    queue->bytes -= bytes;
    times.begun_us = queue->begun_us;
    queue->begun_us = 0;
    if (queue->is_held)
        pthread_cond_signal(&queue->idle);
    metrics_set(queue->options.metrics, METRIC_commit_queue_bytes, (int64_t)queue->bytes);
    pthread_mutex_unlock(&queue->lock);
    acknowledge(queue, commits, written, times);
    status_free(written);
}

static void *run(void *argument)
{
    struct commit_queue *queue = argument;
    struct list commits;
    while (commits = take_batch(queue), !list_is_empty(&commits))
        commit_batch_of(queue, &commits);
    return NULL;
}

double commit_queue_load(struct commit_queue *queue)
{
    const struct commit_options *options = &queue->options;
    int64_t now_us = clock_steady_us(options->clock);
    pthread_mutex_lock(&queue->lock);
    size_t bytes = queue->bytes;
    enum queue_state state = state_of(queue, 0, options->queue_limit_bytes, now_us);
    pthread_mutex_unlock(&queue->lock);
    if (state != QUEUE_OPEN || bytes >= options->queue_limit_bytes)
        return 1;
    return (double)bytes / (double)options->queue_limit_bytes;
}

int64_t commit_under_way_us(struct commit_queue *queue)
{
    int64_t now_us = clock_steady_us(queue->options.clock);
    pthread_mutex_lock(&queue->lock);
    int64_t begun_us = queue->begun_us;
    pthread_mutex_unlock(&queue->lock);
    return begun_us == 0 || now_us < begun_us ? 0 : now_us - begun_us;
}

/* --- holding --- */

void commit_hold(struct commit_queue *queue, uint64_t *applied)
{
    CHECK_MAGIC(queue, COMMIT_QUEUE_MAGIC);
    pthread_mutex_lock(&queue->lock);
    CHECK(!queue->is_held);
    queue->is_held = true;
    while (queue->begun_us != 0)
        pthread_cond_wait(&queue->idle, &queue->lock);
    *applied = commit_applied(queue);
    pthread_mutex_unlock(&queue->lock);
}

void commit_release(struct commit_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    CHECK(queue->is_held);
    queue->is_held = false;
    pthread_cond_signal(&queue->wake);
    queue->is_asleep = false;
    pthread_mutex_unlock(&queue->lock);
}

/* --- life --- */

static void free_queue(struct commit_queue *queue)
{
    DCHECK(list_is_empty(&queue->waiting));
    commit_batch_free(&queue->batch);
    pthread_cond_destroy(&queue->idle);
    pthread_cond_destroy(&queue->wake);
    pthread_mutex_destroy(&queue->lock);
    queue->magic = 0;
    free(queue);
}

status commit_queue_create(const struct commit_options *options, struct commit_queue **out)
{
    *out = NULL;
    struct commit_queue *queue = calloc(1, sizeof *queue);
    if (queue == NULL)
        return status_out_of_memory();
    queue->magic = COMMIT_QUEUE_MAGIC;
    queue->options = *options;
    queue->cluster = options->cluster;
    pthread_mutex_init(&queue->lock, NULL);
    pthread_cond_init(&queue->wake, NULL);
    pthread_cond_init(&queue->idle, NULL);
    status s = commit_batch_init(&queue->batch, options->store, options->observers,
                                 options->observer_count);
    queue->batch.tombstones_from = options->tombstones_from;
    if (status_is_ok(s))
        s = load_records(queue);
    if (status_is_ok(s) && !options->has_change_log)
        s = change_log_exists(options->catalog, &queue->ends_log);
    if (status_is_ok(s))
        s = thread_start(&queue->thread, "commit", run, queue);
    if (!status_is_ok(s)) {
        free_queue(queue);
        return s;
    }
    *out = queue;
    return status_ok();
}

void commit_queue_destroy(struct commit_queue *queue)
{
    CHECK_MAGIC(queue, COMMIT_QUEUE_MAGIC);
    pthread_mutex_lock(&queue->lock);
    queue->is_stopping = true;
    pthread_cond_signal(&queue->wake);
    pthread_mutex_unlock(&queue->lock);
    store_stop_waiting(queue->options.store);
    pthread_join(queue->thread, NULL);
    free_queue(queue);
}

/* --- versions and sequences from elsewhere --- */

struct ceiling_commit {
    struct commit commit;
    struct commit_queue *queue;
};

/* If what was raised is above the former ceiling the batch brings a new one in any case. This makes
 * that there is a batch. */
static void extend_by_ceiling(struct commit *commit, struct store_batch *batch)
{
    struct commit_queue *queue = ((struct ceiling_commit *)(void *)commit)->queue;
    CHECK(batch == queue->batch.store_batch);
    const struct commit_ceilings ceilings = {ceiling_above(commit->version),
                                             ceiling_above(commit->sequence)};
    commit_put_ceilings(batch, queue->options.catalog, &ceilings);
}

static status write_ceilings(struct commit_queue *queue)
{
    struct ceiling_commit write = {
        .commit = {.kind = COMMIT_INTERNAL, .extend = extend_by_ceiling, .frees_space = true},
        .queue = queue}; /* it takes next to none, and a start needs it */
    return commit_and_wait(queue, &write.commit);
}

void commit_set_cluster(struct commit_queue *queue, unsigned cluster)
{
    CHECK(cluster < VERSION_CLUSTERS);
    pthread_mutex_lock(&queue->lock);
    queue->cluster = cluster;
    pthread_mutex_unlock(&queue->lock);
}

status commit_raise_version(struct commit_queue *queue, uint64_t version)
{
    pthread_mutex_lock(&queue->lock);
    if (atomic_load_explicit(&queue->newest, memory_order_relaxed) < version)
        atomic_store_explicit(&queue->newest, version, memory_order_relaxed);
    raise_time(queue, version_time_us(version), clock_steady_us(queue->options.clock));
    pthread_mutex_unlock(&queue->lock);
    return write_ceilings(queue);
}

status commit_raise_sequence(struct commit_queue *queue, uint64_t sequence)
{
    pthread_mutex_lock(&queue->lock);
    if (queue->newest_sequence < sequence)
        queue->newest_sequence = sequence;
    raise_time(queue, version_time_us(sequence), clock_steady_us(queue->options.clock));
    pthread_mutex_unlock(&queue->lock);
    return write_ceilings(queue);
}
