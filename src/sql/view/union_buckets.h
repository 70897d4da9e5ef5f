/* The union of the sketches of a group, made anew without reading all of them: for unions.c.
 *
 * Entries, behind the aggregate's index (1 byte):
 *
 *     'r'   bucket (2 bytes)   source key     the sketch of a row
 *     'b'   bucket (2 bytes)                  a byte, whether types do not go together; the union
 * of the bucket's rows
 *
 * A row's bucket is of its key's hash. A group has buckets once it has had VIEW_UNION_MANY rows and
 * one was taken back; then the bucket of each row that goes is made anew of its rows, and the union
 * of all of the buckets. So that costs some thousand entries in a group of a million rows. A bucket
 * without an entry is not known; one without rows has none. */
#ifndef TRESTLE_SQL_VIEW_UNION_BUCKETS_H
#define TRESTLE_SQL_VIEW_UNION_BUCKETS_H

#include "row/hll.h"
#include "sql/view/aggregate.h"

enum { VIEW_UNION_BUCKETS = 1024, VIEW_UNION_MANY = 512 };

/* --- unions --- */

/* In the making; all zeroes is that of nothing. The sketch is to be freed. */
struct view_union {
    struct hll_sketch sketch;
    bool is_mixed; /* types were added that do not go together: the sketch says nothing */
};

/* False for what is no sketch. */
bool view_sketch_parse(bytes written, struct hll_state *out);

/* DATA_LOSS for what is no sketch. */
status view_union_add(struct view_union *all, bytes sketch);

/* --- entries --- */

struct view_union_row {
    bytes source_key;
    bytes sketch;
};

/* Which buckets have had rows added or taken back. */
struct view_union_touched {
    uint8_t bits[VIEW_UNION_BUCKETS / 8];
};
void view_union_touch(struct view_union_touched *touched, bytes source_key);

/* Appends the entry of a row. */
void view_union_row_entry(const struct view_aggregate *aggregate, bytes source_key,
                          struct buffer *out);

/* Adds a row's sketch to its bucket, if that has an entry. */
status view_union_add_to_bucket(const struct view_aggregate *aggregate,
                                const struct view_union_row *row,
                                const struct view_entries *entries);

/* The union of all rows; of all buckets, each made anew if it was touched or is not known. */
status view_union_of_rows(const struct view_aggregate *aggregate,
                          const struct view_entries *entries, struct view_union *out);
status view_union_of_buckets(const struct view_aggregate *aggregate,
                             const struct view_union_touched *touched,
                             const struct view_entries *entries, struct view_union *out);

#endif
