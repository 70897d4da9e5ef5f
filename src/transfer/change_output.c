/* See change_output.h. */
#include "transfer/change_output.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    FULL_BYTES = 64 << 10,
    AT_ONCE = 4096, /* bytes: a pipe that is ready has room for so many */
    POLL_MS = 100,
};

struct change_output {
    int fd;
    bool (*gives_up)(void);
    struct buffer lines;
};

/* A write that blocked would hear of no signal: all that are looked for are blocked. */
static status wait_for_room(const struct change_output *output)
{
    struct pollfd room = {.fd = output->fd, .events = POLLOUT};
    while (poll(&room, 1, POLL_MS) == 0)
        if (output->gives_up())
            return status_make(STATUS_CANCELLED, "the output is not waited for any more");
    return status_ok();
}

static status write_all(struct change_output *output)
{
    const struct buffer *lines = &output->lines;
    for (size_t at = 0; at < lines->size;) {
        size_t left = lines->size - at;
        TRY(wait_for_room(output));
        ssize_t count = write(output->fd, lines->data + at, left < AT_ONCE ? left : AT_ONCE);
        if (count >= 0)
            at += (size_t)count;
        else if (errno == EPIPE)
            return status_make(STATUS_CANCELLED, "nobody reads the output any more");
        else if (errno != EINTR)
            return status_from_errno(errno, "cannot write the output");
    }
    return status_ok();
}

static status flush(void *object)
{
    struct change_output *output = object;
    TRY(write_all(output));
    buffer_clear(&output->lines);
    return status_ok();
}

static status add(void *object, const struct feed_change *change, bytes line)
{
    struct change_output *output = object;
    (void)change;
    buffer_append_bytes(&output->lines, line);
    if (output->lines.failed)
        return status_out_of_memory();
    return output->lines.size < FULL_BYTES ? status_ok() : flush(output);
}

static void destroy(void *object)
{
    struct change_output *output = object;
    buffer_free(&output->lines);
    free(output);
}

status change_output_create(int fd, bool (*gives_up)(void), struct change_sink *out)
{
    struct change_output *output = calloc(1, sizeof *output);
    if (output == NULL)
        return status_out_of_memory();
    output->fd = fd;
    output->gives_up = gives_up;
    *out = (struct change_sink){.object = output, .add = add, .flush = flush, .destroy = destroy};
    return status_ok();
}
