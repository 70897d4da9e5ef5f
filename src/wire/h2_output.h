/* The output of an HTTP/2 session, in batches of vectors for one write each.
 *
 * A batch is made of what nghttp2 gives, until that is all or the batch is full; then it is sent,
 * to its last byte, before the next is made. Small things (frame headers, HEADERS, short messages)
 * are copied together; of longer messages the batch only points to the memory.
 *
 * Invariants
 *  1. Memory that a batch points to is not freed before the batch is sent: a message that is
 *     finished with goes through h2_output_retire.
 *  2. A batch that has room has it for the largest frame.
 *  3. An output has memory for a batch only while there is one: most connections have nothing to
 *     say most of the time, and ten thousand of them would hold 650 MB. */
#ifndef TRESTLE_WIRE_H2_OUTPUT_H
#define TRESTLE_WIRE_H2_OUTPUT_H

#include "base/status.h"
#include "wire/message.h"

#include <nghttp2/nghttp2.h>
#include <sys/uio.h>

enum { H2_STAGING_SIZE = 64 << 10, H2_PIECES = 64 };

struct h2_batch {
    struct h2_batch *next; /* while it is kept */
    struct iovec pieces[H2_PIECES];
    uint8_t staging[H2_STAGING_SIZE];
};

/* Memory of batches that have been sent, for the next ones: of all outputs of one thread. All
 * zeroes is none. */
struct h2_batches {
    struct h2_batch *kept;
    size_t count; /* of these */
};

struct h2_output {
    struct h2_batches *batches; /* set by the owner, and outlives the output */
    struct h2_batch *batch;     /* NULL: there is none, and `size` is 0 */
    size_t size;                /* bytes of the batch that are not sent yet */
    size_t staged;              /* bytes of `staging` that the batch uses */
    size_t first_piece;         /* the first that is not sent */
    size_t piece_count;
    struct list retired;
};

/* When all outputs have been abandoned: frees what is kept. */
void h2_batches_free(struct h2_batches *batches);

/* Messages of one stream, in order, that wait to be framed. All zeroes is an empty queue. */
struct message_queue {
    struct list messages;
    size_t framed; /* bytes of the first message that have been framed */
    size_t size;   /* bytes that have not, of all */
};

/* Makes a batch if there is none. False if the session has failed for good, or memory is short. */
__attribute__((warn_unused_result)) bool h2_output_fill(struct h2_output *output,
                                                        nghttp2_session *session);
size_t h2_output_vectors(const struct h2_output *output, struct iovec *vectors, size_t capacity);
void h2_output_sent(struct h2_output *output, size_t size);

/* Frees the message now, or when the batch that may point into it has been sent. */
void h2_output_retire(struct h2_output *output, struct message *message);

/* Frees what is retired; after this the batch is empty. */
void h2_output_abandon(struct h2_output *output);

void message_queue_append(struct message_queue *queue, struct message *message);
void message_queue_clear(struct message_queue *queue, struct h2_output *output);

/* For nghttp2's send_data_callback: appends one DATA frame, its header and `length` bytes from the
 * front of the queue. False, and nothing done, if the batch is full. */
__attribute__((warn_unused_result)) bool h2_output_frame(struct h2_output *output,
                                                         const uint8_t *frame_header,
                                                         struct message_queue *queue,
                                                         size_t length);

#endif
