/* Files of lines: plain, gzip, cut off. */
#include "formats/input.h"

#include "base/testing/testing.h"

#include <stdio.h>
#include <unistd.h>
#include <zlib.h>

struct fixture {
    char path[64];
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    snprintf(f->path, sizeof f->path, "/tmp/trestle-input-XXXXXX");
    int fd = mkstemp(f->path);
    assert_true(fd >= 0);
    close(fd);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(unlink(f->path), 0);
    free(f);
    return 0;
}

static void write_plain(const struct fixture *f, const void *data, size_t size)
{
    FILE *file = fopen(f->path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* One member more. */
static void append_gzip(const struct fixture *f, const void *data, size_t size)
{
    gzFile file = gzopen(f->path, "a");
    assert_non_null(file);
    assert_int_equal(gzwrite(file, data, (unsigned)size), size);
    assert_int_equal(gzclose(file), Z_OK);
}

/* The lines, joined by '|'. */
static status read_lines(const struct fixture *f, struct buffer *out, struct input **input)
{
    bytes line;
    bool is_end = false;
    TRY(input_open(f->path, input));
    for (;;) {
        TRY(input_line(*input, &line, &is_end));
        if (is_end)
            return status_ok();
        buffer_append_bytes(out, line);
        buffer_append_byte(out, '|');
    }
}

static void check_lines(const struct fixture *f, const char *expected, uint64_t count)
{
    struct buffer out = {0};
    struct input *input = NULL;
    assert_ok(read_lines(f, &out, &input));
    assert_int_equal(out.size, strlen(expected));
    if (out.size > 0)
        assert_memory_equal(out.data, expected, out.size);
    assert_int_equal(input_line_number(input), count);
    assert_int_equal(input_bytes_read(input), input_bytes_total(input));
    input_close(input);
    buffer_free(&out);
}

static void lines_are_read(void **state)
{
    static const struct {
        const char *text, *lines;
        uint64_t count;
    } cases[] = {
        {"", "", 0},
        {"a\nb\n", "a|b|", 2},
        {"a\nb", "a|b|", 2},
        {"\n\n", "||", 2},
        {"a\r\nb\r\n", "a|b|", 2},
        {"a\rb\n", "a\rb|", 1},
        {"\xff\n", "\xff|", 1},
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_plain(f, cases[i].text, strlen(cases[i].text));
        check_lines(f, cases[i].lines, cases[i].count);
        write_plain(f, "", 0);
        append_gzip(f, cases[i].text, strlen(cases[i].text));
        check_lines(f, cases[i].lines, cases[i].count);
    }
}

static void members_follow_each_other(void **state)
{
    struct fixture *f = *state;
    append_gzip(f, "a\nb", 3);
    append_gzip(f, "c\n", 2);
    check_lines(f, "a|bc|", 2);
}

static void long_lines_come_whole(void **state)
{
    struct fixture *f = *state;
    enum { SIZE = 3 << 20 };
    char *text = malloc(SIZE);
    assert_non_null(text);
    for (size_t i = 0; i < SIZE; i++)
        text[i] = (char)('a' + i % 7 * (i / 7 % 3));
    text[100] = '\n';
    text[SIZE - 1] = '\n';
    for (int gzip = 0; gzip < 2; gzip++) {
        write_plain(f, text, gzip ? 0 : SIZE);
        if (gzip)
            append_gzip(f, text, SIZE);
        struct input *input;
        bytes line;
        bool is_end;
        assert_ok(input_open(f->path, &input));
        assert_ok(input_line(input, &line, &is_end));
        assert_int_equal(line.size, 100);
        assert_ok(input_line(input, &line, &is_end));
        assert_int_equal(line.size, SIZE - 102);
        assert_memory_equal(line.data, text + 101, SIZE - 102);
        assert_ok(input_line(input, &line, &is_end));
        assert_true(is_end);
        input_close(input);
    }
    free(text);
}

/* Whatever stands at the end of one piece that is read, or of the file. */
static void a_line_that_is_too_long_is_passed_over(void **state)
{
    enum { MOST = 1 << 20 };
    static const char before[] = "one\n", behind[] = "\nthree\n";
    const size_t size = MOST + (1 << 20);
    struct fixture *f = *state;
    struct input *input;
    bytes line;
    bool is_end;
    char *text = calloc(1, sizeof before + size + sizeof behind);
    assert_non_null(text);
    memcpy(text, before, sizeof before - 1);
    memset(text + sizeof before - 1, 'x', size);
    memcpy(text + sizeof before - 1 + size, behind, sizeof behind - 1);
    write_plain(f, text, strlen(text));
    assert_ok(input_open(f->path, &input));
    input_limit_lines(input, MOST);
    assert_ok(input_line(input, &line, &is_end));
    assert_status(input_line(input, &line, &is_end), STATUS_OUT_OF_RANGE);
    assert_int_equal(input_line_number(input), 2);
    assert_ok(input_line(input, &line, &is_end));
    assert_true(bytes_equal(line, bytes_of("three")));
    assert_int_equal(input_line_number(input), 3);
    assert_ok(input_line(input, &line, &is_end));
    assert_true(is_end);
    input_close(input);

    write_plain(f, text, strlen(text) - strlen(behind));
    assert_ok(input_open(f->path, &input));
    input_limit_lines(input, MOST);
    assert_ok(input_line(input, &line, &is_end));
    assert_status(input_line(input, &line, &is_end), STATUS_OUT_OF_RANGE);
    assert_ok(input_line(input, &line, &is_end));
    assert_true(is_end);
    input_close(input);
    free(text);
}

static void pieces_are_read(void **state)
{
    struct fixture *f = *state;
    struct input *input;
    uint8_t piece[4];
    size_t taken;
    append_gzip(f, "abcdefg", 7);
    assert_ok(input_open(f->path, &input));
    assert_ok(input_read(input, piece, sizeof piece, &taken));
    assert_int_equal(taken, 4);
    assert_memory_equal(piece, "abcd", 4);
    assert_ok(input_read(input, piece, sizeof piece, &taken));
    assert_int_equal(taken, 3);
    assert_ok(input_read(input, piece, sizeof piece, &taken));
    assert_int_equal(taken, 0);
    input_close(input);
}

/* What was cut off is noticed wherever it was, save where a member begins. */
static void a_gzip_that_was_cut_off_is_data_loss(void **state)
{
    struct fixture *f = *state;
    append_gzip(f, "one\ntwo\nthree\n", 14);
    FILE *file = fopen(f->path, "r");
    uint8_t whole[100];
    size_t size = fread(whole, 1, sizeof whole, file);
    fclose(file);
    for (size_t cut = 3; cut < size; cut++) {
        struct buffer out = {0};
        struct input *input = NULL;
        write_plain(f, whole, cut);
        assert_status(read_lines(f, &out, &input), STATUS_DATA_LOSS);
        input_close(input);
        buffer_free(&out);
    }
    whole[size - 6] ^= 1; /* of its checksum */
    write_plain(f, whole, size);
    struct buffer out = {0};
    struct input *input = NULL;
    assert_status(read_lines(f, &out, &input), STATUS_DATA_LOSS);
    input_close(input);
    buffer_free(&out);
}

/* --- large enough to be unpacked by another thread --- */

enum { MANY = 60000, LARGE_LINE = 120 };

/* The line of that number: "17:" and bytes that gzip makes little of. */
static size_t make_line(uint64_t number, char line[LARGE_LINE])
{
    uint64_t chance = number * 0x9e3779b97f4a7c15u + 1;
    size_t size = (size_t)snprintf(line, LARGE_LINE, "%llu:", (unsigned long long)number);
    for (; size < 40 + number % 60; size++) {
        chance ^= chance << 13, chance ^= chance >> 7, chance ^= chance << 17;
        line[size] = (char)('0' + chance % 64);
    }
    return size;
}

static void write_large(const struct fixture *f)
{
    char line[LARGE_LINE];
    struct buffer text = {0};
    for (uint64_t i = 1; i <= MANY; i++) {
        buffer_append(&text, line, make_line(i, line));
        buffer_append_byte(&text, '\n');
    }
    assert_false(text.failed);
    assert_true(text.size > 3 << 20);
    append_gzip(f, text.data, text.size / 2);
    append_gzip(f, text.data + text.size / 2, text.size - text.size / 2);
    buffer_free(&text);
}

/* As many lines as there are, `most` at most, each held against what it must be. */
static status read_large(struct input *input, uint64_t most, uint64_t *count)
{
    uint64_t before = 0;
    for (*count = 0; *count < most; ++*count) {
        char expected[LARGE_LINE];
        bytes line;
        bool is_end;
        TRY(input_line(input, &line, &is_end));
        if (is_end)
            break;
        size_t size = make_line(*count + 1, expected);
        assert_int_equal(line.size, size);
        assert_memory_equal(line.data, expected, size);
        assert_int_equal(input_line_number(input), *count + 1);
        assert_true(input_bytes_read(input) >= before);
        before = input_bytes_read(input);
    }
    return status_ok();
}

static void large_files_come_whole(void **state)
{
    struct fixture *f = *state;
    struct input *input;
    uint64_t count;
    write_large(f);
    assert_ok(input_open(f->path, &input));
    assert_ok(read_large(input, UINT64_MAX, &count));
    assert_int_equal(count, MANY);
    assert_int_equal(input_bytes_read(input), input_bytes_total(input));
    input_close(input);
}

/* Going on somewhere means to open the file again. */
static void large_files_are_closed_early(void **state)
{
    static const uint64_t counts[] = {1, 16000, 20000, MANY - 1, MANY};
    struct fixture *f = *state;
    write_large(f);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        struct input *input;
        uint64_t count;
        assert_ok(input_open(f->path, &input));
        assert_ok(read_large(input, counts[i], &count));
        assert_int_equal(count, counts[i]);
        input_close(input);
    }
}

static size_t read_whole(const struct fixture *f, uint8_t **out)
{
    FILE *file = fopen(f->path, "r");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    long size = ftell(file);
    assert_true(size > 0);
    assert_int_equal(fseek(file, 0, SEEK_SET), 0);
    *out = malloc((size_t)size);
    assert_non_null(*out);
    assert_int_equal(fread(*out, 1, (size_t)size, file), (size_t)size);
    assert_int_equal(fclose(file), 0);
    return (size_t)size;
}

/* Ends with DATA_LOSS, asked as often as one likes, behind so many lines. */
static uint64_t lines_before_damage(const struct fixture *f)
{
    struct input *input;
    uint64_t count;
    bytes line;
    bool is_end;
    assert_ok(input_open(f->path, &input));
    assert_status(read_large(input, UINT64_MAX, &count), STATUS_DATA_LOSS);
    assert_int_equal(input_line_number(input), count);
    assert_status(input_line(input, &line, &is_end), STATUS_DATA_LOSS);
    input_close(input);
    return count;
}

static void damage_in_large_files_comes_behind_the_lines_before_it(void **state)
{
    struct fixture *f = *state;
    uint8_t *whole;
    write_large(f);
    size_t size = read_whole(f, &whole);
    write_plain(f, whole, size - 9); /* a byte of the last member, and its end */
    assert_true(lines_before_damage(f) >= MANY - 2);
    write_plain(f, whole, size / 4 * 3);
    uint64_t count = lines_before_damage(f);
    assert_true(count > MANY / 2 && count < MANY);
    whole[size - 6] ^= 1; /* of the checksum: all has been said by then */
    write_plain(f, whole, size);
    assert_int_equal(lines_before_damage(f), MANY);
    free(whole);
}

static void what_cannot_be_read_is_said(void **state)
{
    (void)state;
    struct input *input;
    assert_status(input_open("/tmp/trestle-no-such-file", &input), STATUS_NOT_FOUND);
    assert_status(input_open("/tmp", &input), STATUS_INVALID_ARGUMENT);
    input_close(NULL);
}

static void white_space_is_no_line(void **state)
{
    (void)state;
    assert_true(input_line_is_blank(bytes_of("")));
    assert_true(input_line_is_blank(bytes_of(" \t\r")));
    assert_false(input_line_is_blank(bytes_of("  {")));
    assert_false(input_line_is_blank(bytes_make(" \0", 2)));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(lines_are_read),
        TEST(members_follow_each_other),
        TEST(long_lines_come_whole),
        TEST(a_line_that_is_too_long_is_passed_over),
        TEST(pieces_are_read),
        TEST(a_gzip_that_was_cut_off_is_data_loss),
        TEST(large_files_come_whole),
        TEST(large_files_are_closed_early),
        TEST(damage_in_large_files_comes_behind_the_lines_before_it),
        TEST(what_cannot_be_read_is_said),
        TEST(white_space_is_no_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
