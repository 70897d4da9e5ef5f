/* HTTP/1.1, for pages and for REST. One thread, with an event loop of its own, serves sockets that
 * others have accepted: what handlers do here holds nobody else up. libmicrohttpd reads and writes
 * the protocol, driven by that loop.
 *
 * A handler gets a request with its whole body, and answers it now or later:
 *
 *     http1_answer_begin(request, code, type)
 *     http1_answer_add(request, bytes)          any number of times
 *     http1_answer_end(request)                 after it the request is not touched again
 *
 * What has been added by the time the handler returns, or is added later, goes out at once and in
 * chunks; an answer that has ended by then has a length. Unless said, all is for the thread's loop.
 */
#ifndef TRESTLE_WIRE_HTTP1_H
#define TRESTLE_WIRE_HTTP1_H

#include "base/bytes.h"
#include "base/status.h"
#include "os/address.h"
#include "os/loop.h"

struct http1_server;
struct http1_request;

typedef void http1_handler(void *context, struct http1_request *request);

/* Any thread, as the next three. */
status http1_server_create(struct clock *clock, http1_handler *handle, void *context,
                           struct http1_server **out);

/* Closes what is open: nobody may wait for the answer to a request any more. NULL is fine. */
void http1_server_destroy(struct http1_server *server);

struct loop *http1_server_loop(const struct http1_server *server);

/* Serves a connected socket, non-blocking, from its first byte on. Takes the socket, whatever
 * comes. UNAVAILABLE beyond LIMIT_HTTP1_CONNECTIONS. */
status http1_server_take(struct http1_server *server, int socket, const struct address *peer);

/* --- a request: valid until its answer has ended, or on_gone is called --- */

const char *http1_request_method(const struct http1_request *request);
/* Path and query as they came: percent-encoded. */
const char *http1_request_target(const struct http1_request *request);
bytes http1_request_body(const struct http1_request *request);
/* It said that its body is larger than LIMIT_HTTP1_BODY_BYTES: the body is not there. The handler
 * must answer before it returns. */
bool http1_request_is_too_large(const struct http1_request *request);
void http1_request_headers(const struct http1_request *request, void *context,
                           void (*each)(void *context, const char *name, const char *value));

/* `content_type`: a literal; NULL: none is sent. */
void http1_answer_begin(struct http1_request *request, unsigned code, const char *content_type);
void http1_answer_add(struct http1_request *request, bytes more);
void http1_answer_end(struct http1_request *request);

/* Whether more waits than the client reads (LIMIT_CALL_OUTPUT_BYTES): on_writable is called when
 * that is over. */
bool http1_answer_is_congested(struct http1_request *request);

/* For a handler that answers later. `on_gone`: nobody waits any more; the request does not exist
 * after it. Not called once the answer has ended. */
void http1_request_set_callbacks(struct http1_request *request, void *context,
                                 void (*on_writable)(void *context),
                                 void (*on_gone)(void *context));

#endif
