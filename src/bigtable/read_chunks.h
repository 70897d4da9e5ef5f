/* Rows as the chunks of google.bigtable.v2.ReadRowsResponse, written by hand: this is where a scan
 * spends its time outside of the store.
 *
 * What a reader relies on
 *  1. A chunk repeats neither family nor qualifier of the chunk before it in its row; the first
 *     chunk of a row has both, one with a family has a qualifier.
 *  2. The row key comes with the first chunk of a row, and again with the first of a message that
 *     goes on with a row: Google's Python client wants it there. But not within a value, where the
 *     clients in Java and Go refuse it.
 *  3. A value that is longer than a message may be comes in pieces: all but the last say the size
 *     of the whole, all but the first have nothing but their piece. They are of about the same
 *     size, so that each fills a message. (The Python client takes a message that begins within a
 *     value only as long as no row came before, so no smaller value is cut.)
 *  4. commit_row stands on the last chunk of a row and only there.
 *
 * Pure: cells in, bytes out. A row may be written in steps, so that a large one never stands in
 * memory a second time. */
#ifndef TRESTLE_BIGTABLE_READ_CHUNKS_H
#define TRESTLE_BIGTABLE_READ_CHUNKS_H

#include "row/cell.h"

/* Clients receive messages of at least 4 MB. */
enum { CHUNK_VALUE_BYTES = 2 << 20 };

/* How far the writing of a row has come. The key and the cells must stay until it is done. */
struct row_writer {
    bytes key;
    const struct cell *cells;
    size_t cell_count;
    size_t next;   /* cell */
    size_t offset; /* in its value */
};

/* `cells` is not empty. */
void row_writer_start(struct row_writer *writer, bytes key, const struct cell_list *cells);

/* Appends chunks until the row is done or `message` has at least `enough` bytes: it may pass that
 * by one cell. The next call for the row is for another message. Memory that is short shows in
 * message->failed. */
void row_writer_write(struct row_writer *writer, struct buffer *message, size_t enough);

static inline bool row_writer_is_done(const struct row_writer *writer)
{
    return writer->next == writer->cell_count;
}

#endif
