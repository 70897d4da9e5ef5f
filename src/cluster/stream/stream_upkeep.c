/* See stream_upkeep.h. */
#include "cluster/stream/stream_upkeep.h"

#include "base/check.h"
#include "cluster/cluster_private.h"
#include "stream/log.h"

/* --- the start --- */

static void forget_damage(void *context, uint64_t keyspace)
{
    const struct shard *shard = context;
    damages_forget_keyspace(shard->damages, keyspace);
}

static status open_log(struct shard *shard)
{
    const struct cluster_options *options = &shard->cluster->options;
    return stream_log_open(&(struct stream_log_options){.store = shard->store,
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

/* --- what nobody keeps --- */

struct longest {
    int64_t retention_us; /* 0: no table has a stream */
};

static bool note_retention(void *context, struct table *table)
{
    struct longest *longest = context;
    int64_t retention_us = table_description(table)->stream.retention_us;
    if (longest->retention_us < retention_us)
        longest->retention_us = retention_us;
    return true;
}

static void truncate_log(struct shard *shard, int64_t before_us)
{
    size_t evicted;
    status s = stream_log_truncate(shard->streams, shard->commits, before_us, 0, &evicted);
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

void stream_upkeep_run(struct cluster *cluster)
{
    const bytes all = bytes_make(NULL, 0);
    struct longest longest = {0};
    if (!is_kept(cluster))
        return;
    status_ignore(cluster_list_tables(cluster, all, all, note_retention, &longest));
    int64_t before_us = cluster_version_us(cluster) - longest.retention_us;
    for (size_t i = 0; i < cluster->shard_count; i++) {
        renew_segment(cluster->shards[i]);
        truncate_log(cluster->shards[i], before_us);
    }
    status_ignore(cluster_list_tables(cluster, all, all, forget, &before_us));
}
