/* Fuzzer: whatever follows the connection preface, good requests among it, the server neither
 * crashes nor leaks, every call that began has ended, and what the server sends is frames.
 *
 * Input: choices (base/testing/fuzzing.h): the size of the pieces, then frames. */
#include "base/testing/fuzzing.h"
#include "wire/grpc_server.h"
#include "wire/message.h"

#include <nghttp2/nghttp2.h>
#include <stdlib.h>

enum {
    MOST_INPUT = 1 << 16,
    MOST_BODY = 100,
    FRAME_HEAD_SIZE = 9,
    LARGEST_FRAME = 1 << 14,
    STREAMS = 8,
};

/* --- what the client sends --- */

static void put_frame(struct buffer *out, uint8_t type, uint8_t flags, uint32_t stream,
                      bytes payload)
{
    const uint8_t head[FRAME_HEAD_SIZE] = {(uint8_t)(payload.size >> 16),
                                           (uint8_t)(payload.size >> 8),
                                           (uint8_t)payload.size,
                                           type,
                                           flags,
                                           [FRAME_HEAD_SIZE - 1] = (uint8_t)stream};
    buffer_append(out, head, sizeof head);
    buffer_append_bytes(out, payload);
}

/* A literal field that no table remembers; both parts under 127 bytes. */
static void put_field(struct buffer *block, const char *name, bytes value)
{
    bytes name_bytes = bytes_of(name);
    buffer_append_byte(block, 0);
    buffer_append_byte(block, (uint8_t)name_bytes.size);
    buffer_append_bytes(block, name_bytes);
    buffer_append_byte(block, (uint8_t)value.size);
    buffer_append_bytes(block, value);
}

/* A value that means something, or any. */
static void choose_field(struct choices *choices, struct buffer *block, const char *name,
                         const char *const *values, size_t count)
{
    unsigned kind = choose(choices, 1 + (unsigned)count);
    put_field(block, name,
              kind < count ? bytes_of(values[kind]) : choose_bytes(choices, MOST_BODY));
}

/* Now and then one of these is left out or given twice. */
static void choose_request_fields(struct choices *choices, struct buffer *block)
{
    static const struct {
        const char *name;
        const char *values[3];
    } fields[] = {
        {":method", {"POST", "POST", "GET"}},
        {":scheme", {"http", "http", "https"}},
        {":authority", {"h", "h", ""}},
        {":path", {"/f/U", "/f/S", "/f/B"}},
        {"te", {"trailers", "trailers", "gzip"}},
        {"content-type", {"application/grpc", "application/grpc+proto", "text/plain"}},
        {"grpc-encoding", {"gzip", "identity", "snappy"}},
        {"grpc-accept-encoding", {"gzip", "identity,gzip", ""}},
        {"grpc-timeout", {"1H", "0n", "99999999M"}},
        {"x-bin", {"AAAA", "A", ""}},
    };
    uint8_t odd = choose_byte(choices);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        for (int times = odd == i + 1 ? 2 : odd != i + 101; times > 0; times--)
            choose_field(choices, block, fields[i].name, fields[i].values, 3);
}

static void send_request(struct choices *choices, uint32_t stream, struct buffer *out)
{
    struct buffer block = {0};
    uint8_t end = choose_bool(choices) ? NGHTTP2_FLAG_END_STREAM : NGHTTP2_FLAG_NONE;
    size_t split = choose_byte(choices);
    choose_request_fields(choices, &block);
    bytes whole = buffer_bytes(&block);
    if (split == 0 || split >= whole.size) {
        put_frame(out, NGHTTP2_HEADERS, end | NGHTTP2_FLAG_END_HEADERS, stream, whole);
    } else {
        put_frame(out, NGHTTP2_HEADERS, end, stream, bytes_make(whole.data, split));
        put_frame(out, NGHTTP2_CONTINUATION, NGHTTP2_FLAG_END_HEADERS, stream,
                  bytes_from(whole, split));
    }
    buffer_free(&block);
}

static void send_message(struct choices *choices, uint32_t stream, struct buffer *out)
{
    struct buffer buffer = {0};
    bool gzip = choose_bool(choices);
    unsigned repeats = 1 + choose(choices, 64);
    bytes body = choose_bytes(choices, MOST_BODY);
    grpc_message_start(&buffer);
    while (repeats-- > 0)
        buffer_append_bytes(&buffer, body);
    struct message *message = message_seal(&buffer, gzip);
    CHECK(message != NULL);
    put_frame(out, NGHTTP2_DATA, choose_bool(choices) ? NGHTTP2_FLAG_END_STREAM : 0, stream,
              bytes_make(message_data(message), message->size));
    message_free(message);
}

static void send_something(struct choices *choices, struct buffer *out)
{
    unsigned kind = choose(choices, 8);
    uint32_t stream = choose(choices, STREAMS);
    uint8_t type, flags;
    switch (kind) {
    case 0:
        buffer_append_bytes(out, choose_bytes(choices, UINT8_MAX));
        break;
    case 1:
        type = (uint8_t)choose(choices, NGHTTP2_ALTSVC + 1);
        flags = choose_byte(choices);
        put_frame(out, type, flags, stream, choose_bytes(choices, MOST_BODY));
        break;
    case 2:
    case 3:
        send_message(choices, stream, out);
        break;
    case 4:
        put_frame(out, NGHTTP2_RST_STREAM, 0, stream, bytes_make("\0\0\0\10", 4));
        break;
    default:
        send_request(choices, stream | 1, out);
    }
}

/* --- what the server does --- */

static void handle_echo(void *context, struct grpc_call *call, bytes request)
{
    (void)context;
    if (request.data == NULL) {
        grpc_call_finish(call, status_ok());
        return;
    }
    struct buffer message = {0};
    grpc_message_start(&message);
    buffer_append_bytes(&message, request);
    grpc_call_send(call, &message);
}

static void handle_unary(void *context, struct grpc_call *call, bytes request)
{
    bytes value;
    if (grpc_call_header(call, "x-bin", &value))
        grpc_call_add_trailer(call, "x-bin", value);
    handle_echo(context, call, request);
    grpc_call_finish(call, status_make(STATUS_ABORTED, "%d%%", (int)request.size));
}

static void ignore_signal(void *context)
{
    (void)context; /* output is fetched after each piece anyway */
}

static void fetch_output(struct grpc_connection *connection, struct buffer *output)
{
    struct iovec vectors[16];
    size_t count;
    while ((count = grpc_connection_output(connection, vectors, 16)) > 0) {
        size_t before = output->size;
        for (size_t i = 0; i < count; i++)
            buffer_append(output, vectors[i].iov_base, vectors[i].iov_len);
        grpc_connection_sent(connection, output->size - before);
    }
}

static void check_frames(bytes output)
{
    while (output.size > 0) {
        CHECK(output.size >= FRAME_HEAD_SIZE && output.data[3] <= NGHTTP2_CONTINUATION);
        size_t size = (size_t)output.data[0] << 16 | (size_t)output.data[1] << 8 | output.data[2];
        CHECK(size <= LARGEST_FRAME && size <= output.size - FRAME_HEAD_SIZE);
        output = bytes_from(output, FRAME_HEAD_SIZE + size);
    }
}

/* On the loop's thread, as in the server. */
struct run {
    struct task task;
    struct loop *loop;
    struct grpc_server *server;
    struct grpc_spares *spares;
    size_t piece;
    struct buffer input;
    struct buffer output;
};

static void feed(struct run *run, struct grpc_connection *connection)
{
    bytes input = buffer_bytes(&run->input);
    while (input.size > 0) {
        size_t size = input.size < run->piece ? input.size : run->piece;
        grpc_connection_receive(connection, bytes_make(input.data, size));
        input = bytes_from(input, size);
        fetch_output(connection, &run->output);
    }
}

static void run_input(struct task *task)
{
    struct run *run = LIST_ENTRY(task, struct run, task);
    struct grpc_connection *connection;
    status s = grpc_connection_create(run->server, run->loop, run->spares, run, ignore_signal,
                                      &connection);
    CHECK(status_is_ok(s));
    feed(run, connection);
    grpc_connection_destroy(connection);
    CHECK(!run->output.failed);
    check_frames(buffer_bytes(&run->output));
}

static struct grpc_server *make_server(void)
{
    static const struct grpc_method methods[] = {{"U", GRPC_UNARY, handle_unary},
                                                 {"S", GRPC_SERVER_STREAMING, handle_unary},
                                                 {"B", GRPC_BIDI, handle_echo}};
    static const struct grpc_service service = {.name = "f", .methods = methods, .method_count = 3};
    const struct grpc_service *const services[] = {&service};
    struct grpc_server_options options;
    struct grpc_server *server;
    grpc_server_options_init(&options);
    options.max_message_size = 1 << 12;
    status s = grpc_server_create(&options, services, 1, &server);
    CHECK(status_is_ok(s));
    return server;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct run run;
    struct choices choices = choices_of(data, size);
    if (run.server == NULL) {
        status s = loop_create(clock_system(), &run.loop);
        CHECK(status_is_ok(s));
        s = grpc_spares_create(&run.spares);
        CHECK(status_is_ok(s));
        run.server = make_server();
        run.task.run = run_input;
    }
    run.piece = 1 + choose_byte(&choices) + 16 * (size_t)choose_byte(&choices);
    buffer_clear(&run.input);
    buffer_clear(&run.output);
    buffer_append(&run.input, NGHTTP2_CLIENT_MAGIC, NGHTTP2_CLIENT_MAGIC_LEN);
    put_frame(&run.input, NGHTTP2_SETTINGS, 0, 0, bytes_make(NULL, 0));
    while (choices.left.size > 0 && run.input.size < MOST_INPUT)
        send_something(&choices, &run.input);
    CHECK(!run.input.failed);
    loop_post(run.loop, &run.task);
    loop_stop(run.loop);
    loop_run(run.loop);
    CHECK(grpc_server_call_count(run.server) == 0);
    return 0;
}
