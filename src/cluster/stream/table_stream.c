/* See table_stream.h. */
#include "cluster/stream/table_stream.h"

#include "base/check.h"
#include "base/key_range.h"
#include "cluster/cluster_private.h"
#include "cluster/stream/settings.h"

#include <stdlib.h>

/* --- facts --- */

/* A table's rows may lie in any shard. */
static int64_t logged_since(const struct cluster *cluster)
{
    int64_t since_us = INT64_MIN;
    for (size_t i = 0; i < cluster->shard_count; i++) {
        int64_t of_shard_us = stream_log_since(cluster->shards[i]->streams);
        since_us = of_shard_us > since_us ? of_shard_us : since_us;
    }
    return since_us;
}

struct stream_facts table_stream_facts(struct table *table)
{
    const struct table_stream *stream = &table_description(table)->stream;
    if (stream->retention_us == 0)
        return (struct stream_facts){0};
    return (struct stream_facts){
        .retention_us = stream->retention_us,
        .life = stream->life,
        .oldest_us = table_stream_oldest(stream, cluster_version_us(table->cluster)),
        .logged_us = logged_since(table->cluster)};
}

status table_stream_partitions(struct table *table,
                               status (*visit)(void *context, bytes start, bytes end),
                               void *context)
{
    struct tablet **tablets;
    size_t count;
    TRY(table_tablets(table, &tablets, &count));
    status s = status_ok();
    for (size_t i = 0; i < count; i++) {
        if (status_is_ok(s))
            s = visit(context, tablets[i]->start, tablets[i]->end);
        tablet_release(tablets[i]);
    }
    free(tablets);
    return s;
}

/* The tablet that has just this range, with a reference; NULL: none has. */
static struct tablet *tablet_of(struct table *table, bytes start, bytes end)
{
    struct tablet *tablet = table_route(table, start);
    if (bytes_equal(tablet->start, start) && bytes_equal(tablet->end, end))
        return tablet;
    tablet_release(tablet);
    return NULL;
}

bool table_stream_is_partition(struct table *table, bytes start, bytes end, uint32_t *shard)
{
    struct tablet *tablet = tablet_of(table, start, end);
    if (tablet == NULL)
        return false;
    *shard = tablet->shard->number;
    tablet_release(tablet);
    return true;
}

static status shard_numbered(const struct table *table, uint32_t number, struct shard **out)
{
    const struct cluster *cluster = table->cluster;
    if (number >= cluster->shard_count)
        return status_make(STATUS_INVALID_ARGUMENT, "the token is of no shard of this server");
    *out = cluster->shards[number];
    return status_ok();
}

/* --- time --- */

/* What has been committed, and the time up to which nothing is to come any more: between the two
 * looks at what was submitted, whatever came has a later time. */
struct progress {
    uint64_t through; /* a sequence */
    int64_t time_us;
};

static struct progress look_at_progress(struct shard *shard)
{
    int64_t now_us = commit_version_us(shard->commits);
    uint64_t submitted = commit_submitted(shard->commits);
    uint64_t applied = commit_applied(shard->commits);
    uint64_t logged = stream_log_newest(shard->streams); /* by what is just being acknowledged */
    bool is_idle = applied >= submitted;
    return (struct progress){.through = logged > applied ? logged : applied,
                             .time_us = (is_idle ? now_us : version_time_us(applied)) - 1};
}

/* Whether all that has been committed is of before the time, as it mostly is for who begins now: he
 * need not pass over the second that the log may have before it. A version may be some microseconds
 * ahead of its sequence. */
static bool is_behind_all(struct shard *shard, int64_t time_us, struct stream_position *out)
{
    enum { AHEAD_US = 1000 };
    const struct progress progress = look_at_progress(shard);
    *out = (struct stream_position){progress.through, UINT32_MAX};
    return version_time_us(progress.through) + AHEAD_US < time_us;
}

status table_stream_token_at(struct table *table, int64_t time_us, bytes start, bytes end,
                             struct arena *arena, struct stream_token *out)
{
    struct tablet *tablet = table_route(table, start);
    struct shard *shard = tablet->shard;
    struct stream_part *part = arena_alloc(arena, sizeof *part);
    *out = (struct stream_token){.life = table_description(table)->stream.life,
                                 .era = stream_log_era(shard->streams),
                                 .shard = shard->number,
                                 .time_us = time_us,
                                 .start = start,
                                 .parts = part,
                                 .part_count = 1};
    tablet_release(tablet);
    if (part == NULL)
        return status_out_of_memory();
    *part = (struct stream_part){.end = end};
    if (is_behind_all(shard, time_us, &part->after))
        return status_ok();
    return stream_log_find_time(shard->streams, time_us, &part->after);
}

status table_stream_adopt(struct table *table, struct stream_token *token)
{
    struct shard *shard;
    TRY(shard_numbered(table, token->shard, &shard));
    TRY(stream_log_check_era(shard->streams, token));
    token->era = stream_log_era(shard->streams);
    return status_ok();
}

/* --- reading --- */

struct tablet_ids {
    uint64_t *ids;
    size_t count;
    size_t capacity;
    size_t present; /* the first of them */
};

static status add_id(struct tablet_ids *ids, uint64_t tablet)
{
    if (ids->count == ids->capacity) {
        size_t capacity = 2 * ids->capacity + 8;
        uint64_t *more = realloc(ids->ids, capacity * sizeof *more);
        if (more == NULL)
            return status_out_of_memory();
        ids->ids = more;
        ids->capacity = capacity;
    }
    ids->ids[ids->count++] = tablet;
    return status_ok();
}

/* One after the other by their ends, so that a table of many tablets costs no more than those. */
static status add_present(struct table *table, const struct shard *shard, bytes start, bytes end,
                          struct tablet_ids *ids)
{
    status s = status_ok();
    struct tablet *tablet = table_route(table, start), *next;
    for (; tablet != NULL; tablet = next) {
        if (tablet->shard == shard)
            s = add_id(ids, tablet->id);
        bool goes_on = tablet->end.size > 0 && key_is_before_end(tablet->end, end);
        next = status_is_ok(s) && goes_on ? table_route(table, tablet->end) : NULL;
        tablet_release(tablet);
    }
    return s;
}

/* One that is leaving the map is in both. */
static status add_former(void *context, uint64_t tablet)
{
    const struct tablet_ids *ids = context;
    for (size_t i = 0; i < ids->present; i++)
        if (ids->ids[i] == tablet)
            return status_ok();
    return add_id(context, tablet);
}

/* The map first: what leaves it meanwhile is in the lineage by then (lineage.h, 1). */
static status find_tablets(struct table *table, const struct shard *shard, bytes start, bytes end,
                           struct tablet_ids *ids)
{
    TRY(add_present(table, shard, start, end, ids));
    ids->present = ids->count;
    return lineage_visit(&table->lineage, shard->number, start, end, add_former, ids);
}

static uint64_t log_bytes_in(struct table *table, const struct shard *shard)
{
    const bytes all = bytes_make(NULL, 0);
    struct tablet_ids ids = {0};
    status s = find_tablets(table, shard, all, all, &ids);
    uint64_t bytes = status_is_ok(s) ? stream_log_tablets_bytes(shard->streams, ids.ids, ids.count)
                                     : 0; /* not known */
    status_ignore(s);
    free(ids.ids);
    return bytes;
}

uint64_t table_stream_log_bytes(struct table *table)
{
    const struct cluster *cluster = table->cluster;
    uint64_t sum = 0;
    for (size_t i = 0; i < cluster->shard_count && table_has_stream(table); i++)
        sum += log_bytes_in(table, cluster->shards[i]);
    return sum;
}

static bool is_through(struct stream_position reached, uint64_t through)
{
    return stream_position_compare(reached, (struct stream_position){through, UINT32_MAX}) >= 0;
}

/* Of the last commit all may not have been got. */
int64_t table_stream_watermark(const struct table *table, uint32_t shard, bytes start, bytes end,
                               struct stream_position position, int64_t time_us)
{
    uint64_t life = table_description(table)->stream.life;
    uint64_t through = position.sequence - (position.ordinal != UINT32_MAX);
    for (size_t i = 0; i < table->space_count; i++) {
        const struct table_space *space = &table->spaces[i];
        if (space->shard->number != shard)
            continue;
        uint64_t version = telling_cap(space->telling, life, start, end, through);
        if (version != 0 && version_time_us(version) <= time_us)
            time_us = version_time_us(version) - 1;
    }
    return time_us;
}

status table_stream_read(struct table *table, struct stream_token *token, size_t most_bytes,
                         status (*visit)(void *context, const struct stream_record *record,
                                         bool *enough),
                         void *context, bool *is_at_end)
{
    struct shard *shard;
    struct tablet_ids ids = {0};
    struct stream_position reached;
    TRY(shard_numbered(table, token->shard, &shard));
    const struct progress progress = look_at_progress(shard);
    status s = find_tablets(table, shard, token->start, stream_token_end(token), &ids);
    const struct stream_query query = {.tablets = ids.ids,
                                       .tablet_count = ids.count,
                                       .start = token->start,
                                       .parts = token->parts,
                                       .part_count = token->part_count,
                                       .through = progress.through,
                                       .most_bytes = most_bytes};
    if (status_is_ok(s))
        s = stream_log_read(shard->streams, &query, visit, context, &reached);
    free(ids.ids);
    TRY(s);
    *is_at_end = is_through(reached, progress.through);
    int64_t time_us = *is_at_end ? progress.time_us : version_time_us(reached.sequence) - 1;
    time_us = table_stream_watermark(table, token->shard, token->start, stream_token_end(token),
                                     reached, time_us);
    *token = stream_token_advanced(token, reached, time_us, token->parts);
    return status_ok();
}

status table_stream_read_piece(struct table *table, uint32_t number,
                               const struct stream_record *record, uint32_t piece,
                               struct buffer *out)
{
    struct shard *shard;
    TRY(shard_numbered(table, number, &shard));
    return stream_log_read_piece(shard->streams, record->tablet, record->position, piece, out);
}

/* --- waiting --- */

bool table_stream_wait(struct table *table, bytes start, bytes end, struct stream_waiter *waiter)
{
    struct tablet *tablet = tablet_of(table, start, end);
    if (tablet == NULL)
        return false;
    struct stream_log *log = tablet->shard->streams;
    waiter->tablet = tablet->id;
    stream_log_wait(log, waiter);
    struct tablet *again = tablet_of(table, start, end);
    bool waits = again == tablet && table_has_stream(table);
    if (again != NULL)
        tablet_release(again);
    tablet_release(tablet);
    return waits || !stream_log_forget(log, waiter);
}

bool table_stream_forget(struct table *table, uint32_t number, struct stream_waiter *waiter)
{
    struct shard *shard;
    status s = shard_numbered(table, number, &shard);
    CHECK(status_is_ok(s));
    return stream_log_forget(shard->streams, waiter);
}

static void wake(const struct tablet *tablet)
{
    if (tablet->shard->streams != NULL)
        stream_log_wake(tablet->shard->streams, tablet->id);
}

void table_stream_wake(struct tablet *const *tablets, size_t count)
{
    for (size_t i = 0; i < count; i++)
        wake(tablets[i]);
}
