/* See file.h. */
#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

status disk_free_bytes(const char *path, uint64_t *out)
{
    struct statvfs facts;
    *out = 0;
    if (statvfs(path, &facts) != 0)
        return status_from_errno(errno, "cannot ask for the free space of %s", path);
    *out = (uint64_t)facts.f_bavail * facts.f_frsize;
    return status_ok();
}

bool file_is_locked(const char *path)
{
    struct flock wanted = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool is_locked = fcntl(fd, F_GETLK, &wanted) == 0 && wanted.l_type != F_UNLCK;
    close(fd);
    return is_locked;
}

static status read_all(int fd, const char *path, size_t most, struct buffer *out)
{
    enum { STEP = 16 << 10 };
    for (;;) {
        uint8_t *to = buffer_reserve(out, STEP);
        if (to == NULL)
            return status_out_of_memory();
        ssize_t count = read(fd, to, STEP);
        if (count < 0)
            return status_from_errno(errno, "cannot read %s", path);
        if (count == 0)
            return status_ok();
        out->size += (size_t)count;
        if (out->size > most)
            return status_make(STATUS_OUT_OF_RANGE, "%s has more than %zu bytes", path, most);
    }
}

static status check_mode(int fd, const char *path, unsigned forbidden)
{
    struct stat about;
    if (fstat(fd, &about) != 0)
        return status_from_errno(errno, "cannot look at %s", path);
    if ((about.st_mode & forbidden) != 0)
        return status_make(
            STATUS_FAILED_PRECONDITION, "the mode of %s is %03o: others than its owner may %s it",
            path, about.st_mode & 0777, about.st_mode & forbidden & 022 ? "change" : "read");
    return status_ok();
}

status file_read(const char *path, size_t most, unsigned forbidden, struct buffer *out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return status_from_errno(errno, "cannot open %s", path);
    status s = check_mode(fd, path, forbidden);
    if (status_is_ok(s))
        s = read_all(fd, path, most, out);
    close(fd);
    if (!status_is_ok(s))
        buffer_free(out);
    return s;
}

struct file_stamp file_stamp(const char *path)
{
    struct stat about;
    if (stat(path, &about) != 0)
        return (struct file_stamp){0};
    return (struct file_stamp){
        .device = about.st_dev,
        .inode = about.st_ino,
        .size = about.st_size,
        .modified_ns = about.st_mtim.tv_sec * 1000000000ll + about.st_mtim.tv_nsec,
        .changed_ns = about.st_ctim.tv_sec * 1000000000ll + about.st_ctim.tv_nsec,
    };
}
