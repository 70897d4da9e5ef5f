/* The client side of gRPC over HTTP/2, without I/O: bytes in, bytes out. See wire/grpc_server.h for
 * how the owner of the socket moves them; it is the same here.
 *
 * Calls have one request message and any number of answers. All on one thread, that of the loop. */
#ifndef TRESTLE_WIRE_GRPC_CLIENT_H
#define TRESTLE_WIRE_GRPC_CLIENT_H

#include "os/loop.h"
#include "wire/grpc.h"

#include <sys/uio.h>

struct grpc_client;
struct grpc_request;

/* What to ask. The strings need to live only during grpc_client_call. */
struct grpc_request_options {
    const char *path;   /* "/google.bigtable.v2.Bigtable/ReadRows" */
    bool gzip;          /* send the request compressed, and accept compressed answers */
    int64_t timeout_us; /* sent as grpc-timeout, and kept here too; INT64_MAX: none */

    /* Request headers beyond gRPC's own, name and value in turn: {"x-goog-request-params", …}. */
    const char *const *metadata;
    size_t metadata_count; /* of pairs */

    /* Called in this order on the loop's thread: `on_message` for each answer (it may be NULL),
     * the bytes valid until it returns; `on_end` once, after which the request does not exist. The
     * status is the callee's. */
    void *context;
    void (*on_message)(void *context, struct grpc_request *request, bytes message);
    void (*on_end)(void *context, struct grpc_request *request, status s);
};

/* `authority` ("localhost:8086") is copied. */
status grpc_client_create(struct loop *loop, const char *authority, void *context,
                          void (*output_ready)(void *context), struct grpc_client **out);

/* Ends each call that is open with UNAVAILABLE first. */
void grpc_client_destroy(struct grpc_client *client);

/* Starts a call. Takes the message, which grpc_message_start has begun, whatever comes. If this
 * fails, on_end is not called. UNAVAILABLE once the server has said that it goes away, or the
 * connection is finished; calls beyond the server's limit wait for their turn. */
status grpc_client_call(struct grpc_client *client, const struct grpc_request_options *options,
                        struct buffer *message, struct grpc_request **out);

/* Ends the call now: on_end gets CANCELLED, from within. */
void grpc_request_cancel(struct grpc_request *request);

/* A header or trailer that the server has sent, the first of that name; base64-decoded if the name
 * ends in -bin. Until on_end returns. False if absent. */
bool grpc_request_metadata(struct grpc_request *request, const char *name, bytes *value);

/* google.rpc.Status as it came in grpc-status-details-bin; in on_end. Empty if there is none. */
bytes grpc_request_details(struct grpc_request *request);

/* Stops, or lets go on, the flow of answers: while paused, the server can send no more than the
 * stream's window. */
void grpc_request_pause(struct grpc_request *request, bool paused);

/* Calls that have not ended. */
size_t grpc_client_call_count(const struct grpc_client *client);

/* The bytes: as in wire/grpc_server.h. */
void grpc_client_receive(struct grpc_client *client, bytes input);
size_t grpc_client_output(struct grpc_client *client, struct iovec *vectors, size_t capacity);
void grpc_client_sent(struct grpc_client *client, size_t size);
bool grpc_client_is_finished(const struct grpc_client *client);

#endif
