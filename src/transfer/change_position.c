/* See change_position.h. */
#include "transfer/change_position.h"

#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

enum { POSITION_MOST = 64 << 20 /* bytes */ };

status change_position_read(const char *path, struct buffer *out)
{
    status s = file_read(path, POSITION_MOST, 0, out);
    if (s.code != STATUS_NOT_FOUND)
        return s;
    status_free(s);
    return status_ok();
}

static status write_all(int fd, const char *path, bytes text)
{
    while (text.size > 0) {
        ssize_t count = write(fd, text.data, text.size);
        if (count >= 0)
            text = bytes_from(text, (size_t)count);
        else if (errno != EINTR)
            return status_from_errno(errno, "cannot write %s", path);
    }
    return fsync(fd) == 0 ? status_ok() : status_from_errno(errno, "cannot sync %s", path);
}

static status write_file(const char *path, bytes text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0)
        return status_from_errno(errno, "cannot write %s", path);
    status s = write_all(fd, path, text);
    if (close(fd) != 0 && status_is_ok(s))
        s = status_from_errno(errno, "cannot write %s", path);
    return s;
}

static status sync_directory_of(const char *path)
{
    char copy[PATH_MAX];
    snprintf(copy, sizeof copy, "%s", path);
    int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return status_from_errno(errno, "cannot open the directory of %s", path);
    status s = fsync(fd) == 0 ? status_ok()
                              : status_from_errno(errno, "cannot sync the directory of %s", path);
    close(fd);
    return s;
}

status change_position_write(const char *path, bytes text)
{
    char fresh[PATH_MAX];
    if (snprintf(fresh, sizeof fresh, "%s.new", path) >= (int)sizeof fresh)
        return status_make(STATUS_INVALID_ARGUMENT, "%s is too long a path", path);
    TRY(write_file(fresh, text));
    if (rename(fresh, path) != 0)
        return status_from_errno(errno, "cannot replace %s", path);
    return sync_directory_of(path);
}
