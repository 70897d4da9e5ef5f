/* See file.h. */
#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
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

/* --- locks --- */

struct file_lock {
    int fd;
};

enum { LOCK_ATTEMPTS = 16 }; /* at a file that is removed again and again */

/* False if the former holder of the lock has removed the file since it was opened. */
static bool is_file_at(int fd, const char *path)
{
    struct stat ours, there;
    return fstat(fd, &ours) == 0 && stat(path, &there) == 0 && ours.st_dev == there.st_dev &&
           ours.st_ino == there.st_ino;
}

static status lock_once(const char *path, int *fd, bool *is_it)
{
    *fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (*fd < 0)
        return status_from_errno(errno, "cannot open %s", path);
    if (flock(*fd, LOCK_EX | LOCK_NB) != 0)
        return errno == EWOULDBLOCK
                   ? status_make(STATUS_FAILED_PRECONDITION, "%s: another has it", path)
                   : status_from_errno(errno, "cannot lock %s", path);
    *is_it = is_file_at(*fd, path);
    return status_ok();
}

static status lock_file(const char *path, int *fd)
{
    for (int attempt = 0; attempt < LOCK_ATTEMPTS; attempt++) {
        bool is_it = false;
        status s = lock_once(path, fd, &is_it);
        if (status_is_ok(s) && is_it)
            return s;
        if (*fd >= 0)
            close(*fd);
        TRY(s);
    }
    return status_make(STATUS_FAILED_PRECONDITION, "%s: others have it, one after the other", path);
}

status file_lock_take(const char *path, struct file_lock **out)
{
    struct file_lock *lock = *out = malloc(sizeof *lock);
    if (lock == NULL)
        return status_out_of_memory();
    status s = lock_file(path, &lock->fd);
    if (!status_is_ok(s)) {
        free(lock);
        *out = NULL;
    }
    return s;
}

void file_lock_release(struct file_lock *lock)
{
    if (lock == NULL)
        return;
    close(lock->fd);
    free(lock);
}

/* --- modes --- */

status file_take_mode(const char *path, const char *of)
{
    struct stat about;
    if (stat(of, &about) != 0)
        return errno == ENOENT ? status_ok() : status_from_errno(errno, "cannot look at %s", of);
    if (chmod(path, about.st_mode & 07777) != 0)
        return status_from_errno(errno, "cannot change the mode of %s", path);
    return status_ok();
}

/* --- paths --- */

/* How many bytes come before the last part of the path, which has `size`. */
static size_t parent_size(const char *path, size_t size)
{
    while (size > 1 && path[size - 1] == '/')
        size--;
    while (size > 0 && path[size - 1] != '/')
        size--;
    return size;
}

static status append_rest(char out[PATH_MAX], const char *rest)
{
    size_t size = strlen(out), more = strlen(rest);
    while (more > 0 && rest[more - 1] == '/')
        more--;
    bool needs_slash = more > 0 && out[size - 1] != '/';
    if (size + needs_slash + more >= PATH_MAX)
        return status_make(STATUS_INVALID_ARGUMENT, "the name is too long");
    if (needs_slash)
        out[size++] = '/';
    memcpy(out + size, rest, more);
    out[size + more] = '\0';
    return status_ok();
}

status path_resolve(const char *path, char out[PATH_MAX])
{
    char head[PATH_MAX];
    size_t size = strlen(path);
    if (size == 0 || size >= sizeof head)
        return status_make(STATUS_INVALID_ARGUMENT, "a name is empty, or too long");
    memcpy(head, path, size + 1);
    while (realpath(size == 0 ? "." : head, out) == NULL) {
        if (errno != ENOENT || size == 0)
            return status_from_errno(errno, "cannot look at %s", path);
        size = parent_size(head, size);
        head[size] = '\0';
    }
    return append_rest(out, path + size);
}

status path_is_within(const char *inner, const char *outer, bool *out)
{
    char in[PATH_MAX], around[PATH_MAX];
    *out = false;
    TRY(path_resolve(inner, in));
    TRY(path_resolve(outer, around));
    size_t size = strlen(around);
    *out = strncmp(in, around, size) == 0 &&
           (in[size] == '\0' || in[size] == '/' || around[size - 1] == '/');
    return status_ok();
}

/* On a file system of its own, or by itself on that of its parent (mount --bind). */
bool path_is_mount_point(const char *path)
{
    struct statx about;
    return statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &about) == 0 &&
           (about.stx_attributes_mask & about.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

status path_of_new_directory(const char *path, const char *act, char out[PATH_MAX])
{
    struct stat about;
    TRY(path_resolve(path, out));
    if (lstat(out, &about) != 0)
        return errno == ENOENT ? status_ok() : status_from_errno(errno, "cannot look at %s", out);
    if (S_ISLNK(about.st_mode))
        return status_make(STATUS_FAILED_PRECONDITION, "%s is a symbolic link to what is not there",
                           out);
    if (!S_ISDIR(about.st_mode))
        return status_make(STATUS_FAILED_PRECONDITION, "%s is no directory", out);
    if (path_is_mount_point(out))
        return status_make(STATUS_FAILED_PRECONDITION, "%s is a mount point: %s a directory in it",
                           out, act);
    return status_ok();
}

/* --- reading --- */

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

status file_sync_parent(const char *path)
{
    char *copy = strdup(path);
    if (copy == NULL)
        return status_out_of_memory();
    int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool is_synced = fd >= 0 && fsync(fd) == 0;
    status s =
        is_synced ? status_ok() : status_from_errno(errno, "cannot sync the directory of %s", path);
    if (fd >= 0)
        close(fd);
    free(copy);
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
