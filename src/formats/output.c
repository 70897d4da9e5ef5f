/* See output.h. */
#include "formats/output.h"

#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { OUT_SIZE = 256 << 10, WITH_GZIP_HEADER = 15 + 16, MEMORY_LEVEL = 8 };

struct output {
    char *path;
    char *part; /* the file that is written; NULL: standard output */
    int fd;
    uint64_t length; /* of what has been written */
    bool is_gzip;
    bool is_within_member;
    z_stream gzip;
    size_t count; /* of bytes that wait in `raw` */
    uint8_t raw[OUT_SIZE];
};

static const char *shown_path(const struct output *output)
{
    return output->part == NULL ? "standard output" : output->part;
}

/* --- bytes --- */

static status write_all(struct output *output, bytes b)
{
    while (b.size > 0) {
        ssize_t count = write(output->fd, b.data, b.size);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return status_from_errno(errno, "cannot write %s", shown_path(output));
        b = bytes_from(b, (size_t)count);
        output->length += (size_t)count;
    }
    return status_ok();
}

static status write_raw(struct output *output)
{
    size_t count = output->count;
    output->count = 0;
    return write_all(output, bytes_make(output->raw, count));
}

static status write_plain(struct output *output, bytes text)
{
    if (output->count + text.size > OUT_SIZE)
        TRY(write_raw(output));
    if (text.size > OUT_SIZE)
        return write_all(output, text);
    if (text.size > 0)
        memcpy(output->raw + output->count, text.data, text.size);
    output->count += text.size;
    return status_ok();
}

/* --- gzip --- */

static status deflate_some(struct output *output, int flush, int *result)
{
    z_stream *gzip = &output->gzip;
    if (output->count == OUT_SIZE)
        TRY(write_raw(output));
    gzip->next_out = output->raw + output->count;
    gzip->avail_out = (uInt)(OUT_SIZE - output->count);
    *result = deflate(gzip, flush);
    output->count = OUT_SIZE - gzip->avail_out;
    return *result == Z_STREAM_ERROR ? status_make(STATUS_INTERNAL, "zlib failed") : status_ok();
}

static status write_gzip(struct output *output, bytes text)
{
    enum { STEP = 1 << 30 };
    int result;
    output->is_within_member |= text.size > 0;
    while (text.size > 0) {
        size_t size = text.size < STEP ? text.size : STEP;
        output->gzip.next_in = (Bytef *)(uintptr_t)text.data;
        output->gzip.avail_in = (uInt)size;
        while (output->gzip.avail_in > 0)
            TRY(deflate_some(output, Z_NO_FLUSH, &result));
        text = bytes_from(text, size);
    }
    return status_ok();
}

static status end_member(struct output *output)
{
    int result = Z_OK;
    if (!output->is_within_member)
        return status_ok();
    output->gzip.avail_in = 0;
    while (result != Z_STREAM_END)
        TRY(deflate_some(output, Z_FINISH, &result));
    output->is_within_member = false;
    return deflateReset(&output->gzip) == Z_OK ? status_ok()
                                               : status_make(STATUS_INTERNAL, "zlib failed");
}

status output_write(struct output *output, bytes text)
{
    return output->is_gzip ? write_gzip(output, text) : write_plain(output, text);
}

/* --- the file --- */

status output_sync(struct output *output, uint64_t *length)
{
    if (output->is_gzip) {
        output->is_within_member |= output->length == 0; /* of nothing, too, there is one */
        TRY(end_member(output));
    }
    TRY(write_raw(output));
    *length = output->length;
    if (output->part == NULL || fsync(output->fd) == 0)
        return status_ok();
    return status_from_errno(errno, "cannot sync %s", output->part);
}

status output_finish(struct output *output)
{
    if (output->part == NULL)
        return status_ok();
    if (rename(output->part, output->path) != 0)
        return status_from_errno(errno, "cannot put %s into its place", output->part);
    return file_sync_parent(output->path); /* the new name is durable, too */
}

static status cut(struct output *output, uint64_t length)
{
    struct stat about;
    if (fstat(output->fd, &about) != 0)
        return status_from_errno(errno, "cannot look at %s", output->part);
    if ((uint64_t)about.st_size < length)
        return status_make(STATUS_DATA_LOSS, "%s has become shorter than the checkpoint says",
                           output->part);
    if (ftruncate(output->fd, (off_t)length) != 0 || lseek(output->fd, 0, SEEK_END) < 0)
        return status_from_errno(errno, "cannot cut %s", output->part);
    output->length = length;
    return status_ok();
}

/* The file is in its place, as the step of this length left it: it becomes a part again. */
static status take_back(struct output *output, uint64_t length)
{
    struct stat about;
    bool is_whole = length > 0 && access(output->part, F_OK) != 0 &&
                    stat(output->path, &about) == 0 && (uint64_t)about.st_size == length;
    if (!is_whole || rename(output->path, output->part) == 0)
        return status_ok();
    return status_from_errno(errno, "cannot rename %s", output->path);
}

static status open_part(struct output *output, uint64_t length)
{
    size_t size = strlen(output->path) + sizeof ".part";
    output->part = malloc(size);
    if (output->part == NULL)
        return status_out_of_memory();
    snprintf(output->part, size, "%s.part", output->path);
    TRY(take_back(output, length));
    int begin = length == 0 ? O_CREAT : 0;
    output->fd = open(output->part, O_WRONLY | O_CLOEXEC | begin, 0666);
    if (output->fd < 0)
        return status_from_errno(errno, "cannot write %s", output->part);
    return cut(output, length);
}

static status open_output(struct output *output, uint64_t length)
{
    output->fd = -1;
    if (output->path == NULL)
        return status_out_of_memory();
    if (strcmp(output->path, "-") == 0)
        output->fd = STDOUT_FILENO;
    else
        TRY(open_part(output, length));
    if (output->is_gzip &&
        deflateInit2(&output->gzip, Z_DEFAULT_COMPRESSION, Z_DEFLATED, WITH_GZIP_HEADER,
                     MEMORY_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK) {
        output->is_gzip = false;
        return status_out_of_memory();
    }
    return status_ok();
}

status output_open(const char *path, bool is_gzip, uint64_t length, struct output **out)
{
    struct output *output = *out = calloc(1, sizeof *output);
    if (output == NULL)
        return status_out_of_memory();
    output->path = strdup(path);
    output->is_gzip = is_gzip;
    status s = open_output(output, length);
    if (status_is_ok(s))
        return s;
    output_close(output);
    *out = NULL;
    return s;
}

void output_close(struct output *output)
{
    if (output == NULL)
        return;
    if (output->is_gzip)
        deflateEnd(&output->gzip);
    if (output->fd > STDERR_FILENO)
        close(output->fd);
    free(output->path);
    free(output->part);
    free(output);
}
