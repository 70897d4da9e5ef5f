/* See file.h. */
#include "os/file.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

status disk_free_bytes(const char *path, uint64_t *out)
{
    struct statvfs facts;
    *out = 0;
    if (statvfs(path, &facts) != 0)
        return status_from_errno(errno, "cannot ask for the free space of %s", path);
    *out = (uint64_t)facts.f_bavail * facts.f_frsize;
    return status_ok();
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
    };
}
