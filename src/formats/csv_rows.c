/* CSV as rows, in its three forms. See row_file.h. */
#include "formats/row_file_private.h"

#include "wire/grpc_text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

enum { HEADER_LIMIT = 64 << 20, KEY = 0, FAMILY, QUALIFIER, TIMESTAMP, VALUE, ENCODING };

#define INVALID(...) status_make(STATUS_INVALID_ARGUMENT, __VA_ARGS__)

const char *const csv_cell_names[6] = {"row_key",   "family", "qualifier",
                                       "timestamp", "value",  "encoding"};

struct csv_rows {
    const struct row_format *format;
    enum row_form form;
    struct csv_reader *reader;
    struct arena *arena;   /* of the header */
    size_t width;          /* fields that a record has */
    bytes *names;          /* of fields, or qualifiers */
    const char **families; /* CBT */
    struct field *fields;  /* FIELDS, with their names; of the record that is read */

    /* The record that has been read, and not been taken: CELLS. */
    bool has_next;
    bool is_end;
    struct csv_record next;
    status mistake; /* in it; owned */
};

/* --- records --- */

/* `*mistake`: what is wrong with this one alone; the caller's. */
static status read_record(struct csv_rows *rows, struct csv_record *out, status *mistake,
                          bool *is_end)
{
    *mistake = status_ok();
    status s = csv_next(rows->reader, out, is_end);
    if (s.code == STATUS_INVALID_ARGUMENT) {
        *mistake = s;
        return status_ok();
    }
    TRY(s);
    if (!*is_end && out->count != rows->width)
        *mistake = INVALID("there are %zu fields, and %zu in the header", out->count, rows->width);
    return status_ok();
}

/* The record's text, for the file of what was rejected. */
static status keep_text(const struct csv_rows *rows, const struct csv_record *record,
                        struct arena *arena, bytes *out)
{
    struct buffer text = {0};
    for (size_t i = 0; i < record->count; i++) {
        if (i > 0)
            buffer_append_byte(&text, (uint8_t)rows->format->delimiter);
        csv_append_field(record->fields[i], rows->format->delimiter, &text);
    }
    if (!text.failed)
        *out = arena_copy(arena, buffer_bytes(&text));
    buffer_free(&text);
    return out->data == NULL ? status_out_of_memory() : status_ok();
}

/* Has been found out about this record: it is rejected, or everything fails. */
static status reject_or_fail(const struct csv_rows *rows, const struct csv_record *record, status s,
                             struct arena *arena, struct row_record *out)
{
    if (s.code != STATUS_INVALID_ARGUMENT)
        return s;
    out->failure = s;
    return keep_text(rows, record, arena, &out->text);
}

/* The next record as the one row that `lay` makes of it. */
static status next_row(struct csv_rows *rows,
                       status (*lay)(struct csv_rows *rows, const struct csv_record *record,
                                     struct arena *arena, struct move_change *out),
                       struct arena *arena, struct row_record *out, bool *is_end)
{
    struct csv_record record;
    status mistake;
    TRY(read_record(rows, &record, &mistake, is_end));
    if (*is_end)
        return status_ok();
    out->number = record.line;
    if (!status_is_ok(mistake))
        return reject_or_fail(rows, &record, mistake, arena, out);
    return reject_or_fail(rows, &record, lay(rows, &record, arena, &out->row), arena, out);
}

/* --- the form fields --- */

static status lay_fields(struct csv_rows *rows, const struct csv_record *record,
                         struct arena *arena, struct move_change *out)
{
    for (size_t i = 0; i < record->count; i++) {
        rows->fields[i].text = record->fields[i];
        rows->fields[i].is_null = record->fields[i].size == 0;
    }
    return fields_lay_out(&rows->format->layout, rows->fields, record->count, arena, out);
}

static status next_fields(struct csv_rows *rows, struct arena *arena, struct row_record *out,
                          bool *is_end)
{
    return next_row(rows, lay_fields, arena, out, is_end);
}

/* --- the form cbt --- */

/* "value@1500000000000000"; what is behind the last '@' and no number is part of the value. */
static status take_value_timestamp(struct move_cell *cell, struct arena *arena)
{
    size_t size = cell->value.size;
    char *end;
    while (size > 0 && cell->value.data[size - 1] != '@')
        size--;
    if (size == 0 || size == cell->value.size)
        return status_ok();
    char *text = arena_string(arena, bytes_from(cell->value, size));
    if (text == NULL)
        return status_out_of_memory();
    errno = 0;
    long long us = strtoll(text, &end, 0);
    bool is_number = errno == 0 && end == text + cell->value.size - size &&
                     strchr(" \t\n\v\f\r", text[0]) == NULL;
    if (is_number) {
        cell->timestamp_us = us;
        cell->value.size = size - 1;
    }
    return status_ok();
}

static status lay_cbt(struct csv_rows *rows, const struct csv_record *record, struct arena *arena,
                      struct move_change *out)
{
    *out = (struct move_change){.row_key = record->fields[0]};
    for (size_t i = 1; i < record->count; i++) {
        struct move_cell cell = {.family = rows->families[i],
                                 .qualifier = rows->names[i],
                                 .timestamp_us = rows->format->layout.default_us,
                                 .value = record->fields[i]};
        if (cell.value.size == 0)
            continue;
        if (rows->format->has_value_timestamps)
            TRY(take_value_timestamp(&cell, arena));
        TRY(move_change_add(out, arena, &cell));
    }
    return out->count > 0 ? move_change_check(out)
                          : INVALID("there is no value beside the row key");
}

static status next_cbt(struct csv_rows *rows, struct arena *arena, struct row_record *out,
                       bool *is_end)
{
    return next_row(rows, lay_cbt, arena, out, is_end);
}

/* --- the form cells --- */

static status need_next(struct csv_rows *rows)
{
    if (rows->has_next)
        return status_ok();
    TRY(read_record(rows, &rows->next, &rows->mistake, &rows->is_end));
    rows->has_next = true;
    return status_ok();
}

static status decode(bytes text, bool is_base64, struct arena *arena, bytes *out)
{
    *out = is_base64 ? bytes_make(NULL, 0) : arena_copy(arena, text);
    if (is_base64)
        return field_to_bytes(FIELD_BASE64, text, arena, out);
    return out->data == NULL ? status_out_of_memory() : status_ok();
}

static status is_base64(const struct csv_record *record, bool *out)
{
    bytes encoding = record->count > ENCODING ? record->fields[ENCODING] : bytes_of("");
    *out = bytes_equal(encoding, bytes_of("base64"));
    return *out || encoding.size == 0 ? status_ok() : INVALID("the encoding is not base64");
}

static status take_timestamp(const struct csv_rows *rows, bytes text, struct arena *arena,
                             int64_t *out)
{
    char *end, *copy = arena_string(arena, text);
    *out = rows->format->layout.default_us;
    if (copy == NULL)
        return status_out_of_memory();
    if (text.size == 0)
        return status_ok();
    errno = 0;
    *out = strtoll(copy, &end, 10);
    bool is_number =
        errno == 0 && end == copy + text.size && strchr("-0123456789", copy[0]) != NULL;
    return is_number ? status_ok() : INVALID("the timestamp is no number of microseconds");
}

static status add_cell(const struct csv_rows *rows, const struct csv_record *record,
                       struct arena *arena, struct move_change *out)
{
    struct move_cell cell;
    bool encoded;
    TRY(is_base64(record, &encoded));
    cell.family = arena_string(arena, record->fields[FAMILY]);
    if (cell.family == NULL)
        return status_out_of_memory();
    TRY(decode(record->fields[QUALIFIER], encoded, arena, &cell.qualifier));
    TRY(decode(record->fields[VALUE], encoded, arena, &cell.value));
    TRY(take_timestamp(rows, record->fields[TIMESTAMP], arena, &cell.timestamp_us));
    return move_change_add(out, arena, &cell);
}

/* The key of the next line, as far as it can be made out: a line in which something else is wrong
 * belongs to its row all the same, which is rejected as a whole. */
static status next_key(const struct csv_rows *rows, struct arena *arena, bytes *out)
{
    bool encoded;
    status s = is_base64(&rows->next, &encoded);
    if (status_is_ok(s))
        s = decode(rows->next.fields[KEY], encoded, arena, out);
    if (s.code != STATUS_INVALID_ARGUMENT)
        return s;
    status_free(s);
    return decode(rows->next.fields[KEY], false, arena, out);
}

/* The next line is part of the row: a cell more, or what is wrong with the row. */
static status take_line(struct csv_rows *rows, struct arena *arena, struct row_record *out)
{
    status s = rows->mistake;
    rows->mistake = status_ok();
    rows->has_next = false;
    if (status_is_ok(s))
        s = add_cell(rows, &rows->next, arena, &out->row);
    if (s.code != STATUS_INVALID_ARGUMENT)
        return s;
    if (!status_is_ok(out->failure)) {
        status_free(s);
        return status_ok();
    }
    out->failure = INVALID("line %" PRIu64 ": %s", rows->next.line, status_message(s));
    status_free(s);
    return keep_text(rows, &rows->next, arena, &out->text);
}

static status check_row(struct row_record *out)
{
    if (!status_is_ok(out->failure))
        return status_ok();
    status s = move_change_check(&out->row);
    if (s.code != STATUS_INVALID_ARGUMENT)
        return s;
    out->failure = s;
    return status_ok();
}

/* Lines that stand together and have one key. */
static status next_cells(struct csv_rows *rows, struct arena *arena, struct row_record *out,
                         bool *is_end)
{
    bytes key;
    TRY(need_next(rows));
    *is_end = rows->is_end;
    if (*is_end)
        return status_ok();
    out->number = rows->next.line;
    TRY(next_key(rows, arena, &out->row.row_key));
    do {
        TRY(take_line(rows, arena, out));
        TRY(need_next(rows));
        if (rows->is_end)
            break;
        TRY(next_key(rows, arena, &key));
    } while (bytes_equal(key, out->row.row_key));
    return check_row(out);
}

/* --- headers --- */

static bool is_cells_header(const struct csv_record *header)
{
    for (size_t i = 0; i < header->count && i < 6; i++)
        if (!bytes_equal(header->fields[i], bytes_of(csv_cell_names[i])))
            return false;
    return header->count == VALUE + 1 || header->count == ENCODING + 1;
}

static enum row_form find_form(const struct csv_rows *rows, const struct csv_record *header)
{
    if (rows->format->form != ROWS_AUTO)
        return rows->format->form;
    if (rows->format->layout.key_count > 0)
        return ROWS_FIELDS;
    return is_cells_header(header)       ? ROWS_CELLS
           : header->fields[0].size == 0 ? ROWS_CBT
                                         : ROWS_AUTO;
}

static status keep_names(struct csv_rows *rows, const struct csv_record *header)
{
    rows->width = header->count;
    rows->names = arena_alloc(rows->arena, header->count * sizeof *rows->names);
    rows->fields = arena_zalloc(rows->arena, header->count * sizeof *rows->fields);
    if (rows->names == NULL || rows->fields == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < header->count; i++) {
        rows->names[i] = arena_copy(rows->arena, header->fields[i]);
        rows->fields[i].name = rows->names[i];
        if (rows->names[i].data == NULL)
            return status_out_of_memory();
    }
    return status_ok();
}

static bool has_name(const struct csv_rows *rows, bytes name)
{
    for (size_t i = 0; i < rows->width; i++)
        if (bytes_equal(rows->names[i], name))
            return true;
    return false;
}

static status need_name(const struct csv_rows *rows, bytes name)
{
    return has_name(rows, name)
               ? status_ok()
               : INVALID("the header has no field %.*s", (int)name.size, (const char *)name.data);
}

/* Checks that the fields that are asked for by name are there. */
static status check_fields(const struct csv_rows *rows)
{
    const struct field_layout *layout = &rows->format->layout;
    for (size_t i = 0; i < layout->key_count; i++)
        if (layout->key[i].is_field)
            TRY(need_name(rows, layout->key[i].text));
    for (size_t i = 0; i < layout->column_count; i++)
        TRY(need_name(rows, layout->columns[i].name));
    for (size_t i = 0; i < layout->type_count; i++)
        TRY(need_name(rows, layout->types[i].name));
    return layout->timestamp == NULL ? status_ok() : need_name(rows, bytes_of(layout->timestamp));
}

static status keep_families(struct csv_rows *rows, const struct csv_record *header)
{
    rows->families = arena_alloc(rows->arena, header->count * sizeof *rows->families);
    if (rows->families == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < header->count; i++) {
        bool is_same = i > 1 && header->fields[i].size == 0;
        rows->families[i] =
            is_same ? rows->families[i - 1] : arena_string(rows->arena, header->fields[i]);
        if (rows->families[i] == NULL)
            return status_out_of_memory();
    }
    return status_ok();
}

static status check_cbt_line(const struct csv_record *header)
{
    if (header->count < 2 || header->fields[1].size == 0)
        return INVALID("a line of the header needs an empty field, and a name in the next");
    return header->fields[0].size == 0
               ? status_ok()
               : INVALID("the first field of the header's lines is empty: it is above row keys");
}

static status one_family(struct csv_rows *rows, const char *family)
{
    rows->families = arena_alloc(rows->arena, rows->width * sizeof *rows->families);
    if (rows->families == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < rows->width; i++)
        rows->families[i] = family;
    return status_ok();
}

static status begin_cbt(struct csv_rows *rows, const struct csv_record *header)
{
    struct csv_record names = *header;
    bool is_end = false;
    size_t width = header->count;
    const char *family = rows->format->layout.family;
    TRY(check_cbt_line(header));
    if (family == NULL) {
        TRY(keep_families(rows, header));
        TRY(csv_next(rows->reader, &names, &is_end));
        if (is_end || names.count != width)
            return INVALID("the line of qualifiers has not as many fields as that of families");
        TRY(check_cbt_line(&names));
    }
    TRY(keep_names(rows, &names));
    return family == NULL ? status_ok() : one_family(rows, family);
}

static status begin(struct csv_rows *rows)
{
    struct csv_record header;
    bool is_end;
    TRY(csv_next(rows->reader, &header, &is_end));
    if (is_end)
        return INVALID("the file is empty: it has no header");
    rows->form = find_form(rows, &header);
    switch (rows->form) {
    case ROWS_CBT:
        return begin_cbt(rows, &header);
    case ROWS_FIELDS:
        TRY(keep_names(rows, &header));
        return check_fields(rows);
    case ROWS_CELLS:
        rows->width = header.count;
        return is_cells_header(&header)
                   ? status_ok()
                   : INVALID("the header is not row_key,family,qualifier,timestamp,value");
    case ROWS_AUTO:
        break;
    }
    return INVALID("it has a header of names: --row-key says how row keys are made of them");
}

/* --- any --- */

status csv_rows_create(struct input *input, const struct row_format *format, struct csv_rows **out)
{
    struct csv_rows *rows = *out = calloc(1, sizeof *rows);
    if (rows == NULL)
        return status_out_of_memory();
    rows->format = format;
    rows->arena = arena_create(HEADER_LIMIT);
    status s = rows->arena == NULL ? status_out_of_memory()
                                   : csv_reader_create(input, format->delimiter, &rows->reader);
    if (status_is_ok(s))
        s = begin(rows);
    if (status_is_ok(s))
        return s;
    csv_rows_destroy(rows);
    *out = NULL;
    return s;
}

void csv_rows_destroy(struct csv_rows *rows)
{
    if (rows == NULL)
        return;
    status_free(rows->mistake);
    csv_reader_destroy(rows->reader);
    arena_destroy(rows->arena);
    free(rows);
}

status csv_rows_next(struct csv_rows *rows, struct arena *arena, struct row_record *out,
                     bool *is_end)
{
    switch (rows->form) {
    case ROWS_FIELDS:
        return next_fields(rows, arena, out, is_end);
    case ROWS_CBT:
        return next_cbt(rows, arena, out, is_end);
    default:
        return next_cells(rows, arena, out, is_end);
    }
}

uint64_t csv_rows_line(const struct csv_rows *rows)
{
    return csv_reader_line(rows->reader);
}
