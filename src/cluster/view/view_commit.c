/* See view_commit.h. */
#include "cluster/view/view_commit.h"

#include "base/check.h"
#include "cluster/cluster_private.h"
#include "cluster/rows.h"
#include "row/row_key.h"

#include <stdlib.h>

enum {
    COMMIT_MEMORY = 1 << 30, /* of the rows' keys */
    KEPT_MEMORY = 4 << 20,   /* between commits: of the arena, and of rows */
    FIRST_ROWS = 64,
    TURNS = 16, /* that others are let go first */
};

struct view_row_change {
    bytes key; /* the arena's */
    struct packed_change change;
    bool is_whole;
};

struct view_commit_memory {
    struct arena *arena;
    struct store_batch *records;
    struct view_row_change *rows;
    size_t capacity;
};

struct view_commit {
    struct table *view;
    struct view_commit_memory *memory;
    struct view_commit_memory own; /* unless it was given one */
    size_t count;
    size_t bytes; /* of rows */
    size_t record_count;
    status failure;
};

/* --- memory --- */

static void free_memory(struct view_commit_memory *memory)
{
    free(memory->rows);
    if (memory->records != NULL)
        store_batch_destroy(memory->records);
    arena_destroy(memory->arena);
}

static bool make_memory(struct view_commit_memory *memory)
{
    memory->arena = arena_create(COMMIT_MEMORY);
    memory->records = store_batch_create();
    return memory->arena != NULL && memory->records != NULL;
}

struct view_commit_memory *view_commit_memory_create(void)
{
    struct view_commit_memory *memory = calloc(1, sizeof *memory);
    if (memory == NULL || make_memory(memory))
        return memory;
    view_commit_memory_destroy(memory);
    return NULL;
}

void view_commit_memory_destroy(struct view_commit_memory *memory)
{
    if (memory != NULL)
        free_memory(memory);
    free(memory);
}

/* What was large goes. */
static void clear_memory(struct view_commit_memory *memory)
{
    arena_reset_keeping(memory->arena, KEPT_MEMORY);
    store_batch_clear(memory->records);
    if (memory->capacity * sizeof *memory->rows <= KEPT_MEMORY)
        return;
    free(memory->rows);
    memory->rows = NULL;
    memory->capacity = 0;
}

/* --- begin and end --- */

status view_commit_begin(struct table *view, struct view_commit_memory *memory,
                         struct view_commit **out)
{
    struct view_commit *commit = calloc(1, sizeof *commit);
    *out = NULL;
    CHECK(view->view.source_id != 0);
    if (commit == NULL)
        return status_out_of_memory();
    table_retain(view);
    commit->view = view;
    commit->failure = status_ok();
    commit->memory = memory != NULL ? memory : &commit->own;
    if (memory == NULL && !make_memory(&commit->own)) {
        view_commit_cancel(commit);
        return status_out_of_memory();
    }
    *out = commit;
    return status_ok();
}

void view_commit_cancel(struct view_commit *commit)
{
    if (commit == NULL)
        return;
    for (size_t i = 0; i < commit->count; i++)
        packed_change_free(&commit->memory->rows[i].change);
    if (commit->memory == &commit->own)
        free_memory(&commit->own);
    else
        clear_memory(commit->memory);
    status_free(commit->failure);
    table_release(commit->view);
    free(commit);
}

/* --- what it has --- */

static bool make_room(struct view_commit *commit)
{
    struct view_commit_memory *memory = commit->memory;
    if (commit->count < memory->capacity)
        return true;
    size_t capacity = memory->capacity == 0 ? FIRST_ROWS : 2 * memory->capacity;
    struct view_row_change *rows = realloc(memory->rows, capacity * sizeof *rows);
    if (rows == NULL)
        return false;
    memory->rows = rows;
    memory->capacity = capacity;
    return true;
}

static status add_row(struct view_commit *commit, bytes key, struct row_change *change,
                      bool is_whole)
{
    struct view_row_change row = {.key = arena_copy(commit->memory->arena, key),
                                  .is_whole = is_whole};
    DCHECK(key.size > 0);
    if (row.key.data == NULL || !make_room(commit))
        return status_out_of_memory();
    TRY(row_change_pack(change, rows_big_value(commit->view), &row.change));
    DCHECK(!is_whole || row.change.big_count == 0);
    commit->bytes += key.size + packed_change_size(&row.change);
    commit->memory->rows[commit->count++] = row;
    return status_ok();
}

void view_commit_row(struct view_commit *commit, bytes key, struct row_change *change)
{
    if (status_is_ok(commit->failure))
        commit->failure = add_row(commit, key, change, false);
}

void view_commit_put_row(struct view_commit *commit, bytes key, struct row_change *change)
{
    if (status_is_ok(commit->failure))
        commit->failure = add_row(commit, key, change, true);
}

void view_commit_put(struct view_commit *commit, bytes key, bytes value)
{
    DCHECK(key.size > 0 && value.size > 0);
    DCHECK(key.data[0] != ROW_SPACE && key.data[0] != OVERFLOW_SPACE);
    store_batch_put(commit->memory->records, commit->view->view.records, key, value);
    commit->record_count++;
}

void view_commit_delete(struct view_commit *commit, bytes key)
{
    store_batch_delete(commit->memory->records, commit->view->view.records, key);
    commit->record_count++;
}

void view_commit_delete_range(struct view_commit *commit, bytes from, bytes to)
{
    DCHECK(bytes_compare(from, to) < 0);
    store_batch_delete_range(commit->memory->records, commit->view->view.records, from, to);
    commit->record_count++;
}

size_t view_commit_size(const struct view_commit *commit)
{
    return commit->bytes + store_batch_size(commit->memory->records);
}

size_t view_commit_count(const struct view_commit *commit)
{
    return commit->count + commit->record_count;
}

/* --- writing --- */

struct writing {
    struct commit commit; /* the records', and the first tablet's */
    struct commit *rows;
    uint64_t *hashes; /* of the locks that are to be held */
    size_t held;
    struct row_locks *locks;
    bool is_locked;
};

static void count_write(struct tablet *tablet, const struct view_row_change *row)
{
    atomic_fetch_add_explicit(&tablet->rows_written, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&tablet->bytes_written, packed_change_size(&row->change),
                              memory_order_relaxed);
}

static void route_row(struct writing *writing, const struct view_commit *from, size_t i)
{
    struct view_row_change *row = &from->memory->rows[i];
    struct tablet *tablet = table_route(from->view, row->key);
    writing->hashes[i] = row_lock_hash(keyspace_id(tablet->keyspace), row->key);
    writing->rows[i] = (struct commit){.kind = COMMIT_VIEW,
                                       .table = from->view,
                                       .tablet = tablet,
                                       .keyspace = tablet->keyspace,
                                       .row_key = row->key,
                                       .row_hash = writing->hashes[i],
                                       .change = &row->change,
                                       .is_whole = row->is_whole};
    count_write(tablet, row);
}

static void route(struct writing *writing, const struct view_commit *from)
{
    struct tablet *first = table_route(from->view, bytes_make(NULL, 0));
    writing->commit = (struct commit){.kind = COMMIT_VIEW,
                                      .table = from->view,
                                      .tablet = first,
                                      .keyspace = first->keyspace,
                                      .records = from->memory->records,
                                      .others = writing->rows,
                                      .other_count = from->count};
    for (size_t i = 0; i < from->count; i++)
        route_row(writing, from, i);
}

static void release_tablets(const struct writing *writing)
{
    tablet_release(writing->commit.tablet);
    for (size_t i = 0; i < writing->commit.other_count; i++)
        tablet_release(writing->rows[i].tablet);
}

/* Requests go first: as long as half of the queue is taken, what is in it is waited for. */
static status await_turn(struct commit_queue *queue)
{
    for (int i = 0; i < TURNS && commit_queue_load(queue) >= 0.5; i++) {
        struct commit barrier = {.kind = COMMIT_BARRIER};
        TRY(commit_and_wait(queue, &barrier));
    }
    return status_ok();
}

/* It has its place: who locks a row of it from now on knows that. */
static void release_locks(void *context)
{
    struct writing *writing = context;
    row_locks_release_many(writing->locks, writing->hashes, writing->held,
                           writing->commit.sequence);
    writing->is_locked = false;
}

static status submit_and_wait(struct writing *writing, struct shard *shard)
{
    TRY(await_turn(shard->commits));
    writing->locks = shard->locks;
    writing->held = writing->commit.other_count;
    row_locks_acquire_many(shard->locks, writing->hashes, &writing->held);
    writing->is_locked = true;
    status s = commit_and_wait_unlocked(shard->commits, &writing->commit, release_locks, writing);
    if (writing->is_locked)
        row_locks_release_many(shard->locks, writing->hashes, writing->held, 0);
    return s;
}

static status write_all(struct view_commit *commit, uint64_t *sequence)
{
    struct writing writing = {0};
    if (!status_is_ok(commit->failure))
        return status_copy(commit->failure);
    if (store_batch_failed(commit->memory->records))
        return status_out_of_memory();
    writing.rows = arena_alloc(commit->memory->arena, commit->count * sizeof *writing.rows + 1);
    writing.hashes = arena_alloc(commit->memory->arena, commit->count * sizeof *writing.hashes + 1);
    if (writing.rows == NULL || writing.hashes == NULL)
        return status_out_of_memory();
    route(&writing, commit);
    status s = submit_and_wait(&writing, commit->view->view.shard);
    release_tablets(&writing);
    if (sequence != NULL)
        *sequence = writing.commit.sequence;
    return s;
}

status view_commit_write(struct view_commit *commit, uint64_t *sequence)
{
    if (sequence != NULL)
        *sequence = 0;
    status s = write_all(commit, sequence);
    view_commit_cancel(commit);
    return s;
}
