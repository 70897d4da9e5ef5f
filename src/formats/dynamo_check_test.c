/* MD5s of an export's files: all of them, some of them wrong, one that is not there. */
#include "formats/dynamo_check.h"

#include "base/testing/testing.h"

#include <stdio.h>
#include <unistd.h>

enum { FILES = 9 };

#define MD5_OF_A     "DMF1ucDxtqgxw5niaXcmYQ==" /* of "a" */
#define MD5_OF_OTHER "kutfFmpXBKeeiqlu54mSQg=="

struct fixture {
    char directory[64];
    char paths[FILES][80];
    struct dynamo_file files[FILES];
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    snprintf(f->directory, sizeof f->directory, "/tmp/trestle-check-XXXXXX");
    assert_non_null(mkdtemp(f->directory));
    for (size_t i = 0; i < FILES; i++) {
        snprintf(f->paths[i], sizeof f->paths[i], "%s/%zu", f->directory, i);
        FILE *file = fopen(f->paths[i], "w");
        assert_non_null(file);
        assert_int_equal(fputs("a", file) < 0, 0);
        assert_int_equal(fclose(file), 0);
        f->files[i] =
            (struct dynamo_file){.path = f->paths[i], .has_manifest = true, .md5 = MD5_OF_A};
    }
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; i < FILES; i++)
        unlink(f->paths[i]);
    assert_int_equal(rmdir(f->directory), 0);
    free(f);
    return 0;
}

static void files_that_are_as_they_should_be_pass(void **state)
{
    struct fixture *f = *state;
    for (size_t count = 0; count <= FILES; count++)
        assert_ok(dynamo_files_check(f->files, count));
    f->files[3].md5 = "DMF1ucDxtqgxw5niaXcmYQ"; /* without its padding */
    assert_ok(dynamo_files_check(f->files, FILES));
    assert_ok(dynamo_file_check(&f->files[3]));
}

/* Wherever it is, and whatever is wrong behind it. */
static void the_first_wrong_file_is_named(void **state)
{
    struct fixture *f = *state;
    for (size_t wrong = FILES; wrong-- > 0;) {
        f->files[wrong].md5 = MD5_OF_OTHER;
        char expected[200];
        snprintf(expected, sizeof expected, "%s has the MD5 %.22s; the manifest says %s",
                 f->paths[wrong], MD5_OF_A, MD5_OF_OTHER);
        for (int again = 0; again < 20; again++) {
            status s = dynamo_files_check(f->files, FILES);
            assert_string_equal(status_message(s), expected);
            assert_status(s, STATUS_DATA_LOSS);
        }
        assert_status(dynamo_file_check(&f->files[wrong]), STATUS_DATA_LOSS);
    }
}

static void what_cannot_be_read_fails(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(unlink(f->paths[FILES - 1]), 0);
    assert_status(dynamo_files_check(f->files, FILES), STATUS_NOT_FOUND);
    f->files[2].md5 = MD5_OF_OTHER;
    assert_status(dynamo_files_check(f->files, FILES), STATUS_DATA_LOSS);
}

static void without_a_manifest_nothing_is_read(void **state)
{
    struct fixture *f = *state;
    f->files[4] = (struct dynamo_file){.path = "/tmp/trestle-no-such-file"};
    assert_ok(dynamo_files_check(f->files, FILES));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(files_that_are_as_they_should_be_pass),
        TEST(the_first_wrong_file_is_named),
        TEST(what_cannot_be_read_fails),
        TEST(without_a_manifest_nothing_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
