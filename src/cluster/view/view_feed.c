/* See view_feed.h. */
#include "cluster/view/view_feed.h"

#include "base/check.h"
#include "cluster/cluster_private.h"
#include "stream/feed.h"

/* All of its rows lie in one. */
static struct shard *shard_of(const struct table *source)
{
    DCHECK(source->space_count > 0);
    return source->spaces[0].shard;
}

/* What is in the queue may have been looked at before the table was viewed, where that is recorded
 * in another shard: it is waited for. */
status view_feed_end(struct table *source, struct stream_position *out)
{
    return shard_log_end(shard_of(source), out);
}

bool view_feed_may_have(struct table *source, struct stream_position after)
{
    return atomic_load(&source->feed.newest) > after.sequence;
}

/* --- reading --- */

struct feed_visit {
    status (*visit)(void *context, const struct view_change *change, bool *enough);
    void *context;
};

static status visit_entry(void *context, const struct stream_feed_entry *entry, bool *enough)
{
    const struct feed_visit *visit = context;
    const struct view_change change = {.from = entry->key,
                                       .to = entry->end,
                                       .is_range = entry->is_range,
                                       .is_drop = entry->is_drop,
                                       .version = entry->version,
                                       .position = entry->position};
    return visit->visit(visit->context, &change, enough);
}

status view_feed_read(struct table *source, struct stream_position after, size_t most_bytes,
                      status (*visit)(void *context, const struct view_change *change,
                                      bool *enough),
                      void *context, struct stream_position *reached, bool *is_end)
{
    struct feed_visit forward = {visit, context};
    const struct stream_feed_query query = {.feed = source->id,
                                            .after = after,
                                            .through = shard_logged(shard_of(source)),
                                            .most_bytes = most_bytes};
    const struct stream_position end = {query.through, UINT32_MAX};
    *is_end = false;
    TRY(stream_log_read_feed(shard_of(source)->streams, &query, visit_entry, &forward, reached));
    *is_end = stream_position_compare(*reached, end) >= 0;
    return status_ok();
}

static status take_first(void *context, const struct view_change *change, bool *enough)
{
    int64_t *time_us = context;
    *time_us = version_time_us(change->version);
    *enough = true;
    return status_ok();
}

status view_feed_first_us(struct table *source, struct stream_position after, int64_t *out)
{
    struct stream_position reached;
    bool is_end;
    *out = INT64_MAX;
    if (!view_feed_may_have(source, after))
        return status_ok();
    return view_feed_read(source, after, SIZE_MAX, take_first, out, &reached, &is_end);
}

/* --- what no commit says --- */

static void add_nothing(struct commit *commit, struct store_batch *batch)
{
    (void)commit, (void)batch;
}

/* As what a repair deletes, but that it deletes nothing. */
status view_feed_tell_all(struct table *source)
{
    struct commit commit = {
        .kind = COMMIT_DROP, .table = source, .extend = add_nothing, .frees_space = true};
    return commit_and_wait(shard_of(source)->commits, &commit);
}

/* --- keeping --- */

void view_feed_keep(struct table *view, uint64_t from_sequence)
{
    DCHECK(view->view.source_id != 0);
    atomic_store(&view->view.keep, from_sequence);
}

struct keeping {
    const struct shard *shard;
    uint64_t from;
};

static bool look_at_view(void *context, struct table *table)
{
    struct keeping *keeping = context;
    uint64_t from = atomic_load(&table->view.keep);
    if (table->view.source_id != 0 && table->view.shard == keeping->shard && from < keeping->from)
        keeping->from = from;
    return true;
}

uint64_t view_feeds_kept_from(struct shard *shard)
{
    const bytes all = bytes_make(NULL, 0);
    struct keeping keeping = {.shard = shard, .from = UINT64_MAX};
    status s = cluster_list_tables(shard->cluster, all, all, look_at_view, &keeping);
    uint64_t from = status_is_ok(s) ? keeping.from : 0;
    status_ignore(s);
    return from;
}

/* --- waiting --- */

static void wake(struct task *task)
{
    struct view_feed_waiter *waiter =
        LIST_ENTRY(&task->link, struct view_feed_waiter, waiter.task.link);
    waiter->wake(waiter);
}

void view_feed_wait(struct table *source, struct view_feed_waiter *waiter)
{
    waiter->waiter.tablet = source->id;
    waiter->waiter.loop = NULL;
    waiter->waiter.task.run = wake;
    stream_log_wait(shard_of(source)->streams, &waiter->waiter);
}

bool view_feed_forget(struct table *source, struct view_feed_waiter *waiter)
{
    return stream_log_forget(shard_of(source)->streams, &waiter->waiter);
}
