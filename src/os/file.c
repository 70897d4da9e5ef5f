/* See file.h. */
#include "os/file.h"

#include <errno.h>
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
