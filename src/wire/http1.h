/* HTTP/1.1, for pages and for REST. One thread, with an event loop of its own, serves sockets that
 * others have accepted: what handlers do here (wire/http.h) holds no other loop up. libmicrohttpd
 * reads and writes the protocol, driven by that loop.
 *
 * An answer that has ended by the time the handler returns has a length; others go in chunks. */
#ifndef TRESTLE_WIRE_HTTP1_H
#define TRESTLE_WIRE_HTTP1_H

#include "base/status.h"
#include "os/address.h"
#include "os/loop.h"
#include "wire/http.h"

struct http1_server;

/* Any thread, as all of these. */
status http1_server_create(struct clock *clock, http_handler *handle, void *context,
                           struct http1_server **out);

/* Closes what is open, and ends the thread: no request may wait for its answer. The loop is
 * there until the destruction, for threads that are just leaving loop_post. NULL is fine. */
void http1_server_stop(struct http1_server *server);
/* The same, if it was not done. NULL is fine. */
void http1_server_destroy(struct http1_server *server);

/* The bodies of all requests take no more than so many bytes, LIMIT_HTTP1_BODIES_BYTES otherwise.
 * Before the first socket. */
void http1_server_bound_bodies(struct http1_server *server, size_t most);

struct loop *http1_server_loop(const struct http1_server *server);

/* Serves a connected socket, non-blocking, from its first byte on. Takes socket and `subject` (of
 * the client's certificate, or NULL), whatever comes. UNAVAILABLE beyond LIMIT_HTTP1_CONNECTIONS.
 */
status http1_server_take(struct http1_server *server, int socket, const struct address *peer,
                         char *subject);

/* Asks every client to leave: connections without a request are closed, the others after the
 * answer to it. */
void http1_server_drain(struct http1_server *server);

#endif
