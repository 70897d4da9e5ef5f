/* Fuzzer: any bytes to the HTTP/1.1 server, over a socketpair. What comes back is an answer or
 * nothing, and the next client gets its page while the first one is still there. (When a client
 * ends in the middle of a request, libmicrohttpd 0.9.75 does not see it before its time is up: we
 * do not wait for that.)
 *
 * Input: choices (base/testing/fuzzing.h): words of requests. */
#include "base/testing/fuzzing.h"
#include "wire/http1.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MOST_INPUT = 8 << 10, MOST_BYTES = 64, PIECE = 1024 };

static void handle(void *context, struct http_request *request)
{
    (void)context;
    http_answer_begin(request, 200, "text/plain");
    http_answer_add(request, bytes_of(http_request_method(request)));
    http_answer_add(request, bytes_of(" "));
    http_answer_add(request, bytes_of(http_request_target(request)));
    http_answer_add(request, http_request_body(request));
    http_answer_end(request);
}

static int connect_client(struct http1_server *server)
{
    const struct address peer = {.size = sizeof(sa_family_t)};
    int pair[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
    CHECK(fcntl(pair[1], F_SETFL, O_NONBLOCK) == 0);
    status s = http1_server_take(server, pair[1], &peer, NULL);
    CHECK(status_is_ok(s));
    return pair[0];
}

static void send_all(int client, bytes request)
{
    CHECK(request.size == 0 || send(client, request.data, request.size, MSG_NOSIGNAL) != 0);
    shutdown(client, SHUT_WR);
}

/* What has come (`flags` MSG_DONTWAIT), or all that will (0), whatever libFuzzer's timer
 * interrupts. Closes the client. */
static void receive(int client, int flags, struct buffer *answer)
{
    ssize_t size;
    do {
        uint8_t *to = buffer_reserve(answer, PIECE);
        CHECK(to != NULL);
        size = recv(client, to, PIECE, flags);
        answer->size += size > 0 ? (size_t)size : 0;
    } while (size > 0 || (size < 0 && errno == EINTR));
    close(client);
}

static void choose_request(struct choices *choices, struct buffer *out)
{
    static const char *const words[] = {
        "GET ",
        "HEAD ",
        "POST ",
        "OPTIONS ",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "/",
        "/livez?q=%41&b",
        "http://h/x",
        " HTTP/1.1\r\n",
        " HTTP/1.0\r\n",
        " HTTP/9.9\r\n",
        "Host: h\r\n",
        "Content-Length: 5\r\n",
        "Content-Length: 99999999999999999999\r\n",
        "Transfer-Encoding: chunked\r\n",
        "Expect: 100-continue\r\n",
        "Connection: keep-alive\r\n",
        "Upgrade: h2c\r\n",
        "Cookie: a=b; c=\"d\"\r\n",
        "Name",
        ": ",
        "\r\n",
        "\n",
        "\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\n\r\n",
        "5\r\nabcde\r\n",
        "0\r\n\r\n",
    };
    while (choices->left.size > 0 && out->size < MOST_INPUT) {
        unsigned word = choose(choices, 1 + sizeof words / sizeof *words);
        buffer_append_bytes(out, word == 0 ? choose_bytes(choices, MOST_BYTES)
                                           : bytes_of(words[word - 1]));
    }
    CHECK(!out->failed);
}

static void check_page(struct http1_server *server)
{
    static const char end[] = "\r\n\r\nGET /next";
    struct buffer answer = {0};
    int client = connect_client(server);
    send_all(client, bytes_of("GET /next HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"));
    receive(client, 0, &answer);
    CHECK(bytes_start_with(buffer_bytes(&answer), bytes_of("HTTP/1.1 200 OK\r\n")));
    CHECK(answer.size > strlen(end));
    CHECK(bytes_equal(bytes_from(buffer_bytes(&answer), answer.size - strlen(end)), bytes_of(end)));
    buffer_free(&answer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct http1_server *server;
    struct choices choices = choices_of(data, size);
    struct buffer request = {0}, answer = {0};
    if (server == NULL) {
        status s = http1_server_create(clock_system(), handle, NULL, &server);
        CHECK(status_is_ok(s));
    }
    choose_request(&choices, &request);
    int client = connect_client(server);
    send_all(client, buffer_bytes(&request));
    check_page(server);
    receive(client, MSG_DONTWAIT, &answer);
    CHECK(answer.size == 0 || bytes_start_with(buffer_bytes(&answer), bytes_of("HTTP/1.")));
    buffer_free(&request);
    buffer_free(&answer);
    return 0;
}
