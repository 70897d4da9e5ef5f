/* See row_json.h. */
#include "formats/row_json.h"

#include "base/utf8.h"
#include "wire/grpc_text.h"
#include "wire/json.h"
#include "wire/json_text.h"

#include <inttypes.h>
#include <stdlib.h>

enum { MOST_DEPTH = 100, MOST_FIELDS = 10000 };

struct row_json {
    struct json_reader json;
    const uint8_t *start;
    struct arena *arena;
};

static status refuse(const struct row_json *reader, const char *what)
{
    return status_make(STATUS_INVALID_ARGUMENT, "byte %zu: %s",
                       (size_t)(reader->json.at - reader->start) + 1, what);
}

static struct row_json reader_of(bytes text, struct arena *arena)
{
    return (struct row_json){.json = {.at = text.data, .end = bytes_from(text, text.size).data},
                             .start = text.data,
                             .arena = arena};
}

static status expect(struct row_json *reader, char byte, const char *what)
{
    return json_take(&reader->json, byte) ? status_ok() : refuse(reader, what);
}

static status expect_end(struct row_json *reader)
{
    json_peek(&reader->json); /* over white space */
    return reader->json.at == reader->json.end ? status_ok()
                                               : refuse(reader, "something follows the object");
}

/* --- strings --- */

/* Without an escape it is a part of the text itself. */
static status take_string(struct row_json *reader, bytes *out)
{
    struct buffer plain = {0};
    bytes text;
    if (json_peek(&reader->json) != JSON_STRING ||
        json_take_scalar(&reader->json, &text) != JSON_STRING)
        return refuse(reader, "a string is expected");
    bool is_text = json_unescape(text, &plain);
    bool is_same = plain.size == text.size;
    *out = is_same ? text : arena_copy(reader->arena, buffer_bytes(&plain));
    bool failed = plain.failed || (is_text && !is_same && out->data == NULL);
    buffer_free(&plain);
    if (failed)
        return status_out_of_memory();
    return is_text ? status_ok()
                   : refuse(reader, "the string before is not UTF-8, or has a bad escape");
}

static status take_name(struct row_json *reader, bytes *out)
{
    TRY(take_string(reader, out));
    return expect(reader, ':', "':' is expected");
}

static status take_base64(struct row_json *reader, bytes *out)
{
    bytes text;
    size_t size;
    TRY(take_string(reader, &text));
    uint8_t *to = arena_alloc(reader->arena, base64_decoded_most(text.size));
    if (to == NULL)
        return status_out_of_memory();
    if (!base64_decode(text, to, &size))
        return refuse(reader, "the string before is not base64");
    *out = bytes_make(to, size);
    return status_ok();
}

/* A string, or {"base64":"…"}. */
static status take_bytes(struct row_json *reader, bytes *out)
{
    bytes name;
    if (json_peek(&reader->json) != JSON_OBJECT)
        return take_string(reader, out);
    TRY(expect(reader, '{', "'{' is expected"));
    TRY(take_name(reader, &name));
    if (!bytes_equal(name, bytes_of("base64")))
        return refuse(reader, "bytes are a string, or {\"base64\":\"…\"}");
    TRY(take_base64(reader, out));
    return expect(reader, '}', "'}' is expected");
}

/* --- cells --- */

static status take_timestamp(struct row_json *reader, int64_t *out)
{
    bytes text;
    char *end;
    if (json_peek(&reader->json) != JSON_NUMBER ||
        json_take_scalar(&reader->json, &text) != JSON_NUMBER)
        return refuse(reader, "a number of microseconds is expected");
    char *copy = arena_string(reader->arena, text);
    if (copy == NULL)
        return status_out_of_memory();
    *out = strtoll(copy, &end, 10);
    bool is_whole = *end == '\0' && *out > INT64_MIN && *out < INT64_MAX;
    return is_whole ? status_ok() : refuse(reader, "the number before is no timestamp");
}

static status take_family(struct row_json *reader, const char **out)
{
    bytes name;
    TRY(take_string(reader, &name));
    *out = arena_string(reader->arena, name);
    if (*out == NULL)
        return status_out_of_memory();
    return strlen(*out) == name.size ? status_ok() : refuse(reader, "the family has a zero byte");
}

static status take_cell_member(struct row_json *reader, struct move_cell *cell, unsigned *seen)
{
    static const char *const names[] = {"family", "qualifier", "timestamp", "value"};
    bytes name;
    unsigned which = 0;
    TRY(take_name(reader, &name));
    while (which < 4 && !bytes_equal(name, bytes_of(names[which])))
        which++;
    if (which == 4 || (*seen & 1u << which) != 0)
        return refuse(reader, "a cell has one family, qualifier, timestamp and value, no more");
    *seen |= 1u << which;
    switch (which) {
    case 0:
        return take_family(reader, &cell->family);
    case 1:
        return take_bytes(reader, &cell->qualifier);
    case 2:
        return take_timestamp(reader, &cell->timestamp_us);
    default:
        return take_bytes(reader, &cell->value);
    }
}

static status take_cell(struct row_json *reader, int64_t default_us, struct move_change *row)
{
    enum { FAMILY = 1, QUALIFIER = 2, VALUE = 8, NEEDED = FAMILY | QUALIFIER | VALUE };
    struct move_cell cell = {.timestamp_us = default_us};
    unsigned seen = 0;
    TRY(expect(reader, '{', "a cell is expected"));
    do
        TRY(take_cell_member(reader, &cell, &seen));
    while (json_take(&reader->json, ','));
    TRY(expect(reader, '}', "',' or '}' is expected"));
    if ((seen & NEEDED) != NEEDED)
        return refuse(reader, "the cell before lacks its family, qualifier or value");
    return move_change_add(row, reader->arena, &cell);
}

static status take_cells(struct row_json *reader, int64_t default_us, struct move_change *row)
{
    TRY(expect(reader, '[', "the list of cells is expected"));
    if (json_take(&reader->json, ']'))
        return status_ok();
    do
        TRY(take_cell(reader, default_us, row));
    while (json_take(&reader->json, ','));
    return expect(reader, ']', "',' or ']' is expected");
}

/* --- rows --- */

static status take_row_member(struct row_json *reader, int64_t default_us, struct move_change *row,
                              bool *has_cells)
{
    bytes name;
    TRY(take_name(reader, &name));
    if (bytes_equal(name, bytes_of("key")) && row->row_key.data == NULL)
        return take_bytes(reader, &row->row_key);
    if (!bytes_equal(name, bytes_of("cells")) || *has_cells)
        return refuse(reader, "a row has one key and cells, no more");
    *has_cells = true;
    return take_cells(reader, default_us, row);
}

status row_json_read(bytes text, int64_t default_us, struct arena *arena, struct move_change *out)
{
    struct row_json reader = reader_of(text, arena);
    bool has_cells = false;
    *out = (struct move_change){0};
    TRY(expect(&reader, '{', "'{' is expected"));
    do
        TRY(take_row_member(&reader, default_us, out, &has_cells));
    while (json_take(&reader.json, ','));
    TRY(expect(&reader, '}', "',' or '}' is expected"));
    TRY(expect_end(&reader));
    if (out->count == 0)
        return refuse(&reader, "the row has no cells");
    return move_change_check(out);
}

/* --- fields --- */

static bool is_there(const struct field *fields, size_t count, bytes name)
{
    for (size_t i = 0; i < count; i++)
        if (bytes_equal(fields[i].name, name))
            return true;
    return false;
}

static status take_field_value(struct row_json *reader, struct field *out)
{
    enum json_kind kind = json_peek(&reader->json);
    const uint8_t *start = reader->json.at;
    if (kind == JSON_STRING)
        return take_string(reader, &out->text);
    if (!json_skip(&reader->json, MOST_DEPTH))
        return refuse(reader, "a value is expected");
    out->text = bytes_make(start, (size_t)(reader->json.at - start));
    out->is_null = kind == JSON_NULL;
    return status_ok();
}

static status make_room(struct row_json *reader, struct field **fields, size_t count,
                        size_t *capacity)
{
    if (count < *capacity)
        return status_ok();
    *capacity = *capacity == 0 ? 16 : *capacity * 2;
    struct field *more = arena_alloc(reader->arena, *capacity * sizeof *more);
    if (more == NULL)
        return status_out_of_memory();
    if (count > 0)
        memcpy(more, *fields, count * sizeof *more);
    *fields = more;
    return status_ok();
}

status row_json_fields(bytes text, struct arena *arena, struct field **out, size_t *count)
{
    struct row_json reader = reader_of(text, arena);
    size_t capacity = 0;
    *out = NULL;
    *count = 0;
    TRY(expect(&reader, '{', "'{' is expected"));
    if (json_take(&reader.json, '}'))
        return expect_end(&reader);
    do {
        struct field field = {0};
        TRY(take_name(&reader, &field.name));
        if (*count == MOST_FIELDS || is_there(*out, *count, field.name))
            return refuse(&reader, "the name before is twice in the object, or its 10,001st");
        TRY(take_field_value(&reader, &field));
        TRY(make_room(&reader, out, *count, &capacity));
        (*out)[(*count)++] = field;
    } while (json_take(&reader.json, ','));
    TRY(expect(&reader, '}', "',' or '}' is expected"));
    return expect_end(&reader);
}

/* --- writing --- */

void row_json_write_bytes(bytes b, struct buffer *out)
{
    if (utf8_is_valid(b)) {
        json_encode_string(b, out);
        return;
    }
    buffer_append_bytes(out, bytes_of("{\"base64\":\""));
    base64_encode(b, out);
    buffer_append(out, "==", (3 - b.size % 3) % 3);
    buffer_append_bytes(out, bytes_of("\"}"));
}

static void write_cell(const struct move_cell *cell, struct buffer *out)
{
    buffer_append_bytes(out, bytes_of("{\"family\":"));
    json_encode_string(bytes_of(cell->family), out);
    buffer_append_bytes(out, bytes_of(",\"qualifier\":"));
    row_json_write_bytes(cell->qualifier, out);
    buffer_append_format(out, ",\"timestamp\":%" PRId64 ",\"value\":", cell->timestamp_us);
    row_json_write_bytes(cell->value, out);
    buffer_append_byte(out, '}');
}

void row_json_write(const struct move_change *row, struct buffer *out)
{
    buffer_append_bytes(out, bytes_of("{\"key\":"));
    row_json_write_bytes(row->row_key, out);
    buffer_append_bytes(out, bytes_of(",\"cells\":["));
    for (size_t i = 0; i < row->count; i++) {
        if (i > 0)
            buffer_append_byte(out, ',');
        write_cell(&row->cells[i], out);
    }
    buffer_append_bytes(out, bytes_of("]}"));
}
