/* See foreign_rows.h. A row's lock is held from its read until what comes of it is durable, as by
 * an update (rows.h). Several are held at a time, up to where one is not free: who waits for a lock
 * holds none (row_locks.h), so those before are written then. */
#include "cluster/foreign_rows.h"

#include "base/check.h"
#include "cluster/cluster_private.h"
#include "cluster/stream/row_families.h"

/* Writes of one shard whose rows are locked. */
struct locked_writes {
    struct foreign_write *first;
    size_t count;
};

static struct shard *shard_of(const struct foreign_write *write)
{
    return write->commit.tablet->shard;
}

/* Waits for changes that were submitted under the locks before: unless applied they are not read.
 */
static status wait_for_earlier(const struct locked_writes *writes)
{
    struct shard *shard = shard_of(writes->first);
    bool is_applied = true;
    for (size_t i = 0; i < writes->count; i++) {
        uint64_t row_hash = writes->first[i].commit.row_hash;
        DCHECK(row_lock_is_held(shard->locks, row_hash));
        if (row_lock_sequence(shard->locks, row_hash) > commit_applied(shard->commits))
            is_applied = false;
    }
    struct commit barrier = {.kind = COMMIT_BARRIER};
    return is_applied ? status_ok() : commit_and_wait(shard->commits, &barrier);
}

static status prepare(struct foreign_write *write)
{
    struct commit *commit = &write->commit;
    DCHECK(row_lock_is_held(shard_of(write)->locks, commit->row_hash));
    const struct row_rules *rules = table_rules(commit->table, commit->keyspace);
    commit->drops = rules->drops;
    commit->read_as_of = commit_applied(shard_of(write)->commits);
    const struct row_families_place place = {.table = commit->table,
                                             .shard = shard_of(write),
                                             .keyspace = commit->keyspace,
                                             .row_key = commit->row_key,
                                             .read_tier = STORE_READ_ANY};
    if (row_families_are_wanted(place.table, place.keyspace, place.row_key, commit->change))
        (void)row_families_complete(&place, commit->change);
    fragment_set_version(commit->change->fragment.data, commit->given_version);
    TRY(foreign_change_prepare(commit->keyspace, commit->row_key, commit->change, rules,
                               &write->foreign));
    commit->foreign = &write->foreign;
    return status_ok();
}

/* Those that cannot be prepared have that for their result. */
static void submit(const struct locked_writes *writes)
{
    struct list commits = {0};
    for (size_t i = 0; i < writes->count; i++) {
        struct commit *commit = &writes->first[i].commit;
        commit->is_outdated = false;
        commit->sequence = 0;
        commit->result = prepare(&writes->first[i]);
        if (status_is_ok(commit->result))
            list_append(&commits, &commit->link);
    }
    if (!list_is_empty(&commits))
        commits_and_wait(shard_of(writes->first)->commits, &commits);
}

/* Takes the results; those that are outdated are left for another time. */
static status take_results(const struct locked_writes *writes, bool *is_outdated)
{
    status first = status_ok();
    for (size_t i = 0; i < writes->count; i++) {
        struct foreign_write *write = &writes->first[i];
        foreign_change_free(&write->foreign);
        write->is_done = !write->commit.is_outdated;
        *is_outdated = *is_outdated || !write->is_done;
        if (status_is_ok(write->commit.result))
            row_lock_note_sequence(shard_of(write)->locks, write->commit.row_hash,
                                   write->commit.sequence);
        if (write->is_done && status_is_ok(first))
            first = write->commit.result;
        else
            status_free(write->commit.result);
    }
    return first;
}

/* And gives the locks back. */
static status write_locked(struct locked_writes *writes, bool *is_outdated)
{
    if (writes->count == 0)
        return status_ok();
    status s = wait_for_earlier(writes);
    if (status_is_ok(s)) {
        submit(writes);
        s = take_results(writes, is_outdated);
    }
    for (size_t i = 0; i < writes->count; i++) {
        struct foreign_write *write = &writes->first[i];
        row_lock_release(shard_of(write)->locks, write->commit.row_hash);
        tablet_release(write->commit.tablet);
    }
    writes->count = 0;
    return s;
}

static void route(struct foreign_write *write)
{
    struct tablet *tablet = table_route(write->table, write->row_key);
    write->commit =
        (struct commit){.kind = COMMIT_ROWS,
                        .table = write->table,
                        .tablet = tablet,
                        .keyspace = tablet->keyspace,
                        .row_key = write->row_key,
                        .row_hash = row_lock_hash(keyspace_id(tablet->keyspace), write->row_key),
                        .change = write->change,
                        .given_version = write->version,
                        .is_lazy = write->is_lazy};
}

/* Adds it to those that are locked, which are written first if it is not one to hold with them. */
static status lock(struct foreign_write *write, struct locked_writes *locked, bool *is_outdated)
{
    status s = status_ok();
    struct row_locks *locks = shard_of(write)->locks;
    bool is_near = locked->count > 0 && shard_of(locked->first) == shard_of(write) &&
                   write == locked->first + locked->count;
    if (!is_near || !row_lock_try(locks, write->commit.row_hash)) {
        s = write_locked(locked, is_outdated);
        row_lock_wait(locks, write->commit.row_hash);
        locked->first = write;
    }
    locked->count++;
    return s;
}

static status write_once(struct foreign_write *writes, size_t count, bool *is_outdated)
{
    struct locked_writes locked = {.first = writes};
    status s = status_ok();
    for (size_t i = 0; status_is_ok(s) && i < count; i++) {
        if (writes[i].is_done)
            continue;
        route(&writes[i]);
        s = lock(&writes[i], &locked, is_outdated);
    }
    status last = write_locked(&locked, is_outdated);
    if (status_is_ok(s))
        return last;
    status_free(last);
    return s;
}

/* Again if a row was dropped after it had been read. */
status foreign_rows_write(struct foreign_write *writes, size_t count)
{
    bool is_outdated = true;
    for (size_t i = 0; i < count; i++)
        writes[i].is_done = false;
    while (is_outdated) {
        is_outdated = false;
        TRY(write_once(writes, count, &is_outdated));
    }
    return status_ok();
}

status foreign_row_write(struct table *table, bytes row_key, struct packed_change *change,
                         uint64_t version)
{
    struct foreign_write write = {
        .table = table, .row_key = row_key, .change = change, .version = version};
    return foreign_rows_write(&write, 1);
}
