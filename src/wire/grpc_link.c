/* See grpc_link.h. */
#include "wire/grpc_link.h"

#include "base/check.h"
#include "os/stream.h"

#include <stdlib.h>
#include <sys/epoll.h>

enum { INPUT_SIZE = 64 << 10, VECTORS = 64, METADATA_MOST = GRPC_LINK_METADATA_MOST + 1 };

struct grpc_link {
    struct loop *loop;
    const struct grpc_identity *identity;
    const struct address *addresses; /* that have not been tried */
    size_t address_count;
    struct stream *stream;      /* watched; NULL: none */
    struct grpc_client *client; /* NULL once the connection is lost */
    struct watch watch;
    uint32_t watched;
    uint32_t write_event; /* that a blocked write waits for; 0: none is blocked */
    struct task flush;    /* writes once, at the end of the loop's turn */
    bool flush_deferred;
    bool is_lost;
    bool has_moved; /* bytes: it is connected, and was not in vain */
    bool has_received;
    status failure;     /* why, if it is known; owned */
    uint32_t window;    /* as grpc_link_narrow set it last; 0: not */
    uint64_t *received; /* bytes; NULL: not counted */
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

/* Advice about the options, by how a connection ended on which nothing came. NULL: there is none.
 */
static const char *advice(const struct grpc_link *link, enum stream_result why)
{
    if (link->has_received)
        return NULL;
    if (link->identity->tls == NULL)
        return link->has_moved ? "if it wants TLS: --tls, --ca FILE" : NULL;
    const char *in_plain = "if it does not speak TLS: leave --tls and --ca out";
    switch (stream_mismatch(link->stream)) {
    case STREAM_UNKNOWN_AUTHORITY:
        return "--ca FILE says who may have signed its certificate";
    case STREAM_OTHER_NAME:
        return "its certificate is not for the name in --endpoint";
    case STREAM_NOT_TLS:
        return "leave --tls and --ca out";
    case STREAM_SAID_NOTHING:
        return in_plain;
    case STREAM_NO_MISMATCH:
        break;
    }
    return why == STREAM_ENDED && !link->has_moved ? in_plain : NULL;
}

static status with_advice(status failure, const char *words)
{
    const char *cause =
        status_is_ok(failure) ? "the connection was closed" : status_message(failure);
    status s = status_make(STATUS_UNAVAILABLE, "%s (%s)", cause, words);
    status_free(failure);
    return s;
}

static void lose(struct grpc_link *link, enum stream_result why)
{
    bool is_known = !status_is_ok(link->failure);
    const char *words = advice(link, why);
    if (why == STREAM_FAILED && !is_known)
        link->failure = stream_failure(link->stream);
    if (words != NULL && !is_known)
        link->failure = with_advice(link->failure, words);
    link->is_lost = true;
}

/* An alert is what a server of TLS says to a client that does not speak it. */
static bool is_alert(const struct grpc_link *link, size_t size)
{
    enum { ALERT = 0x15, VERSION = 0x03 };
    return link->identity->tls == NULL && !link->has_received && size >= 2 &&
           link->input[0] == ALERT && link->input[1] == VERSION;
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
        link->has_moved |= done > 0;
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
    link->has_moved |= done > 0;
    if (result == STREAM_OK && is_alert(link, done)) {
        lose(link, STREAM_ENDED);
        return;
    }
    link->has_received |= done > 0;
    if (link->received != NULL)
        *link->received += done;
    if (result == STREAM_OK)
        grpc_client_receive(link->client, bytes_make(link->input, done));
    if (result == STREAM_ENDED || result == STREAM_FAILED)
        lose(link, result);
    link->is_lost |= grpc_client_is_finished(link->client);
}

static void ready(struct watch *watch, uint32_t events);

/* Connects to the next address at which a server may answer. Fails with what was said at the last.
 */
static status connect_next(struct grpc_link *link)
{
    const struct grpc_identity *identity = link->identity;
    status s = status_make(STATUS_UNAVAILABLE, "there is no other address");
    while (!status_is_ok(s) && link->address_count > 0) {
        status_free(s);
        link->address_count--;
        s = stream_connect(link->addresses++, identity->tls, identity->host, &link->stream);
    }
    TRY(s);
    link->watch = (struct watch){.fd = stream_socket(link->stream), .ready = ready};
    link->write_event = EPOLLOUT; /* the first says that it is connected */
    link->watched = EPOLLIN | EPOLLOUT;
    s = loop_watch(link->loop, &link->watch, link->watched);
    if (!status_is_ok(s)) {
        stream_close(link->stream);
        link->stream = NULL;
    }
    return s;
}

static void end_stream(struct grpc_link *link)
{
    if (link->stream == NULL)
        return;
    loop_unwatch(link->loop, &link->watch);
    stream_close(link->stream);
    link->stream = NULL;
}

/* Whether another address is tried instead. Messages to be sent still wait in the client. */
static bool has_turned_elsewhere(struct grpc_link *link)
{
    if (link->has_moved || link->address_count == 0)
        return false;
    end_stream(link);
    status_free(link->failure);
    link->failure = connect_next(link);
    link->is_lost = !status_is_ok(link->failure);
    return !link->is_lost;
}

/* Calls end with UNAVAILABLE from here, never from within a read or a write. */
static void drop_if_lost(struct grpc_link *link)
{
    if (!link->is_lost || link->client == NULL || has_turned_elsewhere(link))
        return;
    struct grpc_client *client = link->client;
    link->client = NULL;
    end_stream(link);
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

static status connect_link(struct grpc_link *link)
{
    TRY(connect_next(link));
    TRY(grpc_client_create(link->loop, link->identity->authority, link, output_ready,
                           &link->client));
    if (link->identity->tls != NULL)
        grpc_client_speaks_tls(link->client);
    return status_ok();
}

status grpc_link_create(struct loop *loop, const struct address *addresses, size_t count,
                        const struct grpc_identity *identity, struct grpc_link **out)
{
    *out = calloc(1, sizeof **out);
    if (*out == NULL)
        return status_out_of_memory();
    **out = (struct grpc_link){.loop = loop,
                               .identity = identity,
                               .addresses = addresses,
                               .address_count = count,
                               .flush = {.run = flush}};
    status s = connect_link(*out);
    if (!status_is_ok(s)) {
        grpc_link_destroy(*out);
        *out = NULL;
    }
    return s;
}

void grpc_link_destroy(struct grpc_link *link)
{
    if (link == NULL)
        return;
    link->is_lost = true;
    link->address_count = 0;
    drop_if_lost(link);
    end_stream(link);
    if (link->flush_deferred) /* what cancels a call has output */
        loop_forget(link->loop, &link->flush);
    status_free(link->failure);
    free(link);
}

void grpc_link_narrow(struct grpc_link *link, uint32_t window, uint64_t *received)
{
    link->received = received;
    if (link->client == NULL || link->window == window)
        return;
    link->window = window;
    grpc_client_narrow(link->client, window);
}

bool grpc_link_is_lost(const struct grpc_link *link)
{
    return link->client == NULL;
}

bool grpc_link_has_moved(const struct grpc_link *link)
{
    return link->has_moved;
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
    if (link->identity->credential == NULL)
        return grpc_client_start(link->client, options, message, out);
    bytes credential;
    status s = credential_header(link->identity->credential, &credential);
    if (!status_is_ok(s)) {
        buffer_free(message);
        return s;
    }
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
