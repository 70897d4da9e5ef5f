/* See drop_streamed.h. Rows go in lots, each one commit, under the locks of its rows: so what is
 * told of a row is what it had, and stands before whatever is written to it later. */
#include "cluster/stream/drop_streamed.h"

#include "base/check.h"
#include "cluster/cluster_private.h"
#include "cluster/row_group.h"
#include "cluster/stream/row_families.h"
#include "tablet/key_bounds.h"

enum { LOT_ROWS = 256, LOT_MEMORY = 16 << 20 };

struct lot {
    struct table *table;
    struct arena *arena;
    struct grouped_row *rows;
    size_t count;
};

/* --- a lot --- */

/* What was submitted before for these rows is waited for: then the rows are what the lot deletes.
 */
static void find_families(struct row_group *group)
{
    struct shard *shard = group->commit.tablet->shard;
    struct commit barrier = {.kind = COMMIT_BARRIER};
    status_ignore(commit_and_wait(shard->commits, &barrier));
    for (size_t i = 0; i < group->count; i++) {
        const struct commit *row = i == 0 ? &group->commit : &group->others[i - 1];
        (void)row_families_expand(group->table, row->tablet, row->row_key, STORE_READ_ANY,
                                  &row->change->list);
    }
}

static status pack_deletion(struct lot *lot, struct packed_change *out)
{
    struct row_change *change = row_change_create(lot->arena);
    if (change == NULL)
        return status_out_of_memory();
    row_change_delete_row(change);
    TRY(row_change_pack(change, SIZE_MAX, out));
    out->is_listed = true;
    change_list_add(&out->list, &(struct list_mutation){.kind = LIST_DELETE_ROW});
    if (!out->list.failed)
        return status_ok();
    packed_change_free(out);
    return status_out_of_memory();
}

static status add_row(struct lot *lot, bytes row_key)
{
    struct grouped_row *row = &lot->rows[lot->count];
    row->row_key = arena_copy(lot->arena, row_key);
    if (row->row_key.data == NULL)
        return status_out_of_memory();
    TRY(pack_deletion(lot, &row->change));
    lot->count++;
    return status_ok();
}

static status begin_lot(struct lot *lot)
{
    arena_reset(lot->arena);
    lot->count = 0;
    lot->rows = arena_zalloc(lot->arena, LOT_ROWS * sizeof *lot->rows);
    return lot->rows == NULL ? status_out_of_memory() : status_ok();
}

static status delete_lot(struct lot *lot)
{
    if (lot->count == 0)
        return status_ok();
    struct row_group group = {.table = lot->table,
                              .rows = lot->rows,
                              .count = lot->count,
                              .arena = lot->arena,
                              .frees_space = true,
                              .locked = find_families};
    lot->count = 0; /* the group frees the changes */
    return row_group_write(&group);
}

static void free_lot(struct lot *lot)
{
    for (size_t i = 0; i < lot->count; i++)
        packed_change_free(&lot->rows[i].change);
    lot->count = 0;
}

/* --- the rows --- */

static status delete_at(struct lot *lot, struct store_cursor *cursor)
{
    status s = status_ok();
    store_cursor_first(cursor);
    while (status_is_ok(s) && store_cursor_valid(cursor)) {
        TRY(begin_lot(lot));
        for (size_t i = 0; i < LOT_ROWS && store_cursor_valid(cursor); i++) {
            TRY(add_row(lot, bytes_from(store_cursor_key(cursor), 1)));
            store_cursor_next(cursor);
        }
        s = delete_lot(lot);
    }
    return status_is_ok(s) ? store_cursor_status(cursor) : s;
}

static status delete_part(void *context, const struct table_part *part)
{
    struct lot *lot = context;
    struct store_cursor *cursor;
    TRY(record_cursor_create(part->space.keyspace, part->from, part->to, &cursor));
    status s = delete_at(lot, cursor);
    free_lot(lot);
    store_cursor_destroy(cursor);
    return s;
}

status stream_drop_rows(struct table *table, bytes from, bytes to)
{
    struct lot lot = {.table = table};
    if (atomic_exchange(&table->is_dropping, true))
        return status_make(STATUS_UNAVAILABLE, "A DropRowRange operation is already ongoing");
    lot.arena = arena_create(LOT_MEMORY);
    status s = lot.arena == NULL ? status_out_of_memory()
                                 : table_visit_parts(table, from, to, delete_part, &lot);
    arena_destroy(lot.arena);
    atomic_store(&table->is_dropping, false);
    return s;
}
