/* What the tests of a directory's file LOCK share: another process that takes it. */
#ifndef TRESTLE_STORE_TESTING_LOCK_TESTING_H
#define TRESTLE_STORE_TESTING_LOCK_TESTING_H

#include "base/testing/testing.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

/* What another process does with the file LOCK: takes its lock, if it can, and makes it if it is
 * not there. Says so by a byte; ends when `goes_on` is closed. Nothing else, since it is a fork of
 * a process with threads. */
static inline void be_another(const char *path, int says, int goes_on)
{
    struct flock wanted = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    char byte;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    byte = fd >= 0 && fcntl(fd, F_SETLK, &wanted) == 0 ? 'y' : 'n';
    if (write(says, &byte, 1) != 1)
        _exit(1);
    while (read(goes_on, &byte, 1) > 0)
        continue;
    _exit(0);
}

struct another {
    pid_t pid;
    int end; /* to be closed */
};

/* Whether another process gets the lock; it has it until end_another. */
static inline bool start_another(const char *directory, struct another *out)
{
    char path[PATH_MAX], byte = 0;
    int says[2], goes_on[2];
    snprintf(path, sizeof path, "%s/LOCK", directory);
    assert_int_equal(pipe(says), 0);
    assert_int_equal(pipe(goes_on), 0);
    out->pid = fork();
    assert_true(out->pid >= 0);
    if (out->pid == 0) {
        close(goes_on[1]);
        be_another(path, says[1], goes_on[0]);
    }
    close(says[1]);
    close(goes_on[0]);
    assert_int_equal(read(says[0], &byte, 1), 1);
    close(says[0]);
    out->end = goes_on[1];
    return byte == 'y';
}

static inline void end_another(struct another *another)
{
    int how;
    close(another->end);
    assert_int_equal(waitpid(another->pid, &how, 0), another->pid);
    assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
}

#endif
