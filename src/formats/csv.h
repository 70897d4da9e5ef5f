/* Comma-separated values (RFC 4180): records read from a file, fields written.
 *
 *     record    field *(delimiter field) (LF | CR LF | end of file)
 *     field     bytes without delimiter, quote and line feed, or '"' any bytes, quotes doubled '"'
 *
 * What is in quotes stays as it is, line ends too. Lines with nothing on them are passed over, and
 * so is a byte-order mark before the first. Memory is the longest record and two buffers. */
#ifndef TRESTLE_FORMATS_CSV_H
#define TRESTLE_FORMATS_CSV_H

#include "formats/input.h"

struct csv_reader;

struct csv_record {
    const bytes *fields; /* until the next call */
    size_t count;
    uint64_t line; /* on which it begins, from 1 */
};

/* The input outlives the reader, which alone reads it. */
status csv_reader_create(struct input *input, char delimiter, struct csv_reader **out);
void csv_reader_destroy(struct csv_reader *reader); /* NULL is fine */

/* The next record; `*is_end`: there is none. INVALID_ARGUMENT says what is wrong with this one; its
 * fields are those that could be made out, and reading goes on behind it. RESOURCE_EXHAUSTED for
 * one of more bytes than the input's lines may have, and what the input says, end it. */
status csv_next(struct csv_reader *reader, struct csv_record *out, bool *is_end);

/* The line that is read, from 1. */
uint64_t csv_reader_line(const struct csv_reader *reader);

/* Appends the field, in quotes if it needs them. */
void csv_append_field(bytes field, char delimiter, struct buffer *out);

#endif
