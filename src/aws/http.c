/* See http.h.
 *
 * libcurl says which sockets it waits for (watch_socket) and when it wants to be called
 * (set_timer); the loop calls it then, and behind each such call those of its transfers that have
 * ended are taken out and told (take_ended). */
#include "aws/http.h"

#include "base/check.h"

#include <curl/curl.h>
#include <fcntl.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/epoll.h>
#include <unistd.h>

enum {
    CONNECT_TIMEOUT_MS = 10 * 1000,
    US_PER_MS = 1000,
    US_PER_S = 1000 * 1000,
};

struct http_client {
    struct loop *loop;
    const char *ca;
    CURLM *multi;
    struct timer timer;
};

/* A socket of libcurl's. A duplicate of it is watched, which is ours to close: libcurl may have
 * closed its own when it says that we need no longer watch. */
struct http_socket {
    struct watch watch;
    curl_socket_t fd; /* libcurl's */
    struct http_client *client;
};

struct http_call_state {
    struct http_client *client;
    struct http_call *call;
    CURL *easy;
    struct curl_slist *headers;
    size_t answer_most;
    bool is_too_large;
    char error[CURL_ERROR_SIZE];
};

/* --- calls that have ended --- */

static void destroy_state(struct http_call_state *state)
{
    curl_slist_free_all(state->headers);
    curl_easy_cleanup(state->easy);
    free(state);
}

static status outcome_of(const struct http_call_state *state, CURLcode code)
{
    const char *words = state->error[0] != '\0' ? state->error : curl_easy_strerror(code);
    if (state->is_too_large)
        return status_make(STATUS_RESOURCE_EXHAUSTED, "the answer has more than %zu bytes",
                           state->answer_most);
    if (state->call->answer.failed || code == CURLE_OUT_OF_MEMORY)
        return status_out_of_memory();
    if (code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE ||
        code == CURLE_UNSUPPORTED_PROTOCOL || code == CURLE_URL_MALFORMAT)
        return status_make(STATUS_FAILED_PRECONDITION, "%s", words);
    return code == CURLE_OK ? status_ok() : status_make(STATUS_UNAVAILABLE, "%s", words);
}

static void end_call(struct http_call_state *state, CURLcode code)
{
    struct http_call *call = state->call;
    long http_status = 0;
    CHECK(curl_multi_remove_handle(state->client->multi, state->easy) == CURLM_OK);
    curl_easy_getinfo(state->easy, CURLINFO_RESPONSE_CODE, &http_status);
    call->http_status = (unsigned)http_status;
    call->outcome = outcome_of(state, code);
    call->state = NULL;
    destroy_state(state);
    call->done(call);
}

static void take_ended(struct http_client *client)
{
    const CURLMsg *message;
    int left;
    while ((message = curl_multi_info_read(client->multi, &left)) != NULL) {
        struct http_call_state *state = NULL;
        CURLcode code = message->data.result; /* the message goes with its handle */
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &state);
        end_call(state, code);
    }
}

/* --- between libcurl and the loop --- */

static void act(struct http_client *client, curl_socket_t fd, int events)
{
    int running;
    CHECK(curl_multi_socket_action(client->multi, fd, events, &running) == CURLM_OK);
    take_ended(client);
}

/* The socket may be gone when libcurl returns. */
static void socket_is_ready(struct watch *watch, uint32_t events)
{
    struct http_socket *socket = LIST_ENTRY(watch, struct http_socket, watch);
    int action = 0;
    if (events & EPOLLIN)
        action |= CURL_CSELECT_IN;
    if (events & EPOLLOUT)
        action |= CURL_CSELECT_OUT;
    if (events & (EPOLLERR | EPOLLHUP))
        action |= CURL_CSELECT_ERR;
    act(socket->client, socket->fd, action);
}

static uint32_t events_of(int what)
{
    return (what & CURL_POLL_IN ? (uint32_t)EPOLLIN : 0) |
           (what & CURL_POLL_OUT ? (uint32_t)EPOLLOUT : 0);
}

static int forget_socket(struct http_client *client, struct http_socket *socket)
{
    if (socket != NULL) {
        loop_unwatch(client->loop, &socket->watch);
        close(socket->watch.fd);
        curl_multi_assign(client->multi, socket->fd, NULL);
        free(socket);
    }
    return 0;
}

/* libcurl gives its transfers up after -1. */
static int curl_result(status s)
{
    bool is_ok = status_is_ok(s);
    status_free(s);
    return is_ok ? 0 : -1;
}

static int new_socket(struct http_client *client, curl_socket_t fd, int what)
{
    struct http_socket *socket = calloc(1, sizeof *socket);
    if (socket == NULL)
        return -1;
    socket->client = client;
    socket->fd = fd;
    socket->watch.fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    socket->watch.ready = socket_is_ready;
    if (socket->watch.fd < 0 ||
        curl_result(loop_watch(client->loop, &socket->watch, events_of(what))) != 0) {
        if (socket->watch.fd >= 0)
            close(socket->watch.fd);
        free(socket);
        return -1;
    }
    curl_multi_assign(client->multi, fd, socket);
    return 0;
}

static int watch_socket(CURL *easy, curl_socket_t fd, int what, void *context, void *known)
{
    struct http_client *client = context;
    struct http_socket *socket = known;
    (void)easy;
    if (what == CURL_POLL_REMOVE)
        return forget_socket(client, socket);
    if (socket == NULL)
        return new_socket(client, fd, what);
    return curl_result(loop_watch_change(client->loop, &socket->watch, events_of(what)));
}

static void timer_is_due(struct timer *timer)
{
    act(LIST_ENTRY(timer, struct http_client, timer), CURL_SOCKET_TIMEOUT, 0);
}

static int set_timer(CURLM *multi, long timeout_ms, void *context)
{
    struct http_client *client = context;
    (void)multi;
    if (timeout_ms < 0) {
        loop_timer_clear(client->loop, &client->timer);
        return 0;
    }
    int64_t due_us = clock_steady_us(loop_clock(client->loop)) + (int64_t)timeout_ms * US_PER_MS;
    return curl_result(loop_timer_set(client->loop, &client->timer, due_us));
}

/* --- clients --- */

status http_client_create(struct loop *loop, const char *ca, struct http_client **out)
{
    struct http_client *client = *out = calloc(1, sizeof *client);
    if (client == NULL)
        return status_out_of_memory();
    client->loop = loop;
    client->ca = ca;
    client->timer.run = timer_is_due;
    client->multi = curl_multi_init();
    if (client->multi == NULL) {
        free(client);
        *out = NULL;
        return status_make(STATUS_UNAVAILABLE, "libcurl does not start");
    }
    curl_multi_setopt(client->multi, CURLMOPT_SOCKETFUNCTION, watch_socket);
    curl_multi_setopt(client->multi, CURLMOPT_SOCKETDATA, client);
    curl_multi_setopt(client->multi, CURLMOPT_TIMERFUNCTION, set_timer);
    curl_multi_setopt(client->multi, CURLMOPT_TIMERDATA, client);
    return status_ok();
}

void http_client_destroy(struct http_client *client)
{
    if (client == NULL)
        return;
    curl_multi_cleanup(client->multi);
    loop_timer_clear(client->loop, &client->timer);
    free(client);
}

/* --- a call --- */

static size_t take_body(char *data, size_t one, size_t size, void *context)
{
    struct http_call_state *state = context;
    struct buffer *answer = &state->call->answer;
    (void)one;
    state->is_too_large = size > state->answer_most - answer->size;
    if (state->is_too_large)
        return 0;
    buffer_append(answer, data, size);
    return answer->failed ? 0 : size;
}

static size_t take_header(char *data, size_t one, size_t size, void *context)
{
    static const char name[] = "date:";
    struct http_call_state *state = context;
    (void)one;
    if (size < sizeof name || strncasecmp(data, name, strlen(name)) != 0)
        return size;
    char *text = bytes_to_string(bytes_make(data + strlen(name), size - strlen(name)));
    time_t seconds = text == NULL ? 0 : curl_getdate(text, NULL);
    free(text);
    if (seconds > 0)
        state->call->server_us = (int64_t)seconds * US_PER_S;
    return size;
}

static bool add_header(struct http_call_state *state, const char *name, const char *value)
{
    struct buffer line = {0};
    buffer_append_format(&line, "%s: %s%c", name, value, 0);
    struct curl_slist *longer =
        line.failed ? NULL : curl_slist_append(state->headers, (const char *)line.data);
    buffer_free(&line);
    if (longer != NULL)
        state->headers = longer;
    return longer != NULL;
}

static bool add_headers(struct http_call_state *state, const struct http_request *request)
{
    for (size_t i = 0; i < request->header_count; i++)
        if (strcmp(request->headers[i].name, "host") != 0 &&
            !add_header(state, request->headers[i].name, request->headers[i].value))
            return false;
    /* Not to be asked whether a long body may come. */
    return add_header(state, "expect", "");
}

static void set_options(struct http_call_state *state, const struct http_request *request)
{
    CURL *easy = state->easy;
    curl_easy_setopt(easy, CURLOPT_URL, request->url);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)(request->timeout_us / US_PER_MS));
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, state->headers);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, (const char *)request->body.data);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body.size);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, state);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, state);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, state->error);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, state);
    if (state->client->ca != NULL)
        curl_easy_setopt(easy, CURLOPT_CAINFO, state->client->ca);
}

static struct http_call_state *make_state(struct http_client *client, struct http_call *call,
                                          const struct http_request *request)
{
    struct http_call_state *state = calloc(1, sizeof *state);
    if (state == NULL)
        return NULL;
    state->client = client;
    state->call = call;
    state->answer_most = request->answer_most;
    state->easy = curl_easy_init();
    if (state->easy != NULL && add_headers(state, request)) {
        set_options(state, request);
        return state;
    }
    destroy_state(state);
    return NULL;
}

/* Keeps the memory of the answer before. */
static void forget_answer(struct http_call *call)
{
    status_free(call->outcome);
    call->outcome = status_ok();
    call->http_status = 0;
    call->server_us = 0;
    buffer_clear(&call->answer);
}

status http_post(struct http_client *client, struct http_call *call,
                 const struct http_request *request)
{
    CHECK(call->state == NULL);
    forget_answer(call);
    struct http_call_state *state = make_state(client, call, request);
    if (state == NULL)
        return status_out_of_memory();
    if (curl_multi_add_handle(client->multi, state->easy) != CURLM_OK) {
        destroy_state(state);
        return status_make(STATUS_UNAVAILABLE, "libcurl does not take the request");
    }
    call->state = state;
    return status_ok();
}

void http_call_clear(struct http_call *call)
{
    struct http_call_state *state = call->state;
    if (state != NULL) {
        CHECK(curl_multi_remove_handle(state->client->multi, state->easy) == CURLM_OK);
        destroy_state(state);
    }
    call->state = NULL;
    forget_answer(call);
    buffer_free(&call->answer);
    call->answer = (struct buffer){0};
}
