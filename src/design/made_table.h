/* Rows that follow from a description: the table as it will be once its rows have been written.
 *
 * Of a large table MADE_ROWS_MOST rows are made, in runs of rows that were written one after the
 * other, which are spread over all of its history. What always holds
 *  1. All follows from the description, the seed and `now_us`: neither a clock nor any other random
 *     number has a part in it.
 *  2. Rows are numbered in the order in which they are written: the table has those below
 *     `table->rows`, and a load goes on from there.
 *  3. Of values that are many rows' (a device, a customer) there are so many fewer that each has as
 *     many of the rows made as it will have of all; but OWNERS_LEAST at least. */
#ifndef TRESTLE_DESIGN_MADE_TABLE_H
#define TRESTLE_DESIGN_MADE_TABLE_H

#include "design/design.h"

enum { MADE_ROWS_MOST = 20 * 1000, MADE_RUN = 50, MADE_OWNERS_LEAST = 200 };

struct made_row {
    bytes key;
    uint64_t number;
};

struct made_table {
    const struct design_table *table;
    struct arena *arena;
    uint64_t seed;
    int64_t now_us;                     /* since 1970 */
    int64_t history_us;                 /* no more than the oldest cell may have */
    uint64_t counts[DESIGN_PARTS_MOST]; /* different values of each part of the key; 0: any */
    struct made_row *rows;              /* by key, no two the same */
    size_t count;
    size_t written; /* rows that were made: more than `count` where keys repeat */
    size_t events;  /* that are played of each access, at most; 0: as many as of any */
};

status made_table_create(const struct design_table *table, uint64_t seed, int64_t now_us,
                         struct arena *arena, struct made_table *out);

/* How many rows of the table one that was made stands for. */
double made_scale(const struct made_table *made);

/* Where a key stands among the rows: how many are before it. */
size_t made_find(const struct made_table *made, bytes key);

/* When the row was written. */
int64_t made_time(const struct made_table *made, uint64_t number);

/* Appends the first `parts` parts of its key, with the delimiters between them, and behind the last
 * unless it is the key's. `out` fails without memory. */
void made_key(const struct made_table *made, uint64_t number, int64_t time_us, size_t parts,
              struct buffer *out);

/* Its cells, as they are left by now. */
status made_cells(const struct made_table *made, const struct made_row *row,
                  struct advice_row *out);

/* --- values.c --- */

/* A number that follows from four others, and looks random. */
uint64_t made_random(uint64_t seed, uint64_t a, uint64_t b, uint64_t c);

/* The value of the part with this number among all that it has, in a row that was written then. */
void made_value(const struct design_part *part, uint64_t seed, uint64_t value, int64_t time_us,
                struct buffer *out);

#endif
