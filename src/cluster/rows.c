/* Writes and updates of single rows: see rows.h.
 *
 * A write, which does not look at the row:
 *
 *     lock ─► commit_submit ─► unlock          (loop thread)
 *     … batch written and synced …             (commit thread)
 *     done                                     (loop thread)
 *
 * A write whose token was seen before changes nothing. It takes its place in the queue behind the
 * first all the same, an empty one, so that it is acknowledged when the first is durable, and not
 * before.
 *
 * An update reads first and keeps the lock until its change is durable, so that no other change
 * falls between what it saw and what it wrote:
 *
 *     lock ─► [barrier] ─► read ─► decide ─► commit_submit
 *     … batch written and synced …
 *     unlock ─► done
 *
 * Where room in memory is counted (`ask_room`), a row's large values are left in the store at
 * first, and only their sizes are taken; with room for all of them the row is read once more.
 * No other writer has changed it meanwhile, since the lock is held.
 *
 * DropRowRange takes no lock (docs/internals/drops.md). If the row is dropped between the read and
 * the change's place in the queue, the change is refused there, and it is read and decided again,
 * with the lock still held.
 *
 * The barrier: changes that entered the queue under this lock before, but are not applied yet,
 * cannot be read; an empty commit behind them says when they can. The read is tried in memory
 * first; if it would wait for the disk, read, decision and submission move to a pool thread.
 *
 * A lock is granted on whichever thread released it. A write that need not look at its row is
 * submitted there at once, and the lock goes on to the next: were it posted to its loop, the lock
 * would be had for as long as that loop's turn takes, all other writes of the row would get in line
 * meanwhile, and each would take a turn of its loop, for as long as there are several of them. All
 * else is posted.
 */
#include "cluster/rows.h"

#include "base/check.h"
#include "base/limits.h"
#include "cluster/cluster_private.h"
#include "cluster/row_jobs.h"
#include "cluster/stream/row_families.h"

size_t rows_big_value(const struct table *table)
{
    return table_cluster(table)->options.overflow_bytes;
}

/* The row's shard: a row that is routed again stays in it. */
static struct shard *shard_of(const struct commit *commit)
{
    DCHECK(commit->tablet != NULL && commit->tablet->keyspace == commit->keyspace);
    return commit->tablet->shard;
}

/* Takes the lock, or leaves the waiter in line for it. */
static bool lock_row(struct commit *commit, struct row_lock_waiter *waiter)
{
    commit->row_hash = row_lock_hash(keyspace_id(commit->keyspace), commit->row_key);
    return row_lock_acquire(shard_of(commit)->locks, commit->row_hash, waiter);
}

static void count_write(struct tablet *tablet, const struct packed_change *change)
{
    atomic_fetch_add_explicit(&tablet->rows_written, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&tablet->bytes_written, packed_change_size(change),
                              memory_order_relaxed);
}

/* --- writes --- */

/* The first of them has passed the queue by now: it was committed, unless it was forgotten. (Then a
 * third may have claimed the token again: that it is remembered is not enough.) */
static status check_first_write(const struct row_write *write)
{
    uint64_t failures;
    if (tokens_remember(shard_of(&write->commit)->tokens, write->commit.token, &failures) &&
        failures == write->failures)
        return status_ok();
    return status_make(STATUS_UNAVAILABLE, "A write with the same idempotency token has failed");
}

static void write_done(struct task *task)
{
    struct row_write *write = LIST_ENTRY(&task->link, struct row_write, commit.done.link);
    status result = write->commit.result;
    if (write->is_repeated && status_is_ok(result))
        result = check_first_write(write);
    if (write->heat.weight > 0)
        heat_end_write(write->table, write->heat, write->row_key,
                       packed_change_size(&write->change));
    packed_change_free(&write->change);
    tablet_release(write->commit.tablet);
    write->done(write, result);
}

/* With the lock held. */
static status claim_token(struct row_write *write)
{
    DCHECK(row_lock_is_held(shard_of(&write->commit)->locks, write->commit.row_hash));
    struct commit *commit = &write->commit;
    struct tokens *tokens = shard_of(commit)->tokens;
    commit->token = token_fingerprint(write->table->id, write->row_key, write->token);
    TRY(tokens_claim(tokens, commit->token, &write->is_repeated, &write->failures));
    if (write->is_repeated) {
        commit->kind = COMMIT_BARRIER;
        commit->change = NULL;
    } else {
        commit->tokens = tokens;
    }
    return status_ok();
}

static status claim_and_submit(struct row_write *write)
{
    struct commit *commit = &write->commit;
    if (write->token.size > 0)
        TRY(claim_token(write));
    status s = commit_submit(shard_of(commit)->commits, commit);
    if (!status_is_ok(s) && commit->tokens != NULL)
        tokens_forget(commit->tokens, commit->token);
    return s;
}

/* With the lock held. What was not taken into the queue ends the same way, a turn later. On another
 * thread than the loop's the write may be gone once it is submitted: what it left of a sequence is
 * then no later than the queue's newest. */
static void submit_locked(struct row_write *write)
{
    struct shard *shard = shard_of(&write->commit);
    struct loop *loop = write->loop;
    const uint64_t hash = write->commit.row_hash;
    DCHECK(row_lock_is_held(shard->locks, hash));
    write->commit.done.run = write_done;
    status s = claim_and_submit(write);
    if (status_is_ok(s)) { /* the result is the commit thread's from here on */
        row_lock_note_sequence(shard->locks, hash,
                               loop_is_current(loop) ? write->commit.sequence
                                                     : commit_submitted(shard->commits));
    } else {
        write->is_repeated = false;
        write->commit.result = s;
        loop_post(loop, &write->commit.done);
    }
    row_lock_release(shard->locks, hash);
}

/* With the lock held: whether it is to be found before what a deletion of the row deletes, or what
 * a row had that was dropped, since a stream is to tell. */
static bool looks_at_row(const struct row_write *write)
{
    return row_families_are_wanted(write->table, write->commit.keyspace, write->row_key,
                                   &write->change);
}

/* With the lock held. */
static void submit_write(struct row_write *write)
{
    if (write->locked != NULL)
        write->locked(write);
    if (!looks_at_row(write) || !row_families_find(write, submit_locked))
        submit_locked(write);
}

static void submit_granted_write(struct task *task)
{
    submit_write(LIST_ENTRY(&task->link, struct row_write, commit.done.link));
}

static void grant_write(struct row_lock_waiter *waiter)
{
    struct row_write *write = LIST_ENTRY(&waiter->link, struct row_write, waiter.link);
    write->locked_us = clock_steady_us(write->table->cluster->options.clock);
    if (!looks_at_row(write)) {
        submit_write(write);
        return;
    }
    write->commit.done.run = submit_granted_write;
    loop_post(write->loop, &write->commit.done);
}

/* `near`: where another row was routed to a moment ago; NULL: nowhere. A tablet that is in the map
 * no more since then is found out by the commit thread. */
static struct tablet *route(struct table *table, bytes row_key, struct tablet *near)
{
    if (near == NULL || !tablet_contains(near, row_key))
        return table_route(table, row_key);
    tablet_retain(near);
    return near;
}

/* All that comes before the row's lock. */
static void begin_write(struct row_write *write, struct tablet *near)
{
    struct tablet *tablet = route(write->table, write->row_key, near);
    write->heat = heat_begin(write->table);
    write->locked_us = 0;
    write->is_repeated = false;
    write->failures = 0;
    write->commit = (struct commit){.kind = COMMIT_ROWS,
                                    .table = write->table,
                                    .tablet = tablet,
                                    .keyspace = tablet->keyspace,
                                    .row_key = write->row_key,
                                    .change = &write->change,
                                    .loop = write->loop};
    write->waiter.granted = grant_write;
    count_write(tablet, &write->change);
    key_sample_note(&tablet->asked_for, write->row_key);
}

void rows_write(struct row_write *write)
{
    begin_write(write, NULL);
    if (lock_row(&write->commit, &write->waiter))
        submit_write(write);
}

/* --- several writes --- */

/* Whether nothing is to be looked at with its lock held, which it has. */
static bool goes_with_others(const struct row_write *write)
{
    return write->token.size == 0 && !looks_at_row(write);
}

static struct list commits_of(const struct list *writes)
{
    struct list commits = {0};
    for (struct link *at = writes->first; at != NULL; at = at->next) {
        struct row_write *write = LIST_ENTRY(at, struct row_write, link);
        DCHECK(loop_is_current(write->loop));
        if (write->locked != NULL)
            write->locked(write);
        write->commit.done.run = write_done;
        list_append(&commits, &write->commit.link);
    }
    return commits;
}

static void post_refused(struct list *commits)
{
    struct link *link;
    while ((link = list_take(commits)) != NULL) {
        struct commit *commit = LIST_ENTRY(link, struct commit, link);
        loop_post(commit->loop, &commit->done);
    }
}

/* Of writes of one shard, each with its lock held; as submit_locked. All are there until this
 * returns, since they end on this thread. */
static void submit_all_locked(struct list *writes)
{
    if (list_is_empty(writes))
        return;
    struct shard *shard = shard_of(&LIST_ENTRY(writes->first, struct row_write, link)->commit);
    struct list commits = commits_of(writes);
    commit_submit_all(shard->commits, &commits);
    post_refused(&commits);
    struct link *link;
    while ((link = list_take(writes)) != NULL) {
        const struct commit *commit = &LIST_ENTRY(link, struct row_write, link)->commit;
        row_lock_note_sequence(shard->locks, commit->row_hash, commit->sequence);
        row_lock_release(shard->locks, commit->row_hash);
    }
}

/* The next write is of another tablet. Those before it are of one shard. */
static void move_near(struct tablet **near, struct tablet *tablet, struct list *locked)
{
    if (*near != NULL && (*near)->shard != tablet->shard)
        submit_all_locked(locked);
    if (*near != NULL)
        tablet_release(*near);
    tablet_retain(tablet);
    *near = tablet;
}

/* Where a write must wait for its lock, which may be one that those before it have, they are
 * submitted, and let go of theirs: so all enter the queue in their order, but for those that wait
 * for somebody else. */
void rows_write_all(struct list *writes)
{
    struct list locked = {0};
    struct tablet *near = NULL; /* with a reference: those of submitted writes may be gone */
    struct link *link;
    while ((link = list_take(writes)) != NULL) {
        struct row_write *write = LIST_ENTRY(link, struct row_write, link);
        begin_write(write, near);
        if (write->commit.tablet != near)
            move_near(&near, write->commit.tablet, &locked);
        if (!lock_row(&write->commit, &write->waiter))
            submit_all_locked(&locked);
        else if (goes_with_others(write))
            list_append(&locked, link);
        else
            submit_write(write);
    }
    submit_all_locked(&locked);
    if (near != NULL)
        tablet_release(near);
}

/* --- updates --- */

static void count_heat(struct row_update *update)
{
    if (update->heat.weight == 0)
        return;
    heat_end_read(update->table, update->heat, update->row_key, update->bytes_read);
    if (update->commit.change != NULL)
        heat_end_write(update->table, update->heat, update->row_key,
                       packed_change_size(&update->change));
}

/* On the loop, with the lock held: gives it back and ends. */
static void end_update(struct row_update *update, status result)
{
    row_lock_release(shard_of(&update->commit)->locks, update->commit.row_hash);
    count_heat(update);
    store_value_release(&update->record);
    packed_change_free(&update->change);
    tablet_release(update->commit.tablet);
    update->done(update, result);
}

/* Values that lie outside the row's record are copied into the arena, on the loop and maybe once
 * more on a pool's thread; what comes of them may be as large as the row. */
static void make_room(struct arena *arena)
{
    enum { COPIES = 3 };
    arena_set_limit(arena, arena_footprint(arena) + COPIES * (size_t)LIMIT_ROW_BYTES);
}

static void read_row(struct row_update *update);

/* The row was dropped after it had been read: nothing of what was decided is left. The drop has
 * been applied by now. */
static void decide_again(struct row_update *update)
{
    struct commit *commit = &update->commit;
    status_free(commit->result);
    store_value_release(&update->record);
    packed_change_free(&update->change);
    commit->result = status_ok();
    commit->kind = COMMIT_BARRIER;
    commit->change = NULL;
    commit->record = bytes_make(NULL, 0);
    commit->drops = NULL;
    commit->is_outdated = false;
    make_room(update->arena);
    read_row(update);
}

static void end_committed_update(struct task *task)
{
    struct row_update *update = LIST_ENTRY(&task->link, struct row_update, commit.done.link);
    if (update->commit.is_outdated) {
        decide_again(update);
        return;
    }
    if (status_is_ok(update->commit.result))
        row_lock_note_sequence(shard_of(&update->commit)->locks, update->commit.row_hash,
                               update->commit.sequence);
    end_update(update, update->commit.result);
}

/* Posts the end, from whichever thread this is. */
static void finish_update(struct row_update *update, status result)
{
    update->commit.result = result;
    update->commit.sequence = 0;
    loop_post(update->loop, &update->commit.done);
}

/* The record goes along with the change if it had been in too many pieces. */
static void keep_record(struct row_update *update, struct row *row)
{
    if (!row->wants_rewrite)
        return;
    update->record = row->value;
    row->value = (struct store_value){0};
    update->commit.record = update->record.bytes;
}

/* What a deletion of the row deletes, and what a row had that was dropped, if a stream is to tell.
 * False: that is not in memory, and all is decided again where it may be read. */
static bool find_families(struct row_update *update, enum store_read_tier read_tier)
{
    const struct row_families_place place = {.table = update->table,
                                             .shard = shard_of(&update->commit),
                                             .keyspace = update->commit.keyspace,
                                             .row_key = update->row_key,
                                             .read_tier = read_tier};
    if (row_families_complete(&place, &update->change))
        return true;
    packed_change_free(&update->change);
    return false;
}

/* The row is in hand: what is to be written? Loop or pool thread. False: as find_families. */
static bool decide_and_submit(struct row_update *update, struct row *row,
                              enum store_read_tier read_tier)
{
    bool writes = false;
    status s = update->decide(update, &row->cells, &update->change, &writes);
    if (status_is_ok(s) && writes && !find_families(update, read_tier))
        return false;
    update->commit.done.run = end_committed_update;
    if (status_is_ok(s) && writes) {
        keep_record(update, row);
        update->commit.kind = COMMIT_ROWS;
        update->commit.change = &update->change;
        update->commit.drops = table_drops(update->table, update->commit.keyspace);
        update->commit.read_as_of = row->as_of;
        count_write(update->commit.tablet, &update->change);
        s = commit_submit(shard_of(&update->commit)->commits, &update->commit);
        if (status_is_ok(s))
            return true; /* the commit's now: it may even have ended */
    }
    finish_update(update, s);
    return true;
}

static bool read_and_decide(struct row_update *update, enum store_read_tier read_tier);

static void read_from_disk(struct task *task)
{
    read_and_decide(LIST_ENTRY(&task->link, struct row_update, task.link), STORE_READ_ANY);
}

/* On the loop. */
static void read_on_pool(struct row_update *update)
{
    update->task.run = read_from_disk;
    if (!pool_submit(row_jobs_pool(shard_of(&update->commit)->row_jobs), &update->task))
        end_update(update, pool_full());
}

void rows_update_go_on(struct row_update *update, status s)
{
    if (status_is_ok(s))
        read_on_pool(update);
    else
        end_update(update, s);
}

static void ask_room(struct task *task)
{
    struct row_update *update = LIST_ENTRY(&task->link, struct row_update, task.link);
    update->has_asked = true;
    if (update->ask_room(update, update->wants))
        read_on_pool(update);
}

/* Asks for room for the row's values, which `decide` is to have together. Any thread. */
static void post_ask(struct row_update *update, const struct row *row)
{
    update->wants = 0;
    for (size_t i = 0; i < row->cells.count; i++)
        update->wants += row->cells.items[i].value.size;
    update->task.run = ask_room;
    loop_post(update->loop, &update->task);
}

static bool leaves_values(const struct row_update *update)
{
    return update->ask_room != NULL && !update->has_asked;
}

/* False if the row is not in memory and `read_tier` stops there. */
static bool read_and_decide(struct row_update *update, enum store_read_tier read_tier)
{
    struct cluster *cluster = update->table->cluster;
    struct shard *shard = shard_of(&update->commit);
    struct row_read_options options = {.store = shard->store,
                                       .commits = shard->commits,
                                       .drops = table_drops(update->table, update->commit.keyspace),
                                       .schema = update->schema,
                                       .scope = update->scope,
                                       .now_us = cluster_wall_us(cluster),
                                       .apply_gc = cluster->options.gc_on_read,
                                       .size_limit = LIMIT_ROW_BYTES,
                                       .defer_after = leaves_values(update) ? SCAN_VALUES_KEPT : 0};
    struct row row = {.cells.arena = update->arena};
    enum row_outcome outcome = ROW_ABSENT;
    status s =
        row_read(update->commit.keyspace, &options, update->row_key, read_tier, &row, &outcome);
    bool was_read = !status_is_ok(s) || outcome != ROW_NOT_CACHED;
    update->bytes_read = row.record.size;
    atomic_fetch_add_explicit(&update->commit.tablet->bytes_read, row.record.size,
                              memory_order_relaxed);
    if (status_is_ok(s) && outcome == ROW_TOO_LARGE)
        s = status_make(STATUS_FAILED_PRECONDITION, "The row has more than %d bytes",
                        LIMIT_ROW_BYTES);
    if (!status_is_ok(s)) {
        update->commit.done.run = end_committed_update;
        finish_update(update, s);
    } else if (row.left != NULL) {
        post_ask(update, &row);
    } else if (was_read) {
        was_read = decide_and_submit(update, &row, read_tier);
    }
    row_clear(&row);
    return was_read;
}

static void read_row(struct row_update *update)
{
    if (!read_and_decide(update, STORE_READ_CACHED))
        read_on_pool(update);
}

static void pass_barrier(struct task *task)
{
    struct row_update *update = LIST_ENTRY(&task->link, struct row_update, commit.done.link);
    if (status_is_ok(update->commit.result))
        read_row(update);
    else
        end_update(update, update->commit.result);
}

/* On the loop, with the lock held. */
static void start_update(struct row_update *update)
{
    struct shard *shard = shard_of(&update->commit);
    if (update->locked != NULL)
        update->locked(update);
    uint64_t submitted = row_lock_sequence(shard->locks, update->commit.row_hash);
    if (submitted <= commit_applied(shard->commits)) {
        read_row(update);
        return;
    }
    update->commit.done.run = pass_barrier;
    status s = commit_submit(shard->commits, &update->commit);
    if (!status_is_ok(s))
        end_update(update, s);
}

static void start_granted_update(struct task *task)
{
    start_update(LIST_ENTRY(&task->link, struct row_update, task.link));
}

static void grant_update(struct row_lock_waiter *waiter)
{
    struct row_update *update = LIST_ENTRY(&waiter->link, struct row_update, waiter.link);
    update->locked_us = clock_steady_us(update->table->cluster->options.clock);
    update->task.run = start_granted_update;
    loop_post(update->loop, &update->task);
}

void rows_update(struct row_update *update)
{
    make_room(update->arena);
    struct tablet *tablet = table_route(update->table, update->row_key);
    update->heat = heat_begin(update->table);
    update->locked_us = 0;
    update->bytes_read = 0;
    update->change = (struct packed_change){0};
    update->record = (struct store_value){0};
    update->has_asked = false;
    update->commit = (struct commit){.kind = COMMIT_BARRIER, /* until it is decided */
                                     .table = update->table,
                                     .tablet = tablet,
                                     .keyspace = tablet->keyspace,
                                     .row_key = update->row_key,
                                     .loop = update->loop};
    update->waiter.granted = grant_update;
    atomic_fetch_add_explicit(&tablet->rows_read, 1, memory_order_relaxed);
    key_sample_note(&tablet->asked_for, update->row_key);
    if (lock_row(&update->commit, &update->waiter))
        start_update(update);
}
