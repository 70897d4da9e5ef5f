/* Tests of connections: how the protocol is found, how a client is let go, what is cut off.
 *
 * The group's loop runs on a thread of its own with a clock that the test turns; the clients are
 * blocking sockets here. The HTTP/1.1 server is a fake that answers one line. */
#include "server/connection.h"

#include "base/check.h"
#include "base/testing/testing.h"
#include "os/testing/testing.h"
#include "os/thread.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#define CERTIFICATE_FILE "connection_test_cert.pem"
#define KEY_FILE         "connection_test_key.pem"

enum { IDLE_US = 60 * 1000 * 1000, PATIENCE_MS = 30000 };

struct fixture {
    struct clock clock;
    atomic_llong now;
    struct loop *loop;
    struct grpc_server *grpc;
    struct tls_context *client_tls;
    struct connection_group *group;
    atomic_size_t open;
    pthread_t thread;
    pthread_barrier_t errand_done;
    struct address peer;
};

static int64_t hand_us(struct clock *clock)
{
    return atomic_load(&LIST_ENTRY(clock, struct fixture, clock)->now);
}

static void *run_loop(void *argument)
{
    loop_run(argument);
    return NULL;
}

/* Runs on the loop and waits for it. */
struct errand {
    struct task task;
    void (*run)(struct connection_group *group);
    struct fixture *f;
};

static void run_errand(struct task *task)
{
    struct errand *errand = LIST_ENTRY(task, struct errand, task);
    if (errand->run != NULL)
        errand->run(errand->f->group);
    pthread_barrier_wait(&errand->f->errand_done);
}

static void on_loop(struct fixture *f, void (*run)(struct connection_group *group))
{
    struct errand errand = {.task.run = run_errand, .run = run, .f = f};
    loop_post(f->loop, &errand.task);
    pthread_barrier_wait(&f->errand_done);
}

/* From here to release_loop the loop stands still. */
static void run_hold(struct task *task)
{
    struct errand *hold = LIST_ENTRY(task, struct errand, task);
    pthread_barrier_wait(&hold->f->errand_done);
    pthread_barrier_wait(&hold->f->errand_done);
}

static void hold_loop(struct fixture *f, struct errand *hold)
{
    *hold = (struct errand){.task.run = run_hold, .f = f};
    loop_post(f->loop, &hold->task);
    pthread_barrier_wait(&f->errand_done);
}

static void release_loop(struct fixture *f)
{
    pthread_barrier_wait(&f->errand_done);
}

static void turn_clock(struct fixture *f, int64_t by_us)
{
    on_loop(f, NULL); /* what came before has happened */
    atomic_fetch_add(&f->now, by_us);
    on_loop(f, NULL); /* timers run before tasks */
}

static struct fixture *make_fixture(struct tls_context *tls)
{
    static const struct grpc_service service = {.name = "test.Service"};
    const struct grpc_service *services[] = {&service};
    struct grpc_server_options options;
    static struct log silent = {.fd = -1, .level = LOG_ERROR};
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->clock = (struct clock){.wall_us = hand_us, .steady_us = hand_us};
    f->peer.storage.ss_family = AF_UNIX;
    f->peer.size = sizeof(sa_family_t);
    pthread_barrier_init(&f->errand_done, NULL, 2);
    grpc_server_options_init(&options);
    assert_ok(grpc_server_create(&options, services, 1, &f->grpc));
    assert_ok(loop_create(&f->clock, &f->loop));
    f->group = calloc(1, sizeof *f->group);
    assert_non_null(f->group);
    f->group->loop = f->loop;
    f->group->grpc = f->grpc;
    assert_ok(grpc_spares_create(&f->group->spares));
    f->group->tls = tls;
    f->group->log = &silent;
    f->group->idle_timeout_us = IDLE_US;
    f->group->open = &f->open;
    assert_ok(thread_start(&f->thread, "test-loop", run_loop, f->loop));
    return f;
}

static int set_up(void **state)
{
    *state = make_fixture(NULL);
    return 0;
}

static int set_up_tls(void **state)
{
    struct tls_context *server;
    const struct tls_server_files files = {.certificate = CERTIFICATE_FILE, .key = KEY_FILE};
    testing_write_identity(CERTIFICATE_FILE, KEY_FILE);
    assert_ok(tls_server_create(&files, &server));
    struct fixture *f = make_fixture(server);
    assert_ok(tls_client_create(CERTIFICATE_FILE, &f->client_tls));
    unlink(CERTIFICATE_FILE);
    unlink(KEY_FILE);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    on_loop(f, connection_group_close);
    assert_int_equal(f->open, 0);
    loop_stop(f->loop);
    pthread_join(f->thread, NULL);
    pthread_barrier_destroy(&f->errand_done);
    loop_destroy(f->loop);
    grpc_spares_destroy(f->group->spares);
    grpc_server_destroy(f->grpc);
    tls_context_destroy(f->group->tls);
    tls_context_destroy(f->client_tls);
    free(f->group);
    free(f);
    return 0;
}

/* --- the fake HTTP/1.1 server: it answers the first bytes and closes --- */

static void *answer_http1(void *argument)
{
    int fd = (int)(intptr_t)argument;
    char request[1024], answer[1100];
    struct pollfd readable = {.fd = fd, .events = POLLIN};
    size_t size = 0;
    /* A request ends with an empty line; a client that leaves earlier ends it, too. */
    while (size < 4 || memcmp(request + size - 4, "\r\n\r\n", 4) != 0) {
        CHECK(poll(&readable, 1, PATIENCE_MS) == 1);
        ssize_t count = read(fd, request + size, sizeof request - 1 - size);
        if (count <= 0)
            break;
        size += (size_t)count;
    }
    if (size > 0 && request[0] == '\r') { /* has no answer: waits until the client has gone */
        readable.events = 0;
        CHECK(poll(&readable, 1, PATIENCE_MS) == 1 && (readable.revents & POLLHUP) != 0);
        close(fd);
        return NULL;
    }
    int length = snprintf(answer, sizeof answer, "got %zu bytes", size);
    CHECK(write(fd, answer, (size_t)length) == length);
    close(fd);
    return NULL;
}

static atomic_bool no_places;

status http1_server_take(struct http1_server *server, int socket, const struct address *peer,
                         char *subject)
{
    (void)server;
    CHECK(subject == NULL);
    if (atomic_load(&no_places)) {
        close(socket);
        return status_make(STATUS_UNAVAILABLE, "no places");
    }
    CHECK(peer->storage.ss_family == AF_UNIX);
    pthread_t thread;
    TRY(thread_start(&thread, "test-http1", answer_http1, (void *)(intptr_t)socket));
    pthread_detach(thread);
    return status_ok();
}

/* --- clients --- */

/* The client's end of a new connection. */
static int begin(struct fixture *f)
{
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    int flags = fcntl(ends[0], F_GETFL);
    assert_int_equal(fcntl(ends[0], F_SETFL, flags | O_NONBLOCK), 0);
    connection_begin(f->group, ends[0], &f->peer, false);
    return ends[1];
}

static void send_text(int fd, const char *text, size_t size)
{
    assert_int_equal(send(fd, text, size, MSG_NOSIGNAL), size);
}

/* Up to `size` bytes; fewer at the end of the stream. */
static size_t receive(int fd, void *to, size_t size)
{
    size_t got = 0;
    while (got < size) {
        struct pollfd readable = {.fd = fd, .events = POLLIN};
        assert_int_equal(poll(&readable, 1, PATIENCE_MS), 1);
        ssize_t count = read(fd, (char *)to + got, size - got);
        if (count <= 0)
            break;
        got += (size_t)count;
    }
    return got;
}

static void assert_closed(int fd)
{
    char byte;
    assert_int_equal(receive(fd, &byte, 1), 0);
    close(fd);
}

#define PREFACE        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
#define EMPTY_SETTINGS "\0\0\0\x04\0\0\0\0\0"

enum { FRAME_SETTINGS = 4, FRAME_PING = 6, FRAME_GOAWAY = 7 };

struct frame {
    uint8_t header[9];
    uint8_t payload[1024];
    size_t size;
};

static bool receive_frame(int fd, struct frame *frame)
{
    if (receive(fd, frame->header, sizeof frame->header) < sizeof frame->header)
        return false;
    frame->size = (size_t)frame->header[1] << 8 | frame->header[2];
    assert_true(frame->header[0] == 0 && frame->size <= sizeof frame->payload);
    return receive(fd, frame->payload, frame->size) == frame->size;
}

/* Whether a frame of the type comes before the stream ends. */
static bool comes(int fd, uint8_t type)
{
    struct frame frame;
    while (receive_frame(fd, &frame))
        if (frame.header[3] == type)
            return true;
    return false;
}

/* A client that speaks HTTP/2, to which nothing is owed. */
static int begin_http2(struct fixture *f)
{
    int fd = begin(f);
    send_text(fd, PREFACE EMPTY_SETTINGS, sizeof PREFACE EMPTY_SETTINGS - 1);
    assert_true(comes(fd, FRAME_SETTINGS)); /* the server's */
    assert_true(comes(fd, FRAME_SETTINGS)); /* its acknowledgement */
    on_loop(f, NULL);
    return fd;
}

#define PING "\0\0\x08\x06\0\0\0\0\0that is it"

/* --- what is told of a socket once --- */

static void what_comes_with_the_end_is_answered(void **state)
{
    struct fixture *f = *state;
    struct errand hold;
    int fd = begin_http2(f);
    hold_loop(f, &hold);
    send_text(fd, PING, 17);
    assert_int_equal(shutdown(fd, SHUT_WR), 0);
    release_loop(f);
    assert_true(comes(fd, FRAME_PING));
    assert_closed(fd);
}

/* What is longer than all reads of a turn, then a PING: all in the socket at once. */
static void what_one_turn_leaves_the_next_reads(void **state)
{
    enum { FRAMES = 17, PAYLOAD = 16 << 10, ROOM = 200 << 10 };
    static const uint8_t unknown[9 + PAYLOAD] = {0, PAYLOAD >> 8, 0, 0xfa};
    struct fixture *f = *state;
    struct errand hold;
    int room = ROOM, fd = begin_http2(f);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof room), 0);
    hold_loop(f, &hold);
    for (int i = 0; i < FRAMES; i++)
        assert_int_equal(send(fd, unknown, sizeof unknown, MSG_DONTWAIT), sizeof unknown);
    send_text(fd, PING, 17);
    release_loop(f);
    assert_true(comes(fd, FRAME_PING));
    close(fd);
}

/* --- finding the protocol --- */

static void http2_is_known_by_its_preface(void **state)
{
    int fd = begin(*state);
    send_text(fd, PREFACE EMPTY_SETTINGS, sizeof PREFACE EMPTY_SETTINGS - 1);
    assert_true(comes(fd, FRAME_SETTINGS));
    close(fd);
}

static void a_preface_may_come_byte_by_byte(void **state)
{
    struct fixture *f = *state;
    int fd = begin(f);
    for (size_t i = 0; i < sizeof PREFACE - 1; i++) {
        send_text(fd, &PREFACE[i], 1);
        on_loop(f, NULL); /* a turn of the loop has seen it */
    }
    send_text(fd, EMPTY_SETTINGS, sizeof EMPTY_SETTINGS - 1);
    assert_true(comes(fd, FRAME_SETTINGS));
    close(fd);
}

static void assert_http1(int fd, const char *request, const char *expected)
{
    char answer[100] = {0};
    if (*request != '\0')
        send_text(fd, request, strlen(request));
    receive(fd, answer, sizeof answer - 1);
    assert_string_equal(answer, expected);
    close(fd);
}

static void other_beginnings_get_http1(void **state)
{
    assert_http1(begin(*state), "GET /livez HTTP/1.1\r\n\r\n", "got 23 bytes");
    assert_http1(begin(*state), "PUT / HTTP/1.1\r\n\r\n", "got 18 bytes");
    assert_http1(begin(*state), "PRI * HTTP/1.1\r\n\r\n", "got 18 bytes");
}

/* An answer in HTTP/1.1 would be read as a frame. */
static void a_preface_gone_wrong_gets_no_answer(void **state)
{
    assert_http1(begin(*state), "INVALID CONNECTION PREFACE\r\n\r\n", "");
    assert_http1(begin(*state), "PRI X HTTP/2.0\r\n\r\nSM\r\n\r\n", "");
}

static void a_request_may_come_in_pieces(void **state)
{
    struct fixture *f = *state;
    int fd = begin(f);
    send_text(fd, "P", 1);
    on_loop(f, NULL);
    send_text(fd, "OST / HT", 8);
    on_loop(f, NULL);
    assert_http1(fd, "TP/1.1\r\n\r\n", "got 19 bytes");
}

static void the_end_of_a_request_is_passed_on(void **state)
{
    int fd = begin(*state);
    send_text(fd, "GET /", 5);
    assert_int_equal(shutdown(fd, SHUT_WR), 0);
    assert_http1(fd, "", "got 5 bytes");
}

static void a_client_may_leave_at_any_byte(void **state)
{
    struct fixture *f = *state;
    static const char text[] = PREFACE EMPTY_SETTINGS;
    for (size_t size = 0; size < sizeof text; size++) {
        int fd = begin(f);
        send_text(fd, text, size);
        close(fd);
    }
}

/* --- time --- */

static void a_silent_client_is_cut_off(void **state)
{
    struct fixture *f = *state;
    int silent = begin(f), slow = begin(f);
    send_text(slow, "PRI", 3);
    turn_clock(f, 9 * 1000 * 1000);
    assert_int_equal(f->open, 2);
    turn_clock(f, 2 * 1000 * 1000);
    assert_closed(silent);
    assert_closed(slow);
}

static void an_idle_client_is_asked_to_leave(void **state)
{
    struct fixture *f = *state;
    int fd = begin(f);
    send_text(fd, PREFACE EMPTY_SETTINGS, sizeof PREFACE EMPTY_SETTINGS - 1);
    assert_true(comes(fd, FRAME_SETTINGS));
    turn_clock(f, IDLE_US - 1000);
    assert_int_equal(f->open, 1);
    turn_clock(f, 2000);
    assert_true(comes(fd, FRAME_GOAWAY));
    turn_clock(f, 11 * 1000 * 1000); /* it does not leave, and is made to */
    while (comes(fd, FRAME_PING))
        ;
    close(fd);
}

/* A server that has the whole of what a client said, and no answer to it. */
static void a_client_without_an_answer_is_closed(void **state)
{
    struct fixture *f = *state;
    int fd = begin(f);
    send_text(fd, "\r\n", 2);
    assert_int_equal(shutdown(fd, SHUT_WR), 0);
    for (int turn = 0; turn < 4; turn++) /* sniffed, carried over, ended */
        on_loop(f, NULL);
    turn_clock(f, 9 * 1000 * 1000);
    assert_int_equal(f->open, 1);
    turn_clock(f, 2 * 1000 * 1000);
    assert_closed(fd);
}

static void a_client_waits_for_a_place(void **state)
{
    struct fixture *f = *state;
    atomic_store(&no_places, true);
    int patient = begin(f);
    send_text(patient, "GET / HTTP/1.1\r\n\r\n", 18);
    on_loop(f, NULL);
    turn_clock(f, 200 * 1000);
    atomic_store(&no_places, false);
    turn_clock(f, 200 * 1000);
    assert_http1(patient, "", "got 18 bytes");
}

static void a_client_does_not_wait_for_ever(void **state)
{
    struct fixture *f = *state;
    atomic_store(&no_places, true);
    int fd = begin(f);
    send_text(fd, "GET / HTTP/1.1\r\n\r\n", 18);
    turn_clock(f, 9 * 1000 * 1000);
    assert_int_equal(f->open, 1);
    turn_clock(f, 2 * 1000 * 1000);
    assert_int_equal(f->open, 0);
    atomic_store(&no_places, false);
    close(fd);
}

/* --- the end --- */

static void draining_asks_all_to_leave(void **state)
{
    struct fixture *f = *state;
    int speaking = begin(f), sniffed = begin(f);
    send_text(speaking, PREFACE EMPTY_SETTINGS, sizeof PREFACE EMPTY_SETTINGS - 1);
    assert_true(comes(speaking, FRAME_SETTINGS));
    on_loop(f, connection_group_drain);
    assert_true(comes(speaking, FRAME_GOAWAY));
    assert_closed(sniffed);
    assert_closed(begin(f));
    close(speaking);
}

/* An answer to a broken client, sent before the connection closes, is not lost to a reset. */
static void a_broken_client_hears_why(void **state)
{
    struct fixture *f = *state;
    int fd = begin(f);
    char flood[4096] = {0};
    send_text(fd, PREFACE, sizeof PREFACE - 1);
    send_text(fd, flood, sizeof flood); /* no SETTINGS: a protocol error, and much unread input */
    assert_true(comes(fd, FRAME_GOAWAY));
    while (comes(fd, FRAME_PING)) /* until the end of what the server sends */
        ;
    for (int i = 0; i < 2; i++) { /* it goes on reading for a while: no reset */
        send_text(fd, flood, sizeof flood);
        on_loop(f, NULL);
    }
    turn_clock(f, 3 * 1000 * 1000);
    assert_int_equal(f->open, 0);
    close(fd);
}

/* A client of HTTP/1.1 that sends what the server does not want to read loses no answer either. */
static void input_behind_the_answer_is_dropped(void **state)
{
    struct fixture *f = *state;
    int fd = begin(f);
    char flood[4096] = {0}, answer[100] = {0};
    send_text(fd, "PUT / HTTP/1.1\r\n\r\n", 18);
    send_text(fd, flood, sizeof flood);
    receive(fd, answer, sizeof answer - 1);
    assert_int_equal(strncmp(answer, "got ", 4), 0);
    for (int i = 0; i < 2; i++) {
        send_text(fd, flood, sizeof flood);
        on_loop(f, NULL);
    }
    turn_clock(f, 3 * 1000 * 1000);
    assert_int_equal(f->open, 0);
    close(fd);
}

/* --- TLS --- */

static struct stream *begin_tls(struct fixture *f)
{
    struct address address;
    struct stream *client;
    assert_ok(address_parse("127.0.0.1:0", &address));
    int listening = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(listening, (struct sockaddr *)&address.storage, address.size), 0);
    assert_int_equal(listen(listening, 1), 0);
    assert_int_equal(getsockname(listening, (struct sockaddr *)&address.storage, &address.size), 0);
    assert_ok(stream_connect(&address, f->client_tls, "localhost", &client));
    int accepted = accept4(listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    assert_true(accepted >= 0);
    close(listening);
    connection_begin(f->group, accepted, &f->peer, false);
    return client;
}

static void wait_for_socket(const struct stream *stream, uint32_t events)
{
    struct pollfd fd = {.fd = stream_socket(stream), .events = (short)events};
    assert_int_equal(poll(&fd, 1, PATIENCE_MS), 1);
}

static void tls_clients_get_http2(void **state)
{
    struct stream *client = begin_tls(*state);
    char text[] = PREFACE EMPTY_SETTINGS;
    struct iovec part = {.iov_base = text, .iov_len = sizeof text - 1};
    size_t done;
    while (stream_write(client, &part, 1, &done) == STREAM_BLOCKED)
        wait_for_socket(client, stream_write_interest(client));
    assert_int_equal(done, part.iov_len);
    assert_string_equal(stream_protocol(client), "h2");
    uint8_t header[9];
    while (stream_read(client, header, sizeof header, &done) == STREAM_BLOCKED)
        wait_for_socket(client, stream_read_interest(client));
    assert_int_equal(done, sizeof header);
    assert_int_equal(header[3], FRAME_SETTINGS);
    stream_close(client);
}

static void plain_clients_of_a_tls_port_are_closed(void **state)
{
    int fd = begin(*state);
    static const char request[] = "GET / HTTP/1.1\r\n\r\n";
    char rest[100];
    send_text(fd, request, sizeof request - 1);
    receive(fd, rest, sizeof rest); /* an alert, then the end */
    assert_closed(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_comes_with_the_end_is_answered, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_one_turn_leaves_the_next_reads, set_up, tear_down),
        cmocka_unit_test_setup_teardown(http2_is_known_by_its_preface, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_preface_may_come_byte_by_byte, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_preface_gone_wrong_gets_no_answer, set_up, tear_down),
        cmocka_unit_test_setup_teardown(other_beginnings_get_http1, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_request_may_come_in_pieces, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_end_of_a_request_is_passed_on, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_client_may_leave_at_any_byte, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_silent_client_is_cut_off, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_client_without_an_answer_is_closed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_client_waits_for_a_place, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_client_does_not_wait_for_ever, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_idle_client_is_asked_to_leave, set_up, tear_down),
        cmocka_unit_test_setup_teardown(draining_asks_all_to_leave, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_broken_client_hears_why, set_up, tear_down),
        cmocka_unit_test_setup_teardown(input_behind_the_answer_is_dropped, set_up, tear_down),
        cmocka_unit_test_setup_teardown(tls_clients_get_http2, set_up_tls, tear_down),
        cmocka_unit_test_setup_teardown(plain_clients_of_a_tls_port_are_closed, set_up_tls,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
