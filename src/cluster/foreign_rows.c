/* See foreign_rows.h. The row's lock is held from the read until what comes of it is durable, as by
 * an update (rows.h). */
#include "cluster/foreign_rows.h"

#include "base/check.h"
#include "cluster/cluster_private.h"
#include "cluster/stream/row_families.h"
#include "tablet/foreign_change.h"

/* Waits for changes that were submitted under the lock before: unless applied they are not read. */
static status wait_for_earlier(struct shard *shard, uint64_t row_hash)
{
    DCHECK(row_lock_is_held(shard->locks, row_hash));
    if (row_lock_sequence(shard->locks, row_hash) <= commit_applied(shard->commits))
        return status_ok();
    struct commit barrier = {.kind = COMMIT_BARRIER};
    return commit_and_wait(shard->commits, &barrier);
}

/* With the lock held. */
static status write_once(struct shard *shard, struct commit *commit)
{
    DCHECK(row_lock_is_held(shard->locks, commit->row_hash));
    const struct row_rules *rules = table_rules(commit->table, commit->keyspace);
    struct foreign_change foreign;
    commit->drops = rules->drops;
    commit->read_as_of = commit_applied(shard->commits);
    const struct row_families_place place = {.table = commit->table,
                                             .shard = shard,
                                             .keyspace = commit->keyspace,
                                             .row_key = commit->row_key,
                                             .read_tier = STORE_READ_ANY};
    if (row_families_are_wanted(place.table, place.keyspace, place.row_key, commit->change))
        (void)row_families_complete(&place, commit->change);
    fragment_set_version(commit->change->fragment.data, commit->given_version);
    TRY(foreign_change_prepare(commit->keyspace, commit->row_key, commit->change, rules, &foreign));
    commit->foreign = &foreign;
    status s = commit_and_wait(shard->commits, commit);
    if (status_is_ok(s))
        row_lock_note_sequence(shard->locks, commit->row_hash, commit->sequence);
    foreign_change_free(&foreign);
    return s;
}

/* Again if the row was dropped after it had been read. */
static status write_locked(struct shard *shard, struct commit *commit)
{
    TRY(wait_for_earlier(shard, commit->row_hash));
    status s = write_once(shard, commit);
    while (commit->is_outdated) {
        status_free(s);
        s = write_once(shard, commit);
    }
    return s;
}

status foreign_row_write(struct table *table, bytes row_key, struct packed_change *change,
                         uint64_t version)
{
    struct tablet *tablet = table_route(table, row_key);
    struct shard *shard = tablet->shard;
    uint64_t row_hash = row_lock_hash(keyspace_id(tablet->keyspace), row_key);
    struct commit commit = {.kind = COMMIT_ROWS,
                            .table = table,
                            .tablet = tablet,
                            .keyspace = tablet->keyspace,
                            .row_key = row_key,
                            .row_hash = row_hash,
                            .change = change,
                            .given_version = version};
    row_lock_wait(shard->locks, row_hash);
    status s = write_locked(shard, &commit);
    row_lock_release(shard->locks, row_hash);
    tablet_release(commit.tablet);
    return s;
}
