/* The fourth and the fifth step of a commit: see commit.h. */
#include "base/check.h"
#include "base/key_range.h"
#include "datastore/commit/commit.h"
#include "datastore/commit/rows_write.h"
#include "datastore/commit/snapshot.h"
#include "datastore/commit/transaction.h"
#include "datastore/index/indexes.h"
#include "trestle/datastore.pb-c.h"
#include "wire/grpc.h"

#include <stdlib.h>

/* --- what a transaction has read --- */

static status contended(const struct ds_commit *commit)
{
    metrics_add(commit->call->datastore->metrics, METRIC_datastore_conflicts_total, 1);
    return status_make(STATUS_ABORTED, "too much contention on these datastore entities. please "
                                       "try again.");
}

static int compare_ranges(const void *a, const void *b)
{
    const struct ds_read_range *left = a, *right = b;
    return bytes_compare(left->from, right->from);
}

/* Not if they only touch, as those of two indexes may. */
static bool overlaps(const struct ds_read_range *range, const struct ds_read_range *next)
{
    return key_is_before_end(next->from, range->to);
}

static bool ends_before(const struct ds_read_range *range, const struct ds_read_range *other)
{
    return range->to.size > 0 && (other->to.size == 0 || bytes_compare(range->to, other->to) < 0);
}

/* Rising, none into the next; for DCHECKs. */
static bool are_apart(const struct vector *list)
{
    const struct ds_read_range *ranges = list->items;
    for (size_t i = 1; i < list->count; i++)
        if (overlaps(&ranges[i - 1], &ranges[i]))
            return false;
    return true;
}

/* By their beginnings, those that overlap as one; of one index, as a scan's are. */
static void sort_ranges(struct vector *list)
{
    struct ds_read_range *ranges = list->items;
    size_t count = 0;
    if (list->count > 1)
        qsort(ranges, list->count, sizeof *ranges, compare_ranges);
    for (size_t i = 0; i < list->count; i++) {
        struct ds_read_range *last = count == 0 ? NULL : &ranges[count - 1];
        if (last == NULL || !overlaps(last, &ranges[i]))
            ranges[count++] = ranges[i];
        else if (ends_before(last, &ranges[i]))
            last->to = ranges[i].to;
    }
    list->count = count;
    DCHECK(are_apart(list));
}

/* ABORTED if something of what was read has been changed by what is applied. */
static status look_at_reads(struct ds_commit *commit)
{
    const struct ds_transaction *transaction = commit->transaction;
    const struct ds_read_range *ranges = transaction->ranges.items;
    const struct ds_snapshot then = {.table = commit->open->table,
                                     .database = commit->database,
                                     .at_us = transaction->at_us,
                                     .call = commit->call->call};
    bool has_changed = false;
    for (size_t i = 0; i < transaction->ranges.count && !has_changed; i++)
        TRY(ds_changed_since(&then, ranges[i].from, ranges[i].to, commit->call->arena,
                             &has_changed));
    return has_changed ? contended(commit) : status_ok();
}

/* However much it is: no other commit waits for it. Of pessimistic transactions what is in `ranges`
 * was read before there was a database; others announce nothing. */
status ds_commit_look_at_reads(struct ds_commit *commit)
{
    struct ds_transaction *transaction = commit->transaction;
    if (transaction == NULL || transaction->ranges.count == 0 || commit->locker != NULL)
        return status_ok();
    sort_ranges(&transaction->ranges);
    commit->watch = (struct ds_watch){.ranges = transaction->ranges.items,
                                      .count = transaction->ranges.count,
                                      .after_us = transaction->at_us};
    ds_in_flight_watch(&commit->open->in_flight, &commit->watch);
    ds_call_step(commit->call, CALL_READS);
    return look_at_reads(commit);
}

/* With the moment drawn: ABORTED if a commit before it has changed what was read since it was
 * looked at, or is about to. */
static status check_reads(struct ds_commit *commit)
{
    DCHECK(commit->writing.moment.at_us != 0);
    struct ds_open_database *open = commit->open;
    const struct ds_turn *moment = &commit->writing.moment;
    if (commit->locker != NULL && commit->transaction->ranges.count > 0) {
        ds_sequencer_wait_for_earlier(&open->sequencer, moment);
        return look_at_reads(commit);
    }
    if (commit->watch.count == 0)
        return status_ok();
    return ds_watch_is_met(&open->in_flight, &commit->watch, &open->sequencer, moment)
               ? contended(commit)
               : status_ok();
}

/* ABORTED for rows that were read of an index which is gone: commits have not kept them since. */
static status check_indexes(struct ds_commit *commit)
{
    const struct ds_read_range *ranges = commit->transaction->ranges.items;
    for (size_t i = 0; i < commit->transaction->ranges.count; i++)
        if (!ds_indexes_keeps(commit->open->indexes, ranges[i].from))
            return contended(commit);
    return status_ok();
}

/* What a pessimistic transaction has read is unchanged, since commits claim what they write. But
 * they claim no rows of an index that is gone: ABORTED. */
static status check_shared(const struct ds_commit *commit)
{
    const struct vector *shared = &commit->transaction->locker.shared;
    const struct ds_read_range *ranges = shared->items;
    for (size_t i = 0; i < shared->count; i++)
        if (!ds_indexes_keeps(commit->open->indexes, ranges[i].from))
            return ds_contended();
    return status_ok();
}

/* --- rows --- */

/* `entity`: its serialised form. */
static status encode_record(bytes entity, int64_t create_us, int64_t version_us,
                            struct arena *arena, bytes *out)
{
    Datastore__Record record = DATASTORE__RECORD__INIT;
    record.entity = proto_data(entity);
    record.create_us = create_us;
    record.version_us = version_us;
    *out = proto_encode_in(arena, &record.base);
    return out->data == NULL ? status_out_of_memory() : status_ok();
}

/* An entity that changes again within that time is busy. */
enum { BUSY_US = 1000000 };

static bool is_busy(const struct ds_commit *commit, const struct ds_written *written)
{
    return written->old != NULL && written->now != NULL &&
           commit->writing.moment.at_us - written->old_version_us < BUSY_US;
}

static status add_entity(struct ds_commit *commit, struct ds_written *written)
{
    DCHECK(written->is_changed && commit->writing.moment.at_us != 0);
    struct arena *arena = commit->call->arena;
    struct ds_row_write row = {
        .key = written->row_key, .is = written->now != NULL, .was = written->old != NULL};
    int64_t create_us = written->create_us == 0 ? commit->writing.moment.at_us : written->create_us;
    DCHECK(!row.was || written->old_version_us < commit->writing.moment.at_us);
    if (row.is)
        TRY(encode_record(written->now_stored, create_us, 0, arena, &row.now));
    if (row.was)
        TRY(encode_record(written->old_stored, written->create_us, written->old_version_us, arena,
                          &row.past));
    if (is_busy(commit, written))
        written->record = row.now;
    return vector_add(&commit->rows, arena, &row, sizeof row);
}

static status add_indexes(struct ds_commit *commit, const struct ds_written *written)
{
    DCHECK(commit->indexes != NULL);
    struct arena *arena = commit->call->arena;
    struct ds_index_changes changes;
    TRY(ds_index_difference(written->old, written->now, commit->indexes->indexes,
                            commit->indexes->count, arena, &changes));
    for (size_t i = 0; i < changes.count; i++) {
        const struct ds_index_change *change = &changes.changes[i];
        struct ds_row_write row = {.key = change->key,
                                   .is = change->is,
                                   .now = change->now,
                                   .was = change->was,
                                   .past = change->past};
        TRY(vector_add(&commit->rows, arena, &row, sizeof row));
        commit->index_updates++;
    }
    return status_ok();
}

/* An id that a client chose is not to be given to another entity. */
static status add_mark(struct ds_commit *commit, const struct ds_written *written)
{
    struct ds_row_write row = {.is = true};
    if (written->now == NULL || written->old != NULL)
        return status_ok();
    TRY(ds_id_mark(commit->open, written->key, &commit->held_ids, commit->call->arena, &row.key));
    return row.key.size == 0 ? status_ok()
                             : vector_add(&commit->rows, commit->call->arena, &row, sizeof row);
}

static bool has_rows(const struct ds_written *written)
{
    return written->is_changed && (written->old != NULL || written->now != NULL);
}

/* Makes the rows that do not tell of the moment. */
static status make_other_rows(struct ds_commit *commit)
{
    for (size_t i = 0; i < commit->written_count; i++) {
        if (!has_rows(&commit->written[i]))
            continue;
        TRY(add_indexes(commit, &commit->written[i]));
        TRY(add_mark(commit, &commit->written[i]));
    }
    return status_ok();
}

static int compare_bytes(const void *a, const void *b)
{
    return bytes_compare(*(const bytes *)a, *(const bytes *)b);
}

/* The keys of what has been found. `spare`: for so many more. */
static status collect_keys(const struct ds_commit *commit, size_t spare, bytes **out)
{
    const struct ds_row_write *rows = commit->rows.items;
    bytes *keys = *out =
        arena_alloc(commit->call->arena, (commit->rows.count + spare) * sizeof *keys);
    if (keys == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < commit->rows.count; i++)
        keys[i] = rows[i].key;
    return status_ok();
}

/* Before a moment is drawn: a commit that waits for a moment must not wait for a transaction. */
static status claim_rows(struct ds_commit *commit)
{
    DCHECK(commit->locker != NULL && commit->writing.moment.at_us == 0);
    size_t count = commit->rows.count;
    bytes *keys;
    if (count == 0)
        return status_ok();
    TRY(collect_keys(commit, 0, &keys));
    qsort(keys, count, sizeof *keys, compare_bytes);
    ds_call_step(commit->call, CALL_AWAITS_LOCK);
    return ds_range_locks_claim(commit->call->datastore->range_locks, commit->locker,
                                (struct ds_claim){keys, count}, commit->call->call);
}

/* Before a moment is drawn: a commit that draws a later one is to know of it. */
static status announce_rows(struct ds_commit *commit)
{
    DCHECK(commit->locker == NULL && commit->writing.moment.at_us == 0);
    size_t count = commit->rows.count;
    bytes *keys;
    TRY(collect_keys(commit, commit->written_count, &keys));
    for (size_t i = 0; i < commit->written_count; i++)
        keys[count++] = commit->written[i].row_key;
    commit->flight =
        (struct ds_flight){.keys = keys, .count = count, .moment = &commit->writing.moment};
    ds_in_flight_add(&commit->open->in_flight, &commit->flight);
    return status_ok();
}

status ds_commit_find_rows(struct ds_commit *commit)
{
    DCHECK(commit->indexes == NULL);
    commit->indexes = ds_indexes_take(commit->open->indexes);
    TRY(make_other_rows(commit));
    return commit->locker != NULL ? claim_rows(commit) : announce_rows(commit);
}

/* --- with the moment drawn --- */

static status add_entities(struct ds_commit *commit)
{
    for (size_t i = 0; i < commit->written_count; i++)
        if (has_rows(&commit->written[i]))
            TRY(add_entity(commit, &commit->written[i]));
    return status_ok();
}

static status complete(struct ds_commit *commit)
{
    if (commit->transaction != NULL) {
        TRY(check_reads(commit));
        TRY(check_indexes(commit));
        TRY(check_shared(commit));
    }
    return add_entities(commit);
}

static void past(struct ds_turn *moment)
{
    struct ds_commit *commit = LIST_ENTRY(moment, struct ds_commit, writing.moment);
    loop_post(grpc_call_loop(commit->call->call), &commit->finish);
}

static void give_up(struct ds_commit *commit)
{
    DCHECK(!commit->writing.moment.has_entered);
    ds_flight_fail(&commit->flight);
    ds_sequencer_give_up(commit->writing.sequencer, &commit->writing.moment);
}

/* Also later than the entities that it replaces, which a former release may have written at moments
 * above the version ceiling: the clock goes on from there. */
static int64_t earliest_us(const struct ds_commit *commit)
{
    int64_t at_us = cluster_version_us(commit->call->datastore->cluster);
    for (size_t i = 0; i < commit->written_count; i++)
        if (commit->written[i].old_version_us >= at_us)
            at_us = commit->written[i].old_version_us + 1;
    return at_us;
}

void ds_commit_tell(const struct ds_commit *commit)
{
    if (!status_is_ok(commit->writing.result))
        return;
    for (size_t i = 0; i < commit->written_count; i++) {
        const struct ds_written *written = &commit->written[i];
        const struct ds_recent_entity entity = {.row_key = written->row_key,
                                                .record = written->record,
                                                .at_us = commit->writing.moment.at_us,
                                                .sequence = commit->writing.group.commit.sequence};
        if (written->record.size > 0)
            ds_recent_tell(&commit->open->recent, &entity);
    }
}

void ds_commit_write(struct ds_commit *commit)
{
    DCHECK(commit->indexes != NULL);
    struct ds_rows_writing *writing = &commit->writing;
    ds_call_step(commit->call, CALL_COMMITS);
    writing->table = commit->open->table;
    writing->sequencer = &commit->open->sequencer;
    writing->arena = commit->call->arena;
    ds_sequencer_draw(writing->sequencer, earliest_us(commit), &writing->moment);
    writing->moment.past = commit->is_own ? NULL : past;
    writing->result = complete(commit);
    if (status_is_ok(writing->result) && commit->rows.count > 0)
        ds_rows_submit(writing, commit->rows.items, commit->rows.count);
    else
        give_up(commit);
}
