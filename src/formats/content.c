/* See content.h. */
#include "formats/content.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum {
    RAW_SIZE = 64 << 10,
    AUTOMATIC_GZIP = 15 + 32,
};

struct content {
    char *path;
    int fd;
    bool is_file; /* no pipe, no terminal */
    uint64_t bytes_read;
    uint64_t bytes_total;

    /* The file as it lies there. */
    uint8_t raw[RAW_SIZE];
    bytes raw_left;
    bool raw_has_ended;

    /* What it says. */
    z_stream gzip;
    bool is_gzip;
    bool is_within_member;
    bool is_damaged; /* from here on */
};

static const char *shown_path(const struct content *content)
{
    return content->fd == STDIN_FILENO ? "standard input" : content->path;
}

/* --- the file --- */

static status fill_raw(struct content *content)
{
    ssize_t count;
    do
        count = read(content->fd, content->raw, RAW_SIZE);
    while (count < 0 && errno == EINTR);
    if (count < 0)
        return status_from_errno(errno, "cannot read %s", shown_path(content));
    content->raw_left = bytes_make(content->raw, (size_t)count);
    content->raw_has_ended = count == 0;
    content->bytes_read += (size_t)count;
    return status_ok();
}

static status need_raw(struct content *content)
{
    return content->raw_left.size > 0 || content->raw_has_ended ? status_ok() : fill_raw(content);
}

/* --- gzip --- */

static status damaged(const struct content *content, const char *what)
{
    return status_make(STATUS_DATA_LOSS, "%s: %s", shown_path(content), what);
}

/* Adds at most `room` bytes of text. */
static status inflate_some(struct content *content, uint8_t *to, size_t room, size_t *made)
{
    z_stream *gzip = &content->gzip;
    gzip->next_in = (Bytef *)(uintptr_t)content->raw_left.data;
    gzip->avail_in = (uInt)content->raw_left.size;
    gzip->next_out = to;
    gzip->avail_out = (uInt)room;
    int result = inflate(gzip, Z_NO_FLUSH);
    content->raw_left = bytes_from(content->raw_left, content->raw_left.size - gzip->avail_in);
    *made = room - gzip->avail_out;
    content->is_within_member = result != Z_STREAM_END;
    if (result == Z_STREAM_END)
        result = inflateReset(gzip);
    if (result == Z_MEM_ERROR)
        return status_out_of_memory();
    content->is_damaged = result != Z_OK && result != Z_BUF_ERROR;
    return status_ok();
}

static status read_gzip(struct content *content, uint8_t *to, size_t room, size_t *made)
{
    *made = 0;
    while (*made == 0) {
        if (content->is_damaged)
            return damaged(content, "the gzip data are damaged");
        TRY(need_raw(content));
        if (content->raw_left.size == 0)
            return content->is_within_member ? damaged(content, "the gzip data end too early")
                                             : status_ok();
        TRY(inflate_some(content, to, room, made));
    }
    return status_ok();
}

static status read_plain(struct content *content, uint8_t *to, size_t room, size_t *made)
{
    TRY(need_raw(content));
    *made = content->raw_left.size < room ? content->raw_left.size : room;
    if (*made > 0)
        memcpy(to, content->raw_left.data, *made);
    content->raw_left = bytes_from(content->raw_left, *made);
    return status_ok();
}

status content_read(struct content *content, uint8_t *to, size_t room, size_t *made)
{
    return content->is_gzip ? read_gzip(content, to, room, made)
                            : read_plain(content, to, room, made);
}

/* --- opening --- */

static status start_reading(struct content *content)
{
    content->is_gzip = bytes_start_with(content->raw_left, bytes_of("\x1f\x8b"));
    if (content->is_gzip && inflateInit2(&content->gzip, AUTOMATIC_GZIP) != Z_OK) {
        content->is_gzip = false;
        return status_out_of_memory();
    }
    return status_ok();
}

static status open_file(struct content *content)
{
    struct stat about;
    bool is_standard_input = strcmp(content->path, "-") == 0;
    content->fd = is_standard_input ? STDIN_FILENO : open(content->path, O_RDONLY | O_CLOEXEC);
    if (content->fd < 0 || fstat(content->fd, &about) != 0)
        return status_from_errno(errno, "cannot open %s", content->path);
    if (S_ISDIR(about.st_mode))
        return status_make(STATUS_INVALID_ARGUMENT, "%s is a directory", content->path);
    content->is_file = S_ISREG(about.st_mode);
    content->bytes_total = content->is_file ? (uint64_t)about.st_size : 0;
    TRY(fill_raw(content));
    return start_reading(content);
}

static status open_bytes(struct content *content, bytes text)
{
    content->raw_left = text;
    content->raw_has_ended = true;
    content->bytes_read = content->bytes_total = text.size;
    return start_reading(content);
}

static status make_content(const char *path, struct content **out)
{
    struct content *content = *out = calloc(1, sizeof *content);
    if (content == NULL)
        return status_out_of_memory();
    content->fd = -1;
    content->path = strdup(path);
    return content->path == NULL ? status_out_of_memory() : status_ok();
}

static status end_opening(status s, struct content **out)
{
    if (!status_is_ok(s)) {
        content_close(*out);
        *out = NULL;
    }
    return s;
}

status content_open(const char *path, struct content **out)
{
    status s = make_content(path, out);
    return end_opening(status_is_ok(s) ? open_file(*out) : s, out);
}

status content_open_bytes(bytes text, struct content **out)
{
    status s = make_content("bytes", out);
    return end_opening(status_is_ok(s) ? open_bytes(*out, text) : s, out);
}

void content_close(struct content *content)
{
    if (content == NULL)
        return;
    if (content->is_gzip)
        inflateEnd(&content->gzip);
    if (content->fd > STDIN_FILENO)
        close(content->fd);
    free(content->path);
    free(content);
}

/* --- how far --- */

bool content_is_packed_file(const struct content *content)
{
    return content->is_gzip && content->is_file;
}

uint64_t content_bytes_read(const struct content *content)
{
    return content->bytes_read - content->raw_left.size;
}

uint64_t content_bytes_total(const struct content *content)
{
    return content->bytes_total;
}
