/* Rows as the chunks of google.bigtable.v2.ReadRowsResponse, written by hand: this is where a scan
 * spends its time outside of the store.
 *
 * What a reader relies on
 *  1. Within a message a chunk repeats neither the row key, nor the family, nor the qualifier of
 *     the chunk before it in its row; the first chunk of a row has all three, one with a family has
 * a qualifier.
 *  2. A value longer than CHUNK_VALUE_BYTES comes in pieces: all but the last say the size of the
 *     whole, all but the first have nothing but their piece.
 *  3. commit_row stands on the last chunk of a row and only there.
 *  4. A message begins with a row's key, also in the middle of a row: Google's Python client
 * refuses it otherwise. And it never begins in the middle of a cell, where the Python client wants
 * a key and the Java client wants none. So all pieces of a cell are in one message.
 *
 * Pure: cells in, bytes out. A row may be written in steps, so that a large one never stands in
 * memory a second time. */
#ifndef TRESTLE_BIGTABLE_READ_CHUNKS_H
#define TRESTLE_BIGTABLE_READ_CHUNKS_H

#include "row/cell.h"

/* Clients receive messages of at least 4 MB. */
enum { CHUNK_VALUE_BYTES = 1 << 20 };

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
