/* See row_file.h. What is the same for all kinds, and the lines of JSON. */
#include "formats/row_file_private.h"

#include "formats/row_json.h"

#include <inttypes.h>
#include <stdlib.h>

struct row_file {
    const struct row_format *format;
    char *path;
    struct input *input;
    struct csv_rows *csv;     /* of CSV */
    struct avro_reader *avro; /* of Avro */
    uint64_t number;          /* of Avro's records */
};

/* --- failures --- */

static const char *shown_path(const struct row_file *file)
{
    return strcmp(file->path, "-") == 0 ? "standard input" : file->path;
}

/* Names the file, and where it has lines the line that was read. */
static status place(const struct row_file *file, uint64_t line, status s)
{
    if (status_is_ok(s) || s.detail == NULL)
        return s;
    status placed = line == 0 ? status_make(s.code, "%s: %s", shown_path(file), status_message(s))
                              : status_make(s.code, "%s:%" PRIu64 ": %s", shown_path(file), line,
                                            status_message(s));
    status_free(s);
    return placed;
}

/* --- JSON lines --- */

static status read_object(const struct row_file *file, bytes line, struct arena *arena,
                          struct move_change *out)
{
    const struct row_format *format = file->format;
    struct field *fields;
    size_t count;
    bool has_fields =
        format->form == ROWS_FIELDS || (format->form == ROWS_AUTO && format->layout.key_count > 0);
    if (!has_fields)
        return row_json_read(line, format->layout.default_us, arena, out);
    TRY(row_json_fields(line, arena, &fields, &count));
    return fields_lay_out(&format->layout, fields, count, arena, out);
}

static status next_line(struct row_file *file, struct arena *arena, struct row_record *out,
                        bool *is_end)
{
    do {
        out->failure = input_line(file->input, &out->text, is_end);
        out->number = input_line_number(file->input);
        if (out->failure.code == STATUS_OUT_OF_RANGE)
            return status_ok();
        TRY(out->failure);
        if (*is_end)
            return status_ok();
    } while (input_line_is_blank(out->text));
    bytes line = out->text;
    if (out->number == 1 && bytes_start_with(line, bytes_of("\xef\xbb\xbf")))
        line = bytes_from(line, 3);
    out->failure = read_object(file, line, arena, &out->row);
    return status_ok();
}

/* --- Avro --- */

static status next_object(struct row_file *file, struct arena *arena, struct row_record *out,
                          bool *is_end)
{
    struct avro_value record;
    TRY(avro_next(file->avro, arena, &record, is_end));
    if (*is_end)
        return status_ok();
    out->number = ++file->number;
    out->failure = avro_row(&record, file->format, arena, &out->row);
    return status_ok();
}

/* --- any --- */

static status next(struct row_file *file, struct arena *arena, struct row_record *out, bool *is_end)
{
    switch (file->format->kind) {
    case ROWS_CSV:
        return csv_rows_next(file->csv, arena, out, is_end);
    case ROWS_JSONL:
        return next_line(file, arena, out, is_end);
    default:
        return next_object(file, arena, out, is_end);
    }
}

static uint64_t line_of(const struct row_file *file)
{
    return file->csv != NULL                  ? csv_rows_line(file->csv)
           : file->format->kind == ROWS_JSONL ? input_line_number(file->input)
                                              : 0;
}

/* The next row. A lack of memory is no fault of the row: it ends the reading. */
status row_file_next(struct row_file *file, struct arena *arena, struct row_record *out,
                     bool *is_end)
{
    *out = (struct row_record){0};
    status s = next(file, arena, out, is_end);
    if (status_is_ok(s) && out->failure.code == STATUS_RESOURCE_EXHAUSTED) {
        s = out->failure;
        out->failure = status_ok();
    }
    return place(file, line_of(file), s);
}

static status begin(struct row_file *file)
{
    switch (file->format->kind) {
    case ROWS_CSV:
        return place(file, 1, csv_rows_create(file->input, file->format, &file->csv));
    case ROWS_AVRO:
        return place(file, 0, avro_reader_create(file->input, &file->avro));
    case ROWS_JSONL:
        break;
    }
    return status_ok();
}

status row_file_open(const char *path, const struct row_format *format, struct row_file **out)
{
    struct row_file *file = *out = calloc(1, sizeof *file);
    if (file == NULL)
        return status_out_of_memory();
    file->format = format;
    file->path = strdup(path);
    status s = file->path == NULL ? status_out_of_memory() : input_open(path, &file->input);
    if (status_is_ok(s))
        s = begin(file);
    if (status_is_ok(s))
        return s;
    row_file_close(file);
    *out = NULL;
    return s;
}

void row_file_close(struct row_file *file)
{
    if (file == NULL)
        return;
    csv_rows_destroy(file->csv);
    avro_reader_destroy(file->avro);
    input_close(file->input);
    free(file->path);
    free(file);
}

uint64_t row_file_bytes_read(const struct row_file *file)
{
    return input_bytes_read(file->input);
}

uint64_t row_file_bytes_total(const struct row_file *file)
{
    return input_bytes_total(file->input);
}
