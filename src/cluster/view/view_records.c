/* See view_records.h. */
#include "cluster/view/view_records.h"

#include "base/check.h"
#include "cluster/cluster_private.h"
#include "tablet/key_bounds.h"

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

enum { AT_ONCE = 128 };

/* At most AT_ONCE. */
static status get_some(struct keyspace *records, const bytes *keys, size_t count, size_t first,
                       status (*visit)(void *context, size_t i, bytes value), void *context)
{
    struct store_value values[AT_ONCE] = {0};
    enum store_presence presences[AT_ONCE];
    status s =
        store_get_many(records, NULL, keys + first, count, STORE_READ_ANY, values, presences);
    for (size_t i = 0; i < count; i++) {
        if (status_is_ok(s) && presences[i] == STORE_FOUND)
            s = visit(context, first + i, values[i].bytes);
        store_value_release(&values[i]);
    }
    return s;
}

status view_records_get_many(struct table *view, const bytes *keys, size_t count,
                             status (*visit)(void *context, size_t i, bytes value), void *context)
{
    struct keyspace *records = records_of(view);
    for (size_t first = 0; first < count; first += AT_ONCE) {
        size_t some = count - first < AT_ONCE ? count - first : AT_ONCE;
        TRY(get_some(records, keys, some, first, visit, context));
    }
    return status_ok();
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

static uint64_t size_of(struct keyspace *keyspace)
{
    const struct keyspace_bytes bytes = keyspace_bytes(keyspace);
    return bytes.tables + bytes.buffered;
}

struct view_sizes view_sizes(struct table *view)
{
    struct view_sizes sizes = {.records = size_of(records_of(view))};
    for (size_t i = 0; i < view->space_count; i++)
        sizes.rows += size_of(view->spaces[i].keyspace);
    return sizes;
}
