/* Requests by HTTP/2 that are not gRPC's: a connection (wire/grpc_server.h) hands each over as a
 * call, and a handler (wire/http.h) gets it on the thread of another loop. So connection and
 * handler know nothing of each other; order, flow control and cancellation are those of calls. */
#ifndef TRESTLE_WIRE_HTTP2_H
#define TRESTLE_WIRE_HTTP2_H

#include "os/loop.h"
#include "wire/grpc.h"
#include "wire/http.h"

/* On the thread of the call's loop; `body` is as the option `http` gives it, `client` is copied.
 * `loop` must run until grpc_server_call_count is 0. */
void http2_handle(struct grpc_call *call, bytes body, const struct http_client *client,
                  struct loop *loop, http_handler *handle, void *context);

#endif
