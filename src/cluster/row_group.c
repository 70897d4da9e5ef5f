/* See row_group.h. */
#include "cluster/row_group.h"

#include "base/check.h"
#include "cluster/cluster_private.h"
#include "cluster/stream/row_families.h"

#include <pthread.h>

static void free_changes(struct row_group *group)
{
    for (size_t i = 0; i < group->count; i++)
        packed_change_free(&group->rows[i].change);
}

static struct commit *commit_of(struct row_group *group, size_t row)
{
    return row == 0 ? &group->commit : &group->others[row - 1];
}

static void release_tablets(struct row_group *group)
{
    for (size_t i = 0; i < group->count; i++)
        tablet_release(commit_of(group, i)->tablet);
}

static void count_heat(const struct row_group *group)
{
    for (size_t i = 0; i < group->count && group->heat.weight > 0; i++)
        heat_end_write(group->table, group->heat, group->rows[i].row_key,
                       packed_change_size(&group->rows[i].change));
}

static void end(struct task *task)
{
    struct row_group *group = LIST_ENTRY(&task->link, struct row_group, commit.done.link);
    status result = group->commit.result;
    count_heat(group);
    free_changes(group);
    release_tablets(group);
    group->done(group, result);
}

static bool let_go(struct row_group *group)
{
    return atomic_fetch_sub(&group->holders, 1) == 1;
}

/* The queue is done with it, maybe before row_group_submit is. */
static void committed(struct task *task)
{
    if (let_go(LIST_ENTRY(&task->link, struct row_group, commit.done.link)))
        end(task);
}

static void count_write(struct tablet *tablet, const struct grouped_row *row)
{
    atomic_fetch_add_explicit(&tablet->rows_written, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&tablet->bytes_written, packed_change_size(&row->change),
                              memory_order_relaxed);
    key_sample_note(&tablet->asked_for, row->row_key);
}

static void route(struct row_group *group)
{
    DCHECK(group->count > 0);
    group->heat = heat_begin(group->table);
    for (size_t i = 0; i < group->count; i++) {
        struct grouped_row *row = &group->rows[i];
        struct tablet *tablet = table_route(group->table, row->row_key);
        group->hashes[i] = row_lock_hash(keyspace_id(tablet->keyspace), row->row_key);
        *commit_of(group, i) = (struct commit){.kind = group->is_own ? COMMIT_OWN : COMMIT_ROWS,
                                               .table = group->table,
                                               .tablet = tablet,
                                               .keyspace = tablet->keyspace,
                                               .row_key = row->row_key,
                                               .row_hash = group->hashes[i],
                                               .change = &row->change,
                                               .loop = group->loop};
        count_write(tablet, row);
    }
}

/* Checks that all are in one shard: one queue, and one batch, makes them all or none. */
static status check_shard(struct row_group *group)
{
    for (size_t i = 0; i < group->count; i++)
        if (commit_of(group, i)->tablet->shard != group->commit.tablet->shard)
            return status_make(STATUS_FAILED_PRECONDITION,
                               "rows that change together must lie in one shard");
    return status_ok();
}

static bool is_wanted(struct row_group *group, size_t row)
{
    const struct commit *commit = commit_of(group, row);
    return row_families_are_wanted(group->table, commit->keyspace, commit->row_key, commit->change);
}

/* Makes the change whole that a stream is to tell. */
static void complete(struct row_group *group, size_t row)
{
    const struct commit *commit = commit_of(group, row);
    const struct row_families_place place = {.table = group->table,
                                             .shard = commit->tablet->shard,
                                             .keyspace = commit->keyspace,
                                             .row_key = commit->row_key,
                                             .read_tier = STORE_READ_ANY};
    (void)row_families_complete(&place, commit->change);
}

/* With the locks held. What was submitted before for these rows is waited for: then the rows are
 * what the changes meet. */
static void complete_all(struct row_group *group)
{
    struct commit barrier = {.kind = COMMIT_BARRIER};
    size_t first = 0;
    while (first < group->count && !is_wanted(group, first))
        first++;
    if (first == group->count)
        return;
    status_ignore(commit_and_wait(group->commit.tablet->shard->commits, &barrier));
    for (size_t i = first; i < group->count; i++)
        if (is_wanted(group, i))
            complete(group, i);
}

static status submit(struct row_group *group)
{
    struct shard *shard = group->commit.tablet->shard;
    struct commit *first = &group->commit;
    size_t held = group->count;
    first->others = group->others;
    first->other_count = group->count - 1;
    first->least_us = group->at_us;
    first->is_repair = group->is_repair;
    first->frees_space = group->frees_space;
    first->done.run = committed;
    atomic_init(&group->holders, 2);
    row_locks_acquire_many(shard->locks, group->hashes, &held);
    DCHECK(held > 0);
    complete_all(group);
    status s = commit_submit(shard->commits, first);
    row_locks_release_many(shard->locks, group->hashes, held,
                           status_is_ok(s) ? first->sequence : 0);
    return s;
}

/* Lets the group end, also if the queue has been done with it before. */
static void let_it_end(struct row_group *group)
{
    struct task *done = &group->commit.done;
    if (!let_go(group))
        return;
    done->run = end;
    if (group->loop != NULL)
        loop_post(group->loop, done);
    else
        end(done);
}

status row_group_submit(struct row_group *group)
{
    group->others = arena_alloc(group->arena, group->count * sizeof *group->others);
    group->hashes = arena_alloc(group->arena, group->count * sizeof *group->hashes);
    if (group->others == NULL || group->hashes == NULL) {
        free_changes(group);
        return status_out_of_memory();
    }
    route(group);
    status s = check_shard(group);
    if (status_is_ok(s))
        s = submit(group);
    if (status_is_ok(s)) {
        let_it_end(group);
        return s;
    }
    free_changes(group);
    release_tablets(group);
    return s;
}

/* A stripe's sequence may be another row's. */
static bool is_newest(struct table *table, const struct tablet *tablet, bytes row_key,
                      uint64_t sequence)
{
    struct row_locks *locks = tablet->shard->locks;
    struct row_drops *drops = table_drops(table, tablet->keyspace);
    uint64_t hash = row_lock_hash(keyspace_id(tablet->keyspace), row_key);
    if (!row_lock_try(locks, hash))
        return false;
    bool is_newest = row_lock_sequence(locks, hash) == sequence;
    row_lock_release(locks, hash);
    return is_newest && row_drops_over(drops, row_key) == 0;
}

bool row_group_is_newest(struct table *table, bytes row_key, uint64_t sequence)
{
    struct tablet *tablet = table_route(table, row_key);
    bool result = is_newest(table, tablet, row_key, sequence);
    tablet_release(tablet);
    return result;
}

/* --- waiting for it --- */

struct row_group_waiting {
    pthread_mutex_t lock;
    pthread_cond_t done;
    bool is_done;
    status result;
};

static void wake(struct row_group *group, status result)
{
    struct row_group_waiting *waiting = group->waiting;
    pthread_mutex_lock(&waiting->lock);
    DCHECK(!waiting->is_done);
    waiting->is_done = true;
    waiting->result = result;
    pthread_cond_signal(&waiting->done);
    pthread_mutex_unlock(&waiting->lock);
}

static status wait_for_end(struct row_group_waiting *waiting)
{
    pthread_mutex_lock(&waiting->lock);
    while (!waiting->is_done)
        pthread_cond_wait(&waiting->done, &waiting->lock);
    pthread_mutex_unlock(&waiting->lock);
    return waiting->result;
}

status row_group_write(struct row_group *group)
{
    struct row_group_waiting waiting = {.lock = PTHREAD_MUTEX_INITIALIZER,
                                        .done = PTHREAD_COND_INITIALIZER};
    group->waiting = &waiting;
    group->done = wake;
    status s = row_group_submit(group);
    if (status_is_ok(s))
        s = wait_for_end(&waiting);
    group->waiting = NULL;
    return s;
}
