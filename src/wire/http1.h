/* HTTP/1.1 for pages: health, metrics. One thread of libmicrohttpd's serves sockets that others
 * have accepted. */
#ifndef TRESTLE_WIRE_HTTP1_H
#define TRESTLE_WIRE_HTTP1_H

#include "base/bytes.h"
#include "base/status.h"
#include "os/address.h"

struct http1_server;

/* What a handler fills in; it starts as 200 without a body. */
struct http1_response {
    unsigned code;
    const char *content_type; /* a literal; NULL: none is sent */
    struct buffer body;       /* taken; if it has failed, the client gets 503 */
};

/* Called on the HTTP/1.1 server's thread, for any method and path (without its query); must be
 * quick. To HEAD, the body is left out by itself. */
typedef void http1_handler(void *context, const char *method, const char *path,
                           struct http1_response *response);

status http1_server_create(http1_handler *handle, void *context, struct http1_server **out);

/* Closes what is open. NULL is fine. */
void http1_server_destroy(struct http1_server *server);

/* Serves a connected socket, non-blocking, from its first byte on. Takes the socket, whatever
 * comes. Any thread. UNAVAILABLE beyond LIMIT_HTTP1_CONNECTIONS. */
status http1_server_take(struct http1_server *server, int socket, const struct address *peer);

#endif
