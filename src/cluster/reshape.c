/* See reshape.h. */
#include "cluster/reshape.h"

#include "advisor/personal.h"
#include "base/check.h"
#include "cluster/cluster_private.h"
#include "cluster/stream/table_stream.h"

/* Whether the tablets are still in the map: only a holder of admin takes them out. */
static status check_stands(struct table *table, struct tablet *const *tablets, size_t count)
{
    DCHECK(check_is_held(&table->cluster->admin));
    bool stands = !table->is_deleted;
    for (size_t i = 0; stands && i < count; i++) {
        struct tablet *found = table_route(table, tablets[i]->start);
        stands = found == tablets[i];
        tablet_release(found);
    }
    return stands ? status_ok() : status_make(STATUS_NOT_FOUND, "the tablet is gone");
}

static status record_swap(const struct table *table, const struct catalog_change *change,
                          struct store_batch *batch)
{
    DCHECK(change->former_count + change->fresh_count == 3);
    struct cluster *cluster = table->cluster;
    for (size_t i = 0; i < change->former_count; i++)
        TRY(catalog_delete_tablet(batch, cluster->catalog, table->id, change->former[i]->start));
    for (size_t i = 0; i < change->fresh_count; i++) {
        struct tablet_record record = tablet_record_of(table, change->fresh[i]);
        TRY(catalog_put_tablet(batch, cluster->catalog, &record));
    }
    TRY(lineage_record(change->tables[0], change, batch));
    return catalog_put_next_id(batch, cluster->catalog, cluster->next_id);
}

static void swap(const struct catalog_change *change)
{
    DCHECK(change->table_count == 1 && check_is_locked(&change->tables[0]->cluster->admin));
    table_swap_tablets(change->tables[0], change->former, change->former_count, change->fresh,
                       change->fresh_count);
    table_stream_wake(change->former, change->former_count);
}

/* The map changes on the shard's commit thread. */
static status commit_in_shard(struct cluster *cluster, enum commit_kind kind,
                              struct store_batch *batch, const struct catalog_change *change)
{
    struct shard *shard = change->former[0]->shard;
    DCHECK(change->fresh[0]->shard == shard);
    if (shard == cluster->home)
        return cluster_write_change(cluster, kind, batch, change);
    TRY(cluster_write_change(cluster, COMMIT_CATALOG, batch, NULL));
    shard_apply(shard, kind, change);
    return status_ok();
}

/* Takes the references of `fresh` if it succeeds. */
static status commit_swap(struct table *table, enum commit_kind kind,
                          const struct catalog_change *change)
{
    DCHECK(check_is_held(&table->cluster->admin));
    TRY(table_make_room(table));
    struct store_batch *batch = store_batch_create();
    if (batch == NULL)
        return status_out_of_memory();
    status s = record_swap(table, change, batch);
    if (status_is_ok(s))
        s = commit_in_shard(table->cluster, kind, batch, change);
    store_batch_destroy(batch);
    if (!status_is_ok(s))
        lineage_take_back(table, change);
    TRY(s);
    metrics_add(table->cluster->options.metrics, METRIC_tablets,
                (int64_t)change->fresh_count - (int64_t)change->former_count);
    return status_ok();
}

/* --- split --- */

static status split(struct table *table, struct tablet *tablet, bytes at)
{
    struct cluster *cluster = table->cluster;
    struct tablet *halves[2] = {NULL, NULL};
    const struct catalog_change change = {.apply = swap,
                                          .tables = &table,
                                          .table_count = 1,
                                          .former = &tablet,
                                          .former_count = 1,
                                          .fresh = halves,
                                          .fresh_count = 2};
    TRY(check_stands(table, &tablet, 1));
    status s = tablet_create(cluster->next_id++, tablet->shard, tablet->keyspace, tablet->start, at,
                             &halves[0]);
    if (status_is_ok(s))
        s = tablet_create(cluster->next_id++, tablet->shard, tablet->keyspace, at, tablet->end,
                          &halves[1]);
    if (status_is_ok(s))
        s = commit_swap(table, COMMIT_SPLIT, &change);
    if (!status_is_ok(s)) {
        tablet_release(halves[0]);
        tablet_release(halves[1]);
    }
    return s;
}

/* The log has fewer secrets to keep than the table. */
static void log_shape(const struct table *table, const char *message, bytes at)
{
    struct buffer shown = {0};
    personal_hide_certain(at, &shown);
    log_info(table->cluster->options.log, message, LOG_STR("table", table->name),
             LOG_BYTES("at", buffer_bytes(&shown)));
    buffer_free(&shown);
}

status reshape_split(struct table *table, struct tablet *tablet, bytes at)
{
    struct cluster *cluster = table->cluster;
    CHECK(bytes_compare(tablet->start, at) < 0 && tablet_contains(tablet, at));
    pthread_mutex_lock(&cluster->admin);
    status s = split(table, tablet, at);
    pthread_mutex_unlock(&cluster->admin);
    if (status_is_ok(s)) {
        metrics_add(cluster->options.metrics, METRIC_tablet_splits_total, 1);
        log_shape(table, "tablet split", at);
    }
    return s;
}

/* --- merge --- */

static status merge(struct table *table, struct tablet *left, struct tablet *right)
{
    struct tablet *const pair[] = {left, right};
    struct tablet *whole;
    const struct catalog_change change = {.apply = swap,
                                          .tables = &table,
                                          .table_count = 1,
                                          .former = pair,
                                          .former_count = 2,
                                          .fresh = &whole,
                                          .fresh_count = 1};
    TRY(check_stands(table, pair, 2));
    TRY(tablet_create(table->cluster->next_id++, left->shard, left->keyspace, left->start,
                      right->end, &whole));
    status s = commit_swap(table, COMMIT_MERGE, &change);
    if (!status_is_ok(s))
        tablet_release(whole);
    return s;
}

status reshape_merge(struct table *table, struct tablet *left, struct tablet *right)
{
    struct cluster *cluster = table->cluster;
    CHECK(bytes_equal(left->end, right->start) && left->keyspace == right->keyspace);
    pthread_mutex_lock(&cluster->admin);
    status s = merge(table, left, right);
    pthread_mutex_unlock(&cluster->admin);
    if (status_is_ok(s)) {
        metrics_add(cluster->options.metrics, METRIC_tablet_merges_total, 1);
        log_shape(table, "tablets merged", right->start);
    }
    return s;
}
