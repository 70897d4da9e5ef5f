/* See stream_upkeep.h. */
#include "cluster/stream/stream_upkeep.h"

#include "base/check.h"
#include "base/dates.h"
#include "cluster/cluster_private.h"
#include "cluster/origin/origin_feed.h"
#include "cluster/stream/settings.h"
#include "cluster/view/view_feed.h"
#include "cluster/view/view_table.h"
#include "stream/log.h"

/* --- the start --- */

static void forget_damage(void *context, uint64_t keyspace)
{
    const struct shard *shard = context;
    damages_forget_keyspace(shard->damages, keyspace);
}

/* Of this shard's log; UINT64_MAX: it is not bounded. */
static uint64_t quota_of(const struct cluster *cluster)
{
    uint64_t bytes = cluster->options.change_log_bytes;
    return bytes == 0 ? UINT64_MAX : bytes / cluster->shard_count;
}

static uint64_t segment_bytes_of(const struct cluster *cluster)
{
    enum { SEGMENTS = 8, LEAST = 64 << 10 };
    uint64_t part = quota_of(cluster) / SEGMENTS;
    uint64_t most = part < STREAM_SEGMENT_BYTES ? part : STREAM_SEGMENT_BYTES;
    return most > LEAST ? most : LEAST;
}

static status open_log(struct shard *shard)
{
    const struct cluster_options *options = &shard->cluster->options;
    return stream_log_open(
        &(struct stream_log_options){.store = shard->store,
                                     .segment_bytes = segment_bytes_of(shard->cluster),
                                     .system = shard->system,
                                     .clock = options->clock,
                                     .log = options->log,
                                     .dropped = forget_damage,
                                     .context = shard},
        &shard->streams);
}

status stream_logs_open(struct cluster *cluster)
{
    for (size_t i = 0; i < cluster->shard_count; i++)
        TRY(open_log(cluster->shards[i]));
    return status_ok();
}

/* --- segments --- */

/* The catalog's next id is the home's to keep; a start begins above the ids of all keyspaces of the
 * other shards. */
static status begin_segment(struct shard *shard)
{
    struct cluster *cluster = shard->cluster;
    DCHECK(check_is_held(&cluster->admin));
    struct store_batch *batch = store_batch_create();
    if (batch == NULL)
        return status_out_of_memory();
    uint64_t id = cluster->next_id++;
    status s = status_ok();
    if (shard == cluster->home)
        s = catalog_put_next_id(batch, cluster->catalog, cluster->next_id);
    if (status_is_ok(s))
        s = stream_log_begin_segment(shard->streams, shard->commits, id, batch);
    store_batch_destroy(batch);
    return s;
}

status stream_logs_begin(struct cluster *cluster)
{
    for (size_t i = 0; i < cluster->shard_count; i++)
        if (!stream_log_has_segment(cluster->shards[i]->streams))
            TRY(begin_segment(cluster->shards[i]));
    return status_ok();
}

static bool has_any_logged(const struct cluster *cluster)
{
    if (origin_feed_is_on(cluster->home))
        return true;
    for (size_t i = 0; i < cluster->table_count; i++)
        if (table_has_stream(cluster->tables[i]) || table_is_viewed(cluster->tables[i]))
            return true;
    return false;
}

status stream_logs_resume(struct cluster *cluster)
{
    if (store_old_data(cluster->home->store) != NULL) /* nothing is written */
        return status_ok();
    pthread_mutex_lock(&cluster->admin);
    status s = has_any_logged(cluster) ? stream_logs_begin(cluster) : status_ok();
    pthread_mutex_unlock(&cluster->admin);
    return s;
}

static void renew_segment(struct shard *shard)
{
    if (!stream_log_wants_segment(shard->streams))
        return;
    pthread_mutex_lock(&shard->cluster->admin);
    status s = begin_segment(shard);
    pthread_mutex_unlock(&shard->cluster->admin);
    if (!status_is_ok(s))
        log_warn(shard->cluster->options.log, "the log of change streams goes on in a full segment",
                 LOG_STR("cause", status_message(s)));
    status_free(s);
}

/* --- what is promised --- */

/* What the tables' retention promises, all of them together. */
struct promise {
    int64_t now_us;
    int64_t retention_us; /* the longest; 0: no table has a stream */
    int64_t oldest_us;    /* from here on some table keeps all; INT64_MAX */
    struct table *table;  /* that one, with a reference */
};

static bool note_promise(void *context, struct table *table)
{
    struct promise *promise = context;
    const struct table_stream *stream = &table_description(table)->stream;
    if (stream->retention_us == 0)
        return true;
    int64_t oldest_us = table_stream_oldest(stream, promise->now_us);
    if (promise->retention_us < stream->retention_us)
        promise->retention_us = stream->retention_us;
    if (oldest_us >= promise->oldest_us)
        return true;
    if (promise->table != NULL)
        table_release(promise->table);
    table_retain(table);
    promise->table = table;
    promise->oldest_us = oldest_us;
    return true;
}

/* Why it is so. */
static void write_cause(const struct shard *shard, bool gives_way, struct buffer *out)
{
    enum { MB_BITS = 20 };
    uint64_t quota = quota_of(shard->cluster);
    if (gives_way || quota == UINT64_MAX)
        buffer_append_format(out, "space %s short on the disk%c", gives_way ? "is" : "was", 0);
    else
        buffer_append_format(out, "they may take %llu MB (--change-log-bytes)%c",
                             (unsigned long long)(quota >> MB_BITS), 0);
}

static void tell_short(struct shard *shard, const struct promise *promise, bool gives_way)
{
    struct buffer cause = {0};
    date_text texts[2];
    const int64_t times[] = {stream_log_since(shard->streams), promise->oldest_us};
    dates_tell(times, 2, texts);
    write_cause(shard, gives_way, &cause);
    condition_enter(shard->condition, REASON_change_log_short,
                    "change streams have nothing from before %s, but %s is to have all since %s: "
                    "%s",
                    texts[0], table_name(promise->table), texts[1],
                    cause.failed ? "" : (const char *)cause.data);
    buffer_free(&cause);
}

/* Something is missing that is promised, and it was taken since the start. */
static void look_at_promise(struct shard *shard, const struct promise *promise, bool gives_way)
{
    struct stream_log *log = shard->streams;
    bool is_broken = promise->table != NULL && promise->oldest_us < stream_log_since(log);
    if (is_broken && stream_log_has_evicted(log))
        tell_short(shard, promise, gives_way);
    else
        condition_leave(shard->condition, REASON_change_log_short);
}

/* --- what goes --- */

static bool has_deleted_tables(struct cluster *cluster)
{
    pthread_mutex_lock(&cluster->admin);
    bool has = cluster->kept_count > 0;
    pthread_mutex_unlock(&cluster->admin);
    return has;
}

/* What the disk lacks, and the log is to give. */
static uint64_t lacking_bytes(struct shard *shard)
{
    uint64_t missing = disk_reserve_missing(&shard->reserve);
    return missing > 0 && !has_deleted_tables(shard->cluster) ? missing : 0;
}

static uint64_t most_bytes(struct shard *shard, uint64_t lacking)
{
    uint64_t quota = quota_of(shard->cluster);
    if (lacking == 0)
        return quota;
    uint64_t bytes = stream_log_bytes(shard->streams);
    uint64_t rest = bytes > lacking ? bytes - lacking : 0;
    return rest < quota ? rest : quota;
}

/* Views that had not seen all of it are held against their sources as a whole. */
static const char *loss_of(const struct shard *shard, uint64_t keep_from)
{
    bool is_of_views = keep_from < stream_log_oldest(shard->streams);
    return is_of_views
               ? "change streams and materialized views have lost their oldest changes early"
               : "change streams have lost their oldest changes early";
}

static void tell_evicted(const struct shard *shard, const struct stream_bounds *bounds,
                         const struct stream_evicted *evicted)
{
    struct metrics *metrics = shard->cluster->options.metrics;
    date_text since;
    if (evicted->segments == 0)
        return;
    metrics_add(metrics, METRIC_change_log_evicted_segments_total, (int64_t)evicted->segments);
    metrics_add(metrics, METRIC_change_log_evicted_bytes_total, (int64_t)evicted->bytes);
    dates_tell_from(stream_log_since(shard->streams), since);
    log_warn(shard->cluster->options.log, loss_of(shard, bounds->keep_from),
             LOG_INT("bytes", evicted->bytes), LOG_STR("oldest", since));
}

static uint64_t kept_from(struct shard *shard)
{
    uint64_t by_views = view_feeds_kept_from(shard), by_others = origin_feed_kept_from(shard);
    return by_views < by_others ? by_views : by_others;
}

static void truncate_log(struct shard *shard, const struct promise *promise)
{
    struct stream_evicted evicted;
    uint64_t lacking = lacking_bytes(shard);
    const struct stream_bounds bounds = {.before_us = promise->now_us - promise->retention_us,
                                         .keep_from = kept_from(shard),
                                         .most_bytes = most_bytes(shard, lacking)};
    status s = stream_log_truncate(shard->streams, shard->commits, &bounds, &evicted);
    tell_evicted(shard, &bounds, &evicted);
    look_at_promise(shard, promise, lacking > 0);
    if (!status_is_ok(s))
        log_warn(shard->cluster->options.log, "the log of change streams is not truncated for now",
                 LOG_STR("cause", status_message(s)));
    status_free(s);
}

static status forget_former(struct table *table, int64_t before_us)
{
    struct cluster *cluster = table->cluster;
    struct store_batch *batch = store_batch_create();
    size_t count;
    if (batch == NULL)
        return status_out_of_memory();
    lineage_forget(table, before_us, batch, &count);
    status s = count == 0 ? status_ok()
                          : commit_write(cluster->home->commits, COMMIT_CATALOG, batch, NULL);
    store_batch_destroy(batch);
    return s;
}

/* Tablets whose records have all gone. */
static bool forget(void *context, struct table *table)
{
    const int64_t *before_us = context;
    if (lineage_is_empty(&table->lineage))
        return true;
    pthread_mutex_lock(&table->cluster->admin);
    status s = table->is_deleted ? status_ok() : forget_former(table, *before_us);
    pthread_mutex_unlock(&table->cluster->admin);
    status_ignore(s); /* the next start has them again */
    return !maintenance_is_stopping(table->cluster->maintenance);
}

static bool is_kept(const struct cluster *cluster)
{
    for (size_t i = 0; i < cluster->shard_count; i++)
        if (stream_log_has_segment(cluster->shards[i]->streams))
            return true;
    return false;
}

static void keep_up(struct cluster *cluster, const struct promise *promise)
{
    for (size_t i = 0; i < cluster->shard_count; i++) {
        renew_segment(cluster->shards[i]);
        truncate_log(cluster->shards[i], promise);
    }
}

void stream_upkeep_run(struct cluster *cluster)
{
    const bytes all = bytes_make(NULL, 0);
    struct promise promise = {.now_us = cluster_version_us(cluster), .oldest_us = INT64_MAX};
    if (!is_kept(cluster))
        return;
    status_ignore(cluster_list_tables(cluster, all, all, note_promise, &promise));
    keep_up(cluster, &promise);
    if (promise.table != NULL)
        table_release(promise.table);
    int64_t before_us = promise.now_us - promise.retention_us;
    status_ignore(cluster_list_tables(cluster, all, all, forget, &before_us));
}

/* --- metrics --- */

void stream_upkeep_measure(struct cluster *cluster)
{
    struct metrics *metrics = cluster->options.metrics;
    uint64_t bytes = 0, segments = 0, written = 0;
    int64_t since_us = INT64_MAX;
    for (size_t i = 0; i < cluster->shard_count; i++) {
        struct stream_log *log = cluster->shards[i]->streams;
        bytes += stream_log_bytes(log);
        segments += stream_log_segments(log);
        written += stream_log_written_bytes(log);
        if (stream_log_has_segment(log) && stream_log_since(log) < since_us)
            since_us = stream_log_since(log);
    }
    int64_t reach_us = since_us == INT64_MAX ? 0 : cluster_version_us(cluster) - since_us;
    metrics_set(metrics, METRIC_change_log_bytes, (int64_t)bytes);
    metrics_set(metrics, METRIC_change_log_quota_bytes, (int64_t)cluster->options.change_log_bytes);
    metrics_set(metrics, METRIC_change_log_segments, (int64_t)segments);
    metrics_set(metrics, METRIC_change_log_written_bytes_total, (int64_t)written);
    metrics_set(metrics, METRIC_change_log_reach_seconds, reach_us);
}
