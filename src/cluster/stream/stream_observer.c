/* See stream_observer.h. All of it is the commit thread's.
 *
 * A row's record is its change list. Where there is none, since nobody who packed the change knew
 * that it would be told, it is made of what the change comes to; and a deletion of the row that was
 * not looked into deletes every family that the table has then. */
#include "cluster/stream/stream_observer.h"

#include "base/check.h"
#include "cluster/table.h"
#include "row/change_list_derive.h"
#include "stream/log.h"

#include <stdlib.h>

/* --- lists --- */

static bool is_told(const struct commit *row)
{
    return row->table != NULL && table_has_stream(row->table);
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

static bool prepare_row(struct stream_log *log, const struct commit *commit,
                        const struct commit *row, uint32_t ordinal)
{
    if (!is_told(row))
        return true;
    if (!complete_list(row))
        return false;
    const struct stream_append append = {
        .kind = row->kind == COMMIT_COLLECT ? STREAM_COLLECTED : STREAM_USER,
        .tablet = row->tablet->id,
        .position = {.sequence = commit->sequence, .ordinal = ordinal},
        .version = commit->version,
        .row_key = row->row_key,
        .list = &row->change->list};
    return change_list_is_empty(append.list) || stream_log_prepare(log, &append);
}

/* --- the observer --- */

static bool begin(void *context, struct store_batch *batch)
{
    struct stream_log *log = context;
    (void)batch;
    stream_log_begin(log);
    return false;
}

static void cancel(void *context, const struct commit *commit)
{
    struct stream_log *log = context;
    if (commit_changes_rows(commit->kind))
        stream_log_cancel(log);
}

static bool prepare_rows(struct stream_log *log, const struct commit *commit)
{
    for (uint32_t i = 0; i <= commit->other_count; i++)
        if (!prepare_row(log, commit, i == 0 ? commit : &commit->others[i - 1], i))
            return false;
    return true;
}

static bool prepare(void *context, const struct commit *commit, const struct store_batch *records)
{
    struct stream_log *log = context;
    (void)records;
    if (!commit_changes_rows(commit->kind) || prepare_rows(log, commit))
        return true;
    stream_log_cancel(log);
    return false;
}

static void see(void *context, const struct commit *commit, const struct store_batch *records,
                struct store_batch *batch)
{
    struct stream_log *log = context;
    (void)records;
    if (commit->kind == COMMIT_CATALOG)
        stream_log_see_segment(log, commit);
    if (commit_changes_rows(commit->kind))
        stream_log_append(log, batch);
}

static void written(void *context, bool is_written)
{
    struct stream_log *log = context;
    stream_log_written(log, is_written);
}

struct commit_observer stream_observer_of(struct stream_log *log)
{
    return (struct commit_observer){.context = log,
                                    .begin = begin,
                                    .prepare = prepare,
                                    .cancel = cancel,
                                    .see = see,
                                    .written = written};
}
