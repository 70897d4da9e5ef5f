/* The machine's part of a support bundle: what the kernel says, the limits, the disk, the files. */
#include "cmd/support/support_private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

enum {
    FILE_MOST = 256 << 10, /* of the files that are taken whole */
    LOG_MOST = 4 << 20,    /* bytes of the log's end */
    FILES_MOST = 20000,    /* of a directory */
};

static status refuse(const char *path)
{
    return status_make(STATUS_UNAVAILABLE, "%s: %s", path, strerrordesc_np(errno));
}

/* Appends what is in the file, or its last `most` bytes if it can be sought in. */
static status append_file(const char *path, size_t most, struct buffer *out)
{
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return refuse(path);
    (void)fseeko(file, -(off_t)most, SEEK_END); /* what is shorter stays at its beginning */
    uint8_t *to = buffer_reserve(out, most);
    if (to != NULL)
        out->size += fread(to, 1, most, file);
    fclose(file);
    return to == NULL ? status_out_of_memory() : status_ok();
}

/* Appends a file; one that is missing on this machine is told in its place. */
static void append_section(const char *path, struct buffer *out)
{
    buffer_append_format(out, "--- %s\n", path);
    status s = append_file(path, FILE_MOST, out);
    if (!status_is_ok(s))
        buffer_append_format(out, "%s\n", status_message(s));
    status_free(s);
}

status support_write_system(const struct support *support, struct buffer *out)
{
    static const char *const files[] = {"/etc/os-release",   "/proc/uptime",
                                        "/proc/loadavg",     "/proc/meminfo",
                                        "/proc/pressure/io", "/proc/pressure/memory"};
    struct utsname names;
    (void)support;
    if (uname(&names) == 0) /* without the machine's name, which is private */
        buffer_append_format(out, "%s %s %s %s\n", names.sysname, names.release, names.version,
                             names.machine);
    buffer_append_format(out, "%ld processors of %ld are on, pages of %ld bytes\n",
                         sysconf(_SC_NPROCESSORS_ONLN), sysconf(_SC_NPROCESSORS_CONF),
                         sysconf(_SC_PAGESIZE));
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        append_section(files[i], out);
    return status_ok();
}

/* The limits of a server that is started here; a running server's are in its metrics. */
status support_write_limits(const struct support *support, struct buffer *out)
{
    static const char *const files[] = {
        "/proc/self/limits",
        "/proc/sys/fs/file-max",
        "/proc/sys/net/core/somaxconn",
        "/proc/sys/vm/overcommit_memory",
        "/proc/sys/vm/max_map_count",
        "/sys/kernel/mm/transparent_hugepage/enabled",
    };
    (void)support;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        append_section(files[i], out);
    return status_ok();
}

status support_write_disk(const struct support *support, struct buffer *out)
{
    struct statfs facts;
    struct stat directory;
    if (statfs(support->data_directory, &facts) != 0 ||
        stat(support->data_directory, &directory) != 0)
        return refuse(support->data_directory);
    uint64_t block = (uint64_t)facts.f_bsize;
    buffer_append_format(
        out, "%" PRIu64 " bytes in all, %" PRIu64 " free, %" PRIu64 " of them for all users\n",
        block * facts.f_blocks, block * facts.f_bfree, block * facts.f_bavail);
    buffer_append_format(out, "%" PRIu64 " inodes, %" PRIu64 " free\n", (uint64_t)facts.f_files,
                         (uint64_t)facts.f_ffree);
    buffer_append_format(out, "file system type %#lx, mode %o, owner %u:%u\n",
                         (unsigned long)facts.f_type, directory.st_mode & 07777, directory.st_uid,
                         directory.st_gid);
    append_section("/proc/diskstats", out);
    return status_ok();
}

/* --- the data directory --- */

static void append_entry(int directory, const char *name, struct buffer *out)
{
    struct stat facts;
    if (fstatat(directory, name, &facts, AT_SYMLINK_NOFOLLOW) != 0)
        buffer_append_format(out, "%20s  %s\n", strerrordesc_np(errno), name);
    else
        buffer_append_format(out, "%20" PRId64 "  %s%s\n", (int64_t)facts.st_size, name,
                             S_ISDIR(facts.st_mode) ? "/" : "");
}

/* Names and sizes, of the directory's own files: a backup has as many again. */
status support_write_files(const struct support *support, struct buffer *out)
{
    DIR *directory = opendir(support->data_directory);
    if (directory == NULL)
        return refuse(support->data_directory);
    int place = dirfd(directory);
    const struct dirent *entry;
    size_t count = 0;
    while (place >= 0 && count < FILES_MOST && (entry = readdir(directory)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        append_entry(place, entry->d_name, out);
        count++;
    }
    closedir(directory);
    if (count == FILES_MOST)
        buffer_append_format(out, "and perhaps more\n");
    return status_ok();
}

status support_write_log(const struct support *support, struct buffer *out)
{
    if (support->log_file == NULL)
        return status_make(STATUS_NOT_FOUND,
                           "no --log was given; a service's is told by journalctl -u trestle");
    return append_file(support->log_file, LOG_MOST, out);
}
