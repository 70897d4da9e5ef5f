/* See h2_output.h. */
#include "wire/h2_output.h"

#include "base/check.h"
#include "base/limits.h"

#include <stdlib.h>

enum {
    FRAME_HEADER = 9,
    LARGEST_FRAME = FRAME_HEADER + 1 + (16 << 10), /* of those that nghttp2 makes */
    COPY_BELOW = 4 << 10, /* a vector costs the kernel as much as copying a few KB */
    /* A frame's payload is at most four parts that are pointed to, copies before, between and
     * after them. */
    PIECES_A_FRAME = 2 * (LARGEST_FRAME / COPY_BELOW) + 2,
};

/* --- memory --- */

static struct h2_batch *take_batch(struct h2_batches *batches)
{
    struct h2_batch *batch = batches->kept;
    if (batch == NULL)
        return malloc(sizeof *batch);
    batches->kept = batch->next;
    batches->count--;
    return batch;
}

static void give_back(struct h2_batches *batches, struct h2_batch *batch)
{
    if (batch == NULL)
        return;
    if (batches->count == LIMIT_SPARE_BATCHES) {
        free(batch);
        return;
    }
    batch->next = batches->kept;
    batches->kept = batch;
    batches->count++;
}

void h2_batches_free(struct h2_batches *batches)
{
    while (batches->kept != NULL)
        free(take_batch(batches));
}

/* --- a batch --- */

static bool has_room(const struct h2_output *output)
{
    return output->size < LIMIT_CONNECTION_OUTPUT_BYTES &&
           H2_STAGING_SIZE - output->staged >= LARGEST_FRAME &&
           H2_PIECES - output->piece_count >= PIECES_A_FRAME;
}

/* Adds to the last piece if the memory is adjacent. */
static void add_piece(struct h2_output *output, const void *data, size_t size)
{
    output->size += size;
    if (output->piece_count > 0) {
        struct iovec *last = &output->batch->pieces[output->piece_count - 1];
        if ((const uint8_t *)last->iov_base + last->iov_len == data) {
            last->iov_len += size;
            return;
        }
    }
    CHECK(output->piece_count < H2_PIECES);
    union { /* an iovec for writing has no const */
        const void *given;
        void *wanted;
    } pointer = {.given = data};
    output->batch->pieces[output->piece_count++] =
        (struct iovec){.iov_base = pointer.wanted, .iov_len = size};
}

static void copy(struct h2_output *output, const uint8_t *data, size_t size)
{
    CHECK(size <= H2_STAGING_SIZE - output->staged);
    uint8_t *to = output->batch->staging + output->staged;
    memcpy(to, data, size);
    output->staged += size;
    add_piece(output, to, size);
}

static bool fill(struct h2_output *output, nghttp2_session *session)
{
    while (has_room(output)) {
        const uint8_t *frame;
        ssize_t size = nghttp2_session_mem_send(session, &frame);
        if (size < 0)
            return false;
        if (size == 0)
            break;
        copy(output, frame, (size_t)size);
    }
    return true;
}

bool h2_output_fill(struct h2_output *output, nghttp2_session *session)
{
    if (output->size > 0)
        return true;
    CHECK(output->piece_count == 0); /* those of the batch before have gone */
    output->batch = take_batch(output->batches);
    if (output->batch == NULL)
        return false;
    bool is_fine = fill(output, session);
    if (output->size == 0)
        h2_output_abandon(output);
    return is_fine;
}

size_t h2_output_vectors(const struct h2_output *output, struct iovec *vectors, size_t capacity)
{
    size_t count = output->piece_count - output->first_piece;
    if (count > capacity)
        count = capacity;
    if (count > 0)
        memcpy(vectors, output->batch->pieces + output->first_piece, count * sizeof *vectors);
    return count;
}

void h2_output_abandon(struct h2_output *output)
{
    struct link *link;
    while ((link = list_take(&output->retired)) != NULL)
        message_free(LIST_ENTRY(link, struct message, link));
    give_back(output->batches, output->batch);
    output->batch = NULL;
    output->size = 0;
    output->staged = 0;
    output->first_piece = 0;
    output->piece_count = 0;
}

void h2_output_sent(struct h2_output *output, size_t size)
{
    CHECK(size <= output->size);
    output->size -= size;
    if (output->size == 0) {
        h2_output_abandon(output);
        return;
    }
    struct iovec *piece = output->batch->pieces + output->first_piece;
    for (; size >= piece->iov_len; piece++) {
        size -= piece->iov_len;
        output->first_piece++;
    }
    piece->iov_base = (uint8_t *)piece->iov_base + size;
    piece->iov_len -= size;
}

void h2_output_retire(struct h2_output *output, struct message *message)
{
    if (output->size > 0)
        list_append(&output->retired, &message->link);
    else
        message_free(message);
}

void message_queue_append(struct message_queue *queue, struct message *message)
{
    queue->size += message->size;
    list_append(&queue->messages, &message->link);
}

void message_queue_clear(struct message_queue *queue, struct h2_output *output)
{
    struct link *link;
    while ((link = list_take(&queue->messages)) != NULL)
        h2_output_retire(output, LIST_ENTRY(link, struct message, link));
    queue->size = 0;
    queue->framed = 0;
}

static void frame_part(struct h2_output *output, struct message_queue *queue, size_t size)
{
    struct message *message = LIST_ENTRY(queue->messages.first, struct message, link);
    const uint8_t *data = message_data(message) + queue->framed;
    if (size < COPY_BELOW)
        copy(output, data, size);
    else
        add_piece(output, data, size);
    queue->framed += size;
    queue->size -= size;
    if (queue->framed < message->size)
        return;
    list_take(&queue->messages);
    queue->framed = 0;
    h2_output_retire(output, message);
}

bool h2_output_frame(struct h2_output *output, const uint8_t *frame_header,
                     struct message_queue *queue, size_t length)
{
    if (!has_room(output))
        return false;
    CHECK(length <= queue->size);
    copy(output, frame_header, FRAME_HEADER);
    while (length > 0) {
        struct message *first = LIST_ENTRY(queue->messages.first, struct message, link);
        size_t size = first->size - queue->framed;
        if (size > length)
            size = length;
        frame_part(output, queue, size);
        length -= size;
    }
    return true;
}
