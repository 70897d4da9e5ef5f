/* See http1.h.
 *
 * libmicrohttpd has an epoll descriptor of its own, which the loop watches, and a timeout, which is
 * a timer of the loop's. A request whose answer is not there yet is suspended. libmicrohttpd does
 * not look at such a client, so we do: one that closes its end has gone.
 *
 * Invariants
 *  1. A request is suspended exactly while its socket is watched.
 *  2. A request is on the server's list from its first line until libmicrohttpd is done with it. */
#include "wire/http1.h"

#include "base/check.h"
#include "base/limits.h"
#include "os/thread.h"

#include <microhttpd.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

/* libmicrohttpd 0.9.75 locks itself up for good when it meets its own limit, so we count ourselves,
 * and its limit is never met. */
enum { NEVER_MET = 2 * LIMIT_HTTP1_CONNECTIONS, PIECE_SIZE = 32 * LIMIT_KB };

#define REQUEST_MAGIC 0x48315251u

struct http1_server {
    http1_handler *handle;
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
    struct task close;
    struct http1_request *first;
    size_t body_bytes; /* of all requests */
    atomic_uint open;  /* sockets taken and not closed */
};

struct http1_request {
    uint32_t magic;
    struct http1_server *server;
    struct http1_request *previous;
    struct http1_request *next;
    struct MHD_Connection *connection;
    const char *method;
    char *target;
    struct buffer body;
    bool is_too_large;
    bool is_handled; /* the handler has it, or had */
    bool is_gone;
    bool is_streamed; /* libmicrohttpd has begun to send the answer */
    struct watch watch;
    bool is_suspended;

    unsigned code;
    const char *content_type;
    struct buffer answer; /* what waits, from `sent` on */
    size_t sent;
    bool has_ended;
    bool wants_writable;
    void *context;
    void (*on_writable)(void *context);
    void (*on_gone)(void *context);
};

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
        request->on_writable(request->context);
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

static enum MHD_Result send_answer(struct http1_request *request)
{
    if (request->answer.failed) {
        buffer_free(&request->answer);
        request->answer = (struct buffer){0};
        request->code = MHD_HTTP_SERVICE_UNAVAILABLE;
        request->has_ended = true;
    }
    struct MHD_Response *response = make_response(request);
    if (response == NULL)
        return MHD_NO; /* closes the connection */
    enum MHD_Result result = MHD_YES;
    if (request->content_type != NULL)
        result = MHD_add_response_header(response, "Content-Type", request->content_type);
    if (result == MHD_YES)
        result = MHD_add_response_header(response, "Cache-Control", "no-store");
    if (result == MHD_YES)
        result = MHD_queue_response(request->connection, request->code, response);
    MHD_destroy_response(response);
    return result;
}

void http1_answer_begin(struct http1_request *request, unsigned code, const char *content_type)
{
    CHECK_MAGIC(request, REQUEST_MAGIC);
    request->code = code;
    request->content_type = content_type;
}

void http1_answer_add(struct http1_request *request, bytes more)
{
    CHECK_MAGIC(request, REQUEST_MAGIC);
    buffer_append_bytes(&request->answer, more);
    resume(request);
}

void http1_answer_end(struct http1_request *request)
{
    CHECK_MAGIC(request, REQUEST_MAGIC);
    request->has_ended = true;
    request->wants_writable = false;
    resume(request);
}

bool http1_answer_is_congested(struct http1_request *request)
{
    request->wants_writable = waiting(request) > LIMIT_CALL_OUTPUT_BYTES;
    return request->wants_writable;
}

void http1_request_set_callbacks(struct http1_request *request, void *context,
                                 void (*on_writable)(void *context), void (*on_gone)(void *context))
{
    request->context = context;
    request->on_writable = on_writable;
    request->on_gone = on_gone;
}

/* --- a request --- */

const char *http1_request_method(const struct http1_request *request)
{
    return request->method;
}

const char *http1_request_target(const struct http1_request *request)
{
    return request->target;
}

bytes http1_request_body(const struct http1_request *request)
{
    return buffer_bytes(&request->body);
}

bool http1_request_is_too_large(const struct http1_request *request)
{
    return request->is_too_large;
}

struct header_visit {
    void *context;
    void (*each)(void *context, const char *name, const char *value);
};

static enum MHD_Result visit_header(void *context, enum MHD_ValueKind kind, const char *name,
                                    const char *value)
{
    (void)kind;
    const struct header_visit *visit = context;
    visit->each(visit->context, name, value == NULL ? "" : value);
    return MHD_YES;
}

void http1_request_headers(const struct http1_request *request, void *context,
                           void (*each)(void *context, const char *name, const char *value))
{
    struct header_visit visit = {context, each};
    MHD_get_connection_values(request->connection, MHD_HEADER_KIND, visit_header, &visit);
}

/* libmicrohttpd calls this with a request's first line; what it returns is the `*state` of all that
 * follows. Without memory that is NULL. */
static void *on_target(void *context, const char *target, struct MHD_Connection *connection)
{
    struct http1_server *server = context;
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
    request->code = MHD_HTTP_OK;
    request->next = server->first;
    if (request->next != NULL)
        request->next->previous = request;
    server->first = request;
    return request;
}

static void handle(struct http1_request *request)
{
    request->is_handled = true;
    request->server->handle(request->server->context, request);
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
    return length != NULL && strtoull(length, NULL, 10) > LIMIT_HTTP1_BODY_BYTES;
}

/* Takes a piece of the body; false if it is too much, for this request or for all together. */
static bool take_body(struct http1_request *request, const char *body, size_t size)
{
    struct http1_server *server = request->server;
    buffer_append(&request->body, body, size);
    server->body_bytes += size;
    return !request->body.failed && request->body.size <= LIMIT_HTTP1_BODY_BYTES &&
           server->body_bytes <= LIMIT_HTTP1_BODIES_BYTES;
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
    bool is_first = request->method == NULL;
    request->method = method;
    if (is_first) {
        request->is_too_large = says_too_much(connection);
        if (!request->is_too_large)
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
    if (request->is_handled && !request->has_ended && request->on_gone != NULL)
        request->on_gone(request->context);
    if (request->previous != NULL)
        request->previous->next = request->next;
    else
        server->first = request->next;
    if (request->next != NULL)
        request->next->previous = request->previous;
    server->body_bytes -= request->body.size;
    buffer_free(&request->body);
    buffer_free(&request->answer);
    free(request->target);
    request->magic = 0;
    free(request);
}

/* --- connections --- */

struct arrival {
    struct task task;
    struct http1_server *server;
    int socket;
    struct address peer;
};

static void on_connection(void *context, struct MHD_Connection *connection, void **state,
                          enum MHD_ConnectionNotificationCode what)
{
    (void)connection;
    (void)state;
    struct http1_server *server = context;
    if (what == MHD_CONNECTION_NOTIFY_CLOSED)
        atomic_fetch_sub(&server->open, 1);
}

static void arrive(struct task *task)
{
    struct arrival *arrival = LIST_ENTRY(task, struct arrival, task);
    struct http1_server *server = arrival->server;
    /* Closes the socket itself if it cannot have it. */
    if (MHD_add_connection(server->daemon, arrival->socket,
                           (const struct sockaddr *)&arrival->peer.storage,
                           arrival->peer.size) != MHD_YES)
        atomic_fetch_sub(&server->open, 1);
    free(arrival);
    post_run(server);
}

status http1_server_take(struct http1_server *server, int socket, const struct address *peer)
{
    struct arrival *arrival = malloc(sizeof *arrival);
    if (arrival == NULL || atomic_fetch_add(&server->open, 1) >= LIMIT_HTTP1_CONNECTIONS) {
        if (arrival != NULL)
            atomic_fetch_sub(&server->open, 1);
        free(arrival);
        close(socket);
        return status_make(STATUS_UNAVAILABLE, "too many HTTP/1.1 connections");
    }
    *arrival =
        (struct arrival){.task.run = arrive, .server = server, .socket = socket, .peer = *peer};
    loop_post(server->loop, &arrival->task);
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

status http1_server_create(struct clock *clock, http1_handler *handle, void *context,
                           struct http1_server **out)
{
    *out = NULL;
    struct http1_server *server = calloc(1, sizeof *server);
    if (server == NULL)
        return status_out_of_memory();
    server->handle = handle;
    server->context = context;
    server->run.run = run_posted;
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

void http1_server_destroy(struct http1_server *server)
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
    loop_destroy(server->loop);
    free(server);
}

struct loop *http1_server_loop(const struct http1_server *server)
{
    return server->loop;
}
