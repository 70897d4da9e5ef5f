/* See midpoint.h.
 *
 * Bisection of the space of byte strings: the string halfway between two bounds, then the first row
 * at or after it, then the size up to there, which the store estimates from metadata. Invariants:
 * rows at or before `low` are too few, rows from `high` on too many; `low` is the key of a row. */
#include "cluster/midpoint.h"

#include "row/row_key.h"
#include "tablet/key_bounds.h"

enum {
    MOST_STEPS = 64,
    /* Bytes after the shared prefix of two bounds that are halved: more than enough for MOST_STEPS
     * halvings. */
    HALVED_BYTES = 8,
};

static uint64_t leading_bytes(bytes b, size_t offset)
{
    uint64_t number = 0;
    for (size_t i = 0; i < HALVED_BYTES; i++)
        number = number << 8 | (offset + i < b.size ? b.data[offset + i] : 0);
    return number;
}

static size_t shared_prefix(bytes a, bytes b)
{
    size_t i = 0;
    while (i < a.size && i < b.size && a.data[i] == b.data[i])
        i++;
    return i;
}

void key_halfway(bytes low, bytes high, struct buffer *out)
{
    size_t shared = shared_prefix(low, high);
    uint64_t from = leading_bytes(low, shared);
    uint64_t middle = from + (leading_bytes(high, shared) - from) / 2;
    buffer_clear(out);
    buffer_append(out, low.data, shared);
    for (int shift = 8 * (HALVED_BYTES - 1); shift >= 0; shift -= 8)
        buffer_append_byte(out, (uint8_t)(middle >> shift));
}

struct search {
    struct keyspace *keyspace;
    struct store_cursor *cursor;
    bytes from;
    uint64_t total;
    struct buffer low;
    struct buffer high;
    struct buffer middle;
    struct buffer record_key;
};

static void copy_key(struct buffer *to, bytes key)
{
    buffer_clear(to);
    buffer_append_bytes(to, key);
}

/* The row under the cursor: what follows the byte of the key space. */
static bytes current_row(const struct search *search)
{
    return bytes_from(store_cursor_key(search->cursor), 1);
}

/* Looks at the string halfway; returns whether it has found the middle, which is in `low` then. */
static bool step(struct search *search)
{
    key_halfway(buffer_bytes(&search->low), buffer_bytes(&search->high), &search->middle);
    buffer_clear(&search->record_key);
    row_record_key(&search->record_key, buffer_bytes(&search->middle));
    if (search->middle.failed || search->record_key.failed)
        return true;
    store_cursor_seek(search->cursor, buffer_bytes(&search->record_key));
    bool is_inside = store_cursor_valid(search->cursor) &&
                     bytes_compare(current_row(search), buffer_bytes(&search->high)) < 0;
    if (!is_inside) { /* no row in the upper half */
        copy_key(&search->high, buffer_bytes(&search->middle));
        return false;
    }
    uint64_t before = rows_size(search->keyspace, search->from, current_row(search));
    if (before > search->total - search->total / 2) {
        copy_key(&search->high, buffer_bytes(&search->middle));
        return false;
    }
    copy_key(&search->low, current_row(search));
    return before >= search->total / 2 - search->total / 16;
}

/* Starts between the first row and the last; false if there are no two. */
static bool start(struct search *search)
{
    store_cursor_first(search->cursor);
    if (!store_cursor_valid(search->cursor))
        return false;
    copy_key(&search->low, current_row(search));
    store_cursor_last(search->cursor);
    if (!store_cursor_valid(search->cursor))
        return false;
    copy_key(&search->high, current_row(search));
    return bytes_compare(buffer_bytes(&search->low), buffer_bytes(&search->high)) < 0;
}

/* The halves are closed in on until they meet; if all rows but the first weigh too much, the second
 * part begins with the last row. */
static status find(struct search *search, struct buffer *key, bool *found)
{
    struct buffer first = {0};
    struct buffer last = {0};
    if (start(search)) {
        copy_key(&first, buffer_bytes(&search->low));
        copy_key(&last, buffer_bytes(&search->high));
        for (int i = 0; i < MOST_STEPS && !step(search); i++)
            if (bytes_compare(buffer_bytes(&search->low), buffer_bytes(&search->high)) >= 0)
                break;
        bool moved = !bytes_equal(buffer_bytes(&search->low), buffer_bytes(&first));
        copy_key(key, buffer_bytes(moved ? &search->low : &last));
        *found = true;
    }
    bool failed = first.failed || last.failed || key->failed || search->low.failed ||
                  search->high.failed || search->middle.failed || search->record_key.failed;
    buffer_free(&first);
    buffer_free(&last);
    TRY(store_cursor_status(search->cursor));
    return failed ? status_out_of_memory() : status_ok();
}

static status search_between(struct search *search, const struct key_bounds *bounds,
                             struct buffer *key, bool *found)
{
    struct store_cursor_options options = {.lower = buffer_bytes(&bounds->lower),
                                           .upper = buffer_bytes(&bounds->upper),
                                           .read_tier = STORE_READ_ANY};
    TRY(store_cursor_create(search->keyspace, &options, &search->cursor));
    status s = find(search, key, found);
    store_cursor_destroy(search->cursor);
    return s;
}

/* --- pieces --- */

/* Rows from the first bound up to `low` are few enough, up to `high` too many. */
struct cut {
    struct keyspace *keyspace;
    bytes from;
    uint64_t most;
    struct buffer low;
    struct buffer high;
    struct buffer middle;
};

/* Looks at the string halfway; returns whether there is no better one. */
static bool step_to_cut(struct cut *cut)
{
    bytes low = buffer_bytes(&cut->low), high = buffer_bytes(&cut->high);
    key_halfway(low, high, &cut->middle);
    bytes middle = buffer_bytes(&cut->middle);
    if (cut->middle.failed || bytes_compare(middle, low) <= 0 || bytes_compare(middle, high) >= 0)
        return true;
    uint64_t size = rows_size(cut->keyspace, cut->from, middle);
    copy_key(size > cut->most ? &cut->high : &cut->low, middle);
    return size <= cut->most && size >= cut->most / 2;
}

/* Up to what is few enough, or else what could be parted no further. */
static status find_cut(struct cut *cut, struct buffer *end)
{
    const uint8_t last[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    copy_key(&cut->low, cut->from);
    copy_key(&cut->high, end->size > 0 ? buffer_bytes(end) : bytes_make(last, sizeof last));
    for (int i = 0; i < MOST_STEPS && !cut->low.failed && !cut->high.failed; i++)
        if (step_to_cut(cut))
            break;
    if (cut->low.failed || cut->high.failed || cut->middle.failed)
        return status_out_of_memory();
    bool has_moved = !bytes_equal(buffer_bytes(&cut->low), cut->from);
    bytes found = buffer_bytes(has_moved ? &cut->low : &cut->high);
    if (bytes_compare(cut->from, found) < 0)
        copy_key(end, found);
    return end->failed ? status_out_of_memory() : status_ok();
}

status rows_piece_end(struct keyspace *keyspace, bytes from, uint64_t most, struct buffer *end)
{
    if (rows_size(keyspace, from, buffer_bytes(end)) <= most)
        return status_ok();
    struct cut cut = {.keyspace = keyspace, .from = from, .most = most};
    status s = find_cut(&cut, end);
    buffer_free(&cut.low);
    buffer_free(&cut.high);
    buffer_free(&cut.middle);
    return s;
}

/* --- the middle --- */

status rows_midpoint(struct keyspace *keyspace, bytes from, bytes to, struct buffer *key,
                     bool *found)
{
    struct search search = {
        .keyspace = keyspace, .from = from, .total = rows_size(keyspace, from, to)};
    struct key_bounds bounds;
    *found = false;
    buffer_clear(key);
    status s = record_bounds(from, to, &bounds) ? search_between(&search, &bounds, key, found)
                                                : status_out_of_memory();
    key_bounds_free(&bounds);
    buffer_free(&search.low);
    buffer_free(&search.high);
    buffer_free(&search.middle);
    buffer_free(&search.record_key);
    return s;
}
