/* See text_file.h. The text is written under another name, synced, and gets its own; then the
 * directory is synced, so that the name is durable, too. */
#include "transfer/text_file.h"

#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static status write_all(int fd, const char *path, const char *text)
{
    size_t size = strlen(text);
    while (size > 0) {
        ssize_t count = write(fd, text, size);
        if (count < 0)
            return status_from_errno(errno, "cannot write %s", path);
        text += count;
        size -= (size_t)count;
    }
    return fsync(fd) == 0 ? status_ok() : status_from_errno(errno, "cannot sync %s", path);
}

static status write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0)
        return status_from_errno(errno, "cannot write %s", path);
    status s = write_all(fd, path, text);
    close(fd);
    return s;
}

status text_file_replace(const char *path, const char *text)
{
    struct buffer fresh = {0};
    buffer_append_format(&fresh, "%s.new%c", path, 0);
    if (fresh.failed)
        return status_out_of_memory();
    const char *name = (const char *)fresh.data;
    status s = write_file(name, text);
    if (status_is_ok(s) && rename(name, path) != 0)
        s = status_from_errno(errno, "cannot replace %s", path);
    buffer_free(&fresh);
    return status_is_ok(s) ? file_sync_parent(path) : s;
}
