/* Files of rows, read: CSV, JSON lines and Avro, in any of their forms.
 *
 *     cells     lossless. CSV has a line for each cell, row_key,family,qualifier,timestamp,value,
 *               and those of a row stand together; JSON lines are as row_json.h has them; Avro
 *               records are the BigtableRow of Google's Dataflow templates
 *     cbt       CSV as `cbt import` takes it: a line of families, in which an empty one is that to
 *               its left, a line of qualifiers, and a line for each row, which begins with its key
 *     fields    CSV with a header of names, JSON objects, Avro records of any schema, all of which
 *               fields.h makes rows of
 *
 * In CSV an empty field is no value in the forms cbt and fields. A sixth column `encoding` of the
 * form cells may say base64: key, qualifier and value are written in it. */
#ifndef TRESTLE_FORMATS_ROW_FILE_H
#define TRESTLE_FORMATS_ROW_FILE_H

#include "formats/fields.h"
#include "formats/input.h"

enum row_kind { ROWS_CSV, ROWS_JSONL, ROWS_AVRO };

/* ROWS_AUTO: fields, if there is a template of row keys; else what a CSV file's header says; else
 * cells. */
enum row_form { ROWS_AUTO, ROWS_CELLS, ROWS_CBT, ROWS_FIELDS };

struct row_format {
    enum row_kind kind;
    enum row_form form;
    char delimiter;            /* CSV */
    bool has_value_timestamps; /* CBT: "value@1500000000000000" */
    /* For the form of fields; and its family and default time, for the form cbt (a family there
     * means that the file has no line of them). */
    struct field_layout layout;
};

struct row_record {
    uint64_t number; /* of its first line, or the record, from 1 */
    bytes text;      /* as it stands in the file; empty: it is no text */
    struct move_change row;
    status failure; /* not OK: why it is none; the taker's. Reading goes on behind it */
};

struct row_file;

/* "-" is standard input. `format` outlives the file. INVALID_ARGUMENT for a header that makes no
 * sense; fails as input_open and avro_reader_create. Failures name the file. */
status row_file_open(const char *path, const struct row_format *format, struct row_file **out);
void row_file_close(struct row_file *file); /* NULL is fine */

/* The next record, of the arena and until the next call. A failure, which names file and line, ends
 * the reading. */
status row_file_next(struct row_file *file, struct arena *arena, struct row_record *out,
                     bool *is_end);

/* As input.h has them. */
uint64_t row_file_bytes_read(const struct row_file *file);
uint64_t row_file_bytes_total(const struct row_file *file);

#endif
