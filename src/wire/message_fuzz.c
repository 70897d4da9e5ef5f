/* Fuzzer: a stream of gRPC messages, good and bad, plain and compressed. How it is cut into pieces
 * changes nothing in what is read; what was sealed is read back; no body passes the limit.
 *
 * Input: choices (base/testing/fuzzing.h): the limit, the size of pieces, then messages. */
#include "base/testing/fuzzing.h"
#include "wire/message.h"

enum { MOST_MESSAGES = 16, LEAST_LIMIT = 1, LIMIT_STEP = 64 };

/* --- what is sent --- */

struct sent {
    struct buffer wire;
    struct buffer bodies; /* of the good messages at the start, each after its size */
    bool all_good;        /* so far */
};

static void note_body(struct buffer *bodies, bytes body)
{
    buffer_append(bodies, &body.size, sizeof body.size);
    buffer_append_bytes(bodies, body);
}

static void send_message(struct sent *sent, bytes body, bool gzip, size_t limit)
{
    struct buffer buffer = {0};
    grpc_message_start(&buffer);
    buffer_append_bytes(&buffer, body);
    struct message *message = message_seal(&buffer, gzip);
    CHECK(message != NULL && buffer.data == NULL);
    buffer_append_bytes(&sent->wire, bytes_make(message_data(message), message->size));
    message_free(message);
    sent->all_good = sent->all_good && body.size <= limit;
    if (sent->all_good)
        note_body(&sent->bodies, body);
}

/* Large enough to be compressed: a few bytes over and over. */
static void send_long_message(struct choices *choices, struct sent *sent, bool gzip, size_t limit)
{
    size_t size = LIMIT_STEP * (size_t)choose_byte(choices);
    bytes pattern = choose_bytes(choices, UINT8_MAX);
    struct buffer body = {0};
    while (pattern.size > 0 && body.size < size)
        buffer_append_bytes(&body, pattern);
    send_message(sent, buffer_bytes(&body), gzip, limit);
    buffer_free(&body);
}

/* The flag and length that they should be, before bytes that are any. */
static void send_framed_bytes(struct choices *choices, struct sent *sent)
{
    bytes body = choose_bytes(choices, UINT8_MAX);
    const uint8_t prefix[] = {choose_bool(choices), 0, 0, 0, (uint8_t)body.size};
    buffer_append(&sent->wire, prefix, sizeof prefix);
    buffer_append_bytes(&sent->wire, body);
    sent->all_good = false;
}

static void send_something(struct choices *choices, struct sent *sent, bool gzip, size_t limit)
{
    switch (choose(choices, 4)) {
    case 0:
        send_message(sent, choose_bytes(choices, UINT8_MAX), gzip, limit);
        break;
    case 1:
        send_long_message(choices, sent, gzip, limit);
        break;
    case 2:
        send_framed_bytes(choices, sent);
        break;
    default:
        sent->all_good = false;
        buffer_append_bytes(&sent->wire, choose_bytes(choices, UINT8_MAX));
    }
}

/* --- what is read --- */

/* Appends the bodies that came, each after its size; how the stream ended, if it did. */
static enum status_code read_pieces(bytes wire, size_t piece, struct message_reader *reader,
                                    struct buffer *bodies)
{
    while (wire.size > 0) {
        bytes part = bytes_make(wire.data, piece < wire.size ? piece : wire.size);
        wire = bytes_from(wire, part.size);
        enum reader_event event;
        do {
            status s = message_reader_step(reader, &part, &event);
            enum status_code code = s.code;
            status_free(s);
            if (code != STATUS_OK)
                return code;
            CHECK(reader->body.size <= reader->limit);
            CHECK(event != READER_BEGIN || reader->left <= reader->limit);
            if (event == READER_MESSAGE)
                note_body(bodies, buffer_bytes(&reader->body));
        } while (event != READER_MORE);
        CHECK(part.size == 0);
    }
    return STATUS_OK;
}

static enum status_code read_all(const struct sent *sent, size_t piece, size_t limit, bool gzip,
                                 struct buffer *bodies)
{
    struct message_reader reader = {.limit = limit, .gzip = gzip};
    enum status_code code = read_pieces(buffer_bytes(&sent->wire), piece, &reader, bodies);
    CHECK(!sent->all_good || message_reader_is_between(&reader));
    message_reader_reset(&reader, 0);
    CHECK(!bodies->failed);
    return code;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct choices choices = choices_of(data, size);
    size_t limit = LEAST_LIMIT + LIMIT_STEP * (size_t)choose_byte(&choices);
    size_t piece = 2 + (size_t)choose_byte(&choices);
    bool gzip = choose_bool(&choices);
    struct sent sent = {.all_good = true};
    for (int i = 0; i < MOST_MESSAGES && choices.left.size > 0; i++)
        send_something(&choices, &sent, gzip, limit);
    CHECK(!sent.wire.failed && !sent.bodies.failed);
    struct buffer at_once = {0}, in_pieces = {0}, in_bytes = {0};
    enum status_code code = read_all(&sent, SIZE_MAX, limit, gzip, &at_once);
    CHECK(read_all(&sent, piece, limit, gzip, &in_pieces) == code);
    CHECK(read_all(&sent, 1, limit, gzip, &in_bytes) == code);
    CHECK(bytes_equal(buffer_bytes(&at_once), buffer_bytes(&in_pieces)));
    CHECK(bytes_equal(buffer_bytes(&at_once), buffer_bytes(&in_bytes)));
    CHECK(bytes_start_with(buffer_bytes(&at_once), buffer_bytes(&sent.bodies)));
    CHECK(!sent.all_good || (code == STATUS_OK && at_once.size == sent.bodies.size));
    struct buffer *const buffers[] = {&sent.wire, &sent.bodies, &at_once, &in_pieces, &in_bytes};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        buffer_free(buffers[i]);
    return 0;
}
