/* See rotated_file.h.
 *
 * Invariant: `fd` is open, also when renaming or opening again has failed: lines then go on into
 * the file that it was, and the next attempt is `bytes_most` later. */
#include "os/rotated_file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAME_SIZE = 4096 };

struct rotated_file {
    struct rotated_file_options options;
    pthread_mutex_t lock; /* of what follows */
    int fd;
    int64_t size;
    int64_t full_at; /* the size beyond which it is renamed; INT64_MAX: none */
};

static int64_t size_of(int fd)
{
    struct stat about;
    return fstat(fd, &about) == 0 ? (int64_t)about.st_size : 0;
}

/* Makes it the file that is written, in place of the one before. */
static status open_path(struct rotated_file *file)
{
    const struct rotated_file_options *options = &file->options;
    int fd = open(options->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (fd < 0)
        return status_from_errno(errno, "cannot open %s", options->path);
    if (file->fd >= 0)
        close(file->fd);
    file->fd = fd;
    file->size = size_of(fd);
    file->full_at = options->bytes_most == 0 ? INT64_MAX : options->bytes_most;
    return status_ok();
}

status rotated_file_open(const struct rotated_file_options *options, struct rotated_file **out)
{
    struct rotated_file *file = malloc(sizeof *file);
    *out = NULL;
    if (file == NULL)
        return status_out_of_memory();
    *file = (struct rotated_file){.options = *options, .lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1};
    status s = open_path(file);
    if (!status_is_ok(s)) {
        free(file);
        return s;
    }
    *out = file;
    return s;
}

void rotated_file_close(struct rotated_file *file)
{
    if (file == NULL)
        return;
    close(file->fd);
    pthread_mutex_destroy(&file->lock);
    free(file);
}

status rotated_file_reopen(struct rotated_file *file)
{
    pthread_mutex_lock(&file->lock);
    status s = open_path(file);
    pthread_mutex_unlock(&file->lock);
    return s;
}

/* --- renaming --- */

/* The name of the file that was renamed `age` times; the path itself for 0. */
static bool name_of(const struct rotated_file *file, int64_t age, char name[NAME_SIZE])
{
    const char *path = file->options.path;
    int size = age == 0 ? snprintf(name, NAME_SIZE, "%s", path)
                        : snprintf(name, NAME_SIZE, "%s.%lld", path, (long long)age);
    return size < NAME_SIZE;
}

static status make_older(const struct rotated_file *file, int64_t age)
{
    char from[NAME_SIZE], to[NAME_SIZE];
    if (!name_of(file, age, from) || !name_of(file, age + 1, to))
        return status_make(STATUS_INVALID_ARGUMENT, "the name is too long");
    if (rename(from, to) != 0 && errno != ENOENT)
        return status_from_errno(errno, "cannot rename %s", from);
    return status_ok();
}

static status begin_anew(struct rotated_file *file)
{
    for (int64_t age = file->options.older_most - 1; age >= 0; age--)
        TRY(make_older(file, age));
    return open_path(file);
}

static void make_room(struct rotated_file *file, size_t wanted)
{
    if (file->size == 0 || file->size + (int64_t)wanted <= file->full_at)
        return;
    status s = begin_anew(file);
    if (!status_is_ok(s)) {
        file->full_at = file->size + file->options.bytes_most;
        log_error(file->options.log, "file grows beyond its size",
                  LOG_STR("file", file->options.path), LOG_STR("error", status_message(s)));
    }
    status_free(s);
}

/* --- writing --- */

/* Half a line would make the next one unreadable, too. */
static void take_back(const struct rotated_file *file, ssize_t written)
{
    off_t end = lseek(file->fd, 0, SEEK_CUR);
    if (written > 0 && end >= written && ftruncate(file->fd, end - written) != 0)
        log_error(file->options.log, "half a line is in a file",
                  LOG_STR("file", file->options.path), LOG_STR("error", strerrordesc_np(errno)));
}

static bool write_whole(struct rotated_file *file, bytes line)
{
    ssize_t written = write(file->fd, line.data, line.size);
    if (written == (ssize_t)line.size) {
        file->size += written;
        return true;
    }
    take_back(file, written);
    return false;
}

bool rotated_file_write(struct rotated_file *file, bytes line)
{
    pthread_mutex_lock(&file->lock);
    make_room(file, line.size);
    bool is_whole = write_whole(file, line);
    pthread_mutex_unlock(&file->lock);
    return is_whole;
}
