/* The rows that a request names: google.bigtable.v2.RowSet as a list of ranges. */
#ifndef TRESTLE_BIGTABLE_ROW_RANGES_H
#define TRESTLE_BIGTABLE_ROW_RANGES_H

#include "cluster/rows.h"
#include "google/bigtable/v2/data.pb-c.h"
#include "wire/proto.h"

struct row_ranges {
    struct key_range *items; /* in the arena; as cluster/rows.h wants them */
    size_t count;
};

/* The union of keys and ranges; the whole table if there are none, or if `rows` is NULL. None at
 * all is a possible answer: where every range is empty. Keys point into the message.
 * INVALID_ARGUMENT for an empty key or a range that ends before it starts. */
status row_ranges_from_message(const Bt__RowSet *rows, struct arena *arena, struct row_ranges *out);

/* One range. It may be empty: row_range_is_empty. `index` is for the error's words. */
status row_range_from_message(const Bt__RowRange *range, size_t index, struct arena *arena,
                              struct key_range *out);

/* Leaves of the ranges what lies in the set. Keys may point into it. */
status row_ranges_intersect(struct row_ranges *ranges, const struct string_set *set,
                            struct arena *arena);

static inline bool row_range_is_empty(const struct key_range *range)
{
    return range->to.size > 0 && bytes_compare(range->from, range->to) >= 0;
}

#endif
