/* See origin_feed.h. That the feed is on is a record of the shard's keyspace `system`: the key
 * "origin-feed", its id and a sequence that is before all that is in it, 8 bytes each, big-endian.
 */
#include "cluster/origin/origin_feed.h"

#include "base/big_endian.h"
#include "base/check.h"
#include "cluster/cluster_private.h"
#include "cluster/stream/stream_upkeep.h"
#include "stream/feed.h"

static bytes record_key(void)
{
    return bytes_of("origin-feed");
}

/* --- the record --- */

struct feed_record {
    uint64_t id;    /* 0: there is none */
    uint64_t begun; /* a sequence before all that is in it */
};
enum { RECORD_SIZE = 2 * BIG_ENDIAN_SIZE };

static status read_record(const struct shard *shard, struct feed_record *out)
{
    struct store_value value = {0};
    enum store_presence presence = STORE_ABSENT;
    *out = (struct feed_record){0};
    status s = store_get(shard->system, NULL, record_key(), STORE_READ_ANY, &value, &presence);
    if (status_is_ok(s) && presence == STORE_FOUND && value.bytes.size == RECORD_SIZE)
        *out = (struct feed_record){big_endian_read(value.bytes.data),
                                    big_endian_read(value.bytes.data + BIG_ENDIAN_SIZE)};
    if (status_is_ok(s) && presence == STORE_FOUND && out->id == 0)
        s = status_make(STATUS_DATA_LOSS, "the record of the origin feed has %zu bytes",
                        value.bytes.size);
    store_value_release(&value);
    return s;
}

/* Of none: removes it. */
static status write_record(struct shard *shard, struct feed_record record)
{
    uint8_t value[RECORD_SIZE];
    struct store_batch *batch = store_batch_create();
    if (batch == NULL)
        return status_out_of_memory();
    big_endian_write(value, record.id);
    big_endian_write(value + BIG_ENDIAN_SIZE, record.begun);
    if (record.id == 0)
        store_batch_delete(batch, shard->system, record_key());
    else
        store_batch_put(batch, shard->system, record_key(), bytes_make(value, sizeof value));
    status s = commit_write(shard->commits, COMMIT_CATALOG, batch, NULL);
    store_batch_destroy(batch);
    return s;
}

/* Ids are the catalog's, and never given twice. With admin held. */
static status take_id(struct cluster *cluster, uint64_t *out)
{
    DCHECK(check_is_held(&cluster->admin));
    struct store_batch *batch = store_batch_create();
    if (batch == NULL)
        return status_out_of_memory();
    *out = cluster->next_id++;
    status s = catalog_put_next_id(batch, cluster->catalog, cluster->next_id);
    if (status_is_ok(s))
        s = commit_write(cluster->home->commits, COMMIT_CATALOG, batch, NULL);
    store_batch_destroy(batch);
    return s;
}

/* --- on and off --- */

static void turn_on(struct shard *shard, struct feed_record record)
{
    DCHECK(record.id != 0);
    shard->origin.feed.id = record.id;
    shard->origin.begun = record.begun;
    atomic_store_explicit(&shard->origin.is_on, true, memory_order_release);
}

bool origin_feed_is_on(const struct shard *shard)
{
    return atomic_load_explicit(&shard->origin.is_on, memory_order_acquire);
}

struct shard *origin_shard(struct cluster *cluster)
{
    return cluster->home;
}

uint64_t origin_feed_logged(const struct shard *shard)
{
    return shard_logged(shard);
}

/* What is in the queue may have been looked at before it was on: it is waited for. */
static status begin(struct shard *shard)
{
    struct stream_position end;
    struct feed_record record = {.id = shard->origin.feed.id};
    if (origin_feed_is_on(shard))
        return status_ok();
    if (record.id == 0)
        TRY(take_id(shard->cluster, &record.id));
    TRY(shard_log_end(shard, &end));
    record.begun = end.sequence;
    TRY(write_record(shard, record));
    turn_on(shard, record);
    return shard_log_end(shard, &end);
}

static status begin_all(struct cluster *cluster)
{
    TRY(stream_logs_begin(cluster));
    for (size_t i = 0; i < cluster->shard_count; i++)
        TRY(begin(cluster->shards[i]));
    return status_ok();
}

status origin_feeds_begin(struct cluster *cluster)
{
    pthread_mutex_lock(&cluster->admin);
    status s = begin_all(cluster);
    pthread_mutex_unlock(&cluster->admin);
    return s;
}

/* Off in memory first: a commit that is prepared meanwhile may be in it, and nobody reads it. */
static status end(struct shard *shard)
{
    if (!origin_feed_is_on(shard))
        return status_ok();
    atomic_store_explicit(&shard->origin.is_on, false, memory_order_release);
    atomic_store(&shard->origin.keep, 0);
    return write_record(shard, (struct feed_record){0});
}

status origin_feeds_end(struct cluster *cluster)
{
    status s = status_ok();
    pthread_mutex_lock(&cluster->admin);
    for (size_t i = 0; status_is_ok(s) && i < cluster->shard_count; i++)
        s = end(cluster->shards[i]);
    pthread_mutex_unlock(&cluster->admin);
    return s;
}

static status resume(struct shard *shard)
{
    struct feed_record record;
    TRY(read_record(shard, &record));
    if (record.id == 0)
        return status_ok();
    atomic_store(&shard->origin.feed.newest, commit_applied(shard->commits));
    turn_on(shard, record);
    return status_ok();
}

status origin_feeds_resume(struct cluster *cluster)
{
    for (size_t i = 0; i < cluster->shard_count; i++)
        TRY(resume(cluster->shards[i]));
    return status_ok();
}

/* --- reading --- */

status origin_feed_end(struct shard *shard, struct stream_position *out)
{
    return shard_log_end(shard, out);
}

bool origin_feed_may_have(struct shard *shard, struct stream_position after)
{
    return atomic_load(&shard->origin.feed.newest) > after.sequence;
}

uint64_t origin_feed_bytes(struct shard *shard, struct stream_position after)
{
    if (!origin_feed_is_on(shard) || !origin_feed_may_have(shard, after))
        return 0;
    return stream_log_feed_bytes(shard->streams, shard->origin.feed.id, after);
}

struct origin_complete origin_feed_complete(struct shard *shard)
{
    int64_t now_us = commit_version_us(shard->commits); /* before the sequence: commit.h */
    return (struct origin_complete){.version = version_at(now_us),
                                    .sequence = commit_submitted(shard->commits)};
}

void origin_feed_wait(struct shard *shard, struct stream_waiter *waiter)
{
    waiter->tablet = shard->origin.feed.id;
    stream_log_wait(shard->streams, waiter);
}

bool origin_feed_forget(struct shard *shard, struct stream_waiter *waiter)
{
    return stream_log_forget(shard->streams, waiter);
}

struct feed_visit {
    status (*visit)(void *context, const struct origin_change *change, bool *enough);
    void *context;
};

static status bad_entry(void)
{
    return status_make(STATUS_DATA_LOSS, "an entry of the origin feed does not parse");
}

/* A range without a bound ends where the next table would begin. */
static bool read_end(bytes end, uint64_t table, bytes *to)
{
    if (end.size < BIG_ENDIAN_SIZE)
        return false;
    *to = bytes_from(end, BIG_ENDIAN_SIZE);
    return big_endian_read(end.data) == table + (to->size == 0);
}

static status visit_entry(void *context, const struct stream_feed_entry *entry, bool *enough)
{
    const struct feed_visit *visit = context;
    if (entry->key.size < BIG_ENDIAN_SIZE)
        return bad_entry();
    struct origin_change change = {.table = big_endian_read(entry->key.data),
                                   .from = bytes_from(entry->key, BIG_ENDIAN_SIZE),
                                   .is_drop = entry->is_drop,
                                   .encoded = entry->change,
                                   .version = entry->version,
                                   .position = entry->position};
    bool is_sound = entry->is_drop ? read_end(entry->end, change.table, &change.to)
                                   : entry->has_change && change.from.size > 0 &&
                                         event_change_read(entry->change, &change.change);
    return is_sound ? visit->visit(visit->context, &change, enough) : bad_entry();
}

/* Whether all of it has been read up to here, which the log need not have any more: other readers'
 * entries have taken its room. A commit counts as applied after it is known that it put something
 * into the feed. */
static bool is_read(struct shard *shard, struct stream_position after,
                    struct stream_position *reached)
{
    uint64_t applied = commit_applied(shard->commits);
    if (applied < after.sequence || origin_feed_may_have(shard, after))
        return false;
    *reached = (struct stream_position){applied, UINT32_MAX};
    return true;
}

status origin_feed_read(struct shard *shard, struct stream_position after, size_t most_bytes,
                        status (*visit)(void *context, const struct origin_change *change,
                                        bool *enough),
                        void *context, struct stream_position *reached, bool *is_end)
{
    struct feed_visit forward = {visit, context};
    if (after.sequence == 0)
        after = (struct stream_position){shard->origin.begun, UINT32_MAX};
    *is_end = is_read(shard, after, reached);
    if (*is_end)
        return status_ok();
    const struct stream_feed_query query = {.feed = shard->origin.feed.id,
                                            .after = after,
                                            .through = shard_logged(shard),
                                            .most_bytes = most_bytes};
    const struct stream_position end = {query.through, UINT32_MAX};
    TRY(stream_log_read_feed(shard->streams, &query, visit_entry, &forward, reached));
    *is_end = stream_position_compare(*reached, end) >= 0;
    return status_ok();
}

/* --- keeping --- */

void origin_feed_keep(struct shard *shard, uint64_t from_sequence)
{
    atomic_store(&shard->origin.keep, from_sequence);
}

uint64_t origin_feed_kept_from(const struct shard *shard)
{
    return origin_feed_is_on(shard) ? atomic_load(&shard->origin.keep) : UINT64_MAX;
}
