/* By what it is noticed that a file is another one than it was, file_stamp; and where directories
 * may be made. */
#include "os/file.h"

#include "base/testing/testing.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* The system's clock for files may stand still for some milliseconds: what is done in vain is done
 * again, so many times. */
enum { TRIES = 5000 };

static void open_to(const char *path, mode_t mode)
{
    const struct timespec pause = {.tv_nsec = 1000 * 1000};
    assert_int_equal(nanosleep(&pause, NULL), 0);
    assert_int_equal(chmod(path, mode), 0);
}

static void changed_permissions_change_the_stamp(void **state)
{
    char path[] = "file-test-XXXXXX";
    int fd = mkstemp(path);
    (void)state;
    assert_true(fd >= 0);
    struct file_stamp before = file_stamp(path);
    assert_true(before.inode != 0);
    assert_true(file_stamp_equal(before, file_stamp(path)));
    bool is_another = false;
    for (int i = 0; i < TRIES && !is_another; i++) {
        open_to(path, i % 2 == 0 ? 0644 : 0600);
        is_another = !file_stamp_equal(before, file_stamp(path));
    }
    assert_true(is_another);
    assert_int_equal(file_stamp(path).modified_ns, before.modified_ns);
    assert_int_equal(remove(path), 0);
    assert_true(file_stamp_equal(file_stamp(path), (struct file_stamp){0}));
    close(fd);
}

/* --- paths --- */

static void assert_resolved(const char *path, const char *expected)
{
    char out[PATH_MAX];
    assert_ok(path_resolve(path, out));
    assert_string_equal(out, expected);
}

static void paths_are_resolved_as_far_as_they_are_there(void **state)
{
    char directory[] = "/tmp/file-test-XXXXXX", path[64], other[64];
    (void)state;
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/link", directory);
    assert_int_equal(symlink(directory, path), 0);
    assert_resolved(path, directory);
    snprintf(path, sizeof path, "%s/link/a/b/", directory);
    snprintf(other, sizeof other, "%s/a/b", directory);
    assert_resolved(path, other);
    assert_resolved("/", "/");
    assert_resolved("/no-such-name", "/no-such-name");
    char here[PATH_MAX], expected[PATH_MAX + 32], long_name[PATH_MAX + 1];
    assert_non_null(getcwd(here, sizeof here));
    snprintf(expected, sizeof expected, "%s/no-such-name", here);
    assert_resolved("no-such-name", expected);
    memset(long_name, 'a', PATH_MAX);
    long_name[PATH_MAX] = '\0';
    assert_status(path_resolve(long_name, here), STATUS_INVALID_ARGUMENT);
    assert_status(path_resolve("", here), STATUS_INVALID_ARGUMENT);
    snprintf(path, sizeof path, "%s/link", directory);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(directory), 0);
}

static bool is_within(const char *inner, const char *outer)
{
    bool is;
    assert_ok(path_is_within(inner, outer, &is));
    return is;
}

static void what_lies_in_a_directory_is_known(void **state)
{
    (void)state;
    assert_true(is_within("/no-such/name", "/no-such"));
    assert_true(is_within("/no-such/", "/no-such"));
    assert_true(is_within("/no-such", "/"));
    assert_true(is_within("/tmp/../no-such/a", "/no-such"));
    assert_false(is_within("/no-such-name", "/no-such"));
    assert_false(is_within("/no-such", "/no-such/name"));
}

static void assert_no_place(const char *path, const char *words)
{
    char out[PATH_MAX];
    status s = path_of_new_directory(path, "restore into", out);
    assert_non_null(strstr(status_message(s), words));
    assert_status(s, STATUS_FAILED_PRECONDITION);
}

static void what_cannot_be_replaced_is_refused(void **state)
{
    char directory[] = "/tmp/file-test-XXXXXX", path[64], out[PATH_MAX];
    (void)state;
    assert_non_null(mkdtemp(directory));
    assert_ok(path_of_new_directory(directory, "restore into", out));
    assert_string_equal(out, directory);
    snprintf(path, sizeof path, "%s/new", directory);
    assert_ok(path_of_new_directory(path, "restore into", out));
    assert_string_equal(out, path);
    assert_int_equal(symlink("nowhere", path), 0);
    assert_no_place(path, "is a symbolic link to what is not there");
    assert_int_equal(unlink(path), 0);
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    close(fd);
    assert_no_place(path, "is no directory");
    assert_int_equal(unlink(path), 0);
    assert_no_place("/proc", "/proc is a mount point: restore into a directory in it");
    assert_int_equal(rmdir(directory), 0);
}

static void a_file_is_locked_by_one_at_a_time(void **state)
{
    char directory[] = "/tmp/file-test-XXXXXX", path[64];
    struct file_lock *lock, *other;
    (void)state;
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/lock", directory);
    assert_ok(file_lock_take(path, &lock));
    assert_status(file_lock_take(path, &other), STATUS_FAILED_PRECONDITION);
    assert_null(other);
    assert_int_equal(unlink(path), 0); /* by the holder: the name is free for the next one */
    assert_ok(file_lock_take(path, &other));
    file_lock_release(lock);
    assert_status(file_lock_take(path, &lock), STATUS_FAILED_PRECONDITION);
    file_lock_release(other);
    assert_ok(file_lock_take(path, &lock));
    file_lock_release(lock);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(directory), 0);
    assert_status(file_lock_take(path, &lock), STATUS_NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changed_permissions_change_the_stamp),
        cmocka_unit_test(paths_are_resolved_as_far_as_they_are_there),
        cmocka_unit_test(what_lies_in_a_directory_is_known),
        cmocka_unit_test(what_cannot_be_replaced_is_refused),
        cmocka_unit_test(a_file_is_locked_by_one_at_a_time),
    };
    return cmocka_run_group_tests_name("os_file", tests, NULL, NULL);
}
