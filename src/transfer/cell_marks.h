/* Cells of aggregates that have changed at the source, by row. What they come to is not told there:
 * a change of an aggregate is an input. So they are marked, their states are read, and written as
 * [deletion of the cell, merge of the state], which may be done again and changes nothing.
 *
 * Invariants
 *  1. Once a row is resolved by a state of the source that is as late as all of its marks, each
 *     marked cell is in the target what it is in that state.
 *  2. A mark counts once, however often it is set.
 *
 * One thread. */
#ifndef TRESTLE_TRANSFER_CELL_MARKS_H
#define TRESTLE_TRANSFER_CELL_MARKS_H

#include "formats/change.h"
#include "google/bigtable/v2/bigtable.pb-c.h"

enum mark_kind {
    MARK_CELL,   /* one cell */
    MARK_COLUMN, /* those that the row has in the column when it is resolved */
    MARK_FAMILY, /* in the family */
};

struct cell_mark {
    enum mark_kind kind;
    const char *family;
    bytes qualifier;      /* not of a family */
    int64_t timestamp_us; /* of a cell */
};

struct cell_marks;

/* Rows and marks of which the caller had better resolve what there is. */
enum { CELL_MARKS_MANY = 20000 };

struct cell_marks *cell_marks_create(void);        /* NULL without memory */
void cell_marks_destroy(struct cell_marks *marks); /* NULL is fine */
void cell_marks_clear(struct cell_marks *marks);

status cell_marks_add(struct cell_marks *marks, bytes row_key, const struct cell_mark *mark);

size_t cell_marks_count(const struct cell_marks *marks);

/* The rows, in the order of their keys after cell_marks_sort. */
size_t cell_marks_rows(const struct cell_marks *marks);
void cell_marks_sort(struct cell_marks *marks);
bytes cell_marks_row_key(const struct cell_marks *marks, size_t row);

/* The mutations that make the row's marked cells what they are in `cells`, which the source's row
 * has. They are the arena's, and point to the cells and the marks. */
status cell_marks_resolve(struct cell_marks *marks, size_t row, const struct move_cell *cells,
                          size_t cell_count, struct arena *arena, Bt__Mutation ***out,
                          size_t *count);

#endif
