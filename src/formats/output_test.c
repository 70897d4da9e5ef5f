/* Files that are written in steps: gone on with, gzip and plain. */
#include "formats/output.h"

#include "base/testing/testing.h"
#include "formats/input.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

struct fixture {
    char directory[64];
    char path[128];
    char part[128];
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    snprintf(f->directory, sizeof f->directory, "/tmp/trestle-output-XXXXXX");
    assert_non_null(mkdtemp(f->directory));
    snprintf(f->path, sizeof f->path, "%s/file", f->directory);
    snprintf(f->part, sizeof f->part, "%s/file.part", f->directory);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    unlink(f->path);
    unlink(f->part);
    assert_int_equal(rmdir(f->directory), 0);
    free(f);
    return 0;
}

static void check_content(const char *path, const char *expected)
{
    struct input *input;
    uint8_t content[64];
    size_t size;
    assert_ok(input_open(path, &input));
    assert_ok(input_read(input, content, sizeof content, &size));
    assert_int_equal(size, strlen(expected));
    if (size > 0)
        assert_memory_equal(content, expected, size);
    input_close(input);
}

static void check_steps(const struct fixture *f, bool is_gzip)
{
    struct output *output;
    uint64_t length, later;
    assert_ok(output_open(f->path, is_gzip, 0, &output));
    assert_ok(output_write(output, bytes_of("one\n")));
    assert_ok(output_sync(output, &length));
    assert_ok(output_write(output, bytes_of("lost\n")));
    assert_ok(output_sync(output, &later));
    assert_true(later > length);
    output_close(output);
    assert_int_equal(access(f->path, F_OK), -1);

    assert_ok(output_open(f->path, is_gzip, length, &output));
    assert_ok(output_write(output, bytes_of("two\n")));
    assert_ok(output_sync(output, &length));
    assert_ok(output_finish(output));
    output_close(output);
    assert_int_equal(access(f->part, F_OK), -1);
    check_content(f->path, "one\ntwo\n");
}

static void a_file_is_gone_on_with(void **state)
{
    struct stat about;
    const struct fixture *f = *state;
    check_steps(f, false);
    assert_int_equal(stat(f->path, &about), 0);
    assert_int_equal(about.st_size, 8);
}

static void a_gzip_file_is_gone_on_with(void **state)
{
    check_steps(*state, true);
}

/* A process that ended behind output_finish may not have noted it. Another file of that name
 * stays. */
static void a_finished_file_is_gone_on_with(void **state)
{
    const struct fixture *f = *state;
    struct output *output;
    uint64_t length;
    for (int more = 0; more < 2; more++) {
        assert_ok(output_open(f->path, false, 0, &output));
        assert_ok(output_write(output, bytes_of("one\n")));
        assert_ok(output_sync(output, &length));
        assert_ok(output_finish(output));
        output_close(output);

        assert_ok(output_open(f->path, false, length, &output));
        assert_int_equal(access(f->path, F_OK), -1);
        if (more)
            assert_ok(output_write(output, bytes_of("two\n")));
        assert_ok(output_sync(output, &length));
        assert_ok(output_finish(output));
        output_close(output);
        check_content(f->path, more ? "one\ntwo\n" : "one\n");
    }
    assert_status(output_open(f->path, false, length + 1, &output), STATUS_NOT_FOUND);
    assert_status(output_open(f->path, false, length - 1, &output), STATUS_NOT_FOUND);
    check_content(f->path, "one\ntwo\n");
}

static void nothing_is_a_file_too(void **state)
{
    const struct fixture *f = *state;
    for (int is_gzip = 0; is_gzip < 2; is_gzip++) {
        struct output *output;
        struct stat about;
        uint64_t length;
        assert_ok(output_open(f->path, is_gzip, 0, &output));
        assert_ok(output_sync(output, &length));
        assert_ok(output_finish(output));
        output_close(output);
        check_content(f->path, "");
        assert_int_equal(stat(f->path, &about), 0);
        assert_int_equal(about.st_size > 0, is_gzip);
    }
}

/* More than the buffer holds, and not to be compressed. */
static void large_pieces_are_written(void **state)
{
    enum { SIZE = 1 << 20, PIECES = 3 };
    const struct fixture *f = *state;
    uint8_t *piece = malloc(SIZE), *again = malloc(SIZE);
    uint64_t random = 1;
    assert_non_null(piece);
    assert_non_null(again);
    for (size_t i = 0; i < SIZE; i++) {
        random = random * 6364136223846793005u + 1;
        piece[i] = (uint8_t)(random >> 56);
    }
    for (int is_gzip = 0; is_gzip < 2; is_gzip++) {
        struct output *output;
        struct input *input;
        uint64_t length;
        size_t taken;
        assert_ok(output_open(f->path, is_gzip, 0, &output));
        for (int i = 0; i < PIECES; i++)
            assert_ok(output_write(output, bytes_make(piece, SIZE)));
        assert_ok(output_sync(output, &length));
        assert_ok(output_finish(output));
        output_close(output);
        assert_ok(input_open(f->path, &input));
        for (int i = 0; i < PIECES; i++) {
            assert_ok(input_read(input, again, SIZE, &taken));
            assert_int_equal(taken, SIZE);
            assert_memory_equal(piece, again, SIZE);
        }
        assert_ok(input_read(input, again, 1, &taken));
        assert_int_equal(taken, 0);
        input_close(input);
    }
    free(piece);
    free(again);
}

static void a_file_that_cannot_be_gone_on_with_is_told(void **state)
{
    const struct fixture *f = *state;
    struct output *output;
    uint64_t length;
    assert_status(output_open(f->path, false, 4, &output), STATUS_NOT_FOUND);
    assert_ok(output_open(f->path, false, 0, &output));
    assert_ok(output_write(output, bytes_of("abc")));
    assert_ok(output_sync(output, &length));
    output_close(output);
    assert_status(output_open(f->path, false, 4, &output), STATUS_DATA_LOSS);
    assert_status(output_open("/nowhere/file", false, 0, &output), STATUS_NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_file_is_gone_on_with, setup, teardown),
        cmocka_unit_test_setup_teardown(a_gzip_file_is_gone_on_with, setup, teardown),
        cmocka_unit_test_setup_teardown(a_finished_file_is_gone_on_with, setup, teardown),
        cmocka_unit_test_setup_teardown(nothing_is_a_file_too, setup, teardown),
        cmocka_unit_test_setup_teardown(large_pieces_are_written, setup, teardown),
        cmocka_unit_test_setup_teardown(a_file_that_cannot_be_gone_on_with_is_told, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
