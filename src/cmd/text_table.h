/* Rows of text in columns that are as wide as a terminal shows them:
 *
 *      name  | count
 *     -------+-------
 *      alpha |    12
 *
 * The first rows are kept until there are enough to know how wide the columns are; those after them
 * are written at once, and one that is wider than its column sticks out. */
#ifndef TRESTLE_CMD_TEXT_TABLE_H
#define TRESTLE_CMD_TEXT_TABLE_H

#include "base/status.h"

enum {
    TEXT_TABLE_ROWS_KEPT = 1000,
    TEXT_TABLE_BYTES_KEPT = 4 << 20,
};

struct text_column {
    const char *name; /* UTF-8 that a terminal may have */
    bool to_the_right;
    size_t width; /* the table's */
};

struct text_table {
    struct text_column *columns; /* the caller's, like `out` */
    size_t column_count;
    bool has_header;
    struct buffer *out;
    struct buffer kept;  /* texts of the rows kept, one behind the other */
    struct buffer sizes; /* of each, a size_t */
    size_t cell_count;   /* in all */
    bool is_flowing;     /* the columns' widths are known */
};

/* Columns' `width`s are set here. Without memory `out->failed` is set sooner or later. */
void text_table_begin(struct text_table *table, struct text_column *columns, size_t column_count,
                      bool has_header, struct buffer *out);

/* The next cell, row by row: UTF-8. */
void text_table_add(struct text_table *table, bytes cell);

/* Writes what was kept, and frees it. */
void text_table_end(struct text_table *table);

/* Columns that a terminal needs for a valid text. */
size_t text_width(bytes text);

#endif
