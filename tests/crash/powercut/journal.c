/* The journal: see powercut.h. Written with bare system calls: what is interposed must not come
 * back here, and the journal of a killed process is complete. */
#include "powercut.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int journal_fd = -1;
static const char *journal_directory;
static atomic_uint trash_count;

void die(const char *format, ...)
{
    char text[2 * PATH_MAX];
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (size > 0)
        syscall(SYS_write, STDERR_FILENO, text, strlen(text));
    _exit(98);
}

void journal_begin(const struct settings *settings)
{
    char path[PATH_MAX + 8];
    journal_directory = settings->journal;
    snprintf(path, sizeof path, "%s/log", settings->journal);
    if (journal_fd >= 0)
        close(journal_fd);
    int flags = O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC;
    journal_fd = (int)syscall(SYS_openat, AT_FDCWD, path, flags, 0644);
    if (journal_fd < 0)
        die("powercut: %s: %s\n", path, strerror(errno));
    if (flock(journal_fd, LOCK_EX | LOCK_NB) != 0)
        die("powercut: %s is in use\n", path);
}

void journal_write(const char *format, ...)
{
    char line[3 * PATH_MAX];
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (size <= 0 || size >= (int)sizeof line ||
        syscall(SYS_write, journal_fd, line, (size_t)size) != size)
        die("powercut: the journal cannot be written\n");
}

bool journal_keep(const char *path, char trash[NAME_MAX])
{
    char target[PATH_MAX + NAME_MAX];
    unsigned number = atomic_fetch_add(&trash_count, 1);
    snprintf(trash, NAME_MAX, "trash-%d-%u", getpid(), number);
    snprintf(target, sizeof target, "%s/%s", journal_directory, trash);
    if (syscall(SYS_linkat, AT_FDCWD, path, AT_FDCWD, target, 0) == 0)
        return true;
    if (errno != ENOENT && errno != EPERM) /* EPERM: a directory, which is never lost */
        die("powercut: %s cannot be kept as %s: %s\n", path, target, strerror(errno));
    return false;
}
