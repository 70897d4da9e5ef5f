/* The client side of gRPC over HTTP/2, without I/O: bytes in, bytes out. The owner of the socket
 * moves them as wire/grpc_server.h describes; it is the same here.
 *
 * Calls have one request message and any number of answers. All is for the loop's thread. */
#ifndef TRESTLE_WIRE_GRPC_CLIENT_H
#define TRESTLE_WIRE_GRPC_CLIENT_H

#include "os/loop.h"
#include "wire/grpc.h"

#include <sys/uio.h>

struct grpc_client;
struct client_call;

struct client_metadata {
    const char *name; /* in lower case; if it ends in -bin, the value is sent as base64 */
    bytes value;
};

/* What to ask, and which callbacks to call. The strings need to live only during
 * grpc_client_start. */
struct client_call_options {
    const char *path;   /* "/google.bigtable.v2.Bigtable/ReadRows" */
    int64_t timeout_us; /* sent as grpc-timeout, and kept here too; INT64_MAX: none */
    bool gzip;          /* send the request compressed; answers may be, too */
    const struct client_metadata *metadata;
    size_t metadata_count;
    /* An answer of more bytes than this is not read: the call ends with RESOURCE_EXHAUSTED, and
     * `*refused` is its size. 0: as many as any may have. */
    uint64_t message_limit;
    uint64_t *refused;

    /* On the loop's thread: `on_message` for each answer, the bytes valid until it returns (NULL:
     * not wanted); then `on_end`, which owns the status. After it the call does not exist. */
    void *context;
    void (*on_message)(void *context, struct client_call *call, bytes message);
    void (*on_end)(void *context, struct client_call *call, status s);
};

/* `authority` ("localhost:8086") is copied. There is output to fetch at once. */
status grpc_client_create(struct loop *loop, const char *authority, void *context,
                          void (*output_ready)(void *context), struct grpc_client **out);

/* Calls from now on say that they come over TLS (`:scheme` https), as some servers want them to. */
void grpc_client_speaks_tls(struct grpc_client *client);

/* Of calls that start from now on the server may send so many bytes ahead of what was read,
 * instead of some MB: for clients that often end calls early. */
void grpc_client_narrow(struct grpc_client *client, uint32_t window);

/* Ends each call that is open with UNAVAILABLE first; on_end must not start others. Not from
 * within a callback. NULL is fine. */
void grpc_client_destroy(struct grpc_client *client);

/* Starts a call. Takes the message, which grpc_message_start has begun, whatever comes. If this
 * fails, on_end is not called: UNAVAILABLE once the server has said that it goes away or the
 * connection is finished. Calls beyond the number that the server allows wait for their turn. */
status grpc_client_start(struct grpc_client *client, const struct client_call_options *options,
                         struct buffer *message, struct client_call **out);

/* Ends the call now: on_end gets CANCELLED from within. */
void client_call_cancel(struct client_call *call);

/* A header or trailer that the server has sent, the first of that name, as it came: -bin values
 * are base64. Until on_end returns. False if absent. */
bool client_call_metadata(const struct client_call *call, const char *name, bytes *value);

/* Of a call that ends: false if the server has certainly not begun with it, for it never left, or
 * its stream was refused. Until on_end returns. */
bool client_call_was_taken(const struct client_call *call);

/* While paused, the server may send no more than the stream's window. */
void client_call_pause(struct client_call *call, bool paused);

/* Calls that have not ended. */
size_t grpc_client_call_count(const struct grpc_client *client);

/* --- the bytes: as in wire/grpc_server.h --- */

void grpc_client_receive(struct grpc_client *client, bytes input);
size_t grpc_client_output(struct grpc_client *client, struct iovec *vectors, size_t capacity);
void grpc_client_sent(struct grpc_client *client, size_t size);
bool grpc_client_is_finished(const struct grpc_client *client);

#endif
