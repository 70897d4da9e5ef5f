/* See http1.h.
 *
 * libmicrohttpd has an epoll descriptor of its own, which the loop watches, and a timeout, which is
 * a timer of the loop's. A request whose answer is not there yet is suspended. libmicrohttpd does
 * not look at such a client, so we do: one that closes its end has gone.
 *
 * Invariants
 *  1. A request is suspended exactly while its socket is watched.
 *  2. A request is on the server's list from its first line until libmicrohttpd is done with it.
 *  3. A connection is on the server's list from its arrival until it is closed. */
#include "wire/http1.h"

#include "base/check.h"
#include "base/limits.h"
#include "os/thread.h"
#include "wire/http_private.h"

#include <microhttpd.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* libmicrohttpd 0.9.75 locks itself up for good when it meets its own limit, so we count ourselves,
 * and its limit is never met. */
enum { NEVER_MET = 2 * LIMIT_HTTP1_CONNECTIONS, PIECE_SIZE = 32 * LIMIT_KB };

#define REQUEST_MAGIC 0x48315251u

struct http1_server {
    http_handler *handle;
    void *context;
    struct loop *loop;
    pthread_t thread;
    bool has_thread;
    struct MHD_Daemon *daemon;
    struct watch watch;
    bool is_watched;
    struct timer timer;
    struct task run;
    bool is_posted; /* `run` is */
    struct task drain;
    struct task close;
    bool is_draining;
    struct http1_connection *connections;
    struct http1_request *first;
    size_t body_bytes; /* of all requests */
    size_t most_body_bytes;
    atomic_uint open; /* sockets taken and not closed */
};

struct http1_connection {
    struct task arrive;
    struct http1_server *server;
    struct http1_connection *previous;
    struct http1_connection *next;
    int socket; /* libmicrohttpd's */
    struct address peer;
    char address[ADDRESS_TEXT_SIZE];
    char *subject;
    struct http_client client;
    bool is_busy; /* with a request */
};

struct http1_request {
    struct http_request base;
    uint32_t magic;
    struct http1_server *server;
    struct http1_request *previous;
    struct http1_request *next;
    struct http1_connection *from;
    struct MHD_Connection *connection;
    char *target;
    struct buffer body;
    bool is_handled; /* the handler has it, or had */
    bool is_gone;
    bool is_streamed; /* libmicrohttpd has begun to send the answer */
    struct watch watch;
    bool is_suspended;

    struct buffer headers; /* of the answer: name and value in turn, each with a NUL after it */
    struct buffer answer;  /* what waits, from `sent` on */
    size_t sent;
    bool has_ended;
    bool wants_writable;
};

static struct http1_request *request_of(struct http_request *base)
{
    struct http1_request *request = LIST_ENTRY(base, struct http1_request, base);
    CHECK_MAGIC(request, REQUEST_MAGIC);
    return request;
}

/* --- running --- */

static void post_run(struct http1_server *server)
{
    if (server->is_posted)
        return;
    server->is_posted = true;
    loop_post(server->loop, &server->run);
}

static void run_daemon(struct http1_server *server)
{
    MHD_UNSIGNED_LONG_LONG wait_ms;
    MHD_run(server->daemon);
    if (MHD_get_timeout(server->daemon, &wait_ms) != MHD_YES)
        return;
    if (wait_ms == 0) {
        post_run(server);
        return;
    }
    int64_t now = clock_steady_us(loop_clock(server->loop));
    status s = loop_timer_set(server->loop, &server->timer, now + (int64_t)wait_ms * 1000);
    if (!status_is_ok(s)) {
        status_ignore(s); /* the next event asks again */
        post_run(server);
    }
}

static void run_posted(struct task *task)
{
    struct http1_server *server = LIST_ENTRY(task, struct http1_server, run);
    server->is_posted = false;
    run_daemon(server);
}

static void run_timer(struct timer *timer)
{
    run_daemon(LIST_ENTRY(timer, struct http1_server, timer));
}

static void run_events(struct watch *watch, uint32_t events)
{
    (void)events;
    run_daemon(LIST_ENTRY(watch, struct http1_server, watch));
}

/* --- waiting for the answer --- */

static void resume(struct http1_request *request)
{
    if (!request->is_suspended)
        return;
    request->is_suspended = false;
    loop_unwatch(request->server->loop, &request->watch);
    MHD_resume_connection(request->connection);
    post_run(request->server);
}

static void client_left(struct watch *watch, uint32_t events)
{
    (void)events;
    struct http1_request *request = LIST_ENTRY(watch, struct http1_request, watch);
    CHECK_MAGIC(request, REQUEST_MAGIC);
    request->is_gone = true;
    resume(request);
}

/* False without memory. */
static bool suspend(struct http1_request *request)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    request->watch = (struct watch){.fd = info->connect_fd, .ready = client_left};
    status s = loop_watch(request->server->loop, &request->watch, EPOLLRDHUP);
    if (!status_is_ok(s)) {
        status_ignore(s); /* the client sees its connection close */
        return false;
    }
    request->is_suspended = true;
    MHD_suspend_connection(request->connection);
    return true;
}

/* --- answering --- */

static size_t waiting(const struct http1_request *request)
{
    return request->answer.size - request->sent;
}

static ssize_t read_answer(void *context, uint64_t position, char *to, size_t size)
{
    (void)position;
    struct http1_request *request = context;
    CHECK_MAGIC(request, REQUEST_MAGIC);
    if (request->is_gone || request->answer.failed)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    if (waiting(request) == 0) {
        if (request->has_ended)
            return MHD_CONTENT_READER_END_OF_STREAM;
        return suspend(request) ? 0 : MHD_CONTENT_READER_END_WITH_ERROR;
    }
    if (size > waiting(request))
        size = waiting(request);
    memcpy(to, request->answer.data + request->sent, size);
    request->sent += size;
    if (waiting(request) == 0) {
        buffer_clear(&request->answer);
        request->sent = 0;
    }
    if (request->wants_writable && waiting(request) <= LIMIT_CALL_OUTPUT_BYTES / 2) {
        request->wants_writable = false;
        request->base.on_writable(request->base.context);
    }
    return (ssize_t)size;
}

/* An answer that has ended goes as it is, and takes the buffer; another is read piece by piece. */
static struct MHD_Response *make_response(struct http1_request *request)
{
    struct buffer *answer = &request->answer;
    if (!request->has_ended) {
        request->is_streamed = true;
        return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, PIECE_SIZE, read_answer, request,
                                                 NULL);
    }
    struct MHD_Response *response =
        answer->data == NULL
            ? MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT)
            : MHD_create_response_from_buffer(answer->size, answer->data, MHD_RESPMEM_MUST_FREE);
    if (response == NULL)
        buffer_free(answer);
    *answer = (struct buffer){0};
    return response;
}

static enum MHD_Result add_given_headers(const struct http1_request *request,
                                         struct MHD_Response *response)
{
    enum MHD_Result result = MHD_YES;
    for (size_t at = 0; at < request->headers.size && result == MHD_YES;) {
        const char *name = (const char *)request->headers.data + at;
        const char *value = name + strlen(name) + 1;
        result = MHD_add_response_header(response, name, value);
        at += strlen(name) + strlen(value) + 2;
    }
    return result;
}

static enum MHD_Result add_headers(const struct http1_request *request,
                                   struct MHD_Response *response)
{
    const struct http_request *base = &request->base;
    const char *caching = base->caching == NULL ? HTTP_NOT_KEPT : base->caching;
    enum MHD_Result result = add_given_headers(request, response);
    if (result == MHD_YES && base->content_type != NULL)
        result = MHD_add_response_header(response, "Content-Type", base->content_type);
    if (result == MHD_YES)
        result = MHD_add_response_header(response, "Cache-Control", caching);
    if (result == MHD_YES && base->code == MHD_HTTP_UNAUTHORIZED)
        result = MHD_add_response_header(response, "WWW-Authenticate", HTTP_CHALLENGE);
    if (result == MHD_YES && request->server->is_draining)
        result = MHD_add_response_header(response, "Connection", "close");
    return result;
}

static enum MHD_Result send_answer(struct http1_request *request)
{
    if (request->answer.failed) {
        buffer_free(&request->answer);
        request->answer = (struct buffer){0};
        request->base.code = MHD_HTTP_SERVICE_UNAVAILABLE;
        request->has_ended = true;
    }
    struct MHD_Response *response = make_response(request);
    if (response == NULL)
        return MHD_NO; /* closes the connection */
    enum MHD_Result result = add_headers(request, response);
    if (result == MHD_YES)
        result = MHD_queue_response(request->connection, request->base.code, response);
    MHD_destroy_response(response);
    return result;
}

static void header(struct http_request *base, const char *name, const char *value)
{
    struct http1_request *request = request_of(base);
    size_t before = request->headers.size;
    buffer_append(&request->headers, name, strlen(name) + 1);
    buffer_append(&request->headers, value, strlen(value) + 1);
    if (request->headers.failed) {
        request->headers.size = before;
        request->headers.failed = false;
    }
}

static void add(struct http_request *base, bytes more)
{
    struct http1_request *request = request_of(base);
    buffer_append_bytes(&request->answer, more);
    resume(request);
}

static void end(struct http_request *base)
{
    struct http1_request *request = request_of(base);
    request->has_ended = true;
    request->wants_writable = false;
    resume(request);
}

static bool is_congested(struct http_request *base)
{
    struct http1_request *request = request_of(base);
    request->wants_writable = waiting(request) > LIMIT_CALL_OUTPUT_BYTES;
    return request->wants_writable;
}

/* --- a request --- */

struct header_visit {
    void *context;
    void (*each)(void *context, bytes name, bytes value);
};

static enum MHD_Result visit_header(void *context, enum MHD_ValueKind kind, const char *name,
                                    const char *value)
{
    (void)kind;
    const struct header_visit *visit = context;
    visit->each(visit->context, bytes_of(name), bytes_of(value == NULL ? "" : value));
    return MHD_YES;
}

static void visit_headers(const struct http_request *base, void *context,
                          void (*each)(void *context, bytes name, bytes value))
{
    const struct http1_request *request = (const struct http1_request *)base;
    struct header_visit visit = {context, each};
    MHD_get_connection_values(request->connection, MHD_HEADER_KIND, visit_header, &visit);
}

/* libmicrohttpd calls this with a request's first line; what it returns is the `*state` of all that
 * follows. Without memory that is NULL. */
static void *on_target(void *context, const char *target, struct MHD_Connection *connection)
{
    static const struct http_way way = {visit_headers, header, add, end, is_congested};
    struct http1_server *server = context;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct http1_request *request = calloc(1, sizeof *request);
    if (request == NULL)
        return NULL;
    request->target = strdup(target);
    if (request->target == NULL) {
        free(request);
        return NULL;
    }
    request->magic = REQUEST_MAGIC;
    request->server = server;
    request->connection = connection;
    request->from = info->socket_context;
    request->from->is_busy = true;
    request->base = (struct http_request){.way = &way,
                                          .target = request->target,
                                          .client = &request->from->client,
                                          .code = MHD_HTTP_OK};
    request->next = server->first;
    if (request->next != NULL)
        request->next->previous = request;
    server->first = request;
    return request;
}

static void handle(struct http1_request *request)
{
    request->is_handled = true;
    request->base.body = buffer_bytes(&request->body);
    request->server->handle(request->server->context, &request->base);
}

static enum MHD_Result go_on(struct http1_request *request)
{
    if (request->is_gone)
        return MHD_NO;
    if (request->has_ended || waiting(request) > 0)
        return send_answer(request);
    return suspend(request) ? MHD_YES : MHD_NO;
}

static bool says_too_much(struct MHD_Connection *connection)
{
    const char *length =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);
    return length != NULL && strtoull(length, NULL, 10) > LIMIT_HTTP_BODY_BYTES;
}

/* Takes a piece of the body; false if it is too much, for this request or for all together. */
static bool take_body(struct http1_request *request, const char *body, size_t size)
{
    struct http1_server *server = request->server;
    buffer_append(&request->body, body, size);
    server->body_bytes += size;
    return !request->body.failed && request->body.size <= LIMIT_HTTP_BODY_BYTES &&
           server->body_bytes <= server->most_body_bytes;
}

/* libmicrohttpd calls this when a request's headers are there, for each piece of its body, when it
 * is whole, and when it has been resumed before an answer was begun. */
static enum MHD_Result on_request(void *context, struct MHD_Connection *connection,
                                  const char *path, const char *method, const char *version,
                                  const char *body, size_t *body_size, void **state)
{
    (void)context;
    (void)path;
    (void)version;
    struct http1_request *request = *state;
    if (request == NULL)
        return MHD_NO;
    CHECK_MAGIC(request, REQUEST_MAGIC);
    bool is_first = request->base.method == NULL;
    request->base.method = method;
    if (is_first) {
        request->base.is_too_large = says_too_much(connection);
        if (!request->base.is_too_large)
            return MHD_YES;
    } else if (*body_size > 0) {
        bool is_taken = take_body(request, body, *body_size);
        *body_size = 0;
        return is_taken ? MHD_YES : MHD_NO;
    }
    if (!request->is_handled)
        handle(request);
    return go_on(request);
}

/* The connection has no request any more. A server that is to end waits for no other: what the
 * client has sent meanwhile is lost, as with any connection that is kept open and then closed. */
static void rest(struct http1_connection *connection)
{
    connection->is_busy = false;
    if (connection->server->is_draining)
        shutdown(connection->socket, SHUT_RD);
}

/* The answer has been sent, or never will be. */
static void on_completed(void *context, struct MHD_Connection *connection, void **state,
                         enum MHD_RequestTerminationCode why)
{
    (void)connection;
    (void)why;
    struct http1_server *server = context;
    struct http1_request *request = *state;
    *state = NULL;
    if (request == NULL)
        return;
    CHECK_MAGIC(request, REQUEST_MAGIC);
    CHECK(!request->is_suspended);
    rest(request->from);
    if (request->is_handled && !request->has_ended && request->base.on_gone != NULL)
        request->base.on_gone(request->base.context);
    if (request->previous != NULL)
        request->previous->next = request->next;
    else
        server->first = request->next;
    if (request->next != NULL)
        request->next->previous = request->previous;
    server->body_bytes -= request->body.size;
    http_request_release(&request->base);
    buffer_free(&request->body);
    buffer_free(&request->headers);
    buffer_free(&request->answer);
    free(request->target);
    request->magic = 0;
    free(request);
}

/* --- connections --- */

static void enlist(struct http1_connection *connection)
{
    struct http1_server *server = connection->server;
    connection->next = server->connections;
    if (connection->next != NULL)
        connection->next->previous = connection;
    server->connections = connection;
}

static void delist(struct http1_connection *connection)
{
    if (connection->previous != NULL)
        connection->previous->next = connection->next;
    else
        connection->server->connections = connection->next;
    if (connection->next != NULL)
        connection->next->previous = connection->previous;
}

static void free_connection(struct http1_connection *connection)
{
    atomic_fetch_sub(&connection->server->open, 1);
    free(connection->subject);
    free(connection);
}

static struct http1_connection *find_connection(struct http1_server *server, int socket)
{
    struct http1_connection *connection = server->connections;
    while (connection != NULL && connection->socket != socket)
        connection = connection->next;
    return connection;
}

static void on_connection(void *context, struct MHD_Connection *mhd, void **state,
                          enum MHD_ConnectionNotificationCode what)
{
    struct http1_server *server = context;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
        *state = find_connection(server, info->connect_fd);
        return;
    }
    struct http1_connection *connection = *state;
    delist(connection);
    free_connection(connection);
}

static void arrive(struct task *task)
{
    struct http1_connection *connection = LIST_ENTRY(task, struct http1_connection, arrive);
    struct http1_server *server = connection->server;
    int socket = connection->socket;
    if (server->is_draining) {
        close(socket);
        free_connection(connection);
        return;
    }
    enlist(connection);
    /* Closes the socket itself if it cannot have it, and may have said so before. */
    if (MHD_add_connection(server->daemon, socket,
                           (const struct sockaddr *)&connection->peer.storage,
                           connection->peer.size) != MHD_YES) {
        connection = find_connection(server, socket);
        if (connection != NULL) {
            delist(connection);
            free_connection(connection);
        }
    }
    post_run(server);
}

status http1_server_take(struct http1_server *server, int socket, const struct address *peer,
                         char *subject)
{
    struct http1_connection *connection = calloc(1, sizeof *connection);
    unsigned open = atomic_fetch_add(&server->open, 1);
    unsigned reserved = address_is_loopback(peer) ? LIMIT_RESERVED_CONNECTIONS : 0;
    if (connection == NULL || open >= LIMIT_HTTP1_CONNECTIONS + reserved) {
        atomic_fetch_sub(&server->open, 1);
        free(connection);
        free(subject);
        close(socket);
        return status_make(STATUS_UNAVAILABLE, "too many HTTP/1.1 connections");
    }
    connection->arrive.run = arrive;
    connection->server = server;
    connection->socket = socket;
    connection->peer = *peer;
    connection->subject = subject;
    address_format(peer, connection->address);
    connection->client = (struct http_client){connection->address, subject};
    loop_post(server->loop, &connection->arrive);
    return status_ok();
}

/* --- the server's life --- */

static void *run_thread(void *argument)
{
    struct http1_server *server = argument;
    loop_run(server->loop);
    return NULL;
}

static status start_daemon(struct http1_server *server)
{
    server->daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL,
        on_request, server, MHD_OPTION_CONNECTION_LIMIT, (unsigned)NEVER_MET,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, server, MHD_OPTION_NOTIFY_COMPLETED,
        on_completed, server, MHD_OPTION_URI_LOG_CALLBACK, on_target, server,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)LIMIT_HTTP1_IDLE_SECONDS, MHD_OPTION_END);
    if (server->daemon == NULL)
        return status_make(STATUS_UNAVAILABLE, "cannot start the HTTP/1.1 server");
    const union MHD_DaemonInfo *info =
        MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    server->watch = (struct watch){.fd = info->epoll_fd, .ready = run_events};
    TRY(loop_watch(server->loop, &server->watch, EPOLLIN));
    server->is_watched = true;
    return status_ok();
}

static void drain(struct task *task)
{
    struct http1_server *server = LIST_ENTRY(task, struct http1_server, drain);
    server->is_draining = true;
    for (struct http1_connection *connection = server->connections; connection != NULL;
         connection = connection->next)
        if (!connection->is_busy)
            rest(connection);
}

void http1_server_drain(struct http1_server *server)
{
    loop_post(server->loop, &server->drain);
}

/* On the loop: ends all that is open, and then the loop. */
static void close_all(struct task *task)
{
    struct http1_server *server = LIST_ENTRY(task, struct http1_server, close);
    for (struct http1_request *request = server->first; request != NULL; request = request->next) {
        request->is_gone = true;
        resume(request);
    }
    loop_stop(server->loop);
}

static status start(struct http1_server *server, struct clock *clock)
{
    TRY(loop_create(clock, &server->loop));
    TRY(start_daemon(server));
    TRY(thread_start(&server->thread, "http1", run_thread, server));
    server->has_thread = true;
    return status_ok();
}

status http1_server_create(struct clock *clock, http_handler *handle, void *context,
                           struct http1_server **out)
{
    *out = NULL;
    struct http1_server *server = calloc(1, sizeof *server);
    if (server == NULL)
        return status_out_of_memory();
    server->handle = handle;
    server->context = context;
    server->most_body_bytes = LIMIT_HTTP1_BODIES_BYTES;
    server->run.run = run_posted;
    server->drain.run = drain;
    server->close.run = close_all;
    server->timer.run = run_timer;
    status s = start(server, clock);
    if (!status_is_ok(s)) {
        http1_server_destroy(server);
        return s;
    }
    *out = server;
    return s;
}

void http1_server_stop(struct http1_server *server)
{
    if (server == NULL)
        return;
    if (server->has_thread) {
        loop_post(server->loop, &server->close);
        pthread_join(server->thread, NULL);
    }
    if (server->is_watched)
        loop_unwatch(server->loop, &server->watch);
    if (server->daemon != NULL)
        MHD_stop_daemon(server->daemon);
    server->has_thread = server->is_watched = false;
    server->daemon = NULL;
}

void http1_server_destroy(struct http1_server *server)
{
    if (server == NULL)
        return;
    http1_server_stop(server);
    loop_destroy(server->loop);
    free(server);
}

void http1_server_bound_bodies(struct http1_server *server, size_t most)
{
    if (most < server->most_body_bytes)
        server->most_body_bytes = most;
}

struct loop *http1_server_loop(const struct http1_server *server)
{
    return server->loop;
}
