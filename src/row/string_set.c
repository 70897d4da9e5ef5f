/* See string_set.h. */
#include "row/string_set.h"

#include "base/check.h"
#include "row/row_key.h"
#include "wire/proto.h"

#include <stdlib.h>

/* --- making --- */

static status range_of_string(bytes string, struct arena *arena, struct string_range *out)
{
    out->from = string;
    return key_successor(arena, string, &out->to) ? status_ok() : status_out_of_memory();
}

static status range_of_prefix(bytes prefix, struct arena *arena, struct string_range *out)
{
    struct buffer after = {0};
    *out = (struct string_range){.from = prefix};
    key_after_prefix(&after, prefix); /* stays empty, no bound, if nothing comes after */
    bool failed = after.failed;
    if (after.size > 0) {
        out->to = arena_copy(arena, buffer_bytes(&after));
        failed = out->to.data == NULL;
    }
    buffer_free(&after);
    return failed ? status_out_of_memory() : status_ok();
}

static int compare_ranges(const void *a, const void *b)
{
    const struct string_range *left = a, *right = b;
    return bytes_compare(left->from, right->from);
}

/* Joins what overlaps or touches; `ranges` are in order. */
static size_t join_neighbours(struct string_range *ranges, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        DCHECK(i == 0 || compare_ranges(&ranges[i - 1], &ranges[i]) <= 0);
        struct string_range *last = kept > 0 ? &ranges[kept - 1] : NULL;
        const struct string_range *next = &ranges[i];
        if (last == NULL || (last->to.size > 0 && bytes_compare(last->to, next->from) < 0))
            ranges[kept++] = *next;
        else if (key_ends_before(last->to, next->to))
            last->to = next->to;
    }
    return kept;
}

/* Rising, with something between each and the next. */
static bool is_disjoint(const struct string_set *set)
{
    for (size_t i = 1; i < set->count; i++)
        if (set->ranges[i - 1].to.size == 0 ||
            bytes_compare(set->ranges[i - 1].to, set->ranges[i].from) >= 0)
            return false;
    return true;
}

status string_set_make(const ProtobufCBinaryData *strings, size_t string_count,
                       const ProtobufCBinaryData *prefixes, size_t prefix_count,
                       struct arena *arena, struct string_set *out)
{
    size_t count = string_count + prefix_count;
    struct string_range *ranges = arena_alloc(arena, count * sizeof *ranges);
    *out = (struct string_set){.ranges = ranges};
    if (ranges == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < string_count; i++)
        TRY(range_of_string(proto_bytes(strings[i]), arena, &ranges[i]));
    for (size_t i = 0; i < prefix_count; i++)
        TRY(range_of_prefix(proto_bytes(prefixes[i]), arena, &ranges[string_count + i]));
    if (count > 0)
        qsort(ranges, count, sizeof *ranges, compare_ranges);
    out->count = join_neighbours(ranges, count);
    DCHECK(is_disjoint(out));
    return status_ok();
}

/* --- looking --- */

const struct string_range *string_set_seek(const struct string_set *set, bytes string)
{
    size_t low = 0, high = set->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        bytes to = set->ranges[middle].to;
        if (to.size > 0 && bytes_compare(to, string) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < set->count ? &set->ranges[low] : NULL;
}

bool string_set_has(const struct string_set *set, bytes string)
{
    const struct string_range *range = string_set_seek(set, string);
    return range != NULL && bytes_compare(range->from, string) <= 0;
}

bool string_set_has_all(const struct string_set *set)
{
    return set->count == 1 && set->ranges[0].from.size == 0 && set->ranges[0].to.size == 0;
}
