/* See usage_note.h. */
#include "datastore/usage_note.h"

#include "datastore/commit/transaction.h"
#include "datastore/index/index_marks.h"
#include "datastore/usage.h"
#include "row/key_text.h"

/* --- events --- */

static bool is_counted(const struct ds_call *call, const struct ds_open_database *open)
{
    return call->datastore->usage != NULL && call->call != NULL && open != NULL &&
           open->usage != NULL;
}

/* False: it is not counted. */
static bool start(const struct ds_call *call, const struct ds_open_database *open,
                  enum ds_usage_call what, struct ds_usage_event *out)
{
    uint32_t weight = is_counted(call, open) ? ds_usage_choose(call->datastore->usage) : 0;
    if (weight == 0)
        return false;
    *out = (struct ds_usage_event){.database = open->usage,
                                   .call = what,
                                   .weight = weight,
                                   .begun_us = grpc_call_begun_us(call->call),
                                   .ended_us = clock_steady_us(call->datastore->clock),
                                   .caller = call->caller};
    return true;
}

static uint32_t number_of(size_t count)
{
    return count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
}

/* --- keys --- */

static bool has_key(const struct ds_usage_event *event, uint64_t hash)
{
    for (size_t i = 0; i < event->key_count; i++)
        if (event->keys[i] == hash)
            return true;
    return false;
}

/* The entity, or its group. The text of one of them is enough: which it is depends on when that is.
 */
static void take_key(struct ds_usage_event *event, const Ds__Key *key, bool is_group, bool is_shown)
{
    struct ds_usage_key found;
    struct buffer row = {0};
    Ds__Key root = *key;
    root.n_path = is_group ? 1 : key->n_path;
    ds_entity_row(&row, &root);
    ds_usage_set_key(&found, buffer_bytes(&row));
    if (!row.failed && !has_key(event, found.hash) && event->key_count < DS_USAGE_PLACES)
        event->keys[event->key_count++] = found.hash;
    if (!row.failed && (is_shown || event->key.size == 0) && has_key(event, found.hash))
        event->key = found;
    buffer_free(&row);
}

void ds_usage_note_lookup(const struct ds_call *call, const struct ds_reading *reading,
                          Ds__Key *const *keys, size_t count)
{
    struct ds_usage_event event;
    if (count == 0 || !start(call, reading->open, DS_USAGE_LOOKUP, &event))
        return;
    size_t seen = count < DS_USAGE_PLACES ? count : DS_USAGE_PLACES;
    size_t first = (size_t)event.ended_us % count;
    event.items = number_of(count);
    event.is_single = count == 1 && reading->transaction == NULL;
    ds_usage_set_name(&event.kind, ds_key_kind(keys[0]));
    for (size_t i = 0; i < seen; i++)
        take_key(&event, keys[(first + i) % count], false, i == 0);
    ds_usage_add(call->datastore->usage, &event);
}

/* --- commits --- */

/* A commit that was refused for what it says is not one of the database's. */
void ds_usage_note_commit(const struct ds_commit *commit, enum status_code code)
{
    struct ds_usage_event event;
    bool is_aborted = code == STATUS_ABORTED;
    if (commit->written_count == 0 || (code != STATUS_OK && !is_aborted) ||
        !start(commit->call, commit->open, is_aborted ? DS_USAGE_ABORTED : DS_USAGE_COMMIT, &event))
        return;
    size_t count = commit->written_count, first = (size_t)event.ended_us % count;
    event.items = number_of(commit->work_count);
    event.is_single = commit->work_count == 1 && commit->transaction == NULL;
    ds_usage_set_name(&event.kind, ds_key_kind(commit->written[0].key));
    for (size_t i = 0; i < count && event.key_count < DS_USAGE_PLACES; i++)
        take_key(&event, commit->written[(first + i) % count].key, true, i == 0);
    ds_usage_add(commit->call->datastore->usage, &event);
}

/* --- queries --- */

static void mark_scan(struct ds_index_marks *marks, const struct ds_query *query,
                      const struct ds_scan_plan *scan, uint32_t minute)
{
    bytes kind = bytes_of(query->kind);
    bytes property = scan->property == NULL ? bytes_make(NULL, 0) : bytes_of(scan->property);
    ds_index_marks_set(marks,
                       scan->index != NULL ? ds_index_mark_composite(scan->index->id)
                                           : ds_index_mark_built_in(kind, property, scan->flip),
                       minute);
}

static void mark_indexes(const struct ds_call *call, const struct ds_open_database *open,
                         const struct ds_query *query, const struct ds_plan *plan)
{
    uint32_t minute = ds_usage_minute(call->datastore->usage);
    struct ds_index_marks *marks = ds_usage_marks(open->usage);
    if (query->kind == NULL)
        return;
    for (size_t i = 0; i < plan->branch_count; i++)
        for (size_t j = 0; j < plan->branches[i].scan_count; j++)
            mark_scan(marks, query, &plan->branches[i].scans[j], minute);
}

/* Every entity of the kind fits. */
static bool wants_all(const struct ds_query *query)
{
    const struct ds_conjunction *only = query->conjunctions;
    return query->result_type == DS__ENTITY_RESULT__RESULT_TYPE__FULL &&
           query->conjunction_count == 1 && only->equality_count == 0 && only->range_count == 0 &&
           only->keys.low.size == 0 && only->keys.high.size == 0 && only->ancestor.size == 0 &&
           query->offset == 0 && !query->has_end;
}

static void take_batch(struct ds_usage_event *event, const struct ds_query *query,
                       const Ds__QueryResultBatch *batch)
{
    const int last = DS__QUERY_RESULT_BATCH__MORE_RESULTS_TYPE__NO_MORE_RESULTS;
    event->items = number_of(batch->n_entity_results);
    event->skipped = batch->skipped_results > 0 ? (uint32_t)batch->skipped_results : 0;
    event->is_scan = wants_all(query);
    event->begins_scan = event->is_scan && query->start.size == 0;
    event->ends_scan = event->is_scan && (int)batch->more_results == last;
}

void ds_usage_note_query(const struct ds_call *call, const struct ds_reading *reading,
                         const struct ds_query *query, const struct ds_plan *plan,
                         const Ds__QueryResultBatch *batch)
{
    struct ds_usage_event event;
    if (!is_counted(call, reading->open))
        return;
    mark_indexes(call, reading->open, query, plan);
    if (query->kind == NULL || !start(call, reading->open, DS_USAGE_QUERY, &event))
        return;
    ds_usage_set_name(&event.kind, bytes_of(query->kind));
    if (batch != NULL)
        take_batch(&event, query, batch);
    ds_usage_add(call->datastore->usage, &event);
}

/* --- transactions --- */

void ds_usage_note_begin(const struct ds_call *call, const struct ds_open_database *open)
{
    struct ds_usage_event event;
    if (start(call, open, DS_USAGE_BEGIN, &event))
        ds_usage_add(call->datastore->usage, &event);
}

/* The text behind the namespace is that of the kind, of the root entity or of the index. (A kind
 * with a zero byte in it has another hash than it has elsewhere.) */
static void name_of_row(bytes row_key, struct ds_usage_name *out)
{
    enum { END_BYTES = 2 };
    bytes rest = row_key, text = bytes_make(NULL, 0);
    size_t size = 0;
    if (row_key.size > 0 && row_key.data[0] != DS_COMPOSITE_ROW) {
        rest = bytes_from(row_key, 1);
        size = key_text_size(rest, DS_ASCENDING);
    }
    if (size > 0) {
        rest = bytes_from(rest, size);
        size = key_text_size(rest, DS_ASCENDING);
        text = bytes_make(rest.data, size > END_BYTES ? size - END_BYTES : 0);
    }
    ds_usage_set_name(out, text);
}

void ds_usage_name_transaction(const struct ds_transaction *transaction, struct ds_usage_name *out)
{
    const struct vector *ranges =
        transaction->ranges.count > 0 ? &transaction->ranges : &transaction->locker.shared;
    const struct ds_read_range *first = ranges->items;
    name_of_row(ranges->count > 0 ? first->from : bytes_make(NULL, 0), out);
}

void ds_usage_note_expired(struct ds_usage *usage, const struct ds_transaction *transaction,
                           int64_t now_us)
{
    const struct ds_open_database *open = transaction->locker.database;
    if (usage == NULL || transaction->is_read_only || open == NULL || open->usage == NULL)
        return;
    struct ds_usage_event event = {.database = open->usage,
                                   .call = DS_USAGE_EXPIRED,
                                   .weight = 1,
                                   .begun_us = now_us,
                                   .ended_us = now_us};
    ds_usage_name_transaction(transaction, &event.kind);
    ds_usage_add(usage, &event);
}
