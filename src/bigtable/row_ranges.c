/* See row_ranges.h. A bound that is exclusive at the start, or inclusive at the end, becomes the
 * key's successor. */
#include "bigtable/row_ranges.h"

#include "row/row_key.h"

#include <stdlib.h>

/* An end as it was given; `is_set` false: no bound. */
struct bound {
    bytes key;
    bool is_set;
    bool is_closed;
};

static struct bound range_start(const Bt__RowRange *range)
{
    if (range->start_key_case == BT__ROW_RANGE__START_KEY_START_KEY_CLOSED)
        return (struct bound){proto_bytes(range->start_key_closed), true, true};
    if (range->start_key_case == BT__ROW_RANGE__START_KEY_START_KEY_OPEN)
        return (struct bound){proto_bytes(range->start_key_open), true, false};
    return (struct bound){.is_closed = true};
}

static struct bound range_end(const Bt__RowRange *range)
{
    if (range->end_key_case == BT__ROW_RANGE__END_KEY_END_KEY_CLOSED)
        return (struct bound){proto_bytes(range->end_key_closed), true, true};
    if (range->end_key_case == BT__ROW_RANGE__END_KEY_END_KEY_OPEN)
        return (struct bound){proto_bytes(range->end_key_open), range->end_key_open.len > 0, false};
    return (struct bound){.is_closed = false};
}

/* A range of which not even a key between its ends is asked for. */
static status check_order(const struct bound *start, const struct bound *end, size_t index)
{
    int order = bytes_compare(start->key, end->key);
    if (!start->is_set || !end->is_set || end->key.size == 0 || order < 0 ||
        (order == 0 && start->is_closed && end->is_closed))
        return status_ok();
    if (order == 0)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "Error in element #%zu: start_key must be less than end_key", index);
    return status_make(STATUS_INVALID_ARGUMENT,
                       "Error in element #%zu: start_key_%s must be less than end_key_%s", index,
                       start->is_closed ? "closed" : "open", end->is_closed ? "closed" : "open");
}

status row_range_from_message(const Bt__RowRange *range, size_t index, struct arena *arena,
                              struct key_range *out)
{
    struct bound start = range_start(range);
    struct bound end = range_end(range);
    TRY(check_order(&start, &end, index));
    *out = (struct key_range){.from = start.key, .to = end.key};
    if (start.is_set && !start.is_closed && !key_successor(arena, start.key, &out->from))
        return status_out_of_memory();
    if (end.is_set && end.is_closed && !key_successor(arena, end.key, &out->to))
        return status_out_of_memory();
    return status_ok();
}

static status add_keys(const Bt__RowSet *rows, struct arena *arena, struct row_ranges *out)
{
    for (size_t i = 0; i < rows->n_row_keys; i++) {
        bytes key = proto_bytes(rows->row_keys[i]);
        if (key.size == 0)
            return status_make(STATUS_INVALID_ARGUMENT, "Row keys must be non-empty");
        struct key_range *range = &out->items[out->count++];
        *range = (struct key_range){.from = key, .is_point = true};
        if (!key_successor(arena, key, &range->to))
            return status_out_of_memory();
    }
    return status_ok();
}

static status add_ranges(const Bt__RowSet *rows, struct arena *arena, struct row_ranges *out)
{
    for (size_t i = 0; i < rows->n_row_ranges; i++) {
        struct key_range *range = &out->items[out->count];
        TRY(row_range_from_message(rows->row_ranges[i], i, arena, range));
        if (!row_range_is_empty(range))
            out->count++;
    }
    return status_ok();
}

static int compare_ranges(const void *a, const void *b)
{
    return bytes_compare(((const struct key_range *)a)->from, ((const struct key_range *)b)->from);
}

/* Whether `next`, which starts no earlier, starts within `range`. */
static bool overlap(const struct key_range *range, const struct key_range *next)
{
    return range->to.size == 0 || bytes_compare(next->from, range->to) < 0;
}

static void extend(struct key_range *range, const struct key_range *next)
{
    range->is_point = range->is_point && next->is_point;
    if (key_ends_before(range->to, next->to))
        range->to = next->to;
}

static void merge_overlaps(struct row_ranges *ranges)
{
    size_t kept = 0;
    qsort(ranges->items, ranges->count, sizeof *ranges->items, compare_ranges);
    for (size_t i = 0; i < ranges->count; i++) {
        struct key_range *next = &ranges->items[i];
        if (kept > 0 && overlap(&ranges->items[kept - 1], next))
            extend(&ranges->items[kept - 1], next);
        else
            ranges->items[kept++] = *next;
    }
    ranges->count = kept;
}

status row_ranges_from_message(const Bt__RowSet *rows, struct arena *arena, struct row_ranges *out)
{
    size_t most = rows == NULL ? 0 : rows->n_row_keys + rows->n_row_ranges;
    out->items = arena_zalloc(arena, (most > 0 ? most : 1) * sizeof *out->items);
    out->count = 0;
    if (out->items == NULL)
        return status_out_of_memory();
    if (most == 0) {
        out->count = 1; /* all zeroes: every row */
        return status_ok();
    }
    TRY(add_keys(rows, arena, out));
    TRY(add_ranges(rows, arena, out));
    merge_overlaps(out);
    return status_ok();
}

/* --- what lies in a set --- */

/* The keys that both have, which may be none. */
static struct key_range intersection(const struct key_range *range, const struct string_range *part)
{
    struct key_range common = *range;
    if (bytes_compare(common.from, part->from) < 0)
        common.from = part->from;
    if (key_ends_before(part->to, common.to))
        common.to = part->to;
    return common;
}

status row_ranges_intersect(struct row_ranges *ranges, const struct string_set *set,
                            struct arena *arena)
{
    const struct string_range *part = set->ranges, *end = part + set->count;
    struct key_range *kept = arena_alloc(arena, (ranges->count + set->count) * sizeof *kept);
    size_t count = 0;
    if (kept == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < ranges->count && part < end;) {
        const struct key_range *range = &ranges->items[i];
        struct key_range common = intersection(range, part);
        if (!row_range_is_empty(&common))
            kept[count++] = common;
        if (key_ends_before(part->to, range->to))
            part++;
        else
            i++;
    }
    *ranges = (struct row_ranges){.items = kept, .count = count};
    return status_ok();
}
