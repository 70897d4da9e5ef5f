#include "client/testing/fake_endpoint.h"

#include "base/testing/testing.h"
#include "os/stream.h"

#include <stdio.h>
#include <sys/epoll.h>

enum { INPUT = 64 << 10, VECTORS = 16, TURNS_MOST = 100 };

struct fake_connection {
    struct link link;
    struct fake_endpoint *endpoint;
    struct stream *stream; /* NULL: it is over */
    struct watch watch;
    struct task flush;
    bool flush_is_deferred;
    struct grpc_connection *grpc;
};

static void end(struct fake_connection *connection)
{
    if (connection->stream == NULL)
        return;
    loop_unwatch(connection->endpoint->loop, &connection->watch);
    stream_close(connection->stream);
    connection->stream = NULL;
    grpc_connection_destroy(connection->grpc);
}

static void write_out(struct fake_connection *connection)
{
    struct iovec vectors[VECTORS];
    while (connection->stream != NULL) {
        size_t done, count = grpc_connection_output(connection->grpc, vectors, VECTORS);
        uint32_t events = EPOLLIN | (count > 0 ? EPOLLOUT : 0);
        if (count == 0 ||
            stream_write(connection->stream, vectors, (int)count, &done) != STREAM_OK) {
            assert_ok(loop_watch_change(connection->endpoint->loop, &connection->watch, events));
            return;
        }
        grpc_connection_sent(connection->grpc, done);
    }
}

static void flush(struct task *task)
{
    struct fake_connection *connection = LIST_ENTRY(task, struct fake_connection, flush);
    connection->flush_is_deferred = false;
    write_out(connection);
}

static void output_ready(void *context)
{
    struct fake_connection *connection = context;
    if (!connection->flush_is_deferred)
        loop_defer(connection->endpoint->loop, &connection->flush);
    connection->flush_is_deferred = true;
}

static void socket_ready(struct watch *watch, uint32_t events)
{
    static uint8_t input[INPUT];
    struct fake_connection *connection = LIST_ENTRY(watch, struct fake_connection, watch);
    size_t size;
    enum stream_result result = stream_read(connection->stream, input, sizeof input, &size);
    if (result == STREAM_OK)
        grpc_connection_receive(connection->grpc, bytes_make(input, size));
    else if (result != STREAM_BLOCKED)
        end(connection);
    if ((events & EPOLLOUT) != 0)
        write_out(connection);
}

static void accepted(void *context, int socket, const struct address *peer)
{
    struct fake_endpoint *endpoint = context;
    struct fake_connection *connection = calloc(1, sizeof *connection);
    (void)peer;
    assert_non_null(connection);
    connection->endpoint = endpoint;
    connection->flush.run = flush;
    assert_ok(stream_accepted(socket, NULL, &connection->stream));
    assert_ok(grpc_connection_create(endpoint->server, endpoint->loop, endpoint->spares, connection,
                                     output_ready, &connection->grpc));
    connection->watch = (struct watch){.fd = socket, .ready = socket_ready};
    assert_ok(loop_watch(endpoint->loop, &connection->watch, EPOLLIN | EPOLLOUT));
    list_append(&endpoint->connections, &connection->link);
}

void fake_endpoint_start(struct fake_endpoint *endpoint, struct loop *loop,
                         const struct grpc_service *service)
{
    struct grpc_server_options options;
    struct address address;
    char host[ADDRESS_TEXT_SIZE];
    *endpoint = (struct fake_endpoint){.loop = loop};
    grpc_server_options_init(&options);
    assert_ok(grpc_server_create(&options, &service, 1, &endpoint->server));
    assert_ok(grpc_spares_create(&endpoint->spares));
    assert_ok(address_parse("127.0.0.1:0", &address));
    assert_ok(listener_open(loop, &address, accepted, endpoint, &endpoint->listener));
    address_format(listener_address(endpoint->listener), host);
    snprintf(endpoint->address, sizeof endpoint->address, "%s", host);
}

void fake_endpoint_cut(struct fake_endpoint *endpoint)
{
    for (struct link *link = endpoint->connections.first; link != NULL; link = link->next)
        end(LIST_ENTRY(link, struct fake_connection, link));
}

void fake_endpoint_drain(struct fake_endpoint *endpoint)
{
    for (struct link *link = endpoint->connections.first; link != NULL; link = link->next) {
        struct fake_connection *connection = LIST_ENTRY(link, struct fake_connection, link);
        if (connection->stream != NULL)
            grpc_connection_drain(connection->grpc);
    }
}

void fake_endpoint_stop(struct fake_endpoint *endpoint)
{
    fake_endpoint_cut(endpoint);
    for (int i = 0; i < TURNS_MOST && grpc_server_call_count(endpoint->server) > 0; i++) {
        loop_stop(endpoint->loop);
        loop_run(endpoint->loop);
    }
    while (!list_is_empty(&endpoint->connections))
        free(LIST_ENTRY(list_take(&endpoint->connections), struct fake_connection, link));
    listener_close(endpoint->listener);
    grpc_spares_destroy(endpoint->spares);
    grpc_server_destroy(endpoint->server);
}
