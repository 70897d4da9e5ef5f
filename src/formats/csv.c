/* See csv.h. Bytes come in chunks, which may end anywhere; what a record's fields stand for gathers
 * in `text`, and where each of them ends in `ends`. */
#include "formats/csv.h"

#include <stdlib.h>

enum { CHUNK = 64 << 10 };

struct csv_reader {
    struct input *input;
    char delimiter;
    bool has_ended;  /* the input */
    status failure;  /* of the input, behind what is left; owned */
    bytes left;      /* of the chunk */
    uint64_t line;   /* that is read */
    bool has_quotes; /* the record */
    const char *mistake;

    struct buffer text;
    size_t *ends;
    bytes *fields;
    size_t count;
    size_t capacity;
    uint8_t chunk[CHUNK];
};

/* --- bytes --- */

/* Nothing is left only at the end. What came before the input failed is read first. */
static status need(struct csv_reader *reader)
{
    size_t taken;
    if (reader->left.size > 0 || reader->has_ended)
        return status_ok();
    if (!status_is_ok(reader->failure))
        return status_copy(reader->failure);
    reader->failure = input_read(reader->input, reader->chunk, CHUNK, &taken);
    if (!status_is_ok(reader->failure) && taken == 0)
        return status_copy(reader->failure);
    reader->has_ended = status_is_ok(reader->failure) && taken < CHUNK;
    reader->left = bytes_make(reader->chunk, taken);
    return status_ok();
}

static bool is_at(const struct csv_reader *reader, char byte)
{
    return reader->left.size > 0 && reader->left.data[0] == (uint8_t)byte;
}

static void skip(struct csv_reader *reader, size_t count)
{
    reader->left = bytes_from(reader->left, count);
}

static status keep(struct csv_reader *reader, size_t count)
{
    buffer_append(&reader->text, reader->left.data, count);
    skip(reader, count);
    if (reader->text.failed)
        return status_out_of_memory();
    size_t most = input_line_limit(reader->input);
    return reader->text.size <= most
               ? status_ok()
               : status_make(STATUS_RESOURCE_EXHAUSTED,
                             "the record has more than %zu bytes: perhaps a quote is not closed",
                             most);
}

/* --- fields --- */

/* How many bytes come before the next that means something. */
static size_t plain_run(const struct csv_reader *reader)
{
    const uint8_t *at = reader->left.data, *end = at + reader->left.size;
    while (at < end && *at != (uint8_t)reader->delimiter && *at != '\n' && *at != '"')
        at++;
    return (size_t)(at - reader->left.data);
}

/* Up to the delimiter or the line's end. */
static status read_plain(struct csv_reader *reader)
{
    for (;;) {
        TRY(need(reader));
        if (reader->left.size == 0)
            return status_ok();
        TRY(keep(reader, plain_run(reader)));
        if (is_at(reader, '"')) {
            reader->mistake = "there is a quote in a field that does not begin with one";
            TRY(keep(reader, 1));
        } else if (reader->left.size > 0) {
            return status_ok();
        }
    }
}

static void count_lines(struct csv_reader *reader, size_t size)
{
    const uint8_t *at = reader->left.data, *end = at + size;
    for (; at < end && (at = memchr(at, '\n', (size_t)(end - at))) != NULL; at++)
        reader->line++;
}

/* Reads a quoted field behind the opening quote, up to the closing one and with it. */
static status read_quoted(struct csv_reader *reader)
{
    for (;;) {
        TRY(need(reader));
        if (reader->left.size == 0) {
            reader->mistake = "the file ends within quotes";
            return status_ok();
        }
        const uint8_t *quote = memchr(reader->left.data, '"', reader->left.size);
        size_t size = quote == NULL ? reader->left.size : (size_t)(quote - reader->left.data);
        count_lines(reader, size);
        TRY(keep(reader, size));
        if (quote == NULL)
            continue;
        skip(reader, 1);
        TRY(need(reader));
        if (!is_at(reader, '"'))
            return status_ok();
        TRY(keep(reader, 1));
    }
}

/* The carriage return of a line's end is no part of its last field. */
static void drop_return(struct csv_reader *reader, size_t start)
{
    bool is_last = reader->left.size == 0 || is_at(reader, '\n');
    if (is_last && reader->text.size > start && reader->text.data[reader->text.size - 1] == '\r')
        reader->text.size--;
}

static status read_content(struct csv_reader *reader)
{
    TRY(need(reader));
    size_t start = reader->text.size;
    bool is_quoted = is_at(reader, '"');
    if (is_quoted) {
        reader->has_quotes = true;
        skip(reader, 1);
        TRY(read_quoted(reader));
        start = reader->text.size;
    }
    TRY(read_plain(reader));
    drop_return(reader, start);
    if (is_quoted && reader->text.size > start && reader->mistake == NULL)
        reader->mistake = "something stands behind the closing quote of a field";
    return status_ok();
}

static status end_field(struct csv_reader *reader)
{
    if (reader->count == reader->capacity) {
        size_t capacity = reader->capacity == 0 ? 64 : reader->capacity * 2;
        size_t *ends = realloc(reader->ends, capacity * sizeof *ends);
        reader->ends = ends != NULL ? ends : reader->ends;
        bytes *fields = realloc(reader->fields, capacity * sizeof *fields);
        reader->fields = fields != NULL ? fields : reader->fields;
        if (ends == NULL || fields == NULL)
            return status_out_of_memory();
        reader->capacity = capacity;
    }
    reader->ends[reader->count++] = reader->text.size;
    return status_ok();
}

static status read_field(struct csv_reader *reader, bool *is_last)
{
    TRY(read_content(reader));
    TRY(end_field(reader));
    *is_last = !is_at(reader, reader->delimiter);
    reader->line += is_at(reader, '\n');
    if (reader->left.size > 0)
        skip(reader, 1);
    return status_ok();
}

/* --- records --- */

static void gather(struct csv_reader *reader, struct csv_record *out)
{
    size_t start = 0;
    for (size_t i = 0; i < reader->count; start = reader->ends[i++])
        reader->fields[i] = bytes_make(start == 0 ? reader->text.data : reader->text.data + start,
                                       reader->ends[i] - start);
    out->fields = reader->fields;
    out->count = reader->count;
}

static status read_record(struct csv_reader *reader)
{
    bool is_last = false;
    buffer_clear(&reader->text);
    reader->count = 0;
    reader->has_quotes = false;
    reader->mistake = NULL;
    while (!is_last)
        TRY(read_field(reader, &is_last));
    return status_ok();
}

static bool is_blank(const struct csv_reader *reader)
{
    return reader->count == 1 && reader->text.size == 0 && !reader->has_quotes;
}

status csv_next(struct csv_reader *reader, struct csv_record *out, bool *is_end)
{
    *out = (struct csv_record){0};
    do {
        TRY(need(reader));
        *is_end = reader->left.size == 0;
        if (*is_end)
            return status_ok();
        out->line = reader->line;
        TRY(read_record(reader));
    } while (is_blank(reader));
    gather(reader, out);
    return reader->mistake == NULL ? status_ok()
                                   : status_make(STATUS_INVALID_ARGUMENT, "%s", reader->mistake);
}

status csv_reader_create(struct input *input, char delimiter, struct csv_reader **out)
{
    struct csv_reader *reader = calloc(1, sizeof *reader);
    *out = NULL;
    if (reader == NULL)
        return status_out_of_memory();
    reader->input = input;
    reader->delimiter = delimiter;
    reader->line = 1;
    status s = need(reader);
    if (!status_is_ok(s)) {
        csv_reader_destroy(reader);
        return s;
    }
    if (bytes_start_with(reader->left, bytes_of("\xef\xbb\xbf")))
        skip(reader, 3);
    *out = reader;
    return status_ok();
}

void csv_reader_destroy(struct csv_reader *reader)
{
    if (reader == NULL)
        return;
    status_free(reader->failure);
    buffer_free(&reader->text);
    free(reader->ends);
    free(reader->fields);
    free(reader);
}

uint64_t csv_reader_line(const struct csv_reader *reader)
{
    return reader->line;
}

/* --- writing --- */

static bool needs_quotes(bytes field, char delimiter)
{
    for (size_t i = 0; i < field.size; i++) {
        uint8_t byte = field.data[i];
        if (byte == '"' || byte == '\n' || byte == '\r' || byte == (uint8_t)delimiter)
            return true;
    }
    return false;
}

void csv_append_field(bytes field, char delimiter, struct buffer *out)
{
    if (!needs_quotes(field, delimiter)) {
        buffer_append_bytes(out, field);
        return;
    }
    buffer_append_byte(out, '"');
    while (field.size > 0) {
        const uint8_t *quote = memchr(field.data, '"', field.size);
        size_t size = quote == NULL ? field.size : (size_t)(quote - field.data) + 1;
        buffer_append(out, field.data, size);
        if (quote != NULL)
            buffer_append_byte(out, '"');
        field = bytes_from(field, size);
    }
    buffer_append_byte(out, '"');
}
