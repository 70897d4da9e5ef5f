/* Rows of a view: their keys and cells, as ReadRows shows them.
 *
 * Key. The lone `_key` is the row key as it is. Else the columns of GROUP BY or ORDER BY, in clause
 * order, are parts of a struct in ordered code: joined by 00 01, each 00 written 00 FF, NULL an
 * empty part (00 00), texts of nothing but zeros, and empty ones, with one zero more.
 *
 * Cells. A marker, family `default`, without qualifier and value, in each row; of each column that
 * is no key and not NULL a cell in `default` (or the family of an alias `fam.qual`). INT64 and
 * TIMESTAMP are 8 bytes, big-endian, FLOAT64 the same of IEEE's; BOOL one byte; NaN and infinities
 * no cell. Timestamps are 0, or the `_timestamp` that the query gives: that of the marker, too, so
 * that versions have no cell in common.
 *
 * Id. A view row, or a version of it, is known by its id, which sorts as (row key, timestamp):
 * the row key, and, if the view has timestamps, each 00 in it written 00 FF, then 00 01 and the
 * timestamp in 8 bytes, big-endian. */
#ifndef TRESTLE_SQL_VIEW_ROW_H
#define TRESTLE_SQL_VIEW_ROW_H

#include "sql/view/group.h"
#include "sql/view/run.h"

struct view_cell {
    const char *family;
    bytes qualifier;
    bytes value;
};

/* Where a view row is: all that is needed to delete it. */
struct view_place {
    bytes key;
    bool has_timestamp; /* a version of the row: its cells are those of this time */
    int64_t timestamp_us;
};

struct view_row {
    struct view_place place;
    int64_t timestamp_us; /* of all cells: the place's, or 0 */
    /* By family and qualifier, none twice; the marker among them. */
    const struct view_cell *cells;
    size_t cell_count;
    /* Columns without a cell, which may have had one; `value` is empty. Of families that are
     * passed on there are none: what the row had before says what is gone. */
    const struct view_cell *absent;
    size_t absent_count;
};

/* The place of an id. In the arena, or in the id. DATA_LOSS. */
status view_place_of(const struct view_program *program, bytes id, struct arena *arena,
                     struct view_place *out);

/* The row of a group that has settled. Everything is in the arena, which outlives neither the
 * group nor the id. `*why` not NULL: the group has no row (a sum overflows, a division by zero
 * above the aggregates), in words that are in the arena. */
status view_group_row(struct view_runner *runner, const struct view_group *group, bytes id,
                      struct arena *arena, struct view_row *out, const char **why);

/* The row of a part of an index's contribution. */
status view_index_row(const struct view_program *program, const struct view_part *part,
                      struct arena *arena, struct view_row *out);

#endif
