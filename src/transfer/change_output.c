/* See change_output.h. */
#include "transfer/change_output.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

enum { FULL_BYTES = 64 << 10 };

struct change_output {
    int fd;
    struct buffer lines;
};

static status write_all(struct change_output *output)
{
    const struct buffer *lines = &output->lines;
    for (size_t at = 0; at < lines->size;) {
        ssize_t count = write(output->fd, lines->data + at, lines->size - at);
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

status change_output_create(int fd, struct change_sink *out)
{
    struct change_output *output = calloc(1, sizeof *output);
    if (output == NULL)
        return status_out_of_memory();
    output->fd = fd;
    *out = (struct change_sink){.object = output, .add = add, .flush = flush, .destroy = destroy};
    return status_ok();
}
