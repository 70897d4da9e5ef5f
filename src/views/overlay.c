/* See overlay.h. */
#include "views/overlay.h"

#include "views/keys.h"

#include <stdlib.h>

struct overlay_change {
    bytes key;   /* whole: of the record */
    bytes value; /* the same: with a byte before it, since no record is empty */
    bool is_removal;
    size_t number; /* in the order of coming */
};

static status add_change(struct view_overlay *overlay, bytes entry, bytes value, bool is_removal)
{
    size_t size = overlay->prefix.size + entry.size;
    uint8_t *key = arena_alloc(overlay->arena, size + 1 + value.size);
    if (key == NULL)
        return status_out_of_memory();
    memcpy(key, overlay->prefix.data, overlay->prefix.size);
    memcpy(key + overlay->prefix.size, entry.data, entry.size);
    key[size] = VIEW_RECORD_IN;
    if (value.size > 0)
        memcpy(key + size + 1, value.data, value.size);
    struct overlay_change change = {.key = bytes_make(key, size),
                                    .value = bytes_make(key + size, 1 + value.size),
                                    .is_removal = is_removal,
                                    .number = overlay->changes.count};
    overlay->is_sorted = false;
    return vector_add(&overlay->changes, overlay->arena, &change, sizeof change);
}

static status put(void *context, bytes entry, bytes value)
{
    return add_change(context, entry, value, false);
}

static status remove_entry(void *context, bytes entry)
{
    return add_change(context, entry, bytes_make(NULL, 0), true);
}

/* --- in order --- */

static int compare_changes(const void *a, const void *b)
{
    const struct overlay_change *x = a, *y = b;
    int order = bytes_compare(x->key, y->key);
    return order != 0 ? order : x->number < y->number ? -1 : x->number > y->number;
}

/* By key; of several changes of one the last stays. */
static void sort(struct view_overlay *overlay)
{
    struct overlay_change *changes = overlay->changes.items;
    size_t kept = 0;
    if (overlay->is_sorted || overlay->changes.count == 0)
        return;
    qsort(changes, overlay->changes.count, sizeof *changes, compare_changes);
    for (size_t i = 0; i < overlay->changes.count; i++) {
        if (kept > 0 && bytes_equal(changes[kept - 1].key, changes[i].key))
            kept--;
        changes[kept] = changes[i];
        changes[kept].number = kept;
        kept++;
    }
    overlay->changes.count = kept;
    overlay->is_sorted = true;
}

/* The first change at the key or after it. */
static size_t lower_bound(const struct view_overlay *overlay, bytes key)
{
    const struct overlay_change *changes = overlay->changes.items;
    size_t low = 0, high = overlay->changes.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (bytes_compare(changes[middle].key, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static const struct overlay_change *change_of(const struct view_overlay *overlay, bytes key)
{
    const struct overlay_change *changes = overlay->changes.items;
    size_t at = lower_bound(overlay, key);
    bool is_there = at < overlay->changes.count && bytes_equal(changes[at].key, key);
    return is_there ? &changes[at] : NULL;
}

/* --- finding --- */

/* What is looked for: whole keys from `from` on, before `to`. */
struct search {
    bytes from;
    bytes to;
    bool is_last;
};

static bool is_within(const struct search *search, bytes key)
{
    return bytes_compare(key, search->from) >= 0 && bytes_compare(key, search->to) < 0;
}

static const struct overlay_change *find_put(const struct view_overlay *overlay,
                                             const struct search *search)
{
    const struct overlay_change *changes = overlay->changes.items;
    size_t from = lower_bound(overlay, search->from), to = lower_bound(overlay, search->to);
    while (from < to) {
        const struct overlay_change *at = &changes[search->is_last ? to - 1 : from];
        if (!at->is_removal)
            return at;
        from += !search->is_last;
        to -= search->is_last;
    }
    return NULL;
}

/* The first recorded entry that the batch does not change; `*key` is empty if there is none. */
static status find_record(struct view_overlay *overlay, const struct search *search, bytes *key)
{
    *key = bytes_make(NULL, 0);
    if (*overlay->cursor == NULL)
        TRY(view_cursor_create(overlay->view, overlay->cursor));
    struct view_cursor *cursor = *overlay->cursor;
    if (search->is_last)
        view_cursor_seek_before(cursor, search->to);
    else
        view_cursor_seek(cursor, search->from);
    while (view_cursor_valid(cursor) && is_within(search, view_cursor_key(cursor))) {
        if (change_of(overlay, view_cursor_key(cursor)) == NULL) {
            *key = view_cursor_key(cursor);
            return status_ok();
        }
        if (search->is_last)
            view_cursor_previous(cursor);
        else
            view_cursor_next(cursor);
    }
    return view_cursor_status(cursor);
}

static status make_search(struct view_overlay *overlay, bytes prefix, bytes from, bool is_last,
                          struct search *out)
{
    struct buffer *key = overlay->found;
    buffer_clear(key);
    buffer_append_bytes(key, overlay->prefix);
    buffer_append_bytes(key, prefix);
    if (key->failed)
        return status_out_of_memory();
    out->is_last = is_last;
    out->to = view_prefix_end(overlay->arena, buffer_bytes(key));
    if (bytes_compare(from, prefix) > 0) {
        key->size = overlay->prefix.size;
        buffer_append_bytes(key, from);
    }
    out->from = key->failed ? bytes_make(NULL, 0) : arena_copy(overlay->arena, buffer_bytes(key));
    return out->to.data == NULL || out->from.data == NULL ? status_out_of_memory() : status_ok();
}

/* Key and value behind one another, kept until the next call. */
static status give(struct view_overlay *overlay, bytes key, bytes value, bytes *entry,
                   bytes *value_out)
{
    enum view_record_tag tag;
    TRY(view_record_read(value, &tag, &value));
    buffer_clear(overlay->found);
    buffer_append_bytes(overlay->found, bytes_from(key, overlay->prefix.size));
    buffer_append_bytes(overlay->found, value);
    if (overlay->found->failed)
        return status_out_of_memory();
    *entry = bytes_make(overlay->found->data, key.size - overlay->prefix.size);
    *value_out = bytes_from(buffer_bytes(overlay->found), entry->size);
    return status_ok();
}

static status find(void *context, bytes prefix, bytes from, bool is_last, bytes *entry,
                   bytes *value, bool *found)
{
    struct view_overlay *overlay = context;
    struct search search;
    bytes recorded;
    sort(overlay);
    TRY(make_search(overlay, prefix, from, is_last, &search));
    const struct overlay_change *change = find_put(overlay, &search);
    TRY(find_record(overlay, &search, &recorded));
    *found = change != NULL || recorded.size > 0;
    if (!*found)
        return status_ok();
    int order = change == NULL ? 1 : recorded.size == 0 ? -1 : bytes_compare(change->key, recorded);
    bool is_change = is_last && change != NULL && recorded.size > 0 ? order > 0 : order < 0;
    return is_change ? give(overlay, change->key, change->value, entry, value)
                     : give(overlay, recorded, view_cursor_value(*overlay->cursor), entry, value);
}

/* --- life --- */

status view_overlay_begin(struct view_overlay *overlay, struct table *view,
                          struct view_commit *commit, struct view_cursor **cursor,
                          struct buffer *found, struct arena *arena, bytes id)
{
    *overlay = (struct view_overlay){.entries = {overlay, put, remove_entry, find},
                                     .view = view,
                                     .commit = commit,
                                     .cursor = cursor,
                                     .arena = arena,
                                     .prefix = view_entry_prefix(arena, id),
                                     .found = found};
    return overlay->prefix.data == NULL ? status_out_of_memory() : status_ok();
}

status view_overlay_write(struct view_overlay *overlay)
{
    sort(overlay);
    const struct overlay_change *changes = overlay->changes.items;
    for (size_t i = 0; i < overlay->changes.count; i++)
        if (changes[i].is_removal)
            view_commit_delete(overlay->commit, changes[i].key);
        else
            view_commit_put(overlay->commit, changes[i].key, changes[i].value);
    return status_ok();
}
