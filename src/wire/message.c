/* Messages and their reader: see message.h. */
#include "wire/message.h"

#include "base/check.h"

#include <stdlib.h>

#define ZLIB_CONST /* zlib then takes input that is const */
#include <zlib.h>

enum {
    GZIP_WINDOW = 15 + 16,   /* zlib's way to say: the gzip format, 32 KiB of window */
    GZIP_MEMORY = 8,         /* zlib's default */
    COMPRESS_FROM = 1 << 10, /* smaller bodies are not worth the time */
    GROW_BY = 64 << 10,      /* a body's memory follows what came, not what was promised */
};

_Static_assert(sizeof(struct message) + MESSAGE_WIRE_PREFIX <= GRPC_PREFIX_SIZE,
               "the queue's link and the prefix must fit before the body");

/* --- to send --- */

void grpc_message_start(struct buffer *message)
{
    buffer_clear(message);
    if (buffer_reserve(message, GRPC_PREFIX_SIZE) != NULL)
        message->size = GRPC_PREFIX_SIZE;
}

void grpc_piece_start(struct buffer *piece)
{
    buffer_clear(piece);
    if (buffer_reserve(piece, GRPC_PIECE_SIZE) != NULL)
        piece->size = GRPC_PIECE_SIZE;
}

static void write_prefix(struct message *message, bool compressed, size_t body_size)
{
    uint8_t *prefix = (uint8_t *)message + GRPC_PIECE_SIZE;
    prefix[0] = compressed;
    for (int i = 0; i < 4; i++)
        prefix[1 + i] = (uint8_t)(body_size >> (24 - 8 * i));
}

uint32_t message_body_size(const struct message *message)
{
    const uint8_t *size = message_data(message) + 1;
    return (uint32_t)size[0] << 24 | (uint32_t)size[1] << 16 | (uint32_t)size[2] << 8 | size[3];
}

/* Appends `body` in gzip to `to`, only if it gets smaller. */
static bool deflate_body(bytes body, struct buffer *to)
{
    z_stream stream = {0};
    if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, GZIP_WINDOW, GZIP_MEMORY,
                     Z_DEFAULT_STRATEGY) != Z_OK)
        return false;
    bool smaller = false;
    uint8_t *out = buffer_reserve(to, body.size);
    if (out != NULL && body.size <= UINT32_MAX) {
        stream.next_in = body.data;
        stream.avail_in = (uInt)body.size;
        stream.next_out = out;
        stream.avail_out = (uInt)body.size - 1;
        smaller = deflate(&stream, Z_FINISH) == Z_STREAM_END;
        to->size += stream.total_out;
    }
    deflateEnd(&stream);
    return smaller;
}

/* Replaces the buffer by one with a compressed body, and says so; or leaves it. */
static bool compress_buffer(struct buffer *buffer)
{
    bytes body = bytes_from(buffer_bytes(buffer), GRPC_PREFIX_SIZE);
    if (body.size < COMPRESS_FROM)
        return false;
    struct buffer packed = {0};
    grpc_message_start(&packed);
    if (!deflate_body(body, &packed)) {
        buffer_free(&packed);
        return false;
    }
    buffer_free(buffer);
    *buffer = packed;
    return true;
}

struct message *message_seal(struct buffer *buffer, bool gzip)
{
    CHECK(buffer->failed || buffer->size >= GRPC_PREFIX_SIZE);
    if (buffer->failed || buffer->size - GRPC_PREFIX_SIZE > UINT32_MAX) {
        buffer_free(buffer);
        return NULL;
    }
    bool compressed = gzip && compress_buffer(buffer);
    size_t body_size = buffer->size - GRPC_PREFIX_SIZE;
    struct message *message = message_of_piece(buffer);
    write_prefix(message, compressed, body_size);
    return message;
}

struct message *message_of_piece(struct buffer *buffer)
{
    CHECK(buffer->failed || buffer->size >= GRPC_PIECE_SIZE);
    if (buffer->failed) {
        buffer_free(buffer);
        return NULL;
    }
    struct message *message = (struct message *)(void *)buffer->data;
    message->size = buffer->size - GRPC_PIECE_SIZE;
    *buffer = (struct buffer){0};
    return message;
}

struct message *message_announce(uint32_t body_size)
{
    struct message *message = malloc(GRPC_PREFIX_SIZE);
    if (message == NULL)
        return NULL;
    write_prefix(message, false, body_size);
    message->size = MESSAGE_WIRE_PREFIX;
    return message;
}

struct message *message_of_bytes(bytes body)
{
    struct message *message = malloc(GRPC_PIECE_SIZE + body.size);
    if (message == NULL)
        return NULL;
    message->size = body.size;
    if (body.size > 0)
        memcpy((uint8_t *)message + GRPC_PIECE_SIZE, body.data, body.size);
    return message;
}

void message_free(struct message *message)
{
    free(message);
}

/* --- to receive --- */

static void end_inflating(struct message_reader *reader)
{
    if (reader->inflater == NULL)
        return;
    inflateEnd(reader->inflater);
    free(reader->inflater);
    reader->inflater = NULL;
}

static status begin_inflating(struct message_reader *reader)
{
    z_stream *stream = calloc(1, sizeof *stream);
    if (stream == NULL || inflateInit2(stream, GZIP_WINDOW) != Z_OK) {
        free(stream);
        return status_out_of_memory();
    }
    reader->inflater = stream;
    return status_ok();
}

static status too_large(const struct message_reader *reader)
{
    return status_make(STATUS_RESOURCE_EXHAUSTED, "a message is larger than %zu bytes",
                       reader->limit);
}

static status begin_body(struct message_reader *reader)
{
    enum { PLAIN = 0, COMPRESSED = 1 };
    const uint8_t *p = reader->prefix;
    reader->left = (uint32_t)p[1] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 8 | p[4];
    if (reader->left > reader->limit)
        return too_large(reader);
    if (p[0] == PLAIN)
        return status_ok();
    if (p[0] != COMPRESSED)
        return status_make(STATUS_INTERNAL, "a message's first byte is %d", p[0]);
    if (!reader->gzip)
        return status_make(STATUS_INTERNAL, "a message is compressed, but no grpc-encoding is set");
    return begin_inflating(reader);
}

static status append_plain(struct message_reader *reader, bytes piece)
{
    struct buffer *body = &reader->body;
    if (piece.size > body->capacity - body->size) {
        size_t grow = body->size > GROW_BY ? body->size : GROW_BY;
        if (buffer_reserve(body, reader->left < grow ? (size_t)reader->left : grow) == NULL)
            return status_out_of_memory();
    }
    buffer_append_bytes(body, piece);
    return body->failed ? status_out_of_memory() : status_ok();
}

/* One call of inflate. `body` has room for one byte beyond the limit, which shows that a bomb is
 * one without ever holding more of it. */
static status inflate_some(struct message_reader *reader, bool *more)
{
    struct buffer *body = &reader->body;
    z_stream *stream = reader->inflater;
    size_t room = body->size > GROW_BY ? body->size : GROW_BY;
    if (room > reader->limit + 1 - body->size)
        room = reader->limit + 1 - body->size;
    uint8_t *to = buffer_reserve(body, room);
    if (to == NULL)
        return status_out_of_memory();
    stream->next_out = to;
    stream->avail_out = (uInt)room;
    int result = inflate(stream, Z_NO_FLUSH);
    body->size += room - stream->avail_out;
    if (body->size > reader->limit)
        return too_large(reader);
    if (result == Z_MEM_ERROR)
        return status_out_of_memory();
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
        return status_make(STATUS_INTERNAL, "a compressed message is damaged");
    *more = result == Z_OK && stream->avail_out == 0;
    if (result == Z_STREAM_END && (stream->avail_in > 0 || reader->left > 0))
        return status_make(STATUS_INTERNAL, "a compressed message ends before its bytes do");
    if (reader->left == 0 && !*more && result != Z_STREAM_END)
        return status_make(STATUS_INTERNAL, "a compressed message is cut short");
    return status_ok();
}

static status append_compressed(struct message_reader *reader, bytes piece)
{
    reader->inflater->next_in = piece.data;
    reader->inflater->avail_in = (uInt)piece.size; /* at most the length, of 32 bits */
    bool more = true;
    while (more)
        TRY(inflate_some(reader, &more));
    return status_ok();
}

static status take_body(struct message_reader *reader, bytes *input)
{
    size_t size = input->size < reader->left ? input->size : (size_t)reader->left;
    bytes piece = bytes_make(input->data, size);
    *input = bytes_from(*input, size);
    if (reader->inflater == NULL) {
        TRY(append_plain(reader, piece));
        reader->left -= size;
        return status_ok();
    }
    reader->left -= size;
    return append_compressed(reader, piece);
}

static void take_prefix(struct message_reader *reader, bytes *input)
{
    while (reader->prefix_size < MESSAGE_WIRE_PREFIX && input->size > 0) {
        reader->prefix[reader->prefix_size++] = input->data[0];
        *input = bytes_from(*input, 1);
    }
}

status message_reader_step(struct message_reader *reader, bytes *input, enum reader_event *event)
{
    *event = READER_MORE;
    if (reader->prefix_size < MESSAGE_WIRE_PREFIX) {
        if (reader->is_whole && input->size > 0) {
            buffer_clear(&reader->body);
            reader->is_whole = false;
        }
        take_prefix(reader, input);
        if (reader->prefix_size < MESSAGE_WIRE_PREFIX)
            return status_ok();
        *event = READER_BEGIN;
        return begin_body(reader);
    }
    if (reader->left > 0 && input->size == 0)
        return status_ok();
    TRY(take_body(reader, input));
    if (reader->left > 0)
        return status_ok();
    end_inflating(reader);
    reader->prefix_size = 0;
    reader->is_whole = true;
    *event = READER_MESSAGE;
    return status_ok();
}

void message_reader_reset(struct message_reader *reader, size_t keep)
{
    end_inflating(reader);
    struct buffer body = reader->body;
    buffer_clear(&body);
    if (body.capacity > keep)
        buffer_free(&body);
    *reader = (struct message_reader){.body = body};
}
