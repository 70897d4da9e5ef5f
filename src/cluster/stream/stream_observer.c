/* See stream_observer.h. All of it is the commit thread's.
 *
 * A row's record is its change list. Where there is none, since nobody who packed the change knew
 * that it would be told, it is made of what the change comes to; and a deletion of the row that was
 * not looked into deletes every family that the table has then. */
#include "cluster/stream/stream_observer.h"

#include "base/check.h"
#include "cluster/cluster_private.h"
#include "row/change_list_derive.h"
#include "stream/log.h"

#include <stdlib.h>

struct stream_observer {
    struct shard *shard;
    /* Tablets that the batch has records of, and the sequence of the last: the commits' own
     * references keep them. */
    struct told_tablet {
        struct tablet *tablet;
        uint64_t sequence;
    } * told;
    size_t told_count;
    size_t told_capacity;
};

/* --- lists --- */

static bool is_told(const struct commit *row)
{
    return row->table != NULL && table_description(row->table)->stream.retention_us > 0;
}

static bool expand(const struct schema *schema, struct change_list *list)
{
    if (!list->deletes_row)
        return true;
    bytes *names = calloc(schema->family_count + 1, sizeof *names);
    if (names == NULL)
        return false;
    for (size_t i = 0; i < schema->family_count; i++)
        names[i] = schema->families[i].name;
    bool is_done = change_list_expand(list, names, schema->family_count);
    free(names);
    return is_done;
}

/* The list as it is going to be told. False without memory. */
static bool complete_list(const struct commit *row)
{
    const struct schema *schema = table_schema(row->table);
    struct change_list *list = &row->change->list;
    if (change_list_is_empty(list) && !row->change->is_listed)
        change_list_derive(list, row->change, schema);
    return !list->failed && expand(schema, list);
}

/* --- records --- */

static struct stream_append append_of(const struct commit *commit, const struct commit *row,
                                      uint32_t ordinal)
{
    return (struct stream_append){.kind =
                                      row->kind == COMMIT_COLLECT ? STREAM_COLLECTED : STREAM_USER,
                                  .tablet = row->tablet->id,
                                  .position = {.sequence = commit->sequence, .ordinal = ordinal},
                                  .version = commit->version,
                                  .row_key = row->row_key,
                                  .list = &row->change->list};
}

/* The commit's rows by their number: itself, then the others. */
static const struct commit *row_at(const struct commit *commit, size_t at)
{
    return at == 0 ? commit : &commit->others[at - 1];
}

static bool make_room(struct stream_observer *observer, size_t more)
{
    size_t wanted = observer->told_count + more;
    if (wanted <= observer->told_capacity)
        return true;
    struct told_tablet *told = realloc(observer->told, 2 * wanted * sizeof *told);
    if (told == NULL)
        return false;
    observer->told = told;
    observer->told_capacity = 2 * wanted;
    return true;
}

static bool prepare_row(struct stream_observer *observer, const struct commit *commit, size_t at)
{
    const struct commit *row = row_at(commit, at);
    if (!is_told(row))
        return true;
    if (!complete_list(row))
        return false;
    const struct stream_append append = append_of(commit, row, (uint32_t)at);
    return change_list_is_empty(append.list) ||
           stream_log_prepare(observer->shard->streams, &append);
}

static void note_told(struct stream_observer *observer, struct tablet *tablet, uint64_t sequence)
{
    struct told_tablet *told = observer->told;
    DCHECK(observer->told_count < observer->told_capacity);
    if (observer->told_count == 0 || told[observer->told_count - 1].tablet != tablet)
        observer->told_count++;
    told[observer->told_count - 1] = (struct told_tablet){tablet, sequence};
}

static void append_row(struct stream_observer *observer, const struct commit *commit, size_t at,
                       struct store_batch *batch)
{
    const struct commit *row = row_at(commit, at);
    if (!is_told(row) || change_list_is_empty(&row->change->list))
        return;
    const struct stream_append append = append_of(commit, row, (uint32_t)at);
    stream_log_append(observer->shard->streams, &append, batch);
    note_told(observer, row->tablet, commit->sequence);
}

/* --- the observer --- */

static bool begin(void *context, struct store_batch *batch)
{
    struct stream_observer *observer = context;
    observer->told_count = 0;
    stream_log_begin(observer->shard->streams, batch);
    return false;
}

static bool prepare(void *context, const struct commit *commit, const struct store_batch *records)
{
    struct stream_observer *observer = context;
    (void)records;
    if (!commit_changes_rows(commit->kind))
        return true;
    if (!make_room(observer, commit->other_count + 1))
        return false;
    for (size_t i = 0; i <= commit->other_count; i++)
        if (!prepare_row(observer, commit, i))
            return false;
    return true;
}

static void see(void *context, const struct commit *commit, const struct store_batch *records,
                struct store_batch *batch)
{
    struct stream_observer *observer = context;
    (void)records;
    if (commit->kind == COMMIT_CATALOG)
        stream_log_see_segment(observer->shard->streams, commit);
    if (!commit_changes_rows(commit->kind))
        return;
    for (size_t i = 0; i <= commit->other_count; i++)
        append_row(observer, commit, i, batch);
}

/* Readers look at what is noted once they are in line to be woken. */
static void written(void *context, bool is_written)
{
    struct stream_observer *observer = context;
    for (size_t i = 0; i < observer->told_count && is_written; i++)
        atomic_store(&observer->told[i].tablet->streamed, observer->told[i].sequence);
    stream_log_written(observer->shard->streams, is_written);
}

struct commit_observer stream_observer_of(struct stream_observer *observer)
{
    return (struct commit_observer){
        .context = observer, .begin = begin, .prepare = prepare, .see = see, .written = written};
}

/* --- life --- */

status stream_observer_create(struct shard *shard, struct stream_observer **out)
{
    struct stream_observer *observer = *out = calloc(1, sizeof *observer);
    if (observer == NULL)
        return status_out_of_memory();
    observer->shard = shard;
    return status_ok();
}

void stream_observer_destroy(struct stream_observer *observer)
{
    if (observer == NULL)
        return;
    free(observer->told);
    free(observer);
}
