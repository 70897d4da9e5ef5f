/* Tests of HTTP/1.1 over socketpairs. */
#include "wire/http1.h"

#include "base/limits.h"
#include "base/testing/testing.h"
#include "os/thread.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

enum { STREAM_BYTES = 8 * LIMIT_MB };

/* A request that waits for its answer: /later for the next one, /stream for its client. */
struct fixture;
static void keep(struct fixture *f, struct http_request *request);
static void stream(void *context);
static void answer_kept(struct fixture *f);

static void handle(void *context, struct http_request *request)
{
    const char *target = http_request_target(request);
    if (http_request_is_too_large(request)) {
        http_answer_begin(request, 413, NULL);
    } else if (strcmp(target, "/later") == 0 || strcmp(target, "/stream") == 0) {
        keep(context, request);
        return;
    } else if (strcmp(target, "/kept") == 0) {
        answer_kept(context);
    } else if (strcmp(target, "/empty") != 0) {
        http_answer_begin(request, 418, "text/plain");
        http_answer_add(request, bytes_of(http_request_method(request)));
        http_answer_add(request, bytes_of(target));
        http_answer_add(request, http_request_body(request));
    }
    http_answer_end(request);
}

struct fixture {
    struct http1_server *server;
    int socket;
    char answer[4096];
    int pauses;      /* of a stream */
    atomic_int gone; /* clients */
    atomic_bool has_kept;

    /* The server's thread alone. */
    struct http_request *kept;
    size_t left; /* of a stream */
};

static void on_gone(void *context)
{
    struct fixture *f = context;
    f->kept = NULL;
    atomic_store(&f->has_kept, false);
    atomic_fetch_add(&f->gone, 1);
}

static void keep(struct fixture *f, struct http_request *request)
{
    f->kept = request;
    f->left = STREAM_BYTES;
    http_request_set_callbacks(request, f, stream, on_gone);
    if (strcmp(http_request_target(request), "/stream") == 0) {
        http_answer_begin(request, 200, "text/plain");
        stream(f);
    }
    atomic_store(&f->has_kept, true);
}

static void answer_kept(struct fixture *f)
{
    http_answer_begin(f->kept, 200, "text/plain");
    http_answer_add(f->kept, bytes_of("at last"));
    http_answer_end(f->kept);
    f->kept = NULL;
}

/* Sends as fast as the client reads. */
static void stream(void *context)
{
    static const uint8_t piece[64 * LIMIT_KB];
    struct fixture *f = context;
    while (f->left > 0 && !http_answer_is_congested(f->kept)) {
        http_answer_add(f->kept, bytes_make(piece, sizeof piece));
        f->left -= sizeof piece;
    }
    f->pauses += f->left > 0;
    if (f->left > 0)
        return;
    /* What has ended is not told any more, even if it asked to be. */
    (void)http_answer_is_congested(f->kept);
    http_answer_end(f->kept);
    f->kept = NULL;
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct address peer = {.size = sizeof(sa_family_t)};
    int pair[2];
    assert_non_null(f);
    assert_ok(http1_server_create(clock_system(), handle, f, &f->server));
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    assert_int_equal(fcntl(pair[1], F_SETFL, O_NONBLOCK), 0);
    f->socket = pair[0];
    assert_ok(http1_server_take(f->server, pair[1], &peer, NULL));
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    http1_server_destroy(f->server);
    close(f->socket);
    free(f);
    return 0;
}

/* Writing may fail: the server may close before it has read everything. */
static void send_request(struct fixture *f, const char *head, size_t body_size)
{
    struct buffer request = {0};
    buffer_append_bytes(&request, bytes_of(head));
    while (body_size-- > 0)
        buffer_append_byte(&request, 'x');
    for (size_t sent = 0; sent < request.size;) {
        ssize_t n = send(f->socket, request.data + sent, request.size - sent, MSG_NOSIGNAL);
        if (n < 0)
            break;
        sent += (size_t)n;
    }
    buffer_free(&request);
}

/* Sends a request that asks the server to close, and reads all that comes. */
static void ask(struct fixture *f, const char *head, size_t body_size)
{
    size_t size = 0;
    ssize_t n;
    send_request(f, head, body_size);
    while (size < sizeof f->answer - 1 &&
           (n = read(f->socket, f->answer + size, sizeof f->answer - 1 - size)) > 0)
        size += (size_t)n;
    f->answer[size] = '\0';
}

/* Whether a new socket was taken; `*client` is its other end. */
static bool take(struct fixture *f, int *client)
{
    struct address peer = {.size = sizeof(sa_family_t)};
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    assert_int_equal(fcntl(pair[1], F_SETFL, O_NONBLOCK), 0);
    *client = pair[0];
    status s = http1_server_take(f->server, pair[1], &peer, NULL);
    bool taken = status_is_ok(s);
    status_free(s);
    return taken;
}

static bool has_kept(void *context)
{
    struct fixture *f = context;
    return atomic_load(&f->has_kept);
}

static bool has_one_gone(void *context)
{
    struct fixture *f = context;
    return atomic_load(&f->gone) == 1;
}

static bool have_two_gone(void *context)
{
    struct fixture *f = context;
    return atomic_load(&f->gone) == 2;
}

static void wait_for(bool (*is_so)(void *context), struct fixture *f)
{
    enum { PATIENCE_US = 60 * 1000 * 1000 };
    assert_true(thread_wait_for(is_so, f, PATIENCE_US));
}

#define CLOSE "Host: x\r\nConnection: close\r\n"

static void test_get(void **state)
{
    struct fixture *f = *state;
    ask(f, "GET /page?query HTTP/1.1\r\n" CLOSE "\r\n", 0);
    assert_non_null(strstr(f->answer, "HTTP/1.1 418 "));
    assert_non_null(strstr(f->answer, "Content-Type: text/plain\r\n"));
    assert_non_null(strstr(f->answer, "\r\n\r\nGET/page"));
}

static void test_empty_body(void **state)
{
    struct fixture *f = *state;
    ask(f, "GET /empty HTTP/1.1\r\n" CLOSE "\r\n", 0);
    assert_non_null(strstr(f->answer, "HTTP/1.1 200 "));
    assert_non_null(strstr(f->answer, "Content-Length: 0\r\n"));
}

static void test_body(void **state)
{
    struct fixture *f = *state;
    ask(f, "POST /page HTTP/1.1\r\nContent-Length: 5\r\n" CLOSE "\r\n", 5);
    assert_non_null(strstr(f->answer, "POST/pagexxxxx"));
}

static void test_chunked_body(void **state)
{
    struct fixture *f = *state;
    ask(f, "PUT /p HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" CLOSE "\r\n3\r\nabc\r\n0\r\n\r\n",
        0);
    assert_non_null(strstr(f->answer, "PUT/pabc"));
}

static void test_large_request_body_is_refused(void **state)
{
    struct fixture *f = *state;
    ask(f, "POST /page HTTP/1.1\r\nContent-Length: 1000000000\r\n" CLOSE "\r\n", 10);
    assert_non_null(strstr(f->answer, "HTTP/1.1 413 "));
}

/* One that passes what all together may have is closed; what it had is there for others. */
static void test_bodies_are_bounded(void **state)
{
    struct fixture *f = *state;
    http1_server_bound_bodies(f->server, 1000);
    ask(f, "POST /page HTTP/1.1\r\nContent-Length: 1001\r\n" CLOSE "\r\n", 1001);
    assert_int_equal(strlen(f->answer), 0);
    close(f->socket);
    assert_true(take(f, &f->socket));
    ask(f, "POST /page HTTP/1.1\r\nContent-Length: 1000\r\n" CLOSE "\r\n", 1000);
    assert_non_null(strstr(f->answer, "POST/pagexxxxx"));
}

/* A request is answered by the handler of another. */
static void test_answers_may_come_later(void **state)
{
    struct fixture *f = *state;
    send_request(f, "GET /later HTTP/1.1\r\nHost: x\r\n\r\n", 0);
    int waiting = f->socket;
    wait_for(has_kept, f);
    assert_true(take(f, &f->socket));
    ask(f, "GET /kept HTTP/1.1\r\n" CLOSE "\r\n", 0);
    close(f->socket);
    f->socket = waiting;
    ask(f, "GET /empty HTTP/1.1\r\n" CLOSE "\r\n", 0);
    assert_non_null(strstr(f->answer, "Content-Length: 7\r\n"));
    assert_non_null(strstr(f->answer, "\r\n\r\nat last"));
}

/* While they wait, or in the middle of an answer: the handler is told. */
static void test_clients_that_leave(void **state)
{
    struct fixture *f = *state;
    send_request(f, "GET /later HTTP/1.1\r\nHost: x\r\n\r\n", 0);
    wait_for(has_kept, f);
    close(f->socket);
    wait_for(has_one_gone, f);
    assert_true(take(f, &f->socket));
    send_request(f, "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n", 0);
    wait_for(has_kept, f);
    close(f->socket);
    wait_for(have_two_gone, f);
    assert_true(take(f, &f->socket));
}

/* No more is made than the client reads. */
static void test_stream(void **state)
{
    struct fixture *f = *state;
    static uint8_t piece[64 * LIMIT_KB];
    size_t size = 0;
    ssize_t n;
    send_request(f, "GET /stream HTTP/1.1\r\n" CLOSE "\r\n", 0);
    while ((n = read(f->socket, piece, sizeof piece)) > 0)
        size += (size_t)n;
    assert_true(size > STREAM_BYTES);
    assert_true(size < STREAM_BYTES + STREAM_BYTES / 8);
    assert_true(f->pauses > 0);
}

/* The server ends while a request waits. */
static void test_end_with_requests_that_wait(void **state)
{
    struct fixture *f = *state;
    send_request(f, "GET /later HTTP/1.1\r\nHost: x\r\n\r\n", 0);
    wait_for(has_kept, f);
}

/* Beyond the limit they are closed; when clients leave there is room again. */
static void test_places_are_counted(void **state)
{
    struct fixture *f = *state;
    enum { MORE = 50 };
    int clients[LIMIT_HTTP1_CONNECTIONS + MORE];
    char byte;
    for (int i = 0; i < LIMIT_HTTP1_CONNECTIONS + MORE; i++) /* one place is set_up's */
        assert_int_equal(take(f, &clients[i]), i < LIMIT_HTTP1_CONNECTIONS - 1);
    for (int i = 0; i < LIMIT_HTTP1_CONNECTIONS + MORE; i++) {
        shutdown(clients[i], SHUT_WR);
        assert_int_equal(read(clients[i], &byte, 1), 0);
        close(clients[i]);
    }
    close(f->socket);
    assert_true(take(f, &f->socket));
    test_get(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_get, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_empty_body, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_body, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_chunked_body, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_answers_may_come_later, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_clients_that_leave, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_stream, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_end_with_requests_that_wait, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_large_request_body_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_bodies_are_bounded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_places_are_counted, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("wire_http1", tests, NULL, NULL);
}
