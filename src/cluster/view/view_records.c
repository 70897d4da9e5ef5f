/* See view_records.h. */
#include "cluster/view/view_records.h"

#include "base/check.h"
#include "cluster/cluster_private.h"
#include "cluster/ranges.h"
#include "tablet/key_bounds.h"
#include "tablet/key_walk.h"

#include <stdlib.h>

static struct keyspace *records_of(const struct table *view)
{
    CHECK(view->view.source_id != 0);
    return view->view.records;
}

/* --- one by one --- */

status view_records_get(struct table *view, bytes key, struct buffer *value, bool *is_there)
{
    struct store_value found = {0};
    enum store_presence presence = STORE_ABSENT;
    status s = store_get(records_of(view), NULL, key, STORE_READ_ANY, &found, &presence);
    *is_there = status_is_ok(s) && presence == STORE_FOUND;
    if (*is_there)
        buffer_append_bytes(value, found.bytes);
    store_value_release(&found);
    return status_is_ok(s) && value->failed ? status_out_of_memory() : s;
}

struct chunk {
    size_t first;
    status (*visit)(void *context, size_t i, bytes value);
    void *context;
};

static status visit_of_chunk(void *context, size_t i, bytes value)
{
    const struct chunk *chunk = context;
    return chunk->visit(chunk->context, chunk->first + i, value);
}

/* A thread that has no bound is refused nothing. */
static status get_chunk(struct key_walk *walk, const bytes *keys, size_t count, struct chunk *chunk)
{
    bool are_all;
    size_t some = count - chunk->first < KEY_WALK_MOST ? count - chunk->first : KEY_WALK_MOST;
    TRY(key_walk_get(walk, keys + chunk->first, some, visit_of_chunk, chunk, &are_all));
    chunk->first += some;
    return are_all ? status_ok() : status_out_of_memory();
}

status view_records_get_many(struct table *view, const bytes *keys, size_t count, bool are_hot,
                             status (*visit)(void *context, size_t i, bytes value), void *context)
{
    struct key_walk walk = {.keyspace = records_of(view), .never = are_hot};
    struct chunk chunk = {.visit = visit, .context = context};
    status s = status_ok();
    if (count > 0)
        walk.last = keys[count - 1];
    while (status_is_ok(s) && chunk.first < count)
        s = get_chunk(&walk, keys, count, &chunk);
    key_walk_rest(&walk);
    return s;
}

/* --- walks --- */

static status visit_all(struct store_cursor *cursor, bool is_reversed,
                        status (*visit)(void *context, bytes key, bytes value, bool *enough),
                        void *context)
{
    bool enough = false;
    if (is_reversed)
        store_cursor_last(cursor);
    else
        store_cursor_first(cursor);
    while (store_cursor_valid(cursor) && !enough) {
        TRY(visit(context, store_cursor_key(cursor), store_cursor_value(cursor), &enough));
        if (enough)
            return status_ok();
        if (is_reversed)
            store_cursor_previous(cursor);
        else
            store_cursor_next(cursor);
    }
    return store_cursor_status(cursor);
}

status view_records_visit(struct table *view, const struct view_range *range,
                          status (*visit)(void *context, bytes key, bytes value, bool *enough),
                          void *context)
{
    const struct store_cursor_options options = {
        .lower = range->from, .upper = range->to, .read_tier = STORE_READ_ANY};
    struct store_cursor *cursor;
    TRY(store_cursor_create(records_of(view), &options, &cursor));
    status s = visit_all(cursor, range->is_reversed, visit, context);
    store_cursor_destroy(cursor);
    return s;
}

/* --- a cursor --- */

struct view_cursor {
    struct table *view;
    struct store_cursor *cursor;
};

status view_cursor_create(struct table *view, struct view_cursor **out)
{
    const struct store_cursor_options options = {.read_tier = STORE_READ_ANY};
    struct view_cursor *cursor = malloc(sizeof *cursor);
    *out = NULL;
    if (cursor == NULL)
        return status_out_of_memory();
    status s = store_cursor_create(records_of(view), &options, &cursor->cursor);
    if (!status_is_ok(s)) {
        free(cursor);
        return s;
    }
    table_retain(view);
    cursor->view = view;
    *out = cursor;
    return status_ok();
}

void view_cursor_destroy(struct view_cursor *cursor)
{
    if (cursor == NULL)
        return;
    store_cursor_destroy(cursor->cursor);
    table_release(cursor->view);
    free(cursor);
}

void view_cursor_seek(struct view_cursor *cursor, bytes key)
{
    store_cursor_seek(cursor->cursor, key);
}

void view_cursor_seek_before(struct view_cursor *cursor, bytes key)
{
    if (key.size == 0)
        store_cursor_last(cursor->cursor);
    else
        store_cursor_seek_before(cursor->cursor, key);
}

void view_cursor_next(struct view_cursor *cursor)
{
    store_cursor_next(cursor->cursor);
}

void view_cursor_previous(struct view_cursor *cursor)
{
    store_cursor_previous(cursor->cursor);
}

bool view_cursor_valid(const struct view_cursor *cursor)
{
    return store_cursor_valid(cursor->cursor);
}

status view_cursor_status(const struct view_cursor *cursor)
{
    return store_cursor_status(cursor->cursor);
}

bytes view_cursor_key(const struct view_cursor *cursor)
{
    return store_cursor_key(cursor->cursor);
}

bytes view_cursor_value(const struct view_cursor *cursor)
{
    return store_cursor_value(cursor->cursor);
}

/* --- sizes --- */

struct view_sizes view_sizes(struct table *view)
{
    const struct keyspace_bytes records = keyspace_bytes(records_of(view));
    return (struct view_sizes){.rows = table_stored_bytes(view),
                               .records = records.tables + records.buffered};
}
