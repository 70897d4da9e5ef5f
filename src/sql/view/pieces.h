/* The pieces of one source row, put together to its contribution. */
#ifndef TRESTLE_SQL_VIEW_PIECES_H
#define TRESTLE_SQL_VIEW_PIECES_H

#include "base/vector.h"
#include "sql/view/program_private.h"

/* All zeroes but the first two is that of a row of which nothing came yet. */
struct view_pieces {
    const struct view_program *program;
    struct arena *arena; /* emptied with each row */
    struct buffer id;    /* scratch */
    struct buffer body;
    struct vector list; /* of struct piece: see pieces.c */
    uint64_t output;    /* bytes, as run.h counts them */
    const char *why;    /* the row is excluded; NULL: it is not */
};

void view_pieces_clear(struct view_pieces *pieces); /* for the next row */
void view_pieces_free(struct view_pieces *pieces);  /* its scratch; the arena is the caller's */

/* Adds a piece. What is wrong with it is in `why`. */
status view_pieces_add(struct view_pieces *pieces, const struct sql_value *row);

/* Appends the contribution of a row of which so much was selected; excludes it otherwise. */
status view_pieces_write(struct view_pieces *pieces, uint64_t selected, uint64_t key_size,
                         struct buffer *out);

#endif
