/* Rows written as files: what row_file.h reads. Bytes out, no file.
 *
 * What comes out between two calls of row_encoder_flush can stand alone: cut off there, and gone on
 * with by another encoder, a file is as if it had been written in one go. */
#ifndef TRESTLE_FORMATS_ROW_ENCODER_H
#define TRESTLE_FORMATS_ROW_ENCODER_H

#include "formats/avro.h"
#include "formats/row_file.h"

struct row_encoder;

/* `format`, which outlives the encoder: of CSV the forms cells, cbt and fields, the last two with
 * columns; of JSON lines cells, and fields with columns or a family; of Avro cells. In the form
 * fields the row key is the field `row_key`. `mark`: the file's, of Avro. INVALID_ARGUMENT for
 * another. */
status row_encoder_create(const struct row_format *format, const uint8_t mark[AVRO_MARK],
                          struct row_encoder **out);
void row_encoder_destroy(struct row_encoder *encoder); /* NULL is fine */

/* A file's beginning. These append, and fail for want of memory. */
status row_encoder_begin(struct row_encoder *encoder, struct buffer *out);

/* INVALID_ARGUMENT, and appends nothing, for a row that the form cannot hold: in CSV's forms cbt
 * and fields an empty value; in the form fields of JSON what is not UTF-8; bytes that are not of
 * the field's type. Of a column's versions these two forms take the first. */
status row_encoder_add(struct row_encoder *encoder, const struct move_change *row,
                       struct buffer *out);
status row_encoder_flush(struct row_encoder *encoder, struct buffer *out);

#endif
