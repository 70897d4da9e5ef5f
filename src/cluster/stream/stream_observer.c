/* See stream_observer.h. All of it is the commit thread's.
 *
 * A row's record is its change list. Where there is none, since nobody who packed the change knew
 * that it would be told, it is made of what the change comes to; and a deletion of the row that was
 * not looked into deletes every family that the table has then.
 *
 * What views are to be told of a commit is prepared beside it (view/view_observer.h), and what
 * other clusters are (origin/origin_observer.h).
 *
 * In front of it stands, if the row was dropped and the stream has still to be told (telling.h),
 * what it had before the drop: then the row is told before its turn. */
#include "cluster/stream/stream_observer.h"

#include "base/check.h"
#include "cluster/cluster_private.h"
#include "cluster/origin/origin_observer.h"
#include "cluster/stream/row_families.h"
#include "cluster/view/view_observer.h"
#include "row/change_list_derive.h"
#include "stream/log.h"

#include <stdlib.h>

/* --- lists --- */

static bool is_told(const struct commit *row)
{
    return row->table != NULL && table_has_stream(row->table);
}

/* The list as it is going to be told. False without memory. */
static bool complete_list(const struct commit *row)
{
    const struct schema *schema = table_schema(row->table);
    struct change_list *list = &row->change->list;
    if (change_list_is_empty(list) && !row->change->is_listed)
        change_list_derive(list, row->change, schema);
    return !list->failed && row_families_expand_all(schema, list);
}

/* What the row had before it was dropped; of which nobody knows, all families. */
static bool complete_before(const struct commit *row)
{
    struct packed_change *change = row->change;
    if (change->before == NULL) {
        change->before = calloc(1, sizeof *change->before);
        if (change->before == NULL)
            return false;
        change_list_add(change->before, &(struct list_mutation){.kind = LIST_DELETE_ROW});
    }
    return !change->before->failed &&
           row_families_expand_all(table_schema(row->table), change->before);
}

/* --- records --- */

struct preparing {
    struct shard *shard;
    const struct commit *commit;
    uint32_t ordinal; /* of the next record */
};

static bool prepare_record(struct preparing *preparing, const struct stream_append *what)
{
    const struct commit *commit = preparing->commit;
    struct stream_append append = *what;
    if (change_list_is_empty(append.list))
        return true;
    append.position = (struct stream_position){commit->sequence, preparing->ordinal++};
    return stream_log_prepare(preparing->shard->streams, &append);
}

/* Tells the row before its turn, if it is owed. */
static bool prepare_dropped(struct preparing *preparing, const struct commit *row)
{
    struct telling *telling = table_telling(row->table, row->keyspace);
    uint64_t life = table_description(row->table)->stream.life;
    struct stream_append append = {
        .kind = STREAM_DROPPED, .tablet = row->tablet->id, .row_key = row->row_key};
    if (!telling_owes(telling, life, row->row_key, &append.version))
        return true;
    if (!complete_before(row))
        return false;
    append.list = row->change->before;
    return prepare_record(preparing, &append) &&
           told_batch_prepare(&preparing->shard->told, telling, row->row_key);
}

static bool prepare_row(struct preparing *preparing, const struct commit *row)
{
    if (!is_told(row))
        return true;
    if (!prepare_dropped(preparing, row) || !complete_list(row))
        return false;
    const struct stream_append append = {.kind = row->kind == COMMIT_COLLECT ? STREAM_COLLECTED
                                                                             : STREAM_USER,
                                         .tablet = row->tablet->id,
                                         .version = preparing->commit->version,
                                         .row_key = row->row_key,
                                         .list = &row->change->list};
    return prepare_record(preparing, &append);
}

/* --- the observer --- */

static bool begin(void *context, struct store_batch *batch)
{
    struct shard *shard = context;
    (void)batch;
    DCHECK(shard->told.prepared == NULL && shard->told.added == NULL);
    stream_log_begin(shard->streams);
    return false;
}

static void take_back(struct shard *shard)
{
    stream_log_cancel(shard->streams);
    told_batch_cancel(&shard->told);
}

static void cancel(void *context, const struct commit *commit)
{
    (void)commit;
    take_back(context);
}

static bool prepare_rows(struct shard *shard, const struct commit *commit)
{
    struct preparing preparing = {.shard = shard, .commit = commit};
    for (uint32_t i = 0; i <= commit->other_count; i++)
        if (!prepare_row(&preparing, i == 0 ? commit : &commit->others[i - 1]))
            return false;
    return true;
}

static bool prepare(void *context, const struct commit *commit, const struct store_batch *records)
{
    bool is_whole = !commit_changes_rows(commit->kind) || prepare_rows(context, commit);
    if (is_whole && view_observer_prepare(context, commit, records) &&
        origin_observer_prepare(context, commit, records))
        return true;
    take_back(context);
    return false;
}

static status put(void *context, const struct store_change *change)
{
    store_batch_put(context, change->keyspace, change->key, change->value);
    return status_ok();
}

static void see(void *context, const struct commit *commit, const struct store_batch *records,
                struct store_batch *batch)
{
    struct shard *shard = context;
    (void)records;
    if (commit->kind == COMMIT_CATALOG)
        stream_log_see_segment(shard->streams, commit, batch);
    stream_log_append(shard->streams, batch);
    if (!commit_changes_rows(commit->kind))
        return;
    status_ignore(told_batch_visit(&shard->told, shard->system, put, batch));
    told_batch_add(&shard->told);
}

static void end(void *context, struct store_batch *batch)
{
    const struct shard *shard = context;
    stream_log_put_feeds(shard->streams, batch);
}

static void written(void *context, bool is_written)
{
    struct shard *shard = context;
    told_batch_written(&shard->told, is_written);
    stream_log_written(shard->streams, is_written);
}

status stream_observer_visit_prepared(void *context,
                                      status (*visit)(void *visit_context,
                                                      const struct store_change *change),
                                      void *visit_context)
{
    const struct shard *shard = context;
    TRY(stream_log_visit_prepared(shard->streams, visit, visit_context));
    return told_batch_visit(&shard->told, shard->system, visit, visit_context);
}

struct commit_observer stream_observer_of(struct shard *shard)
{
    return (struct commit_observer){.context = shard,
                                    .begin = begin,
                                    .prepare = prepare,
                                    .cancel = cancel,
                                    .see = see,
                                    .end = end,
                                    .written = written};
}
