/* A sample of a table's rows for the advisor: a few rows at a time, of which keys, columns,
 * timestamps and sizes are kept, and values are not.
 *
 * The cost of one reading is bounded: it ends after SAMPLE_READ_MOST bytes, within a row that
 * passes SAMPLE_ROW_MOST, and asks for SAMPLE_CELLS_MOST cells of a row only. The memory of all of
 * them is bounded by SAMPLE_ALL_CELLS, however small the cells are. */
#ifndef TRESTLE_ADVISOR_SAMPLE_ROWS_H
#define TRESTLE_ADVISOR_SAMPLE_ROWS_H

#include "advisor/advice.h"

enum {
    SAMPLE_READ_MOST = 1 << 20,
    SAMPLE_ROW_MOST = 2 << 20,
    SAMPLE_CELLS_MOST = 2000,
    SAMPLE_ALL_CELLS = 500 * 1000, /* after which no more places are read */
};

struct sample_rows {
    struct arena *arena; /* of the rows */
    const struct advice_family *families;
    size_t family_count;
    struct advice_row *rows;
    size_t count;
    size_t capacity;
    size_t cells;      /* of all rows */
    uint64_t bytes;    /* that were read */
    uint64_t most;     /* bytes, after which nothing more is to be read */
    uint64_t passed;   /* rows that hold nothing any more, as far as the source tells */
    size_t unreadable; /* rows that are larger than can be read */
    bool is_full;      /* there was more than could be read of `most` */
};

struct sample_reading {
    bytes start; /* the first key */
    bytes end;   /* the one behind the last; empty: there is none */
    size_t limit;
    uint32_t place; /* of the rows that are read */
    bool is_reversed;
};

status sample_rows_add(struct sample_rows *rows, const struct advice_row *row);

/* Adds a row of which only the key is known, which is the arena's: its size is that of the largest.
 */
status sample_rows_add_unreadable(struct sample_rows *rows, uint32_t place, bytes key);

/* Which family has the name; false: none, it is newer than the schema. */
bool sample_rows_family(const struct sample_rows *rows, bytes name, uint32_t *out);

/* Puts the rows in order, each once. */
void sample_rows_sort(struct sample_rows *rows);

#endif
