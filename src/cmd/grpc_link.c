/* See grpc_link.h. */
#include "cmd/grpc_link.h"

#include "base/check.h"
#include "os/stream.h"

#include <stdlib.h>
#include <sys/epoll.h>

enum { INPUT_SIZE = 64 << 10, VECTORS = 64, METADATA_MOST = GRPC_LINK_METADATA_MOST + 1 };

struct grpc_link {
    struct loop *loop;
    const struct grpc_identity *identity;
    struct stream *stream;
    struct grpc_client *client; /* NULL once the connection is lost */
    struct watch watch;
    uint32_t watched;
    uint32_t write_event; /* that a blocked write waits for; 0: none is blocked */
    struct task flush;    /* writes once, at the end of the loop's turn */
    bool flush_deferred;
    bool is_lost;
    status failure; /* why, if it is known; owned */
    uint8_t input[INPUT_SIZE];
};

static void watch_for(struct grpc_link *link, uint32_t events)
{
    if (events == link->watched)
        return;
    link->watched = events;
    status s = loop_watch_change(link->loop, &link->watch, events);
    if (!status_is_ok(s))
        link->is_lost = true;
    status_free(s);
}

static void lose(struct grpc_link *link, enum stream_result why)
{
    if (why == STREAM_FAILED && status_is_ok(link->failure))
        link->failure = stream_failure(link->stream);
    link->is_lost = true;
}

static void write_output(struct grpc_link *link)
{
    struct iovec vectors[VECTORS];
    for (;;) {
        size_t count = grpc_client_output(link->client, vectors, VECTORS);
        if (count == 0) {
            link->write_event = 0;
            watch_for(link, EPOLLIN);
            return;
        }
        size_t done;
        enum stream_result result = stream_write(link->stream, vectors, (int)count, &done);
        grpc_client_sent(link->client, done);
        if (result == STREAM_BLOCKED) {
            link->write_event = stream_write_interest(link->stream);
            watch_for(link, EPOLLIN | link->write_event);
            return;
        }
        if (result != STREAM_OK) {
            lose(link, result);
            return;
        }
    }
}

static void read_input(struct grpc_link *link)
{
    size_t done;
    enum stream_result result = stream_read(link->stream, link->input, INPUT_SIZE, &done);
    if (result == STREAM_OK)
        grpc_client_receive(link->client, bytes_make(link->input, done));
    if (result == STREAM_ENDED || result == STREAM_FAILED)
        lose(link, result);
    link->is_lost |= grpc_client_is_finished(link->client);
}

/* Calls end with UNAVAILABLE from here, never from within a read or a write. */
static void drop_if_lost(struct grpc_link *link)
{
    if (!link->is_lost || link->client == NULL)
        return;
    struct grpc_client *client = link->client;
    link->client = NULL;
    loop_unwatch(link->loop, &link->watch);
    grpc_client_destroy(client);
}

static void ready(struct watch *watch, uint32_t events)
{
    struct grpc_link *link = LIST_ENTRY(watch, struct grpc_link, watch);
    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
        read_input(link);
    if (events & link->write_event && !link->is_lost)
        write_output(link);
    drop_if_lost(link);
}

static void flush(struct task *task)
{
    struct grpc_link *link = LIST_ENTRY(task, struct grpc_link, flush);
    link->flush_deferred = false;
    if (link->client != NULL)
        write_output(link);
    drop_if_lost(link);
}

static void output_ready(void *context)
{
    struct grpc_link *link = context;
    if (link->flush_deferred)
        return;
    link->flush_deferred = true;
    loop_defer(link->loop, &link->flush);
}

static status connect_link(struct grpc_link *link, const struct address *address)
{
    const struct grpc_identity *identity = link->identity;
    TRY(stream_connect(address, identity->tls, identity->host, &link->stream));
    TRY(grpc_client_create(link->loop, identity->authority, link, output_ready, &link->client));
    if (identity->tls != NULL)
        grpc_client_speaks_tls(link->client);
    link->watch = (struct watch){.fd = stream_socket(link->stream), .ready = ready};
    link->write_event = EPOLLOUT; /* the first says that it is connected */
    link->watched = EPOLLIN | EPOLLOUT;
    return loop_watch(link->loop, &link->watch, link->watched);
}

status grpc_link_create(struct loop *loop, const struct address *address,
                        const struct grpc_identity *identity, struct grpc_link **out)
{
    *out = NULL;
    struct grpc_link *link = calloc(1, sizeof *link);
    if (link == NULL)
        return status_out_of_memory();
    link->loop = loop;
    link->identity = identity;
    link->flush.run = flush;
    status s = connect_link(link, address);
    if (!status_is_ok(s)) {
        grpc_client_destroy(link->client);
        stream_close(link->stream);
        free(link);
        return s;
    }
    *out = link;
    return status_ok();
}

void grpc_link_destroy(struct grpc_link *link)
{
    if (link == NULL)
        return;
    link->is_lost = true;
    drop_if_lost(link);
    stream_close(link->stream);
    status_free(link->failure);
    free(link);
}

bool grpc_link_is_lost(const struct grpc_link *link)
{
    return link->client == NULL;
}

status grpc_link_failure(const struct grpc_link *link)
{
    return status_copy(link->failure);
}

status grpc_link_call(struct grpc_link *link, const struct client_call_options *options,
                      struct buffer *message, struct client_call **out)
{
    *out = NULL;
    if (link->client == NULL) {
        buffer_free(message);
        return status_make(STATUS_UNAVAILABLE, "the connection is lost");
    }
    bytes credential = link->identity->credential;
    if (credential.size == 0)
        return grpc_client_start(link->client, options, message, out);
    struct client_metadata metadata[METADATA_MOST];
    struct client_call_options with_credential = *options;
    CHECK(options->metadata_count < METADATA_MOST);
    for (size_t i = 0; i < options->metadata_count; i++)
        metadata[i] = options->metadata[i];
    metadata[with_credential.metadata_count++] =
        (struct client_metadata){.name = "authorization", .value = credential};
    with_credential.metadata = metadata;
    return grpc_client_start(link->client, &with_credential, message, out);
}
