/* What one record of a source makes of one row: cells that are added to what it has, or what it is
 * from now on. */
#ifndef TRESTLE_FORMATS_CHANGE_H
#define TRESTLE_FORMATS_CHANGE_H

#include "base/arena.h"
#include "base/status.h"

struct move_cell {
    const char *family;
    bytes qualifier;
    int64_t timestamp_us; /* of whole milliseconds */
    bytes value;
};

/* All that it points to is an arena's, or the record's. */
struct move_change {
    bytes row_key;
    struct move_cell *cells;
    size_t count;
    size_t capacity; /* of `cells`, for move_change_add */
    size_t bytes;    /* of qualifiers and values */
    int64_t ends_us; /* when it is over and need not be there any more; 0: never */

    /* The row is these cells and nothing else; without any it is gone. Changes of one row of which
     * one replaces are made in their order. */
    bool replaces;
    bool yields;        /* it does not, if the row has a cell that is later than `written_us` */
    int64_t written_us; /* of whole milliseconds */
    bool in_order;      /* it is written after what came before it of its row */
    bool is_undated;    /* the cells' timestamps are not known: for comparing alone */
};

/* Adds a copy of the cell, whose bytes stay where they are. */
status move_change_add(struct move_change *change, struct arena *arena,
                       const struct move_cell *cell);

/* INVALID_ARGUMENT, in words, if no table takes the row: its key is empty or too long, a name or a
 * value is, a timestamp is negative or of parts of a millisecond. */
status move_change_check(const struct move_change *change);

#endif
