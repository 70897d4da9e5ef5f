/* See http1.h. Bodies of requests are read and thrown away: no page has use for one. */
#include "wire/http1.h"

#include "base/limits.h"

#include <microhttpd.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

/* libmicrohttpd 0.9.75 locks itself up for good when it meets its own limit in its own thread, so
 * we count ourselves, and its limit is never met. */
enum { NEVER_MET = 2 * LIMIT_HTTP1_CONNECTIONS };

struct http1_server {
    http1_handler *handle;
    void *context;
    struct MHD_Daemon *daemon;
    atomic_uint open; /* sockets taken and not closed */
};

/* The response takes the body's memory, also if it cannot be made. */
static struct MHD_Response *make_response(struct http1_response *answer)
{
    struct buffer *body = &answer->body;
    struct MHD_Response *response =
        body->data == NULL
            ? MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT)
            : MHD_create_response_from_buffer(body->size, body->data, MHD_RESPMEM_MUST_FREE);
    if (response == NULL)
        buffer_free(body);
    *body = (struct buffer){0};
    return response;
}

static enum MHD_Result send_answer(struct MHD_Connection *connection, struct http1_response *answer)
{
    if (answer->body.failed) {
        buffer_free(&answer->body);
        answer->code = MHD_HTTP_SERVICE_UNAVAILABLE;
    }
    struct MHD_Response *response = make_response(answer);
    if (response == NULL)
        return MHD_NO; /* closes the connection */
    enum MHD_Result result = MHD_YES;
    if (answer->content_type != NULL)
        result = MHD_add_response_header(response, "Content-Type", answer->content_type);
    if (result == MHD_YES)
        result = MHD_add_response_header(response, "Cache-Control", "no-store");
    if (result == MHD_YES)
        result = MHD_queue_response(connection, answer->code, response);
    MHD_destroy_response(response);
    return result;
}

/* libmicrohttpd calls this when a request's headers are there, for each piece of its body, and when
 * it is whole. `*state` is NULL at first, then counts: 1, and the bytes of the body. */
static enum MHD_Result on_request(void *context, struct MHD_Connection *connection,
                                  const char *path, const char *method, const char *version,
                                  const char *body, size_t *body_size, void **state)
{
    (void)version;
    (void)body;
    struct http1_server *server = context;
    uintptr_t seen = (uintptr_t)*state;
    if (seen == 0 || *body_size > 0) {
        seen = seen == 0 ? 1 : seen + *body_size;
        *state = (void *)seen;
        *body_size = 0;
        return seen <= LIMIT_HTTP1_BODY_BYTES ? MHD_YES : MHD_NO;
    }
    struct http1_response answer = {.code = MHD_HTTP_OK};
    server->handle(server->context, method, path, &answer);
    return send_answer(connection, &answer);
}

static void on_connection(void *context, struct MHD_Connection *connection, void **state,
                          enum MHD_ConnectionNotificationCode what)
{
    (void)connection;
    (void)state;
    struct http1_server *server = context;
    if (what == MHD_CONNECTION_NOTIFY_CLOSED)
        atomic_fetch_sub(&server->open, 1);
}

status http1_server_create(http1_handler *handle, void *context, struct http1_server **out)
{
    *out = NULL;
    struct http1_server *server = calloc(1, sizeof *server);
    if (server == NULL)
        return status_out_of_memory();
    server->handle = handle;
    server->context = context;
    server->daemon = MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ITC, 0, NULL, NULL,
        on_request, server, MHD_OPTION_CONNECTION_LIMIT, (unsigned)NEVER_MET,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, server, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)LIMIT_HTTP1_IDLE_SECONDS, MHD_OPTION_END);
    if (server->daemon == NULL) {
        free(server);
        return status_make(STATUS_UNAVAILABLE, "cannot start the HTTP/1.1 server");
    }
    *out = server;
    return status_ok();
}

void http1_server_destroy(struct http1_server *server)
{
    if (server == NULL)
        return;
    MHD_stop_daemon(server->daemon);
    free(server);
}

status http1_server_take(struct http1_server *server, int socket, const struct address *peer)
{
    if (atomic_fetch_add(&server->open, 1) < LIMIT_HTTP1_CONNECTIONS) {
        /* Closes the socket itself if it cannot have it. */
        if (MHD_add_connection(server->daemon, socket, (const struct sockaddr *)&peer->storage,
                               peer->size) == MHD_YES)
            return status_ok();
    } else {
        close(socket);
    }
    atomic_fetch_sub(&server->open, 1);
    return status_make(STATUS_UNAVAILABLE, "too many HTTP/1.1 connections");
}
