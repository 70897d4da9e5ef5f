/* Tests of HTTP/1.1 over socketpairs. */
#include "wire/http1.h"

#include "base/limits.h"
#include "base/testing.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

static void handle(void *context, const char *method, const char *path,
                   struct http1_response *response)
{
    (void)context;
    response->content_type = "text/plain";
    if (strcmp(path, "/empty") == 0)
        return;
    if (strcmp(path, "/full") == 0) {
        response->body.failed = true;
        return;
    }
    response->code = 418;
    buffer_append_bytes(&response->body, bytes_of(method));
    buffer_append_bytes(&response->body, bytes_of(path));
}

struct fixture {
    struct http1_server *server;
    int socket;
    char answer[4096];
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct address peer = {.size = sizeof(sa_family_t)};
    int pair[2];
    assert_non_null(f);
    assert_ok(http1_server_create(handle, f, &f->server));
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    assert_int_equal(fcntl(pair[1], F_SETFL, O_NONBLOCK), 0);
    f->socket = pair[0];
    assert_ok(http1_server_take(f->server, pair[1], &peer));
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

/* Sends a request that asks the server to close, and reads all that comes. Writing may fail: the
 * server may close before it has read everything. */
static void ask(struct fixture *f, const char *head, size_t body_size)
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
    size_t size = 0;
    ssize_t n;
    while (size < sizeof f->answer - 1 &&
           (n = read(f->socket, f->answer + size, sizeof f->answer - 1 - size)) > 0)
        size += (size_t)n;
    f->answer[size] = '\0';
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

static void test_no_memory_for_the_body(void **state)
{
    struct fixture *f = *state;
    ask(f, "GET /full HTTP/1.1\r\n" CLOSE "\r\n", 0);
    assert_non_null(strstr(f->answer, "HTTP/1.1 503 "));
}

static void test_small_request_body_is_ignored(void **state)
{
    struct fixture *f = *state;
    ask(f, "POST /page HTTP/1.1\r\nContent-Length: 100\r\n" CLOSE "\r\n", 100);
    assert_non_null(strstr(f->answer, "POST/page"));
}

static void test_large_request_body_is_refused(void **state)
{
    struct fixture *f = *state;
    ask(f, "POST /page HTTP/1.1\r\nContent-Length: 1000000\r\n" CLOSE "\r\n", 1000000);
    assert_null(strstr(f->answer, "POST/page"));
}

/* Whether a new socket was taken; `*client` is its other end. */
static bool take(struct fixture *f, int *client)
{
    struct address peer = {.size = sizeof(sa_family_t)};
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    assert_int_equal(fcntl(pair[1], F_SETFL, O_NONBLOCK), 0);
    *client = pair[0];
    status s = http1_server_take(f->server, pair[1], &peer);
    bool taken = status_is_ok(s);
    status_free(s);
    return taken;
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
        cmocka_unit_test_setup_teardown(test_no_memory_for_the_body, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_small_request_body_is_ignored, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_large_request_body_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_places_are_counted, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("wire_http1", tests, NULL, NULL);
}
