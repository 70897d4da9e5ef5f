/* A sample of a table's rows for the advisor: a few rows at a time, of which keys, columns,
 * timestamps and sizes are kept, and values are not.
 *
 * What one reading may cost is bounded: it ends after SAMPLE_READ_MOST bytes, within a row that
 * passes SAMPLE_ROW_MOST, and asks for SAMPLE_CELLS_MOST cells of a row only. */
#ifndef TRESTLE_CMD_ADVISE_ROWS_H
#define TRESTLE_CMD_ADVISE_ROWS_H

#include "advice/advice.h"
#include "client/client_session.h"

enum {
    SAMPLE_READ_MOST = 1 << 20,
    SAMPLE_ROW_MOST = 2 << 20,
    SAMPLE_CELLS_MOST = 2000,
};

struct sample_rows {
    struct client_session *session;
    const char *table; /* its full name */
    const struct advice_family *families;
    size_t family_count;
    struct arena *arena; /* of the rows */
    struct advice_row *rows;
    size_t count;
    size_t capacity;
    uint64_t bytes;    /* of all answers */
    size_t unreadable; /* rows that are larger than the server gives out */
};

struct sample_reading {
    bytes start; /* the first key */
    bytes end;   /* the one behind the last; empty: there is none */
    size_t limit;
    uint32_t place; /* of the rows that are read */
    bool is_reversed;
};

/* Adds rows; one that is larger than the server gives out with the size LIMIT_ROW_BYTES and no
 * cells, as the last one. `*is_whole`: those are all that the range has. */
status sample_rows_read(struct sample_rows *rows, const struct sample_reading *reading,
                        bool *is_whole);

/* Makes the size of a row that is cut an estimate of all of it: the number of its cells times the
 * size of some of them. */
status sample_rows_estimate(struct sample_rows *rows, struct advice_row *row);

/* Whether the range has exactly one row. */
status sample_rows_is_one(struct sample_rows *rows, bytes start, bytes end, bool *is_one);

/* The key that a server shows as text, in which bytes may be \xNN; NULL bytes without memory. */
bytes sample_key_of_text(bytes text, struct arena *arena);

/* Puts the rows in order, each once. */
void sample_rows_sort(struct sample_rows *rows);

#endif
