/* Tests of streams: plain and TLS alike move every byte, end, and fail in the way they say. */
#include "os/stream.h"

#include "base/testing/testing.h"
#include "os/testing/testing.h"

#include <sys/epoll.h>
#include <unistd.h>

#define CERTIFICATE_FILE "stream_test_cert.pem"
#define KEY_FILE         "stream_test_key.pem"
#define OTHER_FILE       "stream_test_other.pem"
#define OTHER_TYPE_FILE  "stream_test_other_type.pem"

struct pair {
    struct tls_context *server_tls;
    struct tls_context *client_tls;
    struct stream *server;
    struct stream *client;
};

/* A client that connects to `server` over loopback; a socketpair would do for plain streams, but
 * stream_connect is part of what is tested. */
static void connect_pair(struct pair *pair, const char *host)
{
    struct address address;
    assert_ok(address_parse("127.0.0.1:0", &address));
    int listening = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(listening >= 0);
    assert_int_equal(bind(listening, (struct sockaddr *)&address.storage, address.size), 0);
    assert_int_equal(listen(listening, 1), 0);
    assert_int_equal(getsockname(listening, (struct sockaddr *)&address.storage, &address.size), 0);
    assert_ok(stream_connect(&address, pair->client_tls, host, &pair->client));
    int accepted = accept4(listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    assert_true(accepted >= 0);
    assert_ok(stream_accepted(accepted, pair->server_tls, &pair->server));
    close(listening);
}

static status serve_tls(const char *certificate, const char *key, struct tls_context **out)
{
    const struct tls_server_files files = {.certificate = certificate, .key = key};
    return tls_server_create(&files, out);
}

static int set_up_plain(void **state)
{
    struct pair *pair = calloc(1, sizeof *pair);
    assert_non_null(pair);
    connect_pair(pair, NULL);
    *state = pair;
    return 0;
}

static int set_up_tls(void **state)
{
    struct pair *pair = calloc(1, sizeof *pair);
    assert_non_null(pair);
    assert_ok(serve_tls(CERTIFICATE_FILE, KEY_FILE, &pair->server_tls));
    assert_ok(tls_client_create(CERTIFICATE_FILE, &pair->client_tls));
    connect_pair(pair, "localhost");
    *state = pair;
    return 0;
}

static int tear_down(void **state)
{
    struct pair *pair = *state;
    stream_close(pair->client);
    stream_close(pair->server);
    tls_context_destroy(pair->client_tls);
    tls_context_destroy(pair->server_tls);
    free(pair);
    return 0;
}

enum { TRANSFER = 3 << 20, MOST_STEPS = 1000000 };

static uint8_t byte_at(size_t offset)
{
    return (uint8_t)(offset * 31 + offset / 251);
}

/* Writes what is left of the pattern as two parts of unlike size; BLOCKED moves nothing. */
static void write_some(struct stream *stream, const uint8_t *pattern, size_t *written)
{
    size_t left = TRANSFER - *written, first = left / 3, done;
    union {
        const uint8_t *data;
        void *base;
    } from = {.data = pattern + *written};
    struct iovec parts[] = {{.iov_base = from.base, .iov_len = first},
                            {.iov_base = (uint8_t *)from.base + first, .iov_len = left - first}};
    enum stream_result result = stream_write(stream, parts, 2, &done);
    assert_true(result == STREAM_OK || result == STREAM_BLOCKED);
    assert_int_equal(result == STREAM_OK, done > 0);
    *written += done;
}

static bool read_some(struct stream *stream, size_t *got)
{
    uint8_t chunk[7000];
    size_t done;
    enum stream_result result = stream_read(stream, chunk, sizeof chunk, &done);
    for (size_t i = 0; i < done; i++)
        assert_int_equal(chunk[i], byte_at(*got + i));
    *got += done;
    assert_int_not_equal(result, STREAM_FAILED);
    return result != STREAM_ENDED;
}

/* Steps both ends by hand: no end may depend on being waited for. */
static void every_byte_arrives(void **state)
{
    struct pair *pair = *state;
    uint8_t *pattern = malloc(TRANSFER);
    assert_non_null(pattern);
    for (size_t i = 0; i < TRANSFER; i++)
        pattern[i] = byte_at(i);
    size_t written = 0, got = 0;
    bool ended = false, open = true;
    for (int step = 0; step < MOST_STEPS && open; step++) {
        if (written < TRANSFER)
            write_some(pair->client, pattern, &written);
        else if (!ended)
            ended = stream_end_writing(pair->client) == STREAM_OK;
        open = read_some(pair->server, &got);
    }
    assert_false(open);
    assert_int_equal(got, TRANSFER);
    free(pattern);
}

static void shake_hands(struct pair *pair, enum stream_result *client, enum stream_result *server)
{
    *client = *server = STREAM_BLOCKED;
    for (int step = 0; step < 100000; step++) {
        if (*client == STREAM_BLOCKED)
            *client = stream_handshake(pair->client);
        if (*server == STREAM_BLOCKED)
            *server = stream_handshake(pair->server);
        if (*client != STREAM_BLOCKED && *server != STREAM_BLOCKED)
            return;
    }
}

static void the_protocol_is_agreed(void **state)
{
    struct pair *pair = *state;
    enum stream_result client, server;
    shake_hands(pair, &client, &server);
    assert_int_equal(client, STREAM_OK);
    assert_int_equal(server, STREAM_OK);
    assert_string_equal(stream_protocol(pair->server), "h2");
    assert_string_equal(stream_protocol(pair->client), "h2");
}

static void a_plain_stream_has_no_protocol(void **state)
{
    struct pair *pair = *state;
    assert_int_equal(stream_handshake(pair->server), STREAM_OK);
    assert_string_equal(stream_protocol(pair->server), "");
    assert_false(stream_has_pending(pair->server));
}

static void a_blocked_stream_says_for_what(void **state)
{
    struct pair *pair = *state;
    char byte;
    size_t done;
    assert_int_equal(stream_read(pair->server, &byte, 1, &done), STREAM_BLOCKED);
    assert_int_equal(stream_read_interest(pair->server), EPOLLIN);
}

static void pending_bytes_are_told(void **state)
{
    struct pair *pair = *state;
    enum stream_result client, server;
    shake_hands(pair, &client, &server);
    char text[] = "two";
    struct iovec part = {.iov_base = text, .iov_len = 3};
    size_t done = 0;
    assert_int_equal(stream_write(pair->client, &part, 1, &done), STREAM_OK);
    char byte;
    enum stream_result result = STREAM_BLOCKED;
    for (int step = 0; step < 100000 && result == STREAM_BLOCKED; step++)
        result = stream_read(pair->server, &byte, 1, &done);
    assert_int_equal(result, STREAM_OK);
    assert_true(stream_has_pending(pair->server));
}

static void a_vanished_peer_fails_the_writer(void **state)
{
    struct pair *pair = *state;
    char text[1000] = {0};
    struct iovec part = {.iov_base = text, .iov_len = sizeof text};
    struct linger reset = {.l_onoff = 1, .l_linger = 0};
    assert_int_equal(
        setsockopt(stream_socket(pair->server), SOL_SOCKET, SO_LINGER, &reset, sizeof reset), 0);
    stream_close(pair->server);
    pair->server = NULL;
    enum stream_result result = STREAM_OK;
    size_t done;
    for (int step = 0; step < 1000 && result != STREAM_FAILED; step++)
        result = stream_write(pair->client, &part, 1, &done);
    assert_int_equal(result, STREAM_FAILED);
    assert_int_equal(stream_write(pair->client, &part, 1, &done), STREAM_FAILED);
    assert_status(stream_failure(pair->client), STATUS_UNAVAILABLE);
}

/* The peer's end meets a write, if the client is slow between what it sends and what it reads. */
static void a_peer_that_goes_before_tls_begins_is_known(void **state)
{
    (void)state;
    struct pair pair = {0};
    char text[] = "two";
    struct iovec part = {.iov_base = text, .iov_len = 3};
    size_t done = 0;
    assert_ok(tls_client_create(CERTIFICATE_FILE, &pair.client_tls));
    connect_pair(&pair, "localhost");
    assert_int_equal(stream_end_writing(pair.server), STREAM_OK);
    enum stream_result result = STREAM_BLOCKED;
    for (int step = 0; step < 100000 && result == STREAM_BLOCKED; step++)
        result = stream_write(pair.client, &part, 1, &done);
    assert_int_equal(result, STREAM_FAILED);
    assert_int_equal(stream_mismatch(pair.client), STREAM_SAID_NOTHING);
    stream_close(pair.client);
    stream_close(pair.server);
    tls_context_destroy(pair.client_tls);
}

static void a_wrong_name_is_refused(void **state)
{
    (void)state;
    struct pair pair = {0};
    enum stream_result client, server;
    assert_ok(serve_tls(CERTIFICATE_FILE, KEY_FILE, &pair.server_tls));
    assert_ok(tls_client_create(CERTIFICATE_FILE, &pair.client_tls));
    connect_pair(&pair, "elsewhere.example");
    shake_hands(&pair, &client, &server);
    assert_int_equal(client, STREAM_FAILED);
    status s = stream_failure(pair.client);
    assert_string_equal(status_message(s), "TLS: hostname mismatch");
    status_free(s);
    stream_close(pair.client);
    stream_close(pair.server);
    tls_context_destroy(pair.client_tls);
    tls_context_destroy(pair.server_tls);
}

/* Whether a client that trusts the certificate which the file holds now gets a connection. */
static bool serves_what_the_file_has(struct tls_context *server_tls)
{
    struct pair pair = {.server_tls = server_tls};
    enum stream_result client, server;
    assert_ok(tls_client_create(CERTIFICATE_FILE, &pair.client_tls));
    connect_pair(&pair, "localhost");
    shake_hands(&pair, &client, &server);
    if (client == STREAM_OK && server == STREAM_OK)
        assert_null(stream_peer_subject(pair.server)); /* none was asked for */
    stream_close(pair.client);
    stream_close(pair.server);
    tls_context_destroy(pair.client_tls);
    return client == STREAM_OK && server == STREAM_OK;
}

static void a_reload_is_for_new_connections(void **state)
{
    (void)state;
    const struct tls_server_files files = {.certificate = CERTIFICATE_FILE, .key = KEY_FILE};
    const struct tls_server_files mixed = {.certificate = CERTIFICATE_FILE, .key = OTHER_FILE};
    struct tls_context *server_tls;
    assert_ok(tls_server_create(&files, &server_tls));
    struct pair before = {.server_tls = server_tls};
    enum stream_result client, server;
    assert_ok(tls_client_create(CERTIFICATE_FILE, &before.client_tls));
    connect_pair(&before, "localhost");
    testing_write_identity(CERTIFICATE_FILE, KEY_FILE);
    assert_false(serves_what_the_file_has(server_tls));
    assert_status(tls_server_reload_identity(server_tls, &mixed), STATUS_INVALID_ARGUMENT);
    assert_false(serves_what_the_file_has(server_tls));
    assert_ok(tls_server_reload_identity(server_tls, &files));
    assert_true(serves_what_the_file_has(server_tls));
    shake_hands(&before, &client, &server); /* with what was there when it began */
    assert_int_equal(client, STREAM_OK);
    assert_int_equal(server, STREAM_OK);
    stream_close(before.client);
    stream_close(before.server);
    tls_context_destroy(before.client_tls);
    tls_context_destroy(server_tls);
}

static void count_authority(void *context, const struct tls_certificate *authority)
{
    assert_int_not_equal(strlen(authority->serial), 0);
    ++*(unsigned *)context;
}

static unsigned count_authorities(struct tls_context *server_tls)
{
    unsigned count = 0;
    tls_server_authorities(server_tls, count_authority, &count);
    return count;
}

/* Neither waits for the other's files, and what cannot be read stays as it was. */
static void parts_are_read_again_apart(void **state)
{
    (void)state;
    struct tls_server_files files = {
        .certificate = CERTIFICATE_FILE, .key = KEY_FILE, .client_authority = OTHER_FILE};
    struct tls_context *server_tls;
    assert_status(tls_server_create(&files, &server_tls), STATUS_INVALID_ARGUMENT);
    files.client_authority = CERTIFICATE_FILE;
    assert_ok(tls_server_create(&files, &server_tls));
    assert_true(serves_what_the_file_has(server_tls));
    files.certificate = "no_such.pem";
    assert_status(tls_server_reload_identity(server_tls, &files), STATUS_INVALID_ARGUMENT);
    testing_write_identity(CERTIFICATE_FILE, KEY_FILE);
    assert_ok(tls_server_reload_authorities(server_tls, &files));
    assert_false(serves_what_the_file_has(server_tls)); /* the certificate is the former */
    files.certificate = CERTIFICATE_FILE;
    files.client_authority = "no_such.pem";
    assert_status(tls_server_reload_authorities(server_tls, &files), STATUS_INVALID_ARGUMENT);
    assert_ok(tls_server_reload_identity(server_tls, &files));
    assert_true(serves_what_the_file_has(server_tls));
    assert_int_equal(count_authorities(server_tls), 1);
    tls_context_destroy(server_tls);
}

static void plain_bytes_fail_a_tls_server(void **state)
{
    (void)state;
    struct pair pair = {0};
    assert_ok(serve_tls(CERTIFICATE_FILE, KEY_FILE, &pair.server_tls));
    connect_pair(&pair, NULL);
    char text[] = "GET / HTTP/1.1\r\n\r\n";
    struct iovec part = {.iov_base = text, .iov_len = sizeof text - 1};
    size_t done;
    assert_int_equal(stream_write(pair.client, &part, 1, &done), STREAM_OK);
    enum stream_result result = STREAM_BLOCKED;
    for (int step = 0; step < 100000 && result == STREAM_BLOCKED; step++)
        result = stream_handshake(pair.server);
    assert_int_equal(result, STREAM_FAILED);
    stream_close(pair.client);
    stream_close(pair.server);
    tls_context_destroy(pair.server_tls);
}

static void files_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    struct tls_context *context;
    assert_status(serve_tls("no_such.pem", KEY_FILE, &context), STATUS_INVALID_ARGUMENT);
    assert_null(context);
    assert_status(serve_tls(CERTIFICATE_FILE, CERTIFICATE_FILE, &context), STATUS_INVALID_ARGUMENT);
    assert_status(serve_tls(CERTIFICATE_FILE, OTHER_FILE, &context), STATUS_INVALID_ARGUMENT);
    assert_status(serve_tls(CERTIFICATE_FILE, OTHER_TYPE_FILE, &context), STATUS_INVALID_ARGUMENT);
    assert_status(tls_client_create("no_such.pem", &context), STATUS_INVALID_ARGUMENT);
    assert_null(context);
}

static int make_files(void **state)
{
    (void)state;
    testing_write_identity(CERTIFICATE_FILE, OTHER_FILE); /* the next replaces this certificate … */
    testing_write_identity(CERTIFICATE_FILE, KEY_FILE); /* … so that OTHER_FILE's key has none */
    testing_write_key(OTHER_TYPE_FILE, "ED25519");
    return 0;
}

static int remove_files(void **state)
{
    (void)state;
    unlink(CERTIFICATE_FILE);
    unlink(KEY_FILE);
    unlink(OTHER_FILE);
    unlink(OTHER_TYPE_FILE);
    return 0;
}

#define PLAIN_TEST(function)                                                                       \
    {                                                                                              \
        "plain: " #function, function, set_up_plain, tear_down, NULL                               \
    }
#define TLS_TEST(function)                                                                         \
    {                                                                                              \
        "TLS: " #function, function, set_up_tls, tear_down, NULL                                   \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLAIN_TEST(every_byte_arrives),
        TLS_TEST(every_byte_arrives),
        TLS_TEST(the_protocol_is_agreed),
        PLAIN_TEST(a_plain_stream_has_no_protocol),
        PLAIN_TEST(a_blocked_stream_says_for_what),
        TLS_TEST(a_blocked_stream_says_for_what),
        TLS_TEST(pending_bytes_are_told),
        PLAIN_TEST(a_vanished_peer_fails_the_writer),
        cmocka_unit_test(a_peer_that_goes_before_tls_begins_is_known),
        cmocka_unit_test(a_wrong_name_is_refused),
        cmocka_unit_test(a_reload_is_for_new_connections),
        cmocka_unit_test(parts_are_read_again_apart),
        cmocka_unit_test(plain_bytes_fail_a_tls_server),
        cmocka_unit_test(files_that_do_not_fit_are_refused),
    };
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
