/* See shard.h. */
#include "cluster/shard.h"

#include "base/check.h"
#include "base/limits.h"
#include "cluster/cluster_private.h"
#include "cluster/row_jobs.h"
#include "cluster/row_rewrite.h"
#include "cluster/shard_directories.h"
#include "cluster/stream/stream_observer.h"
#include "stream/log.h"

#include <stdlib.h>

/* --- what is the matter with it --- */

static void note_lack(struct condition *condition, enum reason reason, bool is_so, status s)
{
    if (is_so)
        condition_enter(condition, reason, "writes are refused: %s", status_message(s));
    else
        condition_leave(condition, reason);
}

/* Of the reasons that the store may have, it is that one: it is fenced, or lacks space or memory,
 * or is sealed, since old data may not be true (cluster_seal_old_data). */
static void note_store(struct condition *condition, bool lacks_memory, status s)
{
    bool is_lack = s.code == STATUS_RESOURCE_EXHAUSTED;
    DCHECK(condition != NULL);
    if (s.code == STATUS_FAILED_PRECONDITION)
        condition_enter(condition, REASON_old_data, "%s", status_message(s));
    if (s.code == STATUS_UNAVAILABLE)
        condition_enter(condition, REASON_fenced, "%s: the server must be started anew",
                        status_message(s));
    else
        condition_leave(condition, REASON_fenced);
    note_lack(condition, REASON_disk_full, is_lack && !lacks_memory, s);
    note_lack(condition, REASON_no_memory, is_lack && lacks_memory, s);
}

static void note_records(struct condition *condition, bool records)
{
    if (records)
        condition_leave(condition, REASON_log_unrecorded);
    else
        condition_enter(condition, REASON_log_unrecorded,
                        "the file SYNCED cannot be written; the log says why");
}

static void look_at_store(struct shard *shard)
{
    pthread_mutex_lock(&shard->looking);
    status s = store_health(shard->store);
    note_store(shard->condition, store_lacks_memory(shard->store), s);
    note_records(shard->condition, store_records_log_end(shard->store));
    status_free(s);
    pthread_mutex_unlock(&shard->looking);
}

/* The store may say so before it is open. */
static void report_trouble(void *context, enum status_code code, const char *what)
{
    struct shard *shard = context;
    (void)code;
    (void)what;
    if (shard->store != NULL)
        look_at_store(shard);
}

void shard_look(struct shard *shard)
{
    store_look_for_room(shard->store);
    look_at_store(shard);
    data_directory_look(&shard->place);
    disk_reserve_look(&shard->reserve);
    clock_watch_note_lead(shard);
    if (shard->archiver != NULL)
        archiver_look(shard->archiver);
}

/* --- its store --- */

static status make_path(struct shard *shard)
{
    shard_directory_append(&shard->path, shard->cluster->options.data_directory, shard->number);
    return shard->path.failed ? status_out_of_memory() : status_ok();
}

status shard_create(struct cluster *cluster, unsigned number, struct shard **out)
{
    struct shard *shard = *out = calloc(1, sizeof *shard);
    if (shard == NULL)
        return status_out_of_memory();
    shard->magic = SHARD_MAGIC;
    shard->cluster = cluster;
    shard->number = number;
    pthread_mutex_init(&shard->looking, NULL);
    status s = make_path(shard);
    if (status_is_ok(s))
        s = condition_create_part(cluster->condition, &shard->condition);
    if (status_is_ok(s))
        s = damages_create(shard, &shard->damages);
    if (!status_is_ok(s)) {
        shard_destroy(shard);
        *out = NULL;
    }
    return s;
}

/* Old data without a catalog is no new store: it is not known who may read what. */
static status check_catalog(struct store *store)
{
    const char *words = store_old_data(store);
    if (words == NULL || store_keyspace_find(store, CATALOG_KEYSPACE_ID) != NULL)
        return status_ok();
    return status_make(STATUS_DATA_LOSS, "nothing of the catalog is left: %s", words);
}

/* The shards have what the options give in equal parts. */
static status open_store(struct shard *shard)
{
    const struct cluster_options *options = &shard->cluster->options;
    unsigned parts = options->shards > 1 ? options->shards : 1;
    struct store_options store_options = {.directory = (const char *)shard->path.data,
                                          .fold = &row_fold,
                                          .log = options->log,
                                          .cache_bytes = options->cache_bytes / parts,
                                          .write_buffer_bytes = options->write_buffer_bytes / parts,
                                          .open_files = options->open_files / (int)parts,
                                          .background_threads = options->background_threads,
                                          .salvage = options->salvage,
                                          .accepts_old_data = options->accepts_old_data,
                                          .on_trouble = report_trouble,
                                          .trouble_context = shard,
                                          .holds_compactions =
                                              !options->salvage && !options->accepts_lost_records,
                                          .on_damage = damages_see,
                                          .damage_context = shard->damages,
                                          .fine_keyspace = CATALOG_KEYSPACE_ID,
                                          .metrics = options->metrics,
                                          .on_large_work = options->on_large_work,
                                          .large_value_bytes = options->large_value_bytes,
                                          .large_commit_bytes = options->large_commit_bytes,
                                          .large_work_context = options->large_work_context};
    TRY(store_open(&store_options, &shard->store));
    if (store_old_data(shard->store) != NULL) /* it may not be true */
        shard->cluster->options.archive.place = NULL;
    return check_catalog(shard->store);
}

static status open_system(struct shard *shard)
{
    if (store_keyspace_find(shard->store, CATALOG_KEYSPACE_ID) == NULL)
        TRY(store_keyspaces_create(shard->store, CATALOG_KEYSPACE_ID, 1));
    shard->system = store_keyspace_find(shard->store, CATALOG_KEYSPACE_ID);
    keyspace_set_name(shard->system, shard->number == 0 ? "the catalog" : "a shard's records");
    return status_ok();
}

status shard_open_store(struct shard *shard)
{
    const char *directory = (const char *)shard->path.data;
    const struct cluster_options *options = &shard->cluster->options;
    shard->reserve = (struct disk_reserve){.directory = directory,
                                           .reserve_bytes = options->disk_reserve_bytes,
                                           .clock = options->clock,
                                           .metrics = options->metrics,
                                           .condition = shard->condition};
    TRY(open_store(shard));
    TRY(open_system(shard));
    shard->place = (struct data_directory){.path = directory,
                                           .store = shard->store,
                                           .clock = options->clock,
                                           .condition = shard->condition,
                                           .log = options->log};
    data_directory_note(&shard->place);
    return status_ok();
}

/* --- its commits --- */

static status admit_writes(void *context)
{
    struct shard *shard = context;
    TRY(data_directory_admit(&shard->place));
    return disk_reserve_admit(&shard->reserve);
}

/* The logs first: they are asked for memory before others count on the commit; and that of change
 * streams before the one that is archived, which has what the other one puts. */
static status gather_observers(struct shard *shard)
{
    DCHECK(shard->observers == NULL);
    const struct cluster_options *options = &shard->cluster->options;
    enum { OUR_OWN = 3 };
    struct commit_observer *observers = shard->observers =
        calloc(OUR_OWN + options->observer_count, sizeof *observers);
    if (observers == NULL)
        return status_out_of_memory();
    size_t count = 0;
    observers[count++] = stream_observer_of(shard);
    if (shard->log != NULL)
        observers[count++] = change_log_observer(shard->log);
    observers[count++] = row_jobs_observer(shard->row_jobs);
    for (size_t i = 0; i < options->observer_count; i++)
        observers[count++] = options->observers[i];
    shard->observer_count = count;
    return status_ok();
}

static status start_commits(struct shard *shard)
{
    DCHECK(shard->commits == NULL && shard->locks == NULL);
    uint64_t queue_bytes = shard->cluster->options.commit_queue_bytes;
    TRY(gather_observers(shard));
    struct commit_options options = {
        .store = shard->store,
        .catalog = shard->system,
        .clock = shard->cluster->options.clock,
        .cluster = shard->cluster->options.number,
        .durability = shard->cluster->options.durability,
        .queue_limit_bytes = queue_bytes == 0 ? LIMIT_COMMIT_QUEUE_BYTES : queue_bytes,
        .stall_limit_us = (int64_t)LIMIT_COMMIT_STALL_SECONDS * 1000000,
        .admit = admit_writes,
        .admit_context = shard,
        .route = table_route_write,
        .tombstones_from = &shard->cluster->tombstones_from,
        .observers = shard->observers,
        .observer_count = shard->observer_count,
        .has_change_log = shard->log != NULL,
        .metrics = shard->cluster->options.metrics};
    TRY(row_locks_create(&shard->locks));
    return commit_queue_create(&options, &shard->commits);
}

static status open_tokens(struct shard *shard)
{
    struct tokens_options options = {.store = shard->store,
                                     .catalog = shard->system,
                                     .clock = shard->cluster->options.clock,
                                     .metrics = shard->cluster->options.metrics};
    return tokens_open(&options, &shard->tokens);
}

status shard_start(struct shard *shard)
{
    TRY(open_tokens(shard));
    TRY(row_jobs_create(shard, &shard->row_jobs));
    TRY(row_rewriter_create(shard, &shard->row_rewriter));
    TRY(data_directory_start(&shard->place));
    return start_commits(shard);
}

status shard_start_scrub(struct shard *shard)
{
    DCHECK(shard->scrub == NULL);
    return scrub_start(shard, &shard->scrub);
}

uint64_t shard_logged(const struct shard *shard)
{
    uint64_t applied = commit_applied(shard->commits);
    uint64_t logged = stream_log_newest(shard->streams);
    return logged > applied ? logged : applied;
}

status shard_log_end(struct shard *shard, struct stream_position *out)
{
    struct commit barrier = {.kind = COMMIT_BARRIER};
    *out = (struct stream_position){0, 0};
    TRY(commit_and_wait(shard->commits, &barrier));
    *out = (struct stream_position){shard_logged(shard), UINT32_MAX};
    return status_ok();
}

static void add_nothing(struct commit *commit, struct store_batch *batch)
{
    (void)commit, (void)batch;
}

void shard_apply(struct shard *shard, enum commit_kind kind, const struct catalog_change *change)
{
    DCHECK(commit_is_structural(kind) && check_is_held(&shard->cluster->admin));
    struct commit commit = {
        .kind = kind, .extend = add_nothing, .catalog = change, .frees_space = true};
    uint64_t applied;
    status s = commit_and_wait(shard->commits, &commit);
    if (status_is_ok(s))
        return;
    log_warn(shard->cluster->options.log, "a shard takes a change of structure without a commit",
             LOG_INT("shard", shard->number), LOG_STR("cause", status_message(s)));
    status_free(s);
    commit_hold(shard->commits, &applied);
    change->apply(change);
    commit_release(shard->commits);
}

/* --- its end --- */

void shard_rest(struct shard *shard)
{
    scrub_stop(shard->scrub);
    shard->scrub = NULL;
    row_rewriter_stop(shard->row_rewriter);
}

void shard_stop(struct shard *shard)
{
    DCHECK(shard->magic == SHARD_MAGIC);
    archiver_destroy(shard->archiver);
    if (shard->commits != NULL)
        commit_queue_destroy(shard->commits);
    shard->commits = NULL;
    free(shard->observers);
    change_log_close(shard->log);
    stream_log_close(shard->streams);
    shard->streams = NULL;
    buffer_free(&shard->archive_path);
    row_jobs_destroy(shard->row_jobs);
    row_rewriter_destroy(shard->row_rewriter);
    tokens_close(shard->tokens);
}

void shard_close_store(struct shard *shard)
{
    DCHECK(shard->commits == NULL);
    if (shard->locks != NULL)
        row_locks_destroy(shard->locks);
    data_directory_stop(&shard->place); /* no write asks it any more */
    if (shard->store != NULL)
        store_close(shard->store);
    shard->store = NULL;
}

void shard_destroy(struct shard *shard)
{
    if (shard == NULL)
        return;
    CHECK_MAGIC(shard, SHARD_MAGIC);
    DCHECK(shard->store == NULL);
    damages_destroy(shard->damages);
    condition_destroy(shard->condition);
    free(shard->preallocated);
    free(shard->unclaimed);
    free(shard->lost_records);
    buffer_free(&shard->path);
    pthread_mutex_destroy(&shard->looking);
    shard->magic = 0;
    free(shard);
}

/* --- metrics --- */

static void measure_cache(struct metrics *metrics, const struct store_statistics *statistics)
{
    metrics_set(metrics, METRIC_store_cache_bytes, (int64_t)statistics->cache_used_bytes);
    metrics_set(metrics, METRIC_store_cache_capacity_bytes,
                (int64_t)statistics->cache_capacity_bytes);
    metrics_set(metrics, METRIC_store_cache_hits_total, (int64_t)statistics->cache_hits);
    metrics_set(metrics, METRIC_store_cache_misses_total, (int64_t)statistics->cache_misses);
}

static void measure_compactions(struct metrics *metrics, const struct store_statistics *statistics)
{
    metrics_set(metrics, METRIC_store_flushes_running, (int64_t)statistics->flushes_running);
    metrics_set(metrics, METRIC_store_flushes_total, (int64_t)statistics->flushes);
    metrics_set(metrics, METRIC_store_flushed_bytes_total, (int64_t)statistics->flushed_bytes);
    metrics_set(metrics, METRIC_store_compactions_running,
                (int64_t)statistics->compactions_running);
    metrics_set(metrics, METRIC_store_compactions_total, (int64_t)statistics->compactions);
    metrics_set(metrics, METRIC_store_compaction_seconds_total, (int64_t)statistics->compaction_us);
    metrics_set(metrics, METRIC_store_compaction_read_bytes_total,
                (int64_t)statistics->compaction_read_bytes);
    metrics_set(metrics, METRIC_store_compaction_written_bytes_total,
                (int64_t)statistics->compaction_written_bytes);
    metrics_set(metrics, METRIC_store_compaction_pending_bytes,
                (int64_t)statistics->compaction_pending_bytes);
    for (unsigned level = 0; level < STORE_LEVELS; level++)
        metrics_set(metrics, METRIC_store_level_files_0 + level,
                    (int64_t)statistics->level_files[level]);
}

/* Raises a counter to a sum over the present tables: when one is deleted the sum falls, and a
 * counter must not. */
static void raise_to(struct metrics *metrics, enum metric metric, uint64_t value)
{
    if ((int64_t)value > metrics_value(metrics, metric))
        metrics_set(metrics, metric, (int64_t)value);
}

static void measure_stalls(struct metrics *metrics, const struct store_statistics *statistics)
{
    metrics_set(metrics, METRIC_store_stalled, statistics->is_stalled);
    metrics_set(metrics, METRIC_store_stall_milliseconds_total,
                (int64_t)(statistics->stalls_us / 1000));
    metrics_set(metrics, METRIC_store_stalls_total_slowdown, (int64_t)statistics->slowdowns);
    metrics_set(metrics, METRIC_store_stalls_total_stop, (int64_t)statistics->stops);
    raise_to(metrics, METRIC_store_stall_causes_total_write_buffers, statistics->stalls_by_buffers);
    raise_to(metrics, METRIC_store_stall_causes_total_level0_files, statistics->stalls_by_level0);
    raise_to(metrics, METRIC_store_stall_causes_total_pending_compaction,
             statistics->stalls_by_pending);
}

/* --- of all shards --- */

static void add_writing(struct store_statistics *to, const struct store_statistics *more)
{
    to->bytes_written += more->bytes_written;
    to->syncs += more->syncs;
    to->stalls_us += more->stalls_us;
    to->is_stalled = to->is_stalled || more->is_stalled;
    to->slowdowns += more->slowdowns;
    to->stops += more->stops;
    to->stalls_by_buffers += more->stalls_by_buffers;
    to->stalls_by_level0 += more->stalls_by_level0;
    to->stalls_by_pending += more->stalls_by_pending;
}

static void add_background(struct store_statistics *to, const struct store_statistics *more)
{
    to->flushes += more->flushes;
    to->flushes_running += more->flushes_running;
    to->flushed_bytes += more->flushed_bytes;
    to->compactions += more->compactions;
    to->compactions_running += more->compactions_running;
    to->compaction_us += more->compaction_us;
    to->compaction_read_bytes += more->compaction_read_bytes;
    to->compaction_written_bytes += more->compaction_written_bytes;
    to->compaction_pending_bytes += more->compaction_pending_bytes;
}

static void add_sizes(struct store_statistics *to, const struct store_statistics *more)
{
    to->cache_used_bytes += more->cache_used_bytes;
    to->cache_capacity_bytes += more->cache_capacity_bytes;
    to->cache_hits += more->cache_hits;
    to->cache_misses += more->cache_misses;
    to->write_buffer_used_bytes += more->write_buffer_used_bytes;
    to->table_bytes += more->table_bytes;
    to->log_bytes += more->log_bytes;
    for (unsigned level = 0; level < STORE_LEVELS; level++)
        to->level_files[level] += more->level_files[level];
}

static void measure_stores(struct cluster *cluster)
{
    struct metrics *metrics = cluster->options.metrics;
    struct store_statistics all = {0};
    for (size_t i = 0; i < cluster->shard_count; i++) {
        struct store_statistics one;
        store_statistics(cluster->shards[i]->store, &one);
        add_writing(&all, &one);
        add_background(&all, &one);
        add_sizes(&all, &one);
    }
    measure_cache(metrics, &all);
    measure_compactions(metrics, &all);
    measure_stalls(metrics, &all);
    metrics_set(metrics, METRIC_store_write_buffer_bytes, (int64_t)all.write_buffer_used_bytes);
    metrics_set(metrics, METRIC_store_table_bytes, (int64_t)all.table_bytes);
    metrics_set(metrics, METRIC_store_log_bytes, (int64_t)all.log_bytes);
    metrics_set(metrics, METRIC_store_written_bytes_total, (int64_t)all.bytes_written);
    metrics_set(metrics, METRIC_store_syncs_total, (int64_t)all.syncs);
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void measure_queues(struct cluster *cluster)
{
    struct metrics *metrics = cluster->options.metrics;
    int64_t lead_us = 0, under_way_us = 0;
    for (size_t i = 0; i < cluster->shard_count; i++) {
        struct commit_queue *commits = cluster->shards[i]->commits;
        lead_us = larger(lead_us, commit_clock_lead_us(commits));
        under_way_us = larger(under_way_us, commit_under_way_us(commits));
    }
    metrics_set(metrics, METRIC_commit_queue_percent, (int64_t)(100 * cluster_write_load(cluster)));
    metrics_set(metrics, METRIC_clock_lead_seconds, lead_us);
    metrics_set(metrics, METRIC_commit_milliseconds, under_way_us / 1000);
}

void shards_limit_cache(struct cluster *cluster, uint64_t bytes)
{
    for (size_t i = 0; i < cluster->shard_count; i++)
        store_limit_cache(cluster->shards[i]->store, bytes / cluster->shard_count);
}

uint64_t shards_growth(struct cluster *cluster)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < cluster->shard_count; i++)
        sum += store_growth(cluster->shards[i]->store);
    return sum;
}

void shards_measure(struct cluster *cluster)
{
    measure_stores(cluster);
    measure_queues(cluster);
    pool_measure(cluster->rows, cluster->options.metrics, POOL_GAUGES(rows));
}
