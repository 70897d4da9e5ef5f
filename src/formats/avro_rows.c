/* Avro records as rows: those of Google's Dataflow template Bigtable-to-Avro, whose fields are
 * found by name, and any others by fields.h. */
#include "formats/row_file_private.h"

#include "formats/row_json.h"
#include "wire/json.h"

#include <inttypes.h>
#include <stdio.h>

#define INVALID(...) status_make(STATUS_INVALID_ARGUMENT, __VA_ARGS__)

/* --- BigtableRow --- */

static status take_text(const struct avro_value *record, const char *name, bytes *out)
{
    const struct avro_value *value = avro_find(record, name);
    bool is_text = value != NULL && (value->kind == AVRO_BYTES || value->kind == AVRO_STRING ||
                                     value->kind == AVRO_FIXED);
    if (!is_text)
        return INVALID("%s is not there, or neither bytes nor a string", name);
    *out = value->text;
    return status_ok();
}

static status take_timestamp(const struct avro_value *cell, int64_t default_us, int64_t *out)
{
    const struct avro_value *value = avro_find(cell, "timestamp");
    bool is_number = value != NULL && (value->kind == AVRO_INT || value->kind == AVRO_LONG);
    bool is_absent = value == NULL || value->kind == AVRO_NULL;
    *out = is_number ? value->integer : default_us;
    return is_number || is_absent ? status_ok() : INVALID("timestamp is no long");
}

static status add_cell(const struct avro_value *value, int64_t default_us, struct arena *arena,
                       struct move_change *out)
{
    struct move_cell cell;
    bytes family;
    if (value->kind != AVRO_RECORD)
        return INVALID("a cell is no record");
    TRY(take_text(value, "family", &family));
    TRY(take_text(value, "qualifier", &cell.qualifier));
    TRY(take_text(value, "value", &cell.value));
    TRY(take_timestamp(value, default_us, &cell.timestamp_us));
    cell.family = arena_string(arena, family);
    return cell.family == NULL ? status_out_of_memory() : move_change_add(out, arena, &cell);
}

static status bigtable_row(const struct avro_value *record, int64_t default_us, struct arena *arena,
                           struct move_change *out)
{
    const struct avro_value *cells = avro_find(record, "cells");
    *out = (struct move_change){0};
    TRY(take_text(record, "key", &out->row_key));
    if (cells == NULL || cells->kind != AVRO_ARRAY)
        return INVALID("cells is not there, or no list");
    for (size_t i = 0; i < cells->count; i++)
        TRY(add_cell(&cells->elements[i], default_us, arena, out));
    return out->count > 0 ? move_change_check(out) : INVALID("the row has no cells");
}

/* --- records of fields --- */

/* As few digits as give the number back. */
static void write_number(const struct avro_value *value, struct buffer *out)
{
    uint8_t word[8];
    uint64_t raw;
    memcpy(&raw, &value->number, sizeof raw);
    for (int i = 0; i < 8; i++)
        word[i] = (uint8_t)(raw >> (56 - 8 * i));
    status_ignore(field_to_text(FIELD_DOUBLE, bytes_make(word, sizeof word), out));
}

static void write_json(const struct avro_value *value, struct buffer *out);

static void write_elements(const struct avro_value *value, struct buffer *out)
{
    bool is_list = value->kind == AVRO_ARRAY;
    buffer_append_byte(out, is_list ? '[' : '{');
    for (size_t i = 0; i < value->count; i++) {
        if (i > 0)
            buffer_append_byte(out, ',');
        if (!is_list) {
            row_json_write_bytes(value->elements[i].name, out);
            buffer_append_byte(out, ':');
        }
        write_json(&value->elements[i], out);
    }
    buffer_append_byte(out, is_list ? ']' : '}');
}

/* What is not finite is no number of JSON's. */
static void write_json_number(const struct avro_value *value, struct buffer *out)
{
    if (value->number - value->number == 0)
        write_number(value, out);
    else
        buffer_append_bytes(out, bytes_of("null"));
}

static void write_json(const struct avro_value *value, struct buffer *out)
{
    switch (value->kind) {
    case AVRO_BOOLEAN:
        buffer_append_bytes(out, bytes_of(value->integer != 0 ? "true" : "false"));
        break;
    case AVRO_INT:
    case AVRO_LONG:
        buffer_append_format(out, "%" PRId64, value->integer);
        break;
    case AVRO_FLOAT:
    case AVRO_DOUBLE:
        write_json_number(value, out);
        break;
    case AVRO_BYTES:
    case AVRO_STRING:
    case AVRO_FIXED:
    case AVRO_ENUM:
        row_json_write_bytes(value->text, out);
        break;
    case AVRO_RECORD:
    case AVRO_MAP:
    case AVRO_ARRAY:
        write_elements(value, out);
        break;
    case AVRO_NULL:
    case AVRO_UNION:
        buffer_append_bytes(out, bytes_of("null"));
    }
}

static status make_field(const struct avro_value *value, struct arena *arena, struct field *out)
{
    struct buffer text = {0};
    *out = (struct field){
        .name = value->name, .text = value->text, .is_null = value->kind == AVRO_NULL};
    if (value->kind == AVRO_BYTES || value->kind == AVRO_STRING || value->kind == AVRO_FIXED ||
        value->kind == AVRO_ENUM || out->is_null)
        return status_ok();
    if (value->kind == AVRO_FLOAT || value->kind == AVRO_DOUBLE)
        write_number(value, &text);
    else
        write_json(value, &text);
    if (!text.failed)
        out->text = arena_copy(arena, buffer_bytes(&text));
    buffer_free(&text);
    return out->text.data == NULL ? status_out_of_memory() : status_ok();
}

static status field_row(const struct avro_value *record, const struct field_layout *layout,
                        struct arena *arena, struct move_change *out)
{
    struct field *fields = arena_alloc(arena, record->count * sizeof *fields);
    if (fields == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < record->count; i++)
        TRY(make_field(&record->elements[i], arena, &fields[i]));
    return fields_lay_out(layout, fields, record->count, arena, out);
}

status avro_row(const struct avro_value *record, const struct row_format *format,
                struct arena *arena, struct move_change *out)
{
    bool has_fields =
        format->form == ROWS_FIELDS || (format->form == ROWS_AUTO && format->layout.key_count > 0);
    if (record->kind != AVRO_RECORD)
        return INVALID("the object is no record");
    return has_fields ? field_row(record, &format->layout, arena, out)
                      : bigtable_row(record, format->layout.default_us, arena, out);
}
