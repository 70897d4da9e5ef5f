/* Rows as the chunks of google.bigtable.v2.ReadRowsResponse, written by hand: this is where a scan
 * spends its time outside of the store.
 *
 * A reader relies on the following.
 *  1. A chunk repeats neither family nor qualifier of the chunk before it in its row; the first
 *     chunk of a row has both, one with a family has a qualifier.
 *  2. The row key comes with the first chunk of a row, and again with the first of a message that
 *     goes on with a row: Google's Python client wants it there. But not within a value, where the
 *     clients in Java and Go refuse it.
 *  3. A value that is longer than CHUNK_VALUE_BYTES comes in pieces: all but the last say the size
 *     of the whole, all but the first have nothing but their piece. They are of about the same
 *     size. (The Python client takes a message that begins within a value only as long as no row
 *     came before, so no smaller value is cut.)
 *  4. commit_row stands on the last chunk of a row and only there.
 *
 * Pure: cells in, bytes out. A row may be written in steps, so that a large one never stands in
 * memory a second time; how many bytes all of them come to is known before the first. */
#ifndef TRESTLE_BIGTABLE_READ_CHUNKS_H
#define TRESTLE_BIGTABLE_READ_CHUNKS_H

#include "row/cell.h"

/* The size of the part of a value that is in memory a second time. */
enum { CHUNK_VALUE_BYTES = 2 << 20 };

/* How far the writing of a row has come. The key and the cells must stay until it is done. */
struct row_writer {
    bytes key;
    const struct cell *cells;
    size_t cell_count;
    size_t next;    /* cell */
    size_t offset;  /* in its value */
    bytes given;    /* that value, if it is deferred and was given */
    bool wants_key; /* the next chunk begins the row, or a message */
};

/* `cells` is not empty. */
void row_writer_start(struct row_writer *writer, bytes key, const struct cell_list *cells);

/* Back to the row's start. */
void row_writer_restart(struct row_writer *writer);

/* Whether the row's values come to more than so many bytes: quickly found. */
static inline bool row_writer_has_values(const struct row_writer *writer, uint64_t most)
{
    uint64_t size = 0;
    for (size_t i = 0; i < writer->cell_count && size <= most; i++)
        size += writer->cells[i].value.size;
    return size > most;
}

/* Bytes of all chunks of the row, if they are for one message. */
uint64_t row_writer_size(const struct row_writer *writer);

/* The cell whose value must be given before anything more can be written; NULL: none. */
static inline const struct cell *row_writer_lacks(const struct row_writer *writer)
{
    const struct cell *cell = &writer->cells[writer->next];
    bool lacks =
        writer->next < writer->cell_count && cell_is_deferred(cell) && writer->given.data == NULL;
    return lacks ? cell : NULL;
}

/* The value of that cell, of the size it says. It must stay until row_writer_holds_value is false.
 */
static inline void row_writer_give(struct row_writer *writer, bytes value)
{
    writer->given = value;
}

/* Takes the value back: it is to be given once more. */
static inline void row_writer_take_back(struct row_writer *writer)
{
    writer->given = bytes_make(NULL, 0);
}

static inline bool row_writer_holds_value(const struct row_writer *writer)
{
    return writer->given.data != NULL;
}

/* Appends chunks until the row is done, a value is lacking, or `message` has at least `enough`
 * bytes: it may pass that by one chunk. Memory that is short shows in message->failed. */
void row_writer_write(struct row_writer *writer, struct buffer *message, size_t enough);

/* The next chunk of the row is for another message. */
static inline void row_writer_next_message(struct row_writer *writer)
{
    writer->wants_key = true;
}

static inline bool row_writer_is_done(const struct row_writer *writer)
{
    return writer->next == writer->cell_count;
}

#endif
