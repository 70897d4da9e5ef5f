/* Tests of the console over HTTP/1.1: files, their headers, and which requests are let in. Access
 * control is off, and REST is not there: what would reach it is refused before. Logins, and what
 * they may do, are in tests/e2e/test_console_access.py. */
#include "console/console.h"

#include "base/condition.h"
#include "base/testing/testing.h"
#include "console/assets.h"
#include "wire/http1.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

struct fixture {
    struct console *console;
    struct http1_server *server;
    bool has_peers;
    char answer[256 << 10];
    size_t size;
};

static void handle(void *context, struct http_request *request)
{
    struct fixture *f = context;
    assert_true(console_is_for(http_request_target(request)));
    console_handle(f->console, request);
}

/* A server that has something the matter with it. */
static void look(void *context, struct condition_view *out)
{
    (void)context;
    *out = (struct condition_view){
        .level = HEALTH_DEGRADED,
        .count = 1,
        .reasons = {{.name = "certificate",
                     .level = HEALTH_DEGRADED,
                     .since_us = INT64_C(1700000000000000),
                     .text = "the certificate \"x.pem\" ends"}},
    };
}

static bool has_peers(void *context)
{
    return ((const struct fixture *)context)->has_peers;
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    const struct console_options options = {
        .clock = clock_system(), .look = look, .has_peers = has_peers, .look_context = f};
    assert_ok(console_create(&options, &f->console));
    assert_ok(http1_server_create(clock_system(), handle, f, &f->server));
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    http1_server_destroy(f->server);
    console_destroy(f->console);
    free(f);
    return 0;
}

/* `headers` are whole lines. Leaves the answer in the fixture, and returns its code. */
static int ask(struct fixture *f, const char *method, const char *target, const char *headers)
{
    struct address peer = {.size = sizeof(sa_family_t)};
    char request[1024];
    int pair[2];
    ssize_t n;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    assert_int_equal(fcntl(pair[1], F_SETFL, O_NONBLOCK), 0);
    assert_ok(http1_server_take(f->server, pair[1], &peer, NULL));
    int size = snprintf(request, sizeof request,
                        "%s %s HTTP/1.1\r\nHost: here:8086\r\nConnection: close\r\n%s\r\n", method,
                        target, headers);
    assert_int_equal(write(pair[0], request, (size_t)size), size);
    f->size = 0;
    while (f->size < sizeof f->answer - 1 &&
           (n = read(pair[0], f->answer + f->size, sizeof f->answer - 1 - f->size)) > 0)
        f->size += (size_t)n;
    f->answer[f->size] = '\0';
    close(pair[0]);
    assert_int_equal(strncmp(f->answer, "HTTP/1.1 ", 9), 0);
    return (int)strtol(f->answer + 9, NULL, 10);
}

static bool says(const struct fixture *f, const char *text)
{
    return strcasestr(f->answer, text) != NULL;
}

/* The path of main.js, which the page names. */
static void find_script(struct fixture *f, char path[128])
{
    assert_int_equal(ask(f, "GET", "/console/", ""), 200);
    const char *at = strstr(f->answer, "src=\"assets/");
    const char *end = at == NULL ? NULL : strstr(at, "/theme.js");
    assert_non_null(end);
    at += strlen("src=\"");
    snprintf(path, 128, "/console/%.*s/main.js", (int)(end - at), at);
}

static void only_its_own_targets_are_its(void **state)
{
    (void)state;
    assert_true(console_is_for("/console"));
    assert_true(console_is_for("/console/"));
    assert_true(console_is_for("/console?a=b"));
    assert_true(console_is_for("/console/session"));
    assert_false(console_is_for("/consoles"));
    assert_false(console_is_for("/"));
    assert_false(console_is_for("/v2/console"));
}

static void without_its_slash_it_is_elsewhere(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(ask(f, "GET", "/console", ""), 308);
    assert_true(says(f, "location: /console/\r\n"));
}

static void the_page_is_asked_for_each_time(void **state)
{
    struct fixture *f = *state;
    char headers[128];
    assert_int_equal(ask(f, "GET", "/console/", ""), 200);
    assert_true(says(f, "content-type: text/html; charset=utf-8\r\n"));
    assert_true(says(f, "cache-control: no-cache\r\n"));
    assert_false(says(f, "@ASSETS@"));
    assert_true(says(f, assets_tag));
    snprintf(headers, sizeof headers, "If-None-Match: %s\r\n", assets_tag);
    assert_int_equal(ask(f, "GET", "/console/", headers), 304);
    assert_false(says(f, "<html"));
    assert_int_equal(ask(f, "GET", "/console/", "If-None-Match: \"old\"\r\n"), 200);
}

static void a_page_may_do_little(void **state)
{
    struct fixture *f = *state;
    static const char *const targets[] = {"/console/", "/console", "/console/none",
                                          "/console/session"};
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        ask(f, "GET", targets[i], "");
        assert_true(says(f, "content-security-policy: default-src 'self';"));
        assert_true(says(f, "frame-ancestors 'none'"));
        assert_false(says(f, "unsafe-inline"));
        assert_true(says(f, "x-content-type-options: nosniff\r\n"));
        assert_true(says(f, "referrer-policy: same-origin\r\n"));
    }
}

static void files_are_kept_for_ever(void **state)
{
    struct fixture *f = *state;
    char path[128];
    find_script(f, path);
    assert_int_equal(ask(f, "GET", path, ""), 200);
    assert_true(says(f, "content-type: text/javascript; charset=utf-8\r\n"));
    assert_true(says(f, "cache-control: public, max-age=31536000, immutable\r\n"));
    assert_true(says(f, "vary: accept-encoding\r\n"));
    assert_false(says(f, "content-encoding"));
    assert_true(says(f, "import "));
    path[strlen("/console/assets/")] ^= 1; /* those of another build */
    assert_int_equal(ask(f, "GET", path, ""), 404);
    assert_true(says(f, "cache-control: no-store\r\n"));
}

static void files_come_packed_if_gzip_is_taken(void **state)
{
    struct fixture *f = *state;
    char path[128];
    find_script(f, path);
    assert_int_equal(ask(f, "GET", path, ""), 200);
    size_t plain_size = f->size;
    assert_int_equal(ask(f, "GET", path, "Accept-Encoding: deflate, gzip\r\n"), 200);
    assert_true(says(f, "content-encoding: gzip\r\n"));
    assert_true(f->size < plain_size);
    const char *body = strstr(f->answer, "\r\n\r\n") + 4;
    assert_int_equal((uint8_t)body[0], 0x1f);
    assert_int_equal((uint8_t)body[1], 0x8b);
}

static void files_are_only_to_be_read(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(ask(f, "HEAD", "/console/", ""), 200);
    assert_false(says(f, "<html"));
    assert_int_equal(ask(f, "PUT", "/console/", ""), 405);
    assert_int_equal(ask(f, "GET", "/console/none", ""), 404);
    assert_int_equal(ask(f, "GET", "/console/assets/../index.html", ""), 404);
    assert_int_equal(ask(f, "GET", "/console/assets/", ""), 404);
}

#define OWN  "X-Trestle-Console: 1\r\n"
#define NONE "Content-Length: 0\r\n"

static void only_its_own_pages_ask(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(ask(f, "GET", "/console/session", ""), 403);
    assert_int_equal(ask(f, "GET", "/console/session", "Sec-Fetch-Site: same-origin\r\n"), 403);
    assert_int_equal(ask(f, "GET", "/console/api/v2/projects/p/instances", ""), 403);
    assert_int_equal(ask(f, "GET", "/console/session", OWN), 200);
    assert_true(says(f, "{\"authentication\":false,\"session\":false,\"principal\":\"\"}"));
    f->has_peers = true;
    assert_int_equal(ask(f, "GET", "/console/session", OWN), 200);
    assert_true(says(f, "\"principal\":\"\",\"clusters\":true}"));
}

static void changes_must_come_from_our_pages(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *headers;
        int code;
    } cases[] = {
        {OWN NONE "Sec-Fetch-Site: same-origin\r\n", 204},
        {OWN NONE "Origin: http://here:8086\r\n", 204},
        {OWN NONE "Origin: https://HERE:8086\r\n", 204}, /* behind something that speaks TLS */
        {NONE "Sec-Fetch-Site: same-origin\r\nOrigin: http://here:8086\r\n", 403},
        {OWN NONE, 403},
        {OWN NONE "Origin: null\r\n", 403},
        {OWN NONE "Origin: http://here:8087\r\n", 403},
        {OWN NONE "Origin: http://evil.example\r\n", 403},
        {OWN NONE "Origin: http://here:8086.evil.example\r\n", 403},
        {OWN NONE "Sec-Fetch-Site: cross-site\r\nOrigin: http://here:8086\r\n", 403},
        {OWN NONE "Sec-Fetch-Site: same-site\r\n", 403},
        {OWN NONE "Sec-Fetch-Site: none\r\n", 403},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int code = ask(f, "POST", "/console/logout", cases[i].headers);
        if (code != cases[i].code)
            print_error("%s", cases[i].headers);
        assert_int_equal(code, cases[i].code);
    }
    assert_int_equal(ask(f, "POST", "/console/api/v2/projects/p/instances", OWN NONE), 403);
    assert_int_equal(ask(f, "DELETE", "/console/api/v2/projects/p/instances/i", OWN), 403);
}

static void methods_and_paths_are_as_said(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(ask(f, "GET", "/console/logout", OWN), 405);
    assert_int_equal(ask(f, "GET", "/console/login", OWN), 405);
    assert_int_equal(ask(f, "GET", "/console/api/", OWN), 404);
    assert_int_equal(ask(f, "GET", "/console/api/metrics", OWN), 404);
}

static void a_cookie_is_for_the_console_alone(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(ask(f, "POST", "/console/logout", OWN NONE "Sec-Fetch-Site: same-origin\r\n"),
                     204);
    assert_true(says(f, "set-cookie: trestle-session=; Path=/console; HttpOnly; SameSite=Strict; "
                        "Max-Age=0\r\n"));
}

static void no_login_without_access_control(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(ask(f, "POST", "/console/login", OWN NONE "Sec-Fetch-Site: same-origin\r\n"),
                     401);
    assert_false(says(f, "set-cookie"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static void the_condition_is_told_to_the_pages(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(ask(f, "GET", "/console/health", ""), 403);
    assert_int_equal(ask(f, "GET", "/console/health", OWN), 200);
    assert_true(says(f, "{\"level\":\"degraded\",\"reasons\":[{\"name\":\"certificate\","
                        "\"level\":\"degraded\",\"since\":\"2023-11-14T22:13:20Z\","
                        "\"text\":\"the certificate \\\"x.pem\\\" ends\"}]}"));
    assert_int_equal(ask(f, "POST", "/console/health", OWN NONE "Sec-Fetch-Site: same-origin\r\n"),
                     405);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(only_its_own_targets_are_its),    TEST(without_its_slash_it_is_elsewhere),
        TEST(the_page_is_asked_for_each_time), TEST(a_page_may_do_little),
        TEST(files_are_kept_for_ever),         TEST(files_come_packed_if_gzip_is_taken),
        TEST(files_are_only_to_be_read),       TEST(the_condition_is_told_to_the_pages),
        TEST(only_its_own_pages_ask),          TEST(changes_must_come_from_our_pages),
        TEST(methods_and_paths_are_as_said),   TEST(a_cookie_is_for_the_console_alone),
        TEST(no_login_without_access_control),
    };
    return cmocka_run_group_tests_name("console", tests, NULL, NULL);
}
