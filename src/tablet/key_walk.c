/* See key_walk.h. */
#include "tablet/key_walk.h"

#include "base/check.h"

enum {
    FEW = 8,            /* keys for which a cursor is not worth making */
    STEPS_OF_KEY = 4,   /* that a chunk may take, for each of its keys */
    STEPS_TO_FIRST = 2, /* from the last chunk's end; then it seeks */
    FIRST_WAIT = 4,     /* chunks */
    LONGEST_WAIT = 64,
};

void key_walk_rest(struct key_walk *walk)
{
    store_cursor_destroy(walk->cursor);
    walk->cursor = NULL;
    walk->is_placed = false;
}

/* --- looking up --- */

struct visitor {
    status (*visit)(void *context, size_t i, bytes value);
    void *context;
    bool are_all;
};

static status get(struct key_walk *walk, const bytes *keys, size_t first, size_t count,
                  struct visitor *visitor)
{
    struct store_value values[KEY_WALK_MOST] = {0};
    enum store_presence presences[KEY_WALK_MOST];
    status s = store_get_many(walk->keyspace, NULL, keys + first, count - first, STORE_READ_ANY,
                              values, presences);
    for (size_t i = 0; i < count - first; i++) {
        if (status_is_ok(s) && presences[i] == STORE_FOUND)
            s = visitor->visit(visitor->context, first + i, values[i].bytes);
        visitor->are_all &= !status_is_ok(s) || presences[i] != STORE_NOT_CACHED;
        store_value_release(&values[i]);
    }
    return s;
}

/* --- walking --- */

static void wait_longer(struct key_walk *walk)
{
    walk->last_wait = walk->last_wait == 0 ? FIRST_WAIT : 2 * walk->last_wait;
    if (walk->last_wait > LONGEST_WAIT)
        walk->last_wait = LONGEST_WAIT;
    walk->chunks_to_get = walk->last_wait;
    key_walk_rest(walk);
}

/* False: there is none, for whatever reason. Gets say what is the matter, if they meet it. */
static bool make_cursor(struct key_walk *walk)
{
    if (walk->cursor != NULL)
        return true;
    struct buffer behind = {0};
    buffer_append_bytes(&behind, walk->last);
    if (walk->last.size > 0)
        buffer_append_byte(&behind, 0);
    const struct store_cursor_options options = {.upper = buffer_bytes(&behind),
                                                 .read_tier = STORE_READ_ANY};
    status s = behind.failed ? status_out_of_memory()
                             : store_cursor_create(walk->keyspace, &options, &walk->cursor);
    bool is_made = status_is_ok(s);
    buffer_free(&behind);
    status_free(s);
    return is_made;
}

static bool is_before(const struct key_walk *walk, bytes key)
{
    return store_cursor_valid(walk->cursor) &&
           bytes_compare(store_cursor_key(walk->cursor), key) < 0;
}

/* Goes on to the first key that is not before this one, or until there are no steps left. */
static void go_to(struct key_walk *walk, bytes key, size_t *steps)
{
    for (; *steps > 0 && is_before(walk, key); --*steps)
        store_cursor_next(walk->cursor);
}

static void go_to_first(struct key_walk *walk, bytes key)
{
    size_t steps = STEPS_TO_FIRST;
    if (walk->is_placed)
        go_to(walk, key, &steps);
    if (!walk->is_placed || is_before(walk, key))
        store_cursor_seek(walk->cursor, key);
    walk->is_placed = true;
}

/* It is at a key, or behind all. */
static bool is_sound(const struct key_walk *walk)
{
    if (store_cursor_valid(walk->cursor))
        return true;
    status s = store_cursor_status(walk->cursor);
    bool is_over = status_is_ok(s) && !store_cursor_missed_cache(walk->cursor);
    status_free(s);
    return is_over;
}

static status visit_here(const struct key_walk *walk, const bytes *keys, size_t i,
                         const struct visitor *visitor)
{
    bool is_there =
        store_cursor_valid(walk->cursor) && bytes_equal(store_cursor_key(walk->cursor), keys[i]);
    return is_there ? visitor->visit(visitor->context, i, store_cursor_value(walk->cursor))
                    : status_ok();
}

/* `*done`: so many of the keys, from the first on, were looked at. */
static status step_over(struct key_walk *walk, const bytes *keys, size_t count,
                        const struct visitor *visitor, size_t *done)
{
    size_t steps = STEPS_OF_KEY * count;
    go_to_first(walk, keys[0]);
    for (*done = 0; *done < count; ++*done) {
        go_to(walk, keys[*done], &steps);
        if (!is_sound(walk) || is_before(walk, keys[*done]))
            return status_ok();
        TRY(visit_here(walk, keys, *done, visitor));
    }
    return status_ok();
}

static status walk_over(struct key_walk *walk, const bytes *keys, size_t count,
                        const struct visitor *visitor, size_t *done)
{
    if (!make_cursor(walk)) {
        wait_longer(walk);
        return status_ok();
    }
    TRY(step_over(walk, keys, count, visitor, done));
    if (*done < count)
        wait_longer(walk);
    else
        walk->last_wait = 0;
    return status_ok();
}

static bool do_rise(const bytes *keys, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (bytes_compare(keys[i - 1], keys[i]) >= 0)
            return false;
    return true;
}

status key_walk_get(struct key_walk *walk, const bytes *keys, size_t count,
                    status (*visit)(void *context, size_t i, bytes value), void *context,
                    bool *are_all)
{
    struct visitor visitor = {visit, context, true};
    size_t done = 0;
    DCHECK(count <= KEY_WALK_MOST && (walk->never || do_rise(keys, count)));
    if (walk->chunks_to_get > 0)
        walk->chunks_to_get--;
    else if (count >= FEW && !walk->never)
        TRY(walk_over(walk, keys, count, &visitor, &done));
    status s = done < count ? get(walk, keys, done, count, &visitor) : status_ok();
    *are_all = visitor.are_all;
    return s;
}
