/* gRPC messages on their way in and out: the 5-byte prefix, compression, queues.
 *
 * A message to send lies in one piece of memory, which a `struct buffer` built:
 *
 *     struct message | … | flag (1) | length (4, big-endian) | body
 *     0                    GRPC_PREFIX_SIZE - 5                GRPC_PREFIX_SIZE
 *
 * so that it can be queued, and framed, where it is.
 *
 * One that is too large to be made at once goes as several of these: its prefix, then pieces of its
 * body, which have the room for a prefix in use (`GRPC_PIECE_SIZE`). */
#ifndef TRESTLE_WIRE_MESSAGE_H
#define TRESTLE_WIRE_MESSAGE_H

#include "base/list.h"
#include "base/status.h"
#include "wire/grpc.h"

struct message {
    struct link link;
    size_t size; /* of what is there of prefix and body */
};

enum { MESSAGE_WIRE_PREFIX = 5 };

static inline const uint8_t *message_data(const struct message *message)
{
    return (const uint8_t *)message + GRPC_PIECE_SIZE;
}

/* Takes the buffer's memory and makes it a message; NULL if the buffer has failed. With `gzip` the
 * body is compressed if it is worth it; without memory for that it goes as it is. */
struct message *message_seal(struct buffer *buffer, bool gzip);
/* The prefix alone, of a body of `body_size` bytes that comes in pieces. NULL without memory. */
struct message *message_announce(uint32_t body_size);
/* Takes the memory of a buffer that was begun with grpc_piece_start; NULL if it has failed. */
struct message *message_of_piece(struct buffer *buffer);
/* The size of the body that the message's prefix gives. */
uint32_t message_body_size(const struct message *message);
/* A copy of bytes that go without prefix: HTTP's. NULL without memory. */
struct message *message_of_bytes(bytes body);
void message_free(struct message *message); /* NULL is fine */

/* What reads messages out of a stream of bytes that comes in pieces. All zeroes is a fresh one. */
struct message_reader {
    size_t limit;       /* bytes of a body, inflated */
    struct buffer body; /* so far; whole after READER_MESSAGE */
    uint64_t left;      /* bytes of the body that are still to come on the wire */
    uint8_t prefix[MESSAGE_WIRE_PREFIX];
    uint8_t prefix_size;
    bool gzip;                   /* the peer has said that compressed messages are gzip */
    bool is_whole;               /* the body is to be cleared before the next prefix */
    struct z_stream_s *inflater; /* while a compressed body comes */
};

enum reader_event {
    READER_MORE,    /* all of the input has been used */
    READER_BEGIN,   /* a prefix is complete: `left` is the size to come */
    READER_MESSAGE, /* `body` is complete, and valid until the next step */
};

/* Takes from the front of `input` up to the next event. RESOURCE_EXHAUSTED if the body passes the
 * limit, or without memory; INTERNAL if this is no message. */
status message_reader_step(struct message_reader *reader, bytes *input, enum reader_event *event);

/* Whether the bytes so far end between two messages. */
static inline bool message_reader_is_between(const struct message_reader *reader)
{
    return reader->prefix_size == 0;
}

/* Back to a fresh one; keeps the body's memory if it is at most `keep` bytes. */
void message_reader_reset(struct message_reader *reader, size_t keep);

#endif
