/* A file that is rotated: its size, the older ones, being renamed by others, disks that are full.
 */
#include "os/rotated_file.h"

#include "base/testing/testing.h"
#include "base/testing/testing_log.h"

#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>

enum { LINE = 10, NAME = 64 };

struct fixture {
    char directory[NAME];
    char path[NAME + 8];
    struct log log;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    snprintf(f->directory, sizeof f->directory, "rotated-test-XXXXXX");
    assert_non_null(mkdtemp(f->directory));
    snprintf(f->path, sizeof f->path, "%s/log", f->directory);
    f->log = testing_log();
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    static const char *const suffixes[] = {"", ".1", ".2", ".old"};
    char name[2 * NAME];
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        snprintf(name, sizeof name, "%s%s", f->path, suffixes[i]);
        (void)remove(name);
    }
    assert_int_equal(rmdir(f->directory), 0);
    close(f->log.fd);
    free(f);
    return 0;
}

static struct rotated_file *open_with(struct fixture *f, int64_t bytes, int64_t older)
{
    struct rotated_file *file;
    const struct rotated_file_options options = {
        .path = f->path, .bytes_most = bytes, .older_most = older, .log = &f->log};
    assert_ok(rotated_file_open(&options, &file));
    return file;
}

/* A line of ten bytes. */
static bool write_number(struct rotated_file *file, int number)
{
    char line[LINE + 1];
    snprintf(line, sizeof line, "%09d\n", number);
    return rotated_file_write(file, bytes_make(line, LINE));
}

static void write_numbers(struct rotated_file *file, int from, int count)
{
    for (int i = 0; i < count; i++)
        assert_true(write_number(file, from + i));
}

/* Size of the file with that suffix; -1: there is none. */
static int64_t size_of(const struct fixture *f, const char *suffix)
{
    char name[2 * NAME];
    struct stat about;
    snprintf(name, sizeof name, "%s%s", f->path, suffix);
    return stat(name, &about) == 0 ? (int64_t)about.st_size : -1;
}

static int first_number(const struct fixture *f, const char *suffix)
{
    char name[2 * NAME];
    int number = -1;
    snprintf(name, sizeof name, "%s%s", f->path, suffix);
    FILE *file = fopen(name, "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%d", &number), 1); /* NOLINT(cert-err34-c): our own digits */
    fclose(file);
    return number;
}

static void the_oldest_file_goes(void **state)
{
    struct fixture *f = *state;
    struct rotated_file *file = open_with(f, 3 * LINE, 2);
    write_numbers(file, 0, 11);
    assert_int_equal(size_of(f, ""), 2 * LINE);
    assert_int_equal(size_of(f, ".1"), 3 * LINE);
    assert_int_equal(size_of(f, ".2"), 3 * LINE);
    assert_int_equal(size_of(f, ".3"), -1);
    assert_int_equal(first_number(f, ""), 9);
    assert_int_equal(first_number(f, ".1"), 6);
    assert_int_equal(first_number(f, ".2"), 3);
    rotated_file_close(file);
}

static void a_file_that_was_there_counts(void **state)
{
    struct fixture *f = *state;
    struct rotated_file *file = open_with(f, 3 * LINE, 1);
    write_numbers(file, 0, 2);
    rotated_file_close(file);
    file = open_with(f, 3 * LINE, 1);
    write_numbers(file, 2, 2);
    assert_int_equal(size_of(f, ".1"), 3 * LINE);
    assert_int_equal(size_of(f, ""), LINE);
    rotated_file_close(file);
}

static void size_zero_means_no_rotation(void **state)
{
    struct fixture *f = *state;
    struct rotated_file *file = open_with(f, 0, 1);
    write_numbers(file, 0, 100);
    assert_int_equal(size_of(f, ""), 100 * LINE);
    assert_int_equal(size_of(f, ".1"), -1);
    rotated_file_close(file);
}

static void a_file_renamed_by_others_is_opened_again(void **state)
{
    struct fixture *f = *state;
    char elsewhere[2 * NAME];
    struct rotated_file *file = open_with(f, 0, 1);
    struct stat about;
    snprintf(elsewhere, sizeof elsewhere, "%s.old", f->path);
    write_numbers(file, 0, 1);
    assert_int_equal(rename(f->path, elsewhere), 0);
    write_numbers(file, 1, 1);
    assert_int_equal(size_of(f, ".old"), 2 * LINE);
    assert_ok(rotated_file_reopen(file));
    write_numbers(file, 2, 1);
    assert_int_equal(size_of(f, ""), LINE);
    assert_int_equal(stat(f->path, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0600);
    rotated_file_close(file);
}

/* Lines are not lost for it, and the next attempt is not at the next line. */
static void where_renaming_fails_lines_go_on(void **state)
{
    struct fixture *f = *state;
    char name[2 * NAME], text[4096];
    struct rotated_file *file = open_with(f, 2 * LINE, 1);
    snprintf(name, sizeof name, "%s.1", f->path);
    assert_int_equal(mkdir(name, 0700), 0);
    write_numbers(file, 0, 5);
    assert_int_equal(size_of(f, ""), 5 * LINE);
    testing_log_take(&f->log, text, sizeof text);
    const char *told = strstr(text, "grows beyond its size");
    assert_non_null(told);
    told = strstr(told + 1, "grows beyond its size");
    assert_non_null(told);
    assert_null(strstr(told + 1, "grows beyond its size"));
    rotated_file_close(file);
}

/* As on a full disk: the system takes a part of the line. */
static void half_a_line_is_taken_back(void **state)
{
    struct fixture *f = *state;
    struct rotated_file *file = open_with(f, 0, 1);
    struct rlimit before, small;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 2 * LINE + 3;
    write_numbers(file, 0, 2);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    bool is_written = write_number(file, 2);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_false(is_written);
    assert_int_equal(size_of(f, ""), 2 * LINE);
    write_numbers(file, 3, 1);
    assert_int_equal(size_of(f, ""), 3 * LINE);
    rotated_file_close(file);
}

static void a_path_that_cannot_be_opened_is_refused(void **state)
{
    struct fixture *f = *state;
    struct rotated_file *file;
    const struct rotated_file_options options = {
        .path = "no-such-directory/log", .older_most = 1, .log = &f->log};
    assert_status(rotated_file_open(&options, &file), STATUS_NOT_FOUND);
    assert_null(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_oldest_file_goes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_file_that_was_there_counts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(size_zero_means_no_rotation, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_file_renamed_by_others_is_opened_again, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(where_renaming_fails_lines_go_on, set_up, tear_down),
        cmocka_unit_test_setup_teardown(half_a_line_is_taken_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_path_that_cannot_be_opened_is_refused, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
