/* Files of rows without memory: wherever it runs out, that is what is said, and nothing is lost
 * sight of. */
#include "formats/row_encoder.h"

#include "base/testing/failmalloc.h"
#include "base/testing/testing.h"
#include "formats/input.h"

#include <stdio.h>
#include <unistd.h>
#include <zlib.h>

enum { ARENA_LIMIT = 1 << 20 };

struct fixture {
    char path[64];
    struct row_format format;
};

static struct move_cell cells[] = {
    {"f", {(const uint8_t *)"q", 1}, 2000, {(const uint8_t *)"a\n\"\xff", 4}},
    {"g", {(const uint8_t *)"r", 1}, 1000, {(const uint8_t *)"text", 4}},
};

static const struct move_change row = {
    .row_key = {(const uint8_t *)"key", 3}, .cells = cells, .count = 2};

static status encode(const struct row_format *format, struct buffer *out)
{
    static const uint8_t mark[AVRO_MARK] = "0123456789abcde";
    struct row_encoder *encoder;
    TRY(row_encoder_create(format, mark, &encoder));
    status s = row_encoder_begin(encoder, out);
    for (int i = 0; i < 3 && status_is_ok(s); i++)
        s = row_encoder_add(encoder, &row, out);
    if (status_is_ok(s))
        s = row_encoder_flush(encoder, out);
    row_encoder_destroy(encoder);
    return s;
}

static status read_all(struct row_file *file, struct arena *arena)
{
    for (;;) {
        struct row_record record;
        bool is_end;
        TRY(row_file_next(file, arena, &record, &is_end));
        TRY(record.failure);
        if (is_end)
            return status_ok();
    }
}

static status read_file(const struct fixture *f)
{
    struct row_file *file;
    struct arena *arena = arena_create(ARENA_LIMIT);
    if (arena == NULL)
        return status_out_of_memory();
    status s = row_file_open(f->path, &f->format, &file);
    if (status_is_ok(s)) {
        s = read_all(file, arena);
        row_file_close(file);
    }
    arena_destroy(arena);
    return s;
}

static void check(status s)
{
    assert_true(status_is_ok(s) || s.code == STATUS_RESOURCE_EXHAUSTED);
    status_free(s);
}

static void write_rows(void *context)
{
    const struct fixture *f = context;
    struct buffer out = {0};
    check(encode(&f->format, &out));
    buffer_free(&out);
}

static void read_rows(void *context)
{
    check(read_file(context));
}

static void check_format(const struct row_format *format)
{
    struct fixture f = {.path = "/tmp/trestle-memory-XXXXXX", .format = *format};
    struct buffer content = {0};
    int fd = mkstemp(f.path);
    assert_true(fd >= 0);
    assert_ok(encode(format, &content));
    assert_int_equal(write(fd, content.data, content.size), content.size);
    buffer_free(&content);
    close(fd);
    failmalloc_each(write_rows, &f);
    failmalloc_each(read_rows, &f);
    assert_ok(read_file(&f));
    assert_int_equal(unlink(f.path), 0);
}

static void each_kind_is_read_and_written(void **state)
{
    (void)state;
    for (int kind = ROWS_CSV; kind <= ROWS_AVRO; kind++) {
        const struct row_format format = {
            .kind = (enum row_kind)kind, .form = ROWS_CELLS, .delimiter = ','};
        check_format(&format);
    }
}

static void field_layouts_survive_allocation_failure(void **state)
{
    const struct field_words words = {"{row_key}", "a=f:q,b=g:r", "a=base64", NULL, NULL};
    struct arena *arena = arena_create(ARENA_LIMIT);
    (void)state;
    for (int kind = ROWS_CSV; kind <= ROWS_JSONL; kind++) {
        struct row_format format = {
            .kind = (enum row_kind)kind, .form = ROWS_FIELDS, .delimiter = ','};
        assert_ok(field_layout_parse(&words, arena, &format.layout));
        check_format(&format);
    }
    arena_destroy(arena);
}

/* --- lines of a packed file, which another thread may read ahead --- */

enum { LINES = 30000 };

static void write_packed_lines(const char *path)
{
    gzFile file = gzopen(path, "w");
    assert_non_null(file);
    for (unsigned i = 0; i < LINES; i++)
        assert_true(gzprintf(file, "%u: %050u, %u\n", i, i * 40503, i * 2654435769u) > 0);
    assert_int_equal(gzclose(file), Z_OK);
}

static status read_lines(struct input *input, unsigned *lines)
{
    for (bool is_end = false; !is_end; *lines += !is_end) {
        bytes line;
        TRY(input_line(input, &line, &is_end));
    }
    return status_ok();
}

/* All of them, or the words that there was no memory. */
static void read_packed_lines(void *context)
{
    struct input *input;
    unsigned lines = 0;
    status s = input_open(context, &input);
    if (status_is_ok(s)) {
        s = read_lines(input, &lines);
        input_close(input);
    }
    assert_true(!status_is_ok(s) || lines == LINES);
    check(s);
}

static void packed_lines_survive_allocation_failure(void **state)
{
    char path[] = "/tmp/trestle-memory-XXXXXX";
    int fd = mkstemp(path);
    (void)state;
    assert_true(fd >= 0);
    close(fd);
    write_packed_lines(path);
    failmalloc_each(read_packed_lines, path);
    assert_int_equal(unlink(path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind_is_read_and_written),
        cmocka_unit_test(field_layouts_survive_allocation_failure),
        cmocka_unit_test(packed_lines_survive_allocation_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
