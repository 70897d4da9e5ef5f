/* Looking after rows: see row_maintenance.h. */
#include "tablet/row_maintenance.h"

#include "base/check.h"
#include "row/resolve.h"
#include "tablet/deferred_batch.h"
#include "tablet/overflow.h"
#include "tablet/tablet.h"

/* A write of the row's: what was noted down, and a mark, and tombstones, or neither. */
struct maintenance_commit {
    struct commit commit;
    const struct deferred_batch *changes;
    bytes record_key;
    bool has_mark;
    struct entry mark;    /* version is the commit's */
    struct buffer *space; /* for the mark's operand; large enough */
    struct buffer *cuts;  /* tombstones of the record, or NULL; with a mark they have seen all
                           * overflow cells */
};

enum { MARK_SPACE = 64 };

static void add_to_batch(struct commit *commit, struct store_batch *batch)
{
    struct maintenance_commit *write = (struct maintenance_commit *)(void *)commit;
    DCHECK(write->record_key.size > 0);
    deferred_batch_replay(write->changes, commit->keyspace, batch);
    if (write->cuts != NULL) {
        fragment_set_version(write->cuts->data, commit->version);
        store_batch_merge(batch, commit->keyspace, write->record_key, buffer_bytes(write->cuts));
        write->mark.purged = commit->version;
    }
    if (!write->has_mark)
        return;
    row_overflow_mark(write->space, commit->version, write->mark.moved, write->mark.purged,
                      write->mark.has_overflow);
    store_batch_merge(batch, commit->keyspace, write->record_key, buffer_bytes(write->space));
}

/* Commits and waits. `mark`, `cuts` NULL: none. */
static status write_changes(const struct row_maintenance *maintenance, bytes record_key,
                            const struct deferred_batch *changes, const struct entry *mark,
                            struct buffer *cuts, bool frees_space)
{
    struct buffer space = {0};
    struct maintenance_commit write = {.commit = {.kind = COMMIT_UPKEEP,
                                                  .keyspace = maintenance->keyspace,
                                                  .row_key = maintenance->row_key,
                                                  .row_hash = maintenance->row_hash,
                                                  .extend = add_to_batch,
                                                  .drops = maintenance->drops,
                                                  .read_as_of = maintenance->read_as_of,
                                                  .frees_space = frees_space},
                                       .changes = changes,
                                       .record_key = record_key,
                                       .has_mark = mark != NULL,
                                       .space = &space,
                                       .cuts = cuts};
    if (mark != NULL)
        write.mark = *mark;
    bool has_memory = buffer_reserve(&space, MARK_SPACE) != NULL && !changes->changes.failed;
    status s =
        has_memory ? commit_and_wait(maintenance->commits, &write.commit) : status_out_of_memory();
    row_lock_note_sequence(maintenance->locks, maintenance->row_hash, write.commit.sequence);
    buffer_free(&space);
    return s;
}

/* Waits for changes submitted under this lock before: unless applied they are not read. */
static status wait_for_earlier(const struct row_maintenance *maintenance)
{
    DCHECK(row_lock_is_held(maintenance->locks, maintenance->row_hash));
    if (row_lock_sequence(maintenance->locks, maintenance->row_hash) <=
        commit_applied(maintenance->commits))
        return status_ok();
    struct commit barrier = {
        .kind = COMMIT_BARRIER, .keyspace = maintenance->keyspace, .row_key = maintenance->row_key};
    return commit_and_wait(maintenance->commits, &barrier);
}

/* What it is for a row that may have been dropped, from here on. */
static struct row_maintenance begin_read(const struct row_maintenance *maintenance)
{
    struct row_maintenance begun = *maintenance;
    begun.read_as_of = commit_applied(maintenance->commits);
    begun.dropped =
        maintenance->drops == NULL ? 0 : row_drops_over(maintenance->drops, maintenance->row_key);
    if (begun.dropped != 0)
        begun.rules = NULL;
    return begun;
}

/* Of a row that was dropped meanwhile there is nothing to look after. */
static status pass_drop(status s)
{
    if (s.code != STATUS_ABORTED)
        return s;
    status_free(s);
    return status_ok();
}

static status read_record(const struct row_maintenance *maintenance, bytes record_key,
                          struct store_value *value, bool *found)
{
    enum store_presence presence = STORE_ABSENT;
    store_value_release(value);
    TRY(store_get(maintenance->keyspace, NULL, record_key, STORE_READ_ANY, value, &presence));
    *found = presence == STORE_FOUND;
    return status_ok();
}

static status purge(const struct row_maintenance *maintenance, bytes record_key, bytes record,
                    bool *purged)
{
    struct deferred_batch changes = {0};
    struct entry mark = {.kind = ENTRY_OVERFLOW_MARK, .has_overflow = true};
    status s =
        overflow_purge(maintenance->keyspace, maintenance->row_key, record, &changes, &mark.purged);
    *purged = status_is_ok(s) && mark.purged > 0;
    if (*purged)
        s = write_changes(maintenance, record_key, &changes, &mark, NULL, true);
    deferred_batch_free(&changes);
    return s;
}

/* All tombstones of the record have been purged: so the mark may say it of the new ones, too. */
static status collect(const struct row_maintenance *maintenance, bytes record_key, bytes record,
                      struct overflow_place *place, bool *collected)
{
    struct deferred_batch changes = {0};
    struct buffer cuts = {0};
    const struct entry mark = {.kind = ENTRY_OVERFLOW_MARK, .has_overflow = true};
    status s = overflow_collect(maintenance->keyspace, maintenance->row_key, record,
                                maintenance->rules, place, &changes, &cuts);
    bool has_cuts = status_is_ok(s) && !fragment_is_empty(buffer_bytes(&cuts));
    *collected = status_is_ok(s) && (has_cuts || changes.changes.size > 0);
    if (*collected)
        s = write_changes(maintenance, record_key, &changes, has_cuts ? &mark : NULL,
                          has_cuts ? &cuts : NULL, true);
    deferred_batch_free(&changes);
    buffer_free(&cuts);
    return s;
}

static status overflow(const struct row_maintenance *maintenance, bytes record_key, bytes record,
                       bool *overflow)
{
    struct deferred_batch changes = {0};
    struct entry mark = {.kind = ENTRY_OVERFLOW_MARK, .has_overflow = true};
    status s = status_ok();
    if (maintenance->rules != NULL)
        s = overflow_collect_by_record(maintenance->keyspace, maintenance->row_key, record,
                                       maintenance->rules, &changes);
    if (status_is_ok(s))
        s = move_to_overflow(maintenance->row_key, record, &changes, &mark.moved);
    *overflow = status_is_ok(s) && mark.moved > 0;
    if (*overflow)
        s = write_changes(maintenance, record_key, &changes, &mark, NULL, false);
    deferred_batch_free(&changes);
    return s;
}

/* A row whose last overflow cell is gone is an ordinary row again. */
static status end_overflow(const struct row_maintenance *maintenance, bytes record_key)
{
    bool exists;
    TRY(overflow_exists(maintenance->keyspace, maintenance->row_key, &exists));
    if (exists)
        return status_ok();
    const struct deferred_batch nothing = {0};
    const struct entry mark = {.kind = ENTRY_OVERFLOW_MARK};
    return write_changes(maintenance, record_key, &nothing, &mark, NULL, true);
}

/* Puts what the record's history folds to in its place, or deletes a record that folds to
 * nothing. */
static status replace(const struct row_maintenance *maintenance, bytes record_key,
                      struct store_value *value, bool *replaced)
{
    struct deferred_batch changes = {0};
    TRY(read_record(maintenance, record_key, value, replaced));
    if (!*replaced)
        return status_ok();
    bool is_empty = fragment_is_empty(value->bytes);
    if (is_empty)
        deferred_delete(&changes, record_key);
    else
        deferred_put(&changes, record_key, value->bytes);
    status s = write_changes(maintenance, record_key, &changes, NULL, NULL, is_empty);
    deferred_batch_free(&changes);
    return s;
}

/* What a row with overflow cells needs; leaves the record as it is then in `value`. */
static status look_after_overflow(const struct row_maintenance *maintenance, bytes record_key,
                                  struct store_value *value, struct overflow_place *place,
                                  struct row_maintenance_report *report, bool *found)
{
    TRY(purge(maintenance, record_key, value->bytes, &report->purged));
    if (report->purged)
        TRY(read_record(maintenance, record_key, value, found));
    if (!*found || maintenance->rules == NULL || !maintenance->rules->schema->has_count_rules)
        return status_ok();
    TRY(collect(maintenance, record_key, value->bytes, place, &report->collected));
    if (report->collected)
        TRY(read_record(maintenance, record_key, value, found));
    return status_ok();
}

static status look_after(const struct row_maintenance *maintenance, bytes record_key,
                         struct store_value *value, struct overflow_place *place,
                         struct row_maintenance_report *report)
{
    bool found;
    TRY(read_record(maintenance, record_key, value, &found));
    if (found && record_has_older(value->bytes, maintenance->dropped))
        return status_ok();
    if (found && fragment_has_overflow(value->bytes))
        TRY(look_after_overflow(maintenance, record_key, value, place, report, &found));
    if (!found)
        return status_ok();
    if (value->bytes.size >= maintenance->overflow_bytes)
        TRY(overflow(maintenance, record_key, value->bytes, &report->overflow));
    /* Readers would go on unpacking what was overflowed, until a compaction folds it away. */
    if (report->overflow)
        return replace(maintenance, record_key, value, &report->replaced);
    if (fragment_has_overflow(value->bytes))
        TRY(end_overflow(maintenance, record_key));
    if (place->bypasses_cache) /* at rest: compactions fold it */
        return status_ok();
    return replace(maintenance, record_key, value, &report->replaced);
}

status row_maintenance_run(const struct row_maintenance *maintenance,
                           struct row_maintenance_report *report)
{
    DCHECK(row_lock_is_held(maintenance->locks, maintenance->row_hash));
    struct buffer record_key = {0};
    struct store_value value = {0};
    struct overflow_place start = {0};
    struct overflow_place *place = maintenance->place != NULL ? maintenance->place : &start;
    *report = (struct row_maintenance_report){0};
    place->is_over = true;
    row_record_key(&record_key, maintenance->row_key);
    status s = record_key.failed ? status_out_of_memory() : wait_for_earlier(maintenance);
    struct row_maintenance begun = begin_read(maintenance);
    if (status_is_ok(s))
        s = pass_drop(look_after(&begun, buffer_bytes(&record_key), &value, place, report));
    store_value_release(&value);
    buffer_free(&start.qualifier);
    buffer_free(&record_key);
    return s;
}

/* --- recorded deletions --- */

/* NOT_FOUND if the table has been deleted meanwhile, ABORTED if the row was dropped: then there is
 * nothing to be collected. */
static status commit_cuts(const struct row_maintenance *maintenance, struct buffer *cuts)
{
    struct packed_change change = {.fragment = *cuts};
    struct commit commit = {.kind = COMMIT_COLLECT,
                            .table = maintenance->table,
                            .tablet = maintenance->tablet,
                            .keyspace = maintenance->keyspace,
                            .row_key = maintenance->row_key,
                            .row_hash = maintenance->row_hash,
                            .change = &change,
                            .drops = maintenance->drops,
                            .read_as_of = maintenance->read_as_of,
                            .frees_space = true};
    if (maintenance->tablet != NULL)
        tablet_retain(maintenance->tablet);
    status s = commit_and_wait(maintenance->commits, &commit);
    tablet_release(commit.tablet); /* where the row was by then */
    change_list_free(&change.list);
    row_lock_note_sequence(maintenance->locks, maintenance->row_hash, commit.sequence);
    return s;
}

static status collect_recorded(const struct row_maintenance *maintenance, bytes record_key,
                               bool *collected)
{
    struct store_value value = {0};
    struct buffer cuts = {0};
    bool found = false;
    status s = read_record(maintenance, record_key, &value, &found);
    if (status_is_ok(s) && found)
        s = overflow_condemn(maintenance->keyspace, maintenance->row_key, value.bytes,
                             maintenance->rules, maintenance->place, &cuts);
    *collected = status_is_ok(s) && found && !fragment_is_empty(buffer_bytes(&cuts));
    if (*collected)
        s = commit_cuts(maintenance, &cuts);
    if (s.code == STATUS_NOT_FOUND || s.code == STATUS_ABORTED) {
        status_free(s);
        s = status_ok();
        *collected = false;
        maintenance->place->is_over = true;
    }
    store_value_release(&value);
    buffer_free(&cuts);
    return s;
}

status row_maintenance_collect(const struct row_maintenance *maintenance, bool *collected)
{
    DCHECK(row_lock_is_held(maintenance->locks, maintenance->row_hash));
    struct buffer record_key = {0};
    *collected = false;
    maintenance->place->is_over = true;
    row_record_key(&record_key, maintenance->row_key);
    status s = record_key.failed ? status_out_of_memory() : wait_for_earlier(maintenance);
    struct row_maintenance begun = begin_read(maintenance);
    if (status_is_ok(s) && begun.rules != NULL)
        s = collect_recorded(&begun, buffer_bytes(&record_key), collected);
    buffer_free(&record_key);
    return s;
}

/* --- lost cells --- */

static status put_rest(const struct row_maintenance *maintenance, bytes record_key, bytes rest)
{
    struct deferred_batch changes = {0};
    deferred_put(&changes, record_key, rest);
    status s = write_changes(maintenance, record_key, &changes, NULL, NULL, true);
    deferred_batch_free(&changes);
    return s;
}

static status cut_lost(const struct row_maintenance *maintenance, bytes record_key, bytes from,
                       bytes to)
{
    const struct lost_overflow lost = {.row_key = maintenance->row_key, .from = from, .to = to};
    struct store_value value = {0};
    struct buffer rest = {0};
    bool found = false, has_cut = false;
    status s = read_record(maintenance, record_key, &value, &found);
    if (status_is_ok(s) && found && fragment_has_overflow(value.bytes))
        s = overflow_cut_lost(&lost, value.bytes, &rest, &has_cut);
    if (status_is_ok(s) && has_cut)
        s = put_rest(maintenance, record_key, buffer_bytes(&rest));
    store_value_release(&value);
    buffer_free(&rest);
    return s;
}

status row_maintenance_cut_lost(const struct row_maintenance *maintenance, bytes from, bytes to)
{
    DCHECK(row_lock_is_held(maintenance->locks, maintenance->row_hash));
    struct buffer record_key = {0};
    row_record_key(&record_key, maintenance->row_key);
    status s = record_key.failed ? status_out_of_memory() : wait_for_earlier(maintenance);
    struct row_maintenance begun = begin_read(maintenance);
    if (status_is_ok(s))
        s = pass_drop(cut_lost(&begun, buffer_bytes(&record_key), from, to));
    buffer_free(&record_key);
    return s;
}
