/* What one record of a source makes of one row. */
#ifndef TRESTLE_MOVE_CHANGE_H
#define TRESTLE_MOVE_CHANGE_H

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
};

/* Adds a copy of the cell, whose bytes stay where they are. */
status move_change_add(struct move_change *change, struct arena *arena,
                       const struct move_cell *cell);

#endif
