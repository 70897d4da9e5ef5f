/* See input.h. */
#include "move/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum {
    RAW_SIZE = 64 << 10,
    TEXT_SIZE = 256 << 10, /* to begin with: a line may make it larger */
    AUTOMATIC_GZIP = 15 + 32,
};

struct input {
    char *path;
    int fd;
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
    struct buffer text;
    size_t at; /* of the text: what is before has been given out */
    uint64_t line_number;
    size_t line_most;
};

static const char *shown_path(const struct input *input)
{
    return input->fd == STDIN_FILENO ? "standard input" : input->path;
}

/* --- the file --- */

static status fill_raw(struct input *input)
{
    ssize_t count;
    do
        count = read(input->fd, input->raw, RAW_SIZE);
    while (count < 0 && errno == EINTR);
    if (count < 0)
        return status_from_errno(errno, "cannot read %s", shown_path(input));
    input->raw_left = bytes_make(input->raw, (size_t)count);
    input->raw_has_ended = count == 0;
    input->bytes_read += (size_t)count;
    return status_ok();
}

static status need_raw(struct input *input)
{
    return input->raw_left.size > 0 || input->raw_has_ended ? status_ok() : fill_raw(input);
}

/* --- gzip --- */

static status damaged(const struct input *input, const char *what)
{
    return status_make(STATUS_DATA_LOSS, "%s: %s", shown_path(input), what);
}

/* Adds at most `room` bytes of text. */
static status inflate_some(struct input *input, uint8_t *to, size_t room, size_t *made)
{
    z_stream *gzip = &input->gzip;
    gzip->next_in = (Bytef *)(uintptr_t)input->raw_left.data;
    gzip->avail_in = (uInt)input->raw_left.size;
    gzip->next_out = to;
    gzip->avail_out = (uInt)room;
    int result = inflate(gzip, Z_NO_FLUSH);
    input->raw_left = bytes_from(input->raw_left, input->raw_left.size - gzip->avail_in);
    *made = room - gzip->avail_out;
    input->is_within_member = result != Z_STREAM_END;
    if (result == Z_STREAM_END)
        result = inflateReset(gzip);
    if (result == Z_MEM_ERROR)
        return status_out_of_memory();
    return result == Z_OK || result == Z_BUF_ERROR ? status_ok()
                                                   : damaged(input, "the gzip data are damaged");
}

static status read_gzip(struct input *input, uint8_t *to, size_t room, size_t *made)
{
    *made = 0;
    while (*made == 0) {
        TRY(need_raw(input));
        if (input->raw_left.size == 0)
            return input->is_within_member ? damaged(input, "the gzip data end too early")
                                           : status_ok();
        TRY(inflate_some(input, to, room, made));
    }
    return status_ok();
}

static status read_plain(struct input *input, uint8_t *to, size_t room, size_t *made)
{
    TRY(need_raw(input));
    *made = input->raw_left.size < room ? input->raw_left.size : room;
    if (*made > 0)
        memcpy(to, input->raw_left.data, *made);
    input->raw_left = bytes_from(input->raw_left, *made);
    return status_ok();
}

/* 0 bytes: the end. */
static status read_text(struct input *input, uint8_t *to, size_t room, size_t *made)
{
    return input->is_gzip ? read_gzip(input, to, room, made) : read_plain(input, to, room, made);
}

/* --- opening --- */

static status start_reading(struct input *input)
{
    input->is_gzip = bytes_start_with(input->raw_left, bytes_of("\x1f\x8b"));
    if (input->is_gzip && inflateInit2(&input->gzip, AUTOMATIC_GZIP) != Z_OK) {
        input->is_gzip = false;
        return status_out_of_memory();
    }
    return status_ok();
}

static status open_file(struct input *input)
{
    struct stat about;
    bool is_standard_input = strcmp(input->path, "-") == 0;
    input->fd = is_standard_input ? STDIN_FILENO : open(input->path, O_RDONLY | O_CLOEXEC);
    if (input->fd < 0 || fstat(input->fd, &about) != 0)
        return status_from_errno(errno, "cannot open %s", input->path);
    if (S_ISDIR(about.st_mode))
        return status_make(STATUS_INVALID_ARGUMENT, "%s is a directory", input->path);
    input->bytes_total = S_ISREG(about.st_mode) ? (uint64_t)about.st_size : 0;
    TRY(fill_raw(input));
    return start_reading(input);
}

static status open_bytes(struct input *input, bytes content)
{
    input->raw_left = content;
    input->raw_has_ended = true;
    input->bytes_read = input->bytes_total = content.size;
    return start_reading(input);
}

static status make_input(const char *path, struct input **out)
{
    struct input *input = *out = calloc(1, sizeof *input);
    if (input == NULL)
        return status_out_of_memory();
    input->fd = -1;
    input->line_most = INPUT_LINE_MOST;
    input->path = strdup(path);
    return input->path == NULL ? status_out_of_memory() : status_ok();
}

static status end_opening(status s, struct input **out)
{
    if (!status_is_ok(s)) {
        input_close(*out);
        *out = NULL;
    }
    return s;
}

status input_open(const char *path, struct input **out)
{
    status s = make_input(path, out);
    return end_opening(status_is_ok(s) ? open_file(*out) : s, out);
}

status input_open_bytes(bytes content, struct input **out)
{
    status s = make_input("bytes", out);
    return end_opening(status_is_ok(s) ? open_bytes(*out, content) : s, out);
}

void input_close(struct input *input)
{
    if (input == NULL)
        return;
    if (input->is_gzip)
        inflateEnd(&input->gzip);
    if (input->fd > STDIN_FILENO)
        close(input->fd);
    buffer_free(&input->text);
    free(input->path);
    free(input);
}

/* --- reading --- */

/* Brings more text behind what there is; `*is_end`: there is no more. */
static status more_text(struct input *input, bool *is_end)
{
    struct buffer *text = &input->text;
    size_t made;
    if (input->at > 0) {
        memmove(text->data, text->data + input->at, text->size - input->at);
        text->size -= input->at;
        input->at = 0;
    }
    uint8_t *to = buffer_reserve(text, TEXT_SIZE);
    if (to == NULL)
        return status_out_of_memory();
    TRY(read_text(input, to, TEXT_SIZE, &made));
    text->size += made;
    *is_end = made == 0;
    return status_ok();
}

static bytes without_return(const uint8_t *data, size_t size)
{
    return bytes_make(data, size > 0 && data[size - 1] == '\r' ? size - 1 : size);
}

/* What is left of a line that is too long. */
static status pass_over(struct input *input)
{
    const uint8_t *feed = NULL;
    bool has_ended = false;
    while (feed == NULL && !has_ended) {
        input->at = input->text.size;
        TRY(more_text(input, &has_ended));
        if (input->text.size > 0)
            feed = memchr(input->text.data, '\n', input->text.size);
    }
    input->at = feed != NULL ? (size_t)(feed - input->text.data) + 1 : input->text.size;
    input->line_number++;
    return status_make(STATUS_OUT_OF_RANGE, "the line has more than %zu bytes", input->line_most);
}

status input_line(struct input *input, bytes *line, bool *is_end)
{
    size_t searched = 0;
    bool has_ended = false;
    const uint8_t *feed = NULL;
    *is_end = false;
    for (;;) {
        size_t left = input->text.size - input->at;
        if (left > searched)
            feed = memchr(input->text.data + input->at + searched, '\n', left - searched);
        if (feed != NULL || has_ended)
            break;
        if (left > input->line_most)
            return pass_over(input);
        searched = left;
        TRY(more_text(input, &has_ended));
    }
    const uint8_t *start = input->text.data + input->at;
    size_t size = feed != NULL ? (size_t)(feed - start) : input->text.size - input->at;
    *is_end = feed == NULL && size == 0;
    *line = without_return(start, size);
    input->at += size + (feed != NULL);
    input->line_number += !*is_end;
    return status_ok();
}

status input_read(struct input *input, uint8_t *to, size_t size, size_t *taken)
{
    *taken = 0;
    while (*taken < size) {
        size_t made;
        TRY(read_text(input, to + *taken, size - *taken, &made));
        if (made == 0)
            break;
        *taken += made;
    }
    return status_ok();
}

void input_limit_lines(struct input *input, size_t most)
{
    input->line_most = most;
}

size_t input_line_limit(const struct input *input)
{
    return input->line_most;
}

uint64_t input_line_number(const struct input *input)
{
    return input->line_number;
}

uint64_t input_bytes_read(const struct input *input)
{
    return input->bytes_read - input->raw_left.size;
}

uint64_t input_bytes_total(const struct input *input)
{
    return input->bytes_total;
}
