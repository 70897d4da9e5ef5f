/* Fuzzer: whatever follows the connection preface, the server neither crashes nor leaks, and a
 * handler's call always ends. Two bytes of the input's start pick the sizes of the pieces. */
#include "wire/grpc_server.h"

#include "base/check.h"

#include <nghttp2/nghttp2.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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
    handle_echo(context, call, request);
    grpc_call_finish(call, status_make(STATUS_ABORTED, "%d%%", (int)request.size));
}

static void ignore_signal(void *context)
{
    (void)context; /* output is fetched after each piece anyway */
}

static void fetch_output(struct grpc_connection *connection)
{
    struct iovec vectors[16];
    size_t count;
    while ((count = grpc_connection_output(connection, vectors, 16)) > 0) {
        size_t size = 0;
        for (size_t i = 0; i < count; i++)
            size += vectors[i].iov_len;
        grpc_connection_sent(connection, size);
    }
}

static void feed(struct grpc_connection *connection, bytes input, size_t piece)
{
    grpc_connection_receive(connection, bytes_make(NGHTTP2_CLIENT_MAGIC, NGHTTP2_CLIENT_MAGIC_LEN));
    while (input.size > 0) {
        size_t size = input.size < piece ? input.size : piece;
        grpc_connection_receive(connection, bytes_make(input.data, size));
        input = bytes_from(input, size);
        fetch_output(connection);
    }
}

/* On the loop's thread, as in the server. */
struct run {
    struct task task;
    struct loop *loop;
    struct grpc_server *server;
    bytes input;
};

static void run_input(struct task *task)
{
    struct run *run = LIST_ENTRY(task, struct run, task);
    struct grpc_connection *connection;
    status s = grpc_connection_create(run->server, run->loop, run, ignore_signal, &connection);
    CHECK(status_is_ok(s));
    feed(connection, bytes_from(run->input, 2),
         1 + (size_t)run->input.data[0] + 16 * (size_t)run->input.data[1]);
    grpc_connection_destroy(connection);
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
    options.max_message_size = 1 << 16;
    status s = grpc_server_create(&options, services, 1, &server);
    CHECK(status_is_ok(s));
    return server;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct run run;
    if (size < 2)
        return 0;
    if (run.server == NULL) {
        status s = loop_create(clock_system(), &run.loop);
        CHECK(status_is_ok(s));
        run.server = make_server();
        run.task.run = run_input;
    }
    run.input = bytes_make(data, size);
    loop_post(run.loop, &run.task);
    loop_stop(run.loop);
    loop_run(run.loop);
    CHECK(grpc_server_call_count(run.server) == 0);
    return 0;
}
