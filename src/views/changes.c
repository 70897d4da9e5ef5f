/* Changes of a source, read from its feed once for all of its views: see upkeep.h. */
#include "views/upkeep.h"

#include "base/key_order.h"
#include "base/vector.h"
#include "tablet/version.h"

/* What is read at once: of the feed, and how many changes. The more, the more are of one row, and
 * the closer together lie the rows of a piece, which is cheaper; and the later other sources have
 * their turn. */
enum { FEED_BYTES = 8 << 20, FEED_KEYS = 65536, FEED_MEMORY = 256 << 20 };

struct reading {
    struct view_changes *changes;
    struct vector keys;
    struct vector ranges;
};

static status add_range(struct reading *reading, const struct view_change *change)
{
    struct arena *arena = reading->changes->arena;
    struct view_range_change range = {.from = arena_copy(arena, change->from),
                                      .to = arena_copy(arena, change->to),
                                      .is_drop = change->is_drop,
                                      .since_us = version_time_us(change->version)};
    if (range.from.data == NULL || range.to.data == NULL)
        return status_out_of_memory();
    return vector_add(&reading->ranges, arena, &range, sizeof range);
}

static status visit_change(void *context, const struct view_change *change, bool *enough)
{
    struct reading *reading = context;
    struct arena *arena = reading->changes->arena;
    if (change->is_range) {
        *enough = reading->ranges.count + 1 >= VIEW_MOST_PASSES;
        return add_range(reading, change);
    }
    bytes key = arena_copy(arena, change->from);
    if (key.data == NULL)
        return status_out_of_memory();
    *enough = reading->keys.count + 1 >= FEED_KEYS;
    return vector_add(&reading->keys, arena, &key, sizeof key);
}

static void keep_key(struct view_changes *changes, bytes key)
{
    if (changes->key_count == 0 || !bytes_equal(changes->keys[changes->key_count - 1], key))
        changes->keys[changes->key_count++] = key;
}

static status sort_keys(struct view_changes *changes, const struct vector *keys)
{
    struct key_order *sorted = arena_alloc(changes->arena, keys->count * sizeof *sorted);
    changes->keys = keys->items;
    changes->key_count = 0;
    if (sorted == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < keys->count; i++)
        sorted[i] = (struct key_order){.key = changes->keys[i]};
    key_order_sort(sorted, keys->count);
    for (size_t i = 0; i < keys->count; i++)
        keep_key(changes, sorted[i].key);
    return status_ok();
}

void view_changes_forget(struct view_changes *changes)
{
    arena_destroy(changes->arena);
    *changes = (struct view_changes){0};
}

static status read_changes(struct view_changes *changes, struct table *source)
{
    struct reading reading = {.changes = changes};
    TRY(view_feed_read(source, changes->after, FEED_BYTES, visit_change, &reading,
                       &changes->reached, &changes->is_end));
    TRY(sort_keys(changes, &reading.keys));
    changes->ranges = reading.ranges.items;
    changes->range_count = reading.ranges.count;
    changes->is_set = true;
    return status_ok();
}

status view_changes_read(struct view_changes *changes, struct table *source,
                         struct stream_position after)
{
    view_changes_forget(changes);
    changes->after = after;
    changes->arena = arena_create(FEED_MEMORY);
    if (changes->arena == NULL)
        return status_out_of_memory();
    status s = read_changes(changes, source);
    if (!status_is_ok(s))
        view_changes_forget(changes);
    return s;
}
