/* REST: the services' methods by plain HTTP and JSON, as their HTTP rules say.
 *
 * REST is a client of gRPC: a request becomes a call on an HTTP/2 connection inside the process, of
 * which both ends are here (wire/grpc_client.h, wire/grpc_server.h), so that handlers, limits,
 * metrics, cancellation and flow control are those of every other call. A client that goes away
 * cancels its call; one that reads slowly stops the stream.
 *
 * A body of the type application/x-protobuf is the message itself, or that of the rule's field, and
 * so is the answer then, or a google.rpc.Status; not of methods that stream.
 *
 * Errors in JSON are Google's envelope, {"error": {"code", "message", "status", "details"}}. A
 * streaming method's answer is a JSON array of its messages, and so is its error.
 *
 * Of what a call answers beside its messages, an HTTP answer has what clients measure by:
 * server-timing and ResponseParams, the latter in base64 as gRPC sends it.
 *
 * The header fields below tell the server's end who asks; a client has no way to send them by REST.
 *
 * All but create and destroy is for the loop's thread. */
#ifndef TRESTLE_WIRE_REST_H
#define TRESTLE_WIRE_REST_H

#include "wire/grpc_server.h"
#include "wire/http.h"
#include "wire/http_router.h"

struct rest;

/* The client's address, and the subject of the certificate that it has shown, if any. */
#define REST_CLIENT_ADDRESS "trestle-client-address"
#define REST_CLIENT_SUBJECT "trestle-client-subject-bin"

/* What it gets must outlive it. `peer`: see grpc_connection_set_peer. `loop` is the one of
 * the requests. */
status rest_create(struct grpc_server *grpc, void *peer, const struct http_router *router,
                   struct loop *loop, struct rest **out);

/* After rest_close, when the loop has stopped and no call is left. NULL is fine. */
void rest_destroy(struct rest *rest);

/* Whether the target is one that REST serves, or says NOT_FOUND to: it begins with "/v1/" or
 * "/v2/". */
bool rest_is_for(const char *target);

void rest_handle(struct rest *rest, struct http_request *request);

/* The connection whose calls are the requests; NULL: there is none at present. On the loop's
 * thread, until it returns to the loop. */
struct grpc_connection *rest_connection(const struct rest *rest);

/* Cancels what runs; what comes later gets 503. */
void rest_close(struct rest *rest);

#endif
