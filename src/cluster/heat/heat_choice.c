/* See heat_choice.h.
 *
 * The store's estimates know no less than a block, and take a row that was written over a thousand
 * times, and is in a write buffer still, for a thousand. So the rows of a small tablet are looked
 * at one by one, if they are in memory: of one that is small when they have been looked at, since
 * write buffers may make it seem larger. The keys of a larger one, from its
 * first row to its last, are halved as strings of bytes, and the halves again, until a piece is
 * small enough by the estimate; pieces without data fall away at once. Neighbouring pieces are then
 * put together to ranges, and a range begins with the row at its border, if that row's key is at
 * hand, so that people can read it.
 *
 * Invariant: pieces come in the order of their keys, and borders rise. */
#include "cluster/heat/heat_choice.h"

#include "cluster/cluster_private.h"
#include "cluster/live_size.h"
#include "cluster/midpoint.h"
#include "row/fragment.h"
#include "row/row_key.h"
#include "tablet/key_bounds.h"

#include <stdlib.h>

enum {
    MOST_DEPTH = 200,      /* halvings of halves: a byte takes eight */
    ESTIMATES_A_RANGE = 8, /* that may be asked for */
    BORDER_BYTES = 64,     /* of a border: what a key has more does not matter */
    LEAST_SHARE = 256,     /* bytes; a smaller range would have no row of its own */
    SMALL_TABLET = 64 << 20,
    SEEMS_SMALL = 512 << 20, /* more than all write buffers have, and a small tablet */
};

struct choice {
    size_t most;
    uint64_t share;   /* the size of a range */
    uint64_t open;    /* bytes in the range that is being filled */
    size_t estimates; /* that may still be asked for */
    size_t rows;      /* that may still be looked at */
    const struct table *table;
    struct keyspace *keyspace;
    struct row_drops *drops;     /* the keyspace's */
    struct store_cursor *cursor; /* over the tablet's records */
    struct buffer keys;          /* of all borders, one behind the other */
    bytes *borders;              /* their sizes; `data` is set in the end, when `keys` rests */
    size_t count;
    uint32_t *row_counts;  /* of the ranges before each border, and of the one behind the last */
    bool are_rows_unknown; /* a tablet's were not looked at one by one */
    struct buffer last;    /* the last border */
};

/* --- borders --- */

static void add_border(struct choice *choice, bytes key)
{
    if (key.size > BORDER_BYTES)
        key.size = BORDER_BYTES;
    if (choice->count + 1 >= choice->most || key.size == 0 ||
        bytes_compare(key, buffer_bytes(&choice->last)) <= 0)
        return;
    buffer_append_bytes(&choice->keys, key);
    choice->borders[choice->count++] = bytes_make(NULL, key.size);
    buffer_clear(&choice->last);
    buffer_append_bytes(&choice->last, key);
}

static bytes current_row(const struct choice *choice)
{
    return bytes_from(store_cursor_key(choice->cursor), 1);
}

/* The row at or after the key; the key itself if no row is in memory. */
static bytes row_from(struct choice *choice, bytes key)
{
    struct buffer record_key = {0};
    row_record_key(&record_key, key);
    if (!record_key.failed)
        store_cursor_seek(choice->cursor, buffer_bytes(&record_key));
    buffer_free(&record_key);
    return store_cursor_valid(choice->cursor) ? current_row(choice) : key;
}

/* --- pieces --- */

static void add_piece(struct choice *choice, bytes from, uint64_t size)
{
    if (choice->open > 0 && choice->open + size > choice->share) {
        add_border(choice, row_from(choice, from));
        choice->open = 0;
    }
    choice->open += size;
}

static uint64_t estimate(struct choice *choice, bytes from, bytes to)
{
    if (choice->estimates > 0)
        choice->estimates--;
    return live_rows_size(choice->table, choice->keyspace, from, to);
}

/* The keys from `from` up to `to` have `size` bytes. */
static void halve(struct choice *choice, bytes from, bytes to, uint64_t size, unsigned depth)
{
    struct buffer middle = {0};
    bool is_whole = size <= choice->share || depth == MOST_DEPTH || choice->estimates == 0;
    if (!is_whole)
        key_halfway(from, to, &middle);
    bytes half = buffer_bytes(&middle);
    if (is_whole || middle.failed || bytes_compare(half, from) <= 0) {
        add_piece(choice, from, size);
    } else {
        uint64_t before = estimate(choice, from, half);
        if (before > 0)
            halve(choice, from, half, before, depth + 1);
        if (before < size)
            halve(choice, half, to, size - before, depth + 1);
    }
    buffer_free(&middle);
}

/* --- rows --- */

/* Whether it has a cell, or a mark that some lie beside it, that is not older. */
static bool has_since(bytes record, uint64_t version)
{
    struct fragment_reader reader;
    struct entry entry;
    bool is_found = false;
    bool is_good = fragment_reader_start(&reader, record);
    while (is_good && !is_found && fragment_reader_next(&reader, &entry))
        is_found = entry.version >= version &&
                   (entry_is_cell(entry.kind) || entry.kind == ENTRY_OVERFLOW_MARK);
    return is_found || !is_good || reader.is_bad;
}

/* Rows that were dropped lie in tables until these are compacted. */
static bool is_dropped(const struct choice *choice)
{
    uint64_t dropped = row_drops_over(choice->drops, current_row(choice));
    return dropped != 0 && !has_since(store_cursor_value(choice->cursor), dropped);
}

static uint64_t current_size(const struct choice *choice)
{
    return store_cursor_key(choice->cursor).size + store_cursor_value(choice->cursor).size;
}

/* False if they are too many, or have too much, or not all is in memory. */
static bool measure_rows(struct choice *choice, uint64_t *size)
{
    *size = 0;
    for (store_cursor_first(choice->cursor); store_cursor_valid(choice->cursor);
         store_cursor_next(choice->cursor)) {
        if (choice->rows == 0 || *size >= SMALL_TABLET)
            return false;
        choice->rows--;
        if (!is_dropped(choice))
            *size += current_size(choice);
    }
    status s = store_cursor_status(choice->cursor);
    bool are_all = status_is_ok(s) && !store_cursor_missed_cache(choice->cursor);
    status_free(s);
    return are_all;
}

/* Of the tablet's `size`, each row has as large a part as of what all rows have. A border is put
 * here, since row_from would move the cursor. */
static void add_rows(struct choice *choice, uint64_t size, uint64_t measured)
{
    for (store_cursor_first(choice->cursor); store_cursor_valid(choice->cursor);
         store_cursor_next(choice->cursor)) {
        if (is_dropped(choice))
            continue;
        uint64_t part = (uint64_t)((double)size * (double)current_size(choice) / (double)measured);
        if (choice->open > 0 && choice->open + part > choice->share) {
            add_border(choice, current_row(choice));
            choice->open = 0;
        }
        choice->open += part;
        choice->row_counts[choice->count]++;
    }
}

/* --- tablets --- */

/* Halves the keys from the first row to the last. If one is not in memory the tablet is one
 * piece. */
static void choose_between_rows(struct choice *choice, const struct tablet *tablet, uint64_t size)
{
    struct buffer from = {0}, to = {0};
    store_cursor_first(choice->cursor);
    if (store_cursor_valid(choice->cursor))
        buffer_append_bytes(&from, bytes_from(store_cursor_key(choice->cursor), 1));
    store_cursor_last(choice->cursor);
    if (store_cursor_valid(choice->cursor))
        buffer_append_bytes(&to, bytes_from(store_cursor_key(choice->cursor), 1));
    bool are_two =
        !from.failed && !to.failed && bytes_compare(buffer_bytes(&from), buffer_bytes(&to)) < 0;
    if (are_two)
        halve(choice, buffer_bytes(&from), buffer_bytes(&to), size, 0);
    else
        add_piece(choice, tablet->start, size);
    buffer_free(&from);
    buffer_free(&to);
}

static status choose_in(struct choice *choice, const struct tablet *tablet, uint64_t size)
{
    struct key_bounds bounds;
    choice->keyspace = tablet->keyspace;
    choice->drops = table_drops(choice->table, tablet->keyspace);
    status s =
        record_bounds(tablet->start, tablet->end, &bounds) ? status_ok() : status_out_of_memory();
    struct store_cursor_options options = {.lower = buffer_bytes(&bounds.lower),
                                           .upper = buffer_bytes(&bounds.upper),
                                           .read_tier = STORE_READ_CACHED};
    if (status_is_ok(s))
        s = store_cursor_create(tablet->keyspace, &options, &choice->cursor);
    if (status_is_ok(s)) {
        uint64_t measured;
        bool is_measured = size < SEEMS_SMALL && measure_rows(choice, &measured);
        choice->are_rows_unknown |= !is_measured;
        if (is_measured && measured > 0)
            add_rows(choice, size, measured);
        else
            choose_between_rows(choice, tablet, size);
        store_cursor_destroy(choice->cursor);
    }
    key_bounds_free(&bounds);
    return s;
}

/* A tablet's start is a border as long as there are borders enough: an empty table that was split
 * is one that a load is still to come to. */
static status choose_in_all(struct choice *choice, struct tablet *const *tablets,
                            const uint64_t *sizes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (count <= choice->most / 4) {
            add_border(choice, tablets[i]->start);
            choice->open = 0;
        }
        TRY(choose_in(choice, tablets[i], sizes[i]));
    }
    return status_ok();
}

static uint64_t share_of(uint64_t size, size_t most)
{
    uint64_t share = 2 * size / most + 1; /* two neighbours have more than one share */
    return share < LEAST_SHARE ? LEAST_SHARE : share;
}

static status make_ranges(struct choice *choice, struct heat_ranges **out)
{
    size_t at = 0;
    if (choice->keys.failed || choice->last.failed)
        return status_out_of_memory();
    for (size_t i = 0; i < choice->count; i++) {
        choice->borders[i].data = choice->keys.data + at;
        at += choice->borders[i].size;
    }
    return heat_ranges_create(choice->borders, choice->count,
                              choice->are_rows_unknown ? NULL : choice->row_counts, out);
}

static status choose(struct choice choice, struct tablet *const *tablets, size_t count,
                     uint64_t *size, struct heat_ranges **out)
{
    uint64_t *sizes = malloc(count * sizeof *sizes);
    choice.borders = malloc(choice.most * sizeof *choice.borders);
    choice.row_counts = calloc(choice.most, sizeof *choice.row_counts);
    status s = sizes == NULL || choice.borders == NULL || choice.row_counts == NULL
                   ? status_out_of_memory()
                   : status_ok();
    for (size_t i = 0; status_is_ok(s) && i < count; i++)
        *size += sizes[i] = live_tablet_size(choice.table, tablets[i]);
    choice.share = share_of(*size, choice.most);
    if (status_is_ok(s))
        s = choose_in_all(&choice, tablets, sizes, count);
    if (status_is_ok(s))
        s = make_ranges(&choice, out);
    buffer_free(&choice.keys);
    buffer_free(&choice.last);
    free(choice.row_counts);
    free(choice.borders);
    free(sizes);
    return s;
}

status heat_choose_ranges(struct table *table, size_t most, size_t most_walked, uint64_t *size,
                          struct heat_ranges **out)
{
    struct choice choice = {
        .table = table, .most = most, .estimates = most * ESTIMATES_A_RANGE, .rows = most_walked};
    struct tablet **tablets;
    size_t count;
    *out = NULL;
    *size = 0;
    TRY(table_tablets(table, &tablets, &count));
    status s = choose(choice, tablets, count, size, out);
    for (size_t i = 0; i < count; i++)
        tablet_release(tablets[i]);
    free(tablets);
    return s;
}
