/* See heat_choice.h.
 *
 * The store's estimates know no less than a block, and take a row that was written over a thousand
 * times, and is in a write buffer still, for a thousand. So the rows of a small tablet are looked
 * at one by one, if they are in memory: of one that is small when they have been looked at, since
 * write buffers may make it seem larger. A tablet weighs by what its rows have then, beside others,
 * too: else one that a load has split off, and writes over and over, would seem to be most of the
 * table. The keys of a larger one, from its first row to its last, are halved as strings of bytes,
 * and the halves again, until a piece is small enough by the estimate; pieces without data fall
 * away at once. Neighbouring pieces are then put together to ranges, and a range begins with the
 * row at its border, if that row's key is at hand, so that people can read it.
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
    LEAST_SHARE = 256,     /* bytes, by estimates; a smaller range would have no row of its own */
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
    uint64_t *sizes;       /* of the ranges before each border, and of the one behind the last */
    uint32_t *row_counts;  /* the same */
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
    choice->sizes[choice->count] += size;
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

/* Rows that were dropped, and their overflow cells, lie in tables until these are compacted. */
static bool is_dropped(const struct choice *choice)
{
    struct row_drops_look look = row_drops_look(choice->drops, store_cursor_key(choice->cursor));
    uint64_t dropped = look.dropped > look.held_from ? look.dropped : look.held_from;
    return dropped != 0 && !has_since(store_cursor_value(choice->cursor), dropped);
}

static uint64_t current_size(const struct choice *choice)
{
    return store_cursor_key(choice->cursor).size + store_cursor_value(choice->cursor).size;
}

/* Records, or overflow cells, from the first to the last. False if they are too many, or have too
 * much, or not all is in memory. */
static bool measure(struct choice *choice, uint64_t *size, bool *have_overflow)
{
    *size = 0;
    for (store_cursor_first(choice->cursor); store_cursor_valid(choice->cursor);
         store_cursor_next(choice->cursor)) {
        if (choice->rows == 0 || *size >= SMALL_TABLET)
            return false;
        choice->rows--;
        if (is_dropped(choice))
            continue;
        *size += current_size(choice);
        *have_overflow |= fragment_has_overflow(store_cursor_value(choice->cursor));
    }
    status s = store_cursor_status(choice->cursor);
    bool are_all = status_is_ok(s) && !store_cursor_missed_cache(choice->cursor);
    status_free(s);
    return are_all;
}

/* Of the tablet's `size`, each row has as large a part as of what all records have. A border is put
 * here, since row_from would move the cursor. */
static void add_rows(struct choice *choice, uint64_t size, uint64_t records)
{
    for (store_cursor_first(choice->cursor); store_cursor_valid(choice->cursor);
         store_cursor_next(choice->cursor)) {
        if (is_dropped(choice))
            continue;
        uint64_t part = (uint64_t)((double)size * (double)current_size(choice) / (double)records);
        if (choice->open > 0 && choice->open + part > choice->share) {
            add_border(choice, current_row(choice));
            choice->open = 0;
        }
        choice->open += part;
        choice->sizes[choice->count] += part;
        choice->row_counts[choice->count]++;
    }
    choice->are_rows_unknown |= store_cursor_missed_cache(choice->cursor);
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

typedef bool find_bounds(bytes from, bytes to, struct key_bounds *out);

static status open_cursor(struct choice *choice, const struct tablet *tablet, find_bounds *find)
{
    struct key_bounds bounds;
    choice->keyspace = tablet->keyspace;
    choice->drops = table_drops(choice->table, tablet->keyspace);
    status s = find(tablet->start, tablet->end, &bounds) ? status_ok() : status_out_of_memory();
    struct store_cursor_options options = {.lower = buffer_bytes(&bounds.lower),
                                           .upper = buffer_bytes(&bounds.upper),
                                           .read_tier = STORE_READ_CACHED};
    if (status_is_ok(s))
        s = store_cursor_create(tablet->keyspace, &options, &choice->cursor);
    key_bounds_free(&bounds);
    return s;
}

/* What a tablet has. */
struct weight {
    uint64_t size;     /* by the store's estimate, and then beside other tablets */
    uint64_t records;  /* bytes of its rows' records */
    uint64_t overflow; /* and of their overflow cells: by an estimate if not all are in memory */
    bool is_measured;
};

static status weigh_overflow(struct choice *choice, const struct tablet *tablet,
                             struct weight *weight)
{
    bool are_within = false;
    TRY(open_cursor(choice, tablet, overflow_bounds));
    if (!measure(choice, &weight->overflow, &are_within))
        weight->overflow = rows_overflow_size(tablet->keyspace, tablet->start, tablet->end);
    store_cursor_destroy(choice->cursor);
    return status_ok();
}

/* Without overflow cells there is no estimate of these either, which is not nothing for nothing. */
static status weigh(struct choice *choice, const struct tablet *tablet, struct weight *weight)
{
    bool have_overflow = false;
    weight->size = live_tablet_size(choice->table, tablet);
    if (weight->size < SEEMS_SMALL) {
        TRY(open_cursor(choice, tablet, record_bounds));
        weight->is_measured = measure(choice, &weight->records, &have_overflow);
        store_cursor_destroy(choice->cursor);
    }
    choice->are_rows_unknown |= !weight->is_measured;
    return weight->is_measured && have_overflow ? weigh_overflow(choice, tablet, weight)
                                                : status_ok();
}

/* Where the rows of some were not looked at estimates count, by which files have less than what is
 * packed in them: but for what, written over, has less than its estimate. */
static void compare(const struct choice *choice, struct weight *weights, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t size = weights[i].records + weights[i].overflow;
        if (weights[i].is_measured && (!choice->are_rows_unknown || size < weights[i].size))
            weights[i].size = size;
    }
}

static status choose_in(struct choice *choice, const struct tablet *tablet,
                        const struct weight *weight)
{
    TRY(open_cursor(choice, tablet, record_bounds));
    if (weight->is_measured && weight->records > 0)
        add_rows(choice, weight->size, weight->records);
    else
        choose_between_rows(choice, tablet, weight->size);
    store_cursor_destroy(choice->cursor);
    return status_ok();
}

/* A tablet's start is a border as long as there are borders enough: an empty table that was split
 * is one that a load is still to come to. */
static status choose_in_all(struct choice *choice, struct tablet *const *tablets,
                            const struct weight *weights, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (count <= choice->most / 4) {
            add_border(choice, tablets[i]->start);
            choice->open = 0;
        }
        TRY(choose_in(choice, tablets[i], &weights[i]));
    }
    return status_ok();
}

static uint64_t share_of(const struct choice *choice, uint64_t size)
{
    uint64_t share = 2 * size / choice->most + 1; /* two neighbours have more than one share */
    return choice->are_rows_unknown && share < LEAST_SHARE ? LEAST_SHARE : share;
}

/* A range without a row is not without weight: it may have got some meanwhile. */
static status make_ranges(struct choice *choice, struct heat_ranges **out)
{
    size_t at = 0;
    if (choice->keys.failed || choice->last.failed)
        return status_out_of_memory();
    for (size_t i = 0; i < choice->count; i++) {
        choice->borders[i].data = choice->keys.data + at;
        at += choice->borders[i].size;
    }
    for (size_t i = 0; i <= choice->count; i++)
        choice->sizes[i] = choice->sizes[i] == 0 ? choice->share : choice->sizes[i];
    const struct heat_weights weights = {
        .sizes = choice->sizes, .rows = choice->are_rows_unknown ? NULL : choice->row_counts};
    return heat_ranges_create(choice->borders, choice->count, &weights, out);
}

/* `*size` is what the store estimates: it says when so much was written that others are due. */
static status weigh_all(struct choice *choice, struct tablet *const *tablets,
                        struct weight *weights, size_t count, uint64_t *size)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        TRY(weigh(choice, tablets[i], &weights[i]));
        *size += weights[i].size;
    }
    compare(choice, weights, count);
    for (size_t i = 0; i < count; i++)
        sum += weights[i].size;
    choice->share = share_of(choice, sum);
    return status_ok();
}

static status choose(struct choice choice, struct tablet *const *tablets, size_t count,
                     uint64_t *size, struct heat_ranges **out)
{
    struct weight *weights = calloc(count, sizeof *weights);
    choice.borders = malloc(choice.most * sizeof *choice.borders);
    choice.sizes = calloc(choice.most, sizeof *choice.sizes);
    choice.row_counts = calloc(choice.most, sizeof *choice.row_counts);
    bool has_memory = weights != NULL && choice.borders != NULL && choice.sizes != NULL &&
                      choice.row_counts != NULL;
    status s =
        has_memory ? weigh_all(&choice, tablets, weights, count, size) : status_out_of_memory();
    if (status_is_ok(s))
        s = choose_in_all(&choice, tablets, weights, count);
    if (status_is_ok(s))
        s = make_ranges(&choice, out);
    buffer_free(&choice.keys);
    buffer_free(&choice.last);
    free(choice.row_counts);
    free(choice.sizes);
    free(choice.borders);
    free(weights);
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
