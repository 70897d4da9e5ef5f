/* See table_stream.h. */
#include "cluster/stream/table_stream.h"

#include "base/check.h"
#include "cluster/cluster_private.h"
#include "cluster/stream/settings.h"

#include <stdlib.h>

/* --- facts --- */

struct stream_facts table_stream_facts(struct table *table)
{
    const struct table_stream *stream = &table_description(table)->stream;
    if (stream->retention_us == 0)
        return (struct stream_facts){0};
    return (struct stream_facts){
        .retention_us = stream->retention_us,
        .life = stream->life,
        .oldest_us = table_stream_oldest(stream, cluster_version_us(table->cluster))};
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

status table_stream_token_at(struct table *table, int64_t time_us, bytes start, bytes end,
                             struct arena *arena, struct stream_token *out)
{
    struct tablet *tablet = table_route(table, start);
    struct shard *shard = tablet->shard;
    struct stream_part *part = arena_alloc(arena, sizeof *part);
    *out = (struct stream_token){.life = table_description(table)->stream.life,
                                 .shard = shard->number,
                                 .time_us = time_us,
                                 .start = start,
                                 .parts = part,
                                 .part_count = 1};
    tablet_release(tablet);
    if (part == NULL)
        return status_out_of_memory();
    *part = (struct stream_part){.end = end};
    return stream_log_find_time(shard->streams, time_us, &part->after);
}

/* --- reading --- */

struct tablet_ids {
    uint64_t *ids;
    size_t count;
    size_t capacity;
};

static status add_id(void *context, uint64_t tablet)
{
    struct tablet_ids *ids = context;
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

static bool meets(const struct tablet *tablet, bytes start, bytes end)
{
    return (tablet->end.size == 0 || bytes_compare(start, tablet->end) < 0) &&
           (end.size == 0 || bytes_compare(tablet->start, end) < 0);
}

static status add_present(struct table *table, const struct shard *shard, bytes start, bytes end,
                          struct tablet_ids *ids)
{
    struct tablet **tablets;
    size_t count;
    TRY(table_tablets(table, &tablets, &count));
    status s = status_ok();
    for (size_t i = 0; i < count; i++) {
        if (status_is_ok(s) && tablets[i]->shard == shard && meets(tablets[i], start, end))
            s = add_id(ids, tablets[i]->id);
        tablet_release(tablets[i]);
    }
    free(tablets);
    return s;
}

static int compare_ids(const void *a, const void *b)
{
    uint64_t first = *(const uint64_t *)a, second = *(const uint64_t *)b;
    return first < second ? -1 : first > second;
}

static void leave_out_doubles(struct tablet_ids *ids)
{
    size_t count = 0;
    if (ids->count > 0)
        qsort(ids->ids, ids->count, sizeof *ids->ids, compare_ids);
    for (size_t i = 0; i < ids->count; i++)
        if (count == 0 || ids->ids[i] != ids->ids[count - 1])
            ids->ids[count++] = ids->ids[i];
    ids->count = count;
}

/* The map first: what leaves it meanwhile is in the lineage by then (lineage.h, 1), and may be in
 * both. */
static status find_tablets(struct table *table, const struct shard *shard, bytes start, bytes end,
                           struct tablet_ids *ids)
{
    TRY(add_present(table, shard, start, end, ids));
    TRY(lineage_visit(&table->lineage, shard->number, start, end, add_id, ids));
    leave_out_doubles(ids);
    return status_ok();
}

static bytes end_of(const struct stream_token *token)
{
    return token->parts[token->part_count - 1].end;
}

/* Everything up to there has been visited: parts that were behind it are where it is, and
 * neighbours that stand at one place are one. */
static void move_to(struct stream_token *token, struct stream_position reached)
{
    size_t count = 0;
    for (size_t i = 0; i < token->part_count; i++) {
        struct stream_part part = token->parts[i];
        if (stream_position_compare(part.after, reached) < 0)
            part.after = reached;
        if (count > 0 && stream_position_compare(token->parts[count - 1].after, part.after) == 0)
            token->parts[count - 1].end = part.end;
        else
            token->parts[count++] = part;
    }
    token->part_count = count;
}

static bool is_through(struct stream_position reached, uint64_t through)
{
    return stream_position_compare(reached, (struct stream_position){through, UINT32_MAX}) >= 0;
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
    status s = find_tablets(table, shard, token->start, end_of(token), &ids);
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
    move_to(token, reached);
    *is_at_end = is_through(reached, progress.through);
    int64_t time_us = *is_at_end ? progress.time_us : version_time_us(reached.sequence) - 1;
    if (token->time_us < time_us)
        token->time_us = time_us;
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
