/* Fuzzer: CSV.
 *
 * Reading comes to an end, whatever the text is; what is read and written again is read as the same
 * records, without a mistake; a row file of it gives rows or refuses, in any form.
 *
 * Input: the first byte's lowest bit is the delimiter (',' or ';'), the next two the form; the rest
 * is the text. */
#include "formats/csv.h"
#include "formats/row_file.h"
#include "formats/row_file_private.h"

#include "base/testing/fuzzing.h"

enum { ARENA_LIMIT = 8 << 20 };

static void check_refusal(status s)
{
    CHECK(status_is_ok(s) || s.code == STATUS_INVALID_ARGUMENT || s.code == STATUS_DATA_LOSS ||
          s.code == STATUS_RESOURCE_EXHAUSTED);
    status_free(s);
}

/* Records without a mistake, written; returns how many. */
static size_t rewrite(bytes text, char delimiter, struct buffer *out)
{
    struct input *input;
    struct csv_reader *reader;
    struct csv_record record;
    bool is_end = false;
    size_t count = 0;
    status s = input_open_bytes(text, &input);
    CHECK(status_is_ok(s));
    s = csv_reader_create(input, delimiter, &reader);
    while (status_is_ok(s)) {
        s = csv_next(reader, &record, &is_end);
        if (is_end)
            break;
        if (s.code == STATUS_INVALID_ARGUMENT) {
            status_free(s);
            s = status_ok();
            continue;
        }
        for (size_t i = 0; status_is_ok(s) && i < record.count; i++) {
            if (i > 0)
                buffer_append_byte(out, (uint8_t)delimiter);
            csv_append_field(record.fields[i], delimiter, out);
        }
        bool is_blank = record.count == 1 && record.fields[0].size == 0;
        buffer_append_bytes(out, bytes_of(is_blank ? "\"\"\n" : "\n"));
        count++;
    }
    check_refusal(s);
    csv_reader_destroy(reader);
    input_close(input);
    return count;
}

static void read_rows(bytes text, const struct row_format *format)
{
    struct arena *arena = arena_create(ARENA_LIMIT);
    struct input *input;
    struct csv_rows *rows;
    bool is_end = false;
    CHECK(arena != NULL);
    status s = input_open_bytes(text, &input);
    CHECK(status_is_ok(s));
    s = csv_rows_create(input, format, &rows);
    while (status_is_ok(s) && !is_end) {
        struct row_record record = {0};
        arena_reset(arena);
        s = csv_rows_next(rows, arena, &record, &is_end);
        CHECK(is_end || !status_is_ok(s) || record.number > 0);
        status_free(record.failure);
    }
    check_refusal(s);
    csv_rows_destroy(rows);
    input_close(input);
    arena_destroy(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct field_part key[] = {{.text = {(const uint8_t *)"a", 1}, .is_field = true}};
    struct buffer once = {0}, twice = {0};
    uint8_t choice = size > 0 ? data[0] : 0;
    bytes text = bytes_make(data + (size > 0), size - (size > 0));
    const char delimiter = (choice & 1) != 0 ? ';' : ',';
    const struct row_format format = {
        .kind = ROWS_CSV,
        .form = (choice >> 1 & 3) == 3 ? ROWS_FIELDS : ROWS_AUTO,
        .delimiter = delimiter,
        .has_value_timestamps = (choice & 8) != 0,
        .layout = {.key = key, .key_count = (choice >> 1 & 3) == 3, .family = "f"},
    };
    /* A field that begins with the mark of UTF-8 loses it at the beginning of a file. */
    buffer_append_bytes(&once, bytes_of("\n"));
    size_t count = rewrite(text, delimiter, &once);
    buffer_append_bytes(&twice, bytes_of("\n"));
    CHECK(rewrite(buffer_bytes(&once), delimiter, &twice) == count);
    CHECK(!once.failed && bytes_equal(buffer_bytes(&once), buffer_bytes(&twice)));
    read_rows(text, &format);
    buffer_free(&once);
    buffer_free(&twice);
    return 0;
}
