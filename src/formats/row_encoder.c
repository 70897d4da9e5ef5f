/* See row_encoder.h. */
#include "formats/row_encoder.h"

#include "base/utf8.h"
#include "formats/csv.h"
#include "formats/row_file_private.h"
#include "formats/row_json.h"
#include "wire/json.h"

#include <inttypes.h>
#include <stdlib.h>

enum { BLOCK_SIZE = 256 << 10 /* of Avro, to be reached */ };

#define INVALID(...) status_make(STATUS_INVALID_ARGUMENT, __VA_ARGS__)
#define KEY_NAME     "row_key"

/* The schema of Google's Dataflow template Bigtable-to-Avro. */
static const char schema[] =
    "{\"name\":\"BigtableRow\",\"type\":\"record\","
    "\"namespace\":\"com.google.cloud.teleport.bigtable\",\"fields\":["
    "{\"name\":\"key\",\"type\":\"bytes\"},"
    "{\"name\":\"cells\",\"type\":{\"type\":\"array\",\"items\":{\"name\":\"BigtableCell\","
    "\"type\":\"record\",\"fields\":["
    "{\"name\":\"family\",\"type\":\"string\"},"
    "{\"name\":\"qualifier\",\"type\":\"bytes\"},"
    "{\"name\":\"timestamp\",\"type\":\"long\",\"logicalType\":\"timestamp-micros\"},"
    "{\"name\":\"value\",\"type\":\"bytes\"}]}}}]}";

struct row_encoder {
    const struct row_format *format;
    uint8_t mark[AVRO_MARK];
    struct buffer block; /* of Avro */
    uint64_t block_rows;
    struct buffer text; /* of a field */
};

/* --- CSV --- */

static void append_field(const struct row_encoder *encoder, bytes field, bool is_first,
                         struct buffer *out)
{
    if (!is_first)
        buffer_append_byte(out, (uint8_t)encoder->format->delimiter);
    csv_append_field(field, encoder->format->delimiter, out);
}

static void end_line(struct buffer *out)
{
    buffer_append_byte(out, '\n');
}

/* Bytes that spreadsheets, editors and CSV's readers leave alone. */
static bool is_text(bytes b)
{
    return utf8_is_valid(b) && (b.size == 0 || memchr(b.data, '\0', b.size) == NULL);
}

static void append_bytes(struct row_encoder *encoder, bytes b, bool is_base64, bool is_first,
                         struct buffer *out)
{
    buffer_clear(&encoder->text);
    if (is_base64)
        status_ignore(field_to_text(FIELD_BASE64, b, &encoder->text));
    append_field(encoder, is_base64 ? buffer_bytes(&encoder->text) : b, is_first, out);
    out->failed |= encoder->text.failed;
}

static void append_number(struct row_encoder *encoder, int64_t number, struct buffer *out)
{
    buffer_append_format(out, "%c%" PRId64, encoder->format->delimiter, number);
}

static void add_csv_cell(struct row_encoder *encoder, bytes row_key, const struct move_cell *cell,
                         struct buffer *out)
{
    bool is_base64 = !is_text(row_key) || !is_text(cell->qualifier) || !is_text(cell->value);
    append_bytes(encoder, row_key, is_base64, true, out);
    append_field(encoder, bytes_of(cell->family), false, out);
    append_bytes(encoder, cell->qualifier, is_base64, false, out);
    append_number(encoder, cell->timestamp_us, out);
    append_bytes(encoder, cell->value, is_base64, false, out);
    append_field(encoder, bytes_of(is_base64 ? "base64" : ""), false, out);
    end_line(out);
}

static status add_csv_cells(struct row_encoder *encoder, const struct move_change *row,
                            struct buffer *out)
{
    for (size_t i = 0; i < row->count; i++)
        add_csv_cell(encoder, row->row_key, &row->cells[i], out);
    return status_ok();
}

static const struct move_cell *find_cell(const struct move_change *row,
                                         const struct field_column *column)
{
    for (size_t i = 0; i < row->count; i++)
        if (bytes_equal(row->cells[i].qualifier, column->qualifier) &&
            strcmp(row->cells[i].family, column->family) == 0)
            return &row->cells[i];
    return NULL;
}

/* Puts what the field has into `text`. Names the field in what is wrong. */
static status make_text(struct row_encoder *encoder, bytes name, const struct move_cell *cell)
{
    const struct row_format *format = encoder->format;
    enum field_type type = field_layout_type(&format->layout, name);
    buffer_clear(&encoder->text);
    status s = field_to_text(type, cell->value, &encoder->text);
    if (status_is_ok(s)) {
        if (format->form == ROWS_CBT && format->has_value_timestamps)
            buffer_append_format(&encoder->text, "@%" PRId64, cell->timestamp_us);
        return encoder->text.failed ? status_out_of_memory() : s;
    }
    status named = INVALID("the value of %.*s %s", name.size < 100 ? (int)name.size : 100,
                           (const char *)name.data, status_message(s));
    status_free(s);
    return named;
}

static status add_csv_line(struct row_encoder *encoder, const struct move_change *row,
                           struct buffer *out)
{
    const struct field_layout *layout = &encoder->format->layout;
    append_field(encoder, row->row_key, true, out);
    for (size_t i = 0; i < layout->column_count; i++) {
        const struct move_cell *cell = find_cell(row, &layout->columns[i]);
        buffer_clear(&encoder->text);
        if (cell != NULL && cell->value.size == 0)
            return INVALID("the value of %.*s is empty, which this form cannot say",
                           (int)layout->columns[i].name.size,
                           (const char *)layout->columns[i].name.data);
        if (cell != NULL)
            TRY(make_text(encoder, layout->columns[i].name, cell));
        append_field(encoder, buffer_bytes(&encoder->text), false, out);
    }
    end_line(out);
    return status_ok();
}

static void begin_cells(const struct row_encoder *encoder, struct buffer *out)
{
    for (size_t i = 0; i < sizeof csv_cell_names / sizeof *csv_cell_names; i++)
        append_field(encoder, bytes_of(csv_cell_names[i]), i == 0, out);
    end_line(out);
}

static void begin_cbt(const struct row_encoder *encoder, struct buffer *out)
{
    const struct field_layout *layout = &encoder->format->layout;
    for (size_t i = 0; i < layout->column_count; i++)
        append_field(encoder, bytes_of(layout->columns[i].family), false, out);
    end_line(out);
    for (size_t i = 0; i < layout->column_count; i++)
        append_field(encoder, layout->columns[i].qualifier, false, out);
    end_line(out);
}

static void begin_fields(const struct row_encoder *encoder, struct buffer *out)
{
    const struct field_layout *layout = &encoder->format->layout;
    append_field(encoder, bytes_of(KEY_NAME), true, out);
    for (size_t i = 0; i < layout->column_count; i++)
        append_field(encoder, layout->columns[i].name, false, out);
    end_line(out);
}

/* --- JSON --- */

static status add_json_name(bytes name, struct buffer *out)
{
    if (!utf8_is_valid(name) || bytes_equal(name, bytes_of(KEY_NAME)))
        return INVALID("a column cannot be called %.*s in JSON",
                       name.size < 100 ? (int)name.size : 100, (const char *)name.data);
    buffer_append_byte(out, ',');
    json_encode_string(name, out);
    buffer_append_byte(out, ':');
    return status_ok();
}

/* Integers and finite numbers are JSON's own. */
static status add_json_field(struct row_encoder *encoder, bytes name, const struct move_cell *cell,
                             struct buffer *out)
{
    enum field_type type = field_layout_type(&encoder->format->layout, name);
    TRY(add_json_name(name, out));
    TRY(make_text(encoder, name, cell));
    bytes text = buffer_bytes(&encoder->text);
    bool is_number = type == FIELD_INT64 ||
                     (type == FIELD_DOUBLE && strchr("NI", text.data[text.data[0] == '-']) == NULL);
    if (!utf8_is_valid(text))
        return INVALID("the value of %.*s is not UTF-8: --types says base64 or hex",
                       name.size < 100 ? (int)name.size : 100, (const char *)name.data);
    if (is_number)
        buffer_append_bytes(out, text);
    else
        json_encode_string(text, out);
    return status_ok();
}

static bool is_older_version(const struct move_change *row, size_t i)
{
    return i > 0 && strcmp(row->cells[i].family, row->cells[i - 1].family) == 0 &&
           bytes_equal(row->cells[i].qualifier, row->cells[i - 1].qualifier);
}

/* Adds all columns of the one family, by their qualifiers. */
static status add_all_columns(struct row_encoder *encoder, const struct move_change *row,
                              struct buffer *out)
{
    for (size_t i = 0; i < row->count; i++)
        if (strcmp(row->cells[i].family, encoder->format->layout.family) == 0 &&
            !is_older_version(row, i))
            TRY(add_json_field(encoder, row->cells[i].qualifier, &row->cells[i], out));
    return status_ok();
}

static status add_named_columns(struct row_encoder *encoder, const struct move_change *row,
                                struct buffer *out)
{
    const struct field_layout *layout = &encoder->format->layout;
    for (size_t i = 0; i < layout->column_count; i++) {
        const struct move_cell *cell = find_cell(row, &layout->columns[i]);
        if (cell != NULL)
            TRY(add_json_field(encoder, layout->columns[i].name, cell, out));
    }
    return status_ok();
}

static status add_object(struct row_encoder *encoder, const struct move_change *row,
                         struct buffer *out)
{
    if (!utf8_is_valid(row->row_key))
        return INVALID("the row key is not UTF-8");
    buffer_append_bytes(out, bytes_of("{\"" KEY_NAME "\":"));
    json_encode_string(row->row_key, out);
    TRY(encoder->format->layout.column_count > 0 ? add_named_columns(encoder, row, out)
                                                 : add_all_columns(encoder, row, out));
    buffer_append_bytes(out, bytes_of("}\n"));
    return status_ok();
}

static status add_row_object(const struct move_change *row, struct buffer *out)
{
    row_json_write(row, out);
    end_line(out);
    return status_ok();
}

/* --- Avro --- */

static status add_record(struct row_encoder *encoder, const struct move_change *row,
                         struct buffer *out)
{
    struct buffer *block = &encoder->block;
    avro_write_bytes(row->row_key, block);
    if (row->count > 0)
        avro_write_long((int64_t)row->count, block);
    for (size_t i = 0; i < row->count; i++) {
        avro_write_bytes(bytes_of(row->cells[i].family), block);
        avro_write_bytes(row->cells[i].qualifier, block);
        avro_write_long(row->cells[i].timestamp_us, block);
        avro_write_bytes(row->cells[i].value, block);
    }
    avro_write_long(0, block);
    encoder->block_rows++;
    return block->size < BLOCK_SIZE ? status_ok() : row_encoder_flush(encoder, out);
}

/* --- any --- */

static status add(struct row_encoder *encoder, const struct move_change *row, struct buffer *out)
{
    const struct row_format *format = encoder->format;
    if (format->kind == ROWS_AVRO)
        return add_record(encoder, row, out);
    if (format->kind == ROWS_JSONL)
        return format->form == ROWS_FIELDS ? add_object(encoder, row, out)
                                           : add_row_object(row, out);
    return format->form == ROWS_CELLS ? add_csv_cells(encoder, row, out)
                                      : add_csv_line(encoder, row, out);
}

status row_encoder_add(struct row_encoder *encoder, const struct move_change *row,
                       struct buffer *out)
{
    size_t size = out->size;
    status s = add(encoder, row, out);
    if (!status_is_ok(s))
        out->size = size;
    return status_is_ok(s) && (out->failed || encoder->block.failed) ? status_out_of_memory() : s;
}

status row_encoder_begin(struct row_encoder *encoder, struct buffer *out)
{
    const struct row_format *format = encoder->format;
    if (format->kind == ROWS_AVRO)
        avro_write_header(schema, true, encoder->mark, out);
    else if (format->kind == ROWS_CSV && format->form == ROWS_CELLS)
        begin_cells(encoder, out);
    else if (format->kind == ROWS_CSV && format->form == ROWS_CBT)
        begin_cbt(encoder, out);
    else if (format->kind == ROWS_CSV)
        begin_fields(encoder, out);
    return out->failed ? status_out_of_memory() : status_ok();
}

status row_encoder_flush(struct row_encoder *encoder, struct buffer *out)
{
    if (encoder->block_rows == 0)
        return status_ok();
    status s = avro_write_block(encoder->block_rows, buffer_bytes(&encoder->block), true,
                                encoder->mark, out);
    buffer_clear(&encoder->block);
    encoder->block_rows = 0;
    return s;
}

static status check_columns(const struct row_format *format)
{
    const struct field_layout *layout = &format->layout;
    for (size_t i = 0; i < layout->column_count; i++)
        if (bytes_equal(layout->columns[i].name, bytes_of(KEY_NAME)) && format->form == ROWS_FIELDS)
            return INVALID("a column cannot be called " KEY_NAME ": it is the row key's name");
    if (layout->column_count > 0)
        return format->form == ROWS_CBT && layout->columns[0].qualifier.size == 0
                   ? INVALID("the first column of the form cbt needs a name")
                   : status_ok();
    if (format->kind == ROWS_CSV)
        return INVALID("this form needs --columns");
    return layout->family != NULL ? status_ok() : INVALID("this form needs --columns, or --family");
}

static status check_format(const struct row_format *format)
{
    if (format->form == ROWS_CELLS)
        return status_ok();
    if (format->kind == ROWS_AVRO || (format->kind == ROWS_JSONL && format->form == ROWS_CBT) ||
        format->form == ROWS_AUTO)
        return INVALID("the format is not written in this form");
    return check_columns(format);
}

status row_encoder_create(const struct row_format *format, const uint8_t mark[AVRO_MARK],
                          struct row_encoder **out)
{
    *out = NULL;
    TRY(check_format(format));
    *out = calloc(1, sizeof **out);
    if (*out == NULL)
        return status_out_of_memory();
    (*out)->format = format;
    memcpy((*out)->mark, mark, AVRO_MARK);
    return status_ok();
}

void row_encoder_destroy(struct row_encoder *encoder)
{
    if (encoder == NULL)
        return;
    buffer_free(&encoder->block);
    buffer_free(&encoder->text);
    free(encoder);
}
