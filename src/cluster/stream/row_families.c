/* See row_families.h. */
#include "cluster/stream/row_families.h"

#include "base/check.h"
#include "base/limits.h"
#include "cluster/cluster_private.h"
#include "cluster/row_jobs.h"
#include "cluster/rows.h"
#include "cluster/stream/telling.h"

#include <stdlib.h>

/* --- reading --- */

/* Cells come by family: each name once. */
static size_t names_of(const struct cell_list *cells, bytes *names)
{
    size_t count = 0;
    for (size_t i = 0; i < cells->count; i++)
        if (i == 0 || cells->items[i].family != cells->items[i - 1].family)
            names[count++] = cells->items[i].family->name;
    return count;
}

static void expand(const struct cell_list *cells, size_t family_count, struct change_list *list)
{
    bytes *names = arena_alloc(cells->arena, (family_count + 1) * sizeof *names);
    if (names != NULL)
        (void)change_list_expand(list, names, names_of(cells, names));
}

/* A cell of each column is enough, whatever its value. What rules condemn is there until it is
 * deleted, and so it is told. */
static bool read_row(const struct row_families_place *place, struct arena *arena,
                     struct change_list *list)
{
    const struct read_scope scope = {.cells_per_column = 1, .cells_per_row = INT32_MAX};
    const struct schema *schema = table_schema(place->table);
    const struct row_read_options options = {
        .store = place->shard->store,
        .drops = place->drops != NULL ? place->drops : table_drops(place->table, place->keyspace),
        .schema = schema,
        .scope = &scope,
        .now_us = cluster_wall_us(place->table->cluster),
        .size_limit = UINT64_MAX};
    struct row row = {.cells.arena = arena};
    enum row_outcome outcome = ROW_ABSENT;
    status s =
        row_read(place->keyspace, &options, place->row_key, place->read_tier, &row, &outcome);
    bool is_read = status_is_ok(s) && (outcome == ROW_FOUND || outcome == ROW_ABSENT);
    if (is_read)
        expand(&row.cells, schema->family_count, list);
    row_clear(&row);
    bool is_elsewhere = status_is_ok(s) && outcome == ROW_NOT_CACHED;
    status_free(s);
    return !is_elsewhere;
}

bool row_families_expand(const struct row_families_place *place, struct change_list *list)
{
    enum { MOST_MEMORY = LIMIT_ROW_BYTES };
    struct arena *arena = arena_create(MOST_MEMORY);
    if (arena == NULL)
        return true;
    bool is_done = read_row(place, arena, list);
    arena_destroy(arena);
    return is_done;
}

bool row_families_expand_all(const struct schema *schema, struct change_list *list)
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

/* --- of a change --- */

static bool awaits_drop(const struct table *table, const struct keyspace *keyspace, bytes row_key,
                        const struct packed_change *change)
{
    return change->before == NULL && telling_awaits(table_telling(table, keyspace), row_key);
}

bool row_families_are_wanted(const struct table *table, const struct keyspace *keyspace,
                             bytes row_key, const struct packed_change *change)
{
    return change->list.deletes_row || awaits_drop(table, keyspace, row_key, change);
}

/* What the row had before it was dropped. False: it is not in memory. Without memory the commit
 * thread tells of all families. */
static bool find_before(const struct row_families_place *place, struct packed_change *change)
{
    struct row_families_place before = *place;
    struct change_list *list = calloc(1, sizeof *list);
    if (list == NULL)
        return true;
    before.drops = telling_before(table_telling(place->table, place->keyspace));
    change_list_add(list, &(struct list_mutation){.kind = LIST_DELETE_ROW});
    bool is_done = list->failed || row_families_expand(&before, list);
    if (is_done && !list->failed) {
        change->before = list;
        return true;
    }
    change_list_free(list);
    free(list);
    return is_done;
}

bool row_families_complete(const struct row_families_place *place, struct packed_change *change)
{
    struct row_families_place now = *place;
    now.drops = NULL;
    if (change->list.deletes_row && !row_families_expand(&now, &change->list))
        return false;
    return !awaits_drop(place->table, place->keyspace, place->row_key, change) ||
           find_before(place, change);
}

/* --- of a write --- */

struct search {
    struct row_write *write;
    void (*found)(struct row_write *write);
    struct commit barrier;
    struct task task;
};

static struct shard *shard_of(const struct search *search)
{
    return search->write->commit.tablet->shard;
}

static void finish(struct search *search)
{
    struct row_write *write = search->write;
    void (*found)(struct row_write * write) = search->found;
    free(search);
    found(write);
}

static void end_search(struct task *task)
{
    finish(LIST_ENTRY(&task->link, struct search, task.link));
}

static bool expand_from(struct search *search, enum store_read_tier read_tier)
{
    struct row_write *write = search->write;
    DCHECK(row_lock_is_held(shard_of(search)->locks, write->commit.row_hash));
    const struct row_families_place place = {.table = write->table,
                                             .shard = shard_of(search),
                                             .keyspace = write->commit.keyspace,
                                             .row_key = write->row_key,
                                             .read_tier = read_tier};
    return row_families_complete(&place, &write->change);
}

static void read_from_disk(struct task *task)
{
    struct search *search = LIST_ENTRY(&task->link, struct search, task.link);
    (void)expand_from(search, STORE_READ_ANY);
    search->task.run = end_search;
    loop_post(search->write->loop, &search->task);
}

/* On the loop. */
static void look(struct search *search)
{
    bool is_done = expand_from(search, STORE_READ_CACHED);
    search->task.run = read_from_disk;
    if (is_done || !pool_submit(row_jobs_pool(shard_of(search)->row_jobs), &search->task))
        finish(search);
}

/* A barrier that was refused, or failed, is told by the write that comes after it. */
static void pass_barrier(struct task *task)
{
    struct search *search = LIST_ENTRY(&task->link, struct search, barrier.done.link);
    status_free(search->barrier.result);
    look(search);
}

/* Whether earlier commits of the row have to be waited for, and are. */
static bool awaits_earlier(struct search *search)
{
    struct shard *shard = shard_of(search);
    uint64_t submitted = row_lock_sequence(shard->locks, search->write->commit.row_hash);
    if (submitted <= commit_applied(shard->commits))
        return false;
    search->barrier = (struct commit){.kind = COMMIT_BARRIER, .loop = search->write->loop};
    search->barrier.done.run = pass_barrier;
    status s = commit_submit(shard->commits, &search->barrier);
    bool is_taken = status_is_ok(s);
    status_free(s);
    return is_taken;
}

bool row_families_find(struct row_write *write, void (*found)(struct row_write *write))
{
    struct search *search = calloc(1, sizeof *search);
    if (search == NULL)
        return false;
    search->write = write;
    search->found = found;
    if (!awaits_earlier(search))
        look(search);
    return true;
}
