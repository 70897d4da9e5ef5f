/* See change_files.h. */
#include "transfer/change_files.h"

#include "base/list.h"
#include "os/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define FINISHED ".jsonl"
#define PART     ".part"

enum {
    OPEN_MOST = 64,     /* files at a time; then the one that was used longest ago is finished */
    KEY_BYTES = 32,     /* of a partition's first key that a name has */
    NAMES_MOST = 10000, /* that begin alike */
    NAME_SIZE = 160,
};

struct change_file {
    struct link link;
    int fd;
    bool is_synced;
    bool is_cut; /* its last line: who comes next finishes it */
    uint64_t size;
    int64_t begun_us;     /* clock_steady_us */
    char name[NAME_SIZE]; /* when it is finished */
    size_t key_size;
    uint8_t key[]; /* of its partition */
};

struct change_files {
    struct change_files_options options;
    char directory[PATH_MAX];
    int directory_fd;
    struct file_lock *lock;
    struct list files; /* of struct change_file, the one that was used last at the end */
    size_t count;
    bool has_new_names; /* that are not synced */
};

static int64_t now_us(const struct change_files *files)
{
    return clock_steady_us(files->options.clock);
}

/* --- names --- */

static void append_key(char *to, size_t size, bytes key)
{
    size_t shown = key.size < KEY_BYTES ? key.size : KEY_BYTES, used = 0;
    for (size_t i = 0; i < shown; i++)
        used += (size_t)snprintf(to + used, size - used, "%02x", key.data[i]);
    if (key.size == 0)
        snprintf(to, size, "first");
    else if (key.size > shown)
        snprintf(to + used, size - used, "~%016llx", (unsigned long long)bytes_hash(key));
}

static void append_time(char *to, size_t size, int64_t us)
{
    time_t seconds = (time_t)(us / 1000000);
    struct tm parts;
    char text[32];
    gmtime_r(&seconds, &parts);
    strftime(text, sizeof text, "%Y%m%dT%H%M%S", &parts);
    snprintf(to, size, "%s.%06dZ", text, (int)(us % 1000000));
}

static void part_name(const char *name, char out[NAME_SIZE])
{
    snprintf(out, NAME_SIZE, "%.140s" PART, name);
}

static bool is_there(const struct change_files *files, const char *name)
{
    struct stat found;
    return fstatat(files->directory_fd, name, &found, AT_SYMLINK_NOFOLLOW) == 0;
}

/* A change that comes again would begin a file that is there: the name gets a number. */
static status find_name(const struct change_files *files, const struct feed_change *change,
                        char out[NAME_SIZE])
{
    char key[2 * KEY_BYTES + 20], time[40];
    append_key(key, sizeof key, change->partition);
    append_time(time, sizeof time, change->commit_us);
    for (int i = 0; i < NAMES_MOST; i++) {
        char number[16] = "", part[NAME_SIZE];
        if (i > 0)
            snprintf(number, sizeof number, "-%d", i);
        snprintf(out, NAME_SIZE, "%s-%s%s" FINISHED, key, time, number);
        part_name(out, part);
        if (!is_there(files, out) && !is_there(files, part))
            return status_ok();
    }
    return status_make(STATUS_ALREADY_EXISTS, "%s has too many files like %s", files->directory,
                       out);
}

/* --- a file --- */

static status sync_file(struct change_files *files, struct change_file *file)
{
    if (!file->is_synced && fsync(file->fd) != 0)
        return status_from_errno(errno, "cannot sync %s/%s" PART, files->directory, file->name);
    file->is_synced = true;
    return status_ok();
}

static void close_file(struct change_file *file)
{
    close(file->fd);
    free(file);
}

static status rename_part(struct change_files *files, const char *name)
{
    char part[NAME_SIZE];
    part_name(name, part);
    files->has_new_names = true;
    if (renameat(files->directory_fd, part, files->directory_fd, name) == 0)
        return status_ok();
    return status_from_errno(errno, "cannot rename %s/%s", files->directory, part);
}

/* Of a file that is on no list any more, and closed whatever comes. */
static status finish(struct change_files *files, struct change_file *file)
{
    status s = sync_file(files, file);
    if (status_is_ok(s))
        s = rename_part(files, file->name);
    close_file(file);
    files->count--;
    return s;
}

static status create_file(struct change_files *files, const struct feed_change *change,
                          struct change_file **out)
{
    char part[NAME_SIZE];
    bytes key = change->partition;
    struct change_file *file = calloc(1, sizeof *file + key.size);
    if (file == NULL)
        return status_out_of_memory();
    file->key_size = key.size;
    if (key.size > 0)
        memcpy(file->key, key.data, key.size);
    file->begun_us = now_us(files);
    status s = find_name(files, change, file->name);
    if (status_is_ok(s)) {
        part_name(file->name, part);
        file->fd = openat(files->directory_fd, part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        if (file->fd < 0)
            s = status_from_errno(errno, "cannot make %s/%s", files->directory, part);
    }
    if (!status_is_ok(s)) {
        free(file);
        return s;
    }
    files->has_new_names = true;
    *out = file;
    return s;
}

/* Takes the partition's file off the list; NULL if it has none. */
static struct change_file *take_file(struct change_files *files, bytes key)
{
    for (struct link **place = &files->files.first; *place != NULL; place = &(*place)->next) {
        struct change_file *file = LIST_ENTRY(*place, struct change_file, link);
        if (bytes_equal(bytes_make(file->key, file->key_size), key)) {
            list_take_at(&files->files, place);
            return file;
        }
    }
    return NULL;
}

static status open_file(struct change_files *files, const struct feed_change *change,
                        struct change_file **out)
{
    *out = take_file(files, change->partition);
    if (*out != NULL)
        return status_ok();
    if (files->count >= OPEN_MOST)
        TRY(finish(files, LIST_ENTRY(list_take(&files->files), struct change_file, link)));
    TRY(create_file(files, change, out));
    files->count++;
    return status_ok();
}

static bool is_full(const struct change_files *files, const struct change_file *file)
{
    return file->size >= files->options.rotate_bytes ||
           now_us(files) - file->begun_us >= files->options.rotate_us;
}

/* --- the sink --- */

static status write_line(const struct change_files *files, struct change_file *file, bytes line)
{
    file->is_synced = false;
    file->is_cut = true;
    file->size += line.size;
    while (line.size > 0) {
        ssize_t count = write(file->fd, line.data, line.size);
        if (count >= 0)
            line = bytes_from(line, (size_t)count);
        else if (errno != EINTR)
            return status_from_errno(errno, "cannot write %s/%s" PART, files->directory,
                                     file->name);
    }
    file->is_cut = false;
    return status_ok();
}

static status add(void *object, const struct feed_change *change, bytes line)
{
    struct change_files *files = object;
    struct change_file *file;
    TRY(open_file(files, change, &file));
    status s = write_line(files, file, line);
    if (status_is_ok(s) && is_full(files, file))
        return finish(files, file);
    list_append(&files->files, &file->link);
    return s;
}

static status sync_names(struct change_files *files)
{
    if (files->has_new_names && fsync(files->directory_fd) != 0)
        return status_from_errno(errno, "cannot sync %s", files->directory);
    files->has_new_names = false;
    return status_ok();
}

static status flush(void *object)
{
    struct change_files *files = object;
    for (struct link *link = files->files.first; link != NULL; link = link->next)
        TRY(sync_file(files, LIST_ENTRY(link, struct change_file, link)));
    return sync_names(files);
}

/* Finishes files that are old enough, or all. */
static status finish_files(struct change_files *files, bool all)
{
    struct list left = list_take_all(&files->files);
    status s = status_ok();
    while (!list_is_empty(&left)) {
        struct change_file *file = LIST_ENTRY(list_take(&left), struct change_file, link);
        if (status_is_ok(s) && !file->is_cut && (all || is_full(files, file)))
            s = finish(files, file);
        else
            list_append(&files->files, &file->link);
    }
    return status_is_ok(s) ? sync_names(files) : s;
}

static status tend(void *object)
{
    return finish_files(object, false);
}

static void destroy(void *object)
{
    struct change_files *files = object;
    status_ignore(finish_files(files, true)); /* what is left is finished by who comes next */
    while (!list_is_empty(&files->files))
        close_file(LIST_ENTRY(list_take(&files->files), struct change_file, link));
    file_lock_release(files->lock);
    if (files->directory_fd >= 0)
        close(files->directory_fd);
    free(files);
}

/* --- opening: what was left unfinished --- */

/* Where the last whole line of the file ends. */
static status find_end(int fd, const char *name, off_t *out)
{
    char block[64 << 10];
    off_t end = lseek(fd, 0, SEEK_END);
    while (end > 0) {
        off_t start = end > (off_t)sizeof block ? end - (off_t)sizeof block : 0;
        ssize_t count = pread(fd, block, (size_t)(end - start), start);
        if (count != (ssize_t)(end - start))
            return status_from_errno(count < 0 ? errno : EIO, "cannot read %s", name);
        while (count > 0 && block[count - 1] != '\n')
            count--;
        end = start + count;
        if (count > 0)
            break;
    }
    *out = end < 0 ? 0 : end;
    return status_ok();
}

static status cut_file(int fd, const char *name, off_t *size)
{
    TRY(find_end(fd, name, size));
    if (ftruncate(fd, *size) == 0 && fsync(fd) == 0)
        return status_ok();
    return status_from_errno(errno, "cannot cut %s", name);
}

static status finish_left(struct change_files *files, const char *part)
{
    char name[NAME_SIZE];
    off_t size = 0;
    int fd = openat(files->directory_fd, part, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return status_from_errno(errno, "cannot open %s/%s", files->directory, part);
    status s = cut_file(fd, part, &size);
    close(fd);
    TRY(s);
    snprintf(name, sizeof name, "%.*s", (int)(strlen(part) - strlen(PART)), part);
    if (size > 0)
        return rename_part(files, name);
    return unlinkat(files->directory_fd, part, 0) == 0
               ? status_ok()
               : status_from_errno(errno, "cannot remove %s/%s", files->directory, part);
}

static bool is_part(const char *name)
{
    size_t size = strlen(name), suffix = strlen(FINISHED PART);
    return size > suffix && size < NAME_SIZE - suffix &&
           strcmp(name + size - suffix, FINISHED PART) == 0;
}

static status finish_what_is_left(struct change_files *files)
{
    DIR *directory = opendir(files->directory);
    if (directory == NULL)
        return status_from_errno(errno, "cannot open %s", files->directory);
    status s = status_ok();
    for (struct dirent *entry; status_is_ok(s) && (entry = readdir(directory)) != NULL;)
        if (is_part(entry->d_name))
            s = finish_left(files, entry->d_name);
    closedir(directory);
    return s;
}

static status lock_directory(struct change_files *files)
{
    char lock[PATH_MAX];
    if (snprintf(lock, sizeof lock, "%s/.lock", files->directory) >= (int)sizeof lock)
        return status_make(STATUS_INVALID_ARGUMENT, "%s is too long a path", files->directory);
    return file_lock_take(lock, &files->lock);
}

static status open_directory(struct change_files *files)
{
    const char *path = files->directory;
    if (mkdir(path, 0777) != 0 && errno != EEXIST)
        return status_from_errno(errno, "cannot make %s", path);
    files->directory_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (files->directory_fd < 0)
        return status_from_errno(errno, "cannot open %s", path);
    TRY(lock_directory(files));
    TRY(finish_what_is_left(files));
    files->has_new_names = true;
    return sync_names(files);
}

status change_files_create(const struct change_files_options *options, struct change_sink *out)
{
    struct change_files *files = calloc(1, sizeof *files);
    if (files == NULL)
        return status_out_of_memory();
    files->options = *options;
    files->directory_fd = -1;
    int size = snprintf(files->directory, sizeof files->directory, "%s", options->directory);
    status s = size > 0 && size < (int)sizeof files->directory
                   ? open_directory(files)
                   : status_make(STATUS_INVALID_ARGUMENT, "a directory is to be named");
    if (!status_is_ok(s)) {
        destroy(files);
        return s;
    }
    *out = (struct change_sink){
        .object = files, .add = add, .flush = flush, .tend = tend, .destroy = destroy};
    return s;
}
