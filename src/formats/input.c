/* See input.h. */
#include "formats/input.h"

#include "formats/content.h"
#include "formats/read_ahead.h"

#include <stdlib.h>

enum {
    TEXT_SIZE = 256 << 10, /* to begin with: a line may make it larger */
    AHEAD_AFTER = 1 << 20, /* bytes of text: what has less needs no thread */
};

struct input {
    struct content *content;  /* of the other thread while `ahead` is there */
    struct read_ahead *ahead; /* NULL: none yet, or none at all */
    bool ahead_is_known;      /* there is one, or there will be none */
    uint64_t text_bytes;      /* that have been read */
    struct buffer text;
    size_t at; /* of the text: what is before has been given out */
    uint64_t line_number;
    size_t line_most;
};

/* --- opening --- */

static status make_input(status s, struct content *content, struct input **out)
{
    *out = NULL;
    TRY(s);
    struct input *input = *out = calloc(1, sizeof *input);
    if (input == NULL) {
        content_close(content);
        return status_out_of_memory();
    }
    input->content = content;
    input->line_most = INPUT_LINE_MOST;
    return status_ok();
}

status input_open(const char *path, struct input **out)
{
    struct content *content = NULL;
    status s = content_open(path, &content);
    return make_input(s, content, out);
}

status input_open_bytes(bytes text, struct input **out)
{
    struct content *content = NULL;
    status s = content_open_bytes(text, &content);
    return make_input(s, content, out);
}

void input_close(struct input *input)
{
    if (input == NULL)
        return;
    read_ahead_destroy(input->ahead);
    content_close(input->content);
    buffer_free(&input->text);
    free(input);
}

/* --- reading ahead --- */

static status read_content(void *context, uint8_t *to, size_t room, size_t *made)
{
    return content_read(context, to, room, made);
}

static uint64_t content_position(void *context)
{
    return content_bytes_read(context);
}

/* Begins to read ahead; an input that cannot have another thread is read by this one. */
static void begin_reading_ahead(struct input *input)
{
    const struct read_ahead_source source = {
        .context = input->content, .read = read_content, .position = content_position};
    input->ahead_is_known = true;
    if (content_is_packed_file(input->content))
        status_ignore(read_ahead_create(&source, &input->ahead));
}

/* 0 bytes: the end. */
static status read_text(struct input *input, uint8_t *to, size_t room, size_t *made)
{
    if (input->text_bytes >= AHEAD_AFTER && !input->ahead_is_known)
        begin_reading_ahead(input);
    TRY(input->ahead != NULL ? read_ahead_take(input->ahead, to, room, made)
                             : content_read(input->content, to, room, made));
    input->text_bytes += *made;
    return status_ok();
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

/* Passes over the rest of a line that is too long. */
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

bool input_line_is_blank(bytes line)
{
    for (size_t i = 0; i < line.size; i++)
        if (strchr(" \t\r", line.data[i]) == NULL || line.data[i] == '\0')
            return false;
    return true;
}

uint64_t input_line_number(const struct input *input)
{
    return input->line_number;
}

uint64_t input_bytes_read(const struct input *input)
{
    return input->ahead != NULL ? read_ahead_position(input->ahead)
                                : content_bytes_read(input->content);
}

uint64_t input_bytes_total(const struct input *input)
{
    return content_bytes_total(input->content);
}
