/* By what it is noticed that a file is another one than it was: file_stamp. */
#include "os/file.h"

#include "base/testing.h"

#include <stdio.h>
#include <stdlib.h>
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

static void who_may_read_a_file_changes_its_stamp(void **state)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_may_read_a_file_changes_its_stamp),
    };
    return cmocka_run_group_tests_name("os_file", tests, NULL, NULL);
}
