/* Messages that are made while they are sent: announced, then in pieces. */
#include "base/limits.h"
#include "wire/testing/grpc_testing.h"

#include <pthread.h>

enum { PIECE = 1000, SWEEPS = 20, SWEEPS_WITHIN_MESSAGE = 4 };

struct fixture {
    struct testing t;
    struct testing_client c;
    struct outcome outcome;
    struct client_call *call;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    grpc_server_options_init(&f->t.options);
    testing_start(&f->t);
    testing_client_start(&f->c, &f->t);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    if (f->t.held != NULL)
        grpc_call_finish(f->t.held, status_ok());
    testing_client_stop(&f->c);
    testing_stop(&f->t);
    outcome_free(&f->outcome);
    free(f);
    return 0;
}

static void ask_with(struct fixture *f, struct client_call_options options)
{
    f->call = testing_call(&f->c, &options, bytes_of(""));
    testing_pump(&f->c);
    assert_non_null(f->t.held);
}

static void ask(struct fixture *f)
{
    ask_with(f, testing_options("/test.Service/Hold", &f->outcome));
}

static uint8_t byte_at(size_t at)
{
    return (uint8_t)(at / 7);
}

static void send_piece(struct grpc_call *call, size_t from, size_t to)
{
    struct buffer piece = {0};
    grpc_piece_start(&piece);
    assert_int_equal(piece.size, GRPC_PIECE_SIZE);
    for (size_t i = from; i < to; i++)
        buffer_append_byte(&piece, byte_at(i));
    grpc_call_send_piece(call, &piece);
    assert_null(piece.data);
}

static void send_in_pieces(struct grpc_call *call, size_t size, size_t piece)
{
    grpc_call_announce(call, (uint32_t)size);
    for (size_t at = 0; at < size; at += piece)
        send_piece(call, at, at + piece < size ? at + piece : size);
}

static void send_whole(struct grpc_call *call, const char *text)
{
    struct buffer message = {0};
    grpc_message_start(&message);
    buffer_append_bytes(&message, bytes_of(text));
    grpc_call_send(call, &message);
}

static void finish(struct fixture *f, status s)
{
    grpc_call_finish(f->t.held, s);
    f->t.held = NULL;
    testing_pump(&f->c);
}

static void assert_body(const struct fixture *f, size_t size)
{
    assert_int_equal(f->outcome.last.size, size);
    for (size_t i = 0; i < size; i++)
        assert_int_equal(f->outcome.last.data[i], byte_at(i));
}

static void assert_ended(const struct fixture *f, enum status_code code)
{
    assert_true(f->outcome.ended);
    assert_int_equal(f->outcome.code, code);
}

/* --- whole --- */

static void pieces_make_a_message(void **state)
{
    struct fixture *f = *state;
    ask(f);
    send_in_pieces(f->t.held, 10 * PIECE + 1, PIECE);
    finish(f, status_ok());
    assert_ended(f, STATUS_OK);
    assert_int_equal(f->outcome.messages, 1);
    assert_body(f, 10 * PIECE + 1);
    assert_int_equal(f->t.last_record.response_bytes, 10 * PIECE + 1);
}

static void a_status_follows_a_whole_message(void **state)
{
    struct fixture *f = *state;
    ask(f);
    send_in_pieces(f->t.held, PIECE, PIECE);
    finish(f, status_make(STATUS_ABORTED, "later"));
    assert_ended(f, STATUS_ABORTED);
    assert_int_equal(f->outcome.messages, 1);
    assert_true(bytes_equal(buffer_bytes(&f->outcome.words), bytes_of("later")));
}

static void other_messages_go_before_and_after(void **state)
{
    struct fixture *f = *state;
    ask(f);
    send_whole(f->t.held, "before");
    send_in_pieces(f->t.held, 3 * PIECE, PIECE);
    send_in_pieces(f->t.held, 5, 1);
    send_whole(f->t.held, "after");
    finish(f, status_ok());
    assert_ended(f, STATUS_OK);
    assert_int_equal(f->outcome.messages, 4);
    assert_int_equal(f->outcome.bytes, strlen("before") + 3 * PIECE + 5 + strlen("after"));
    assert_true(bytes_equal(buffer_bytes(&f->outcome.last), bytes_of("after")));
}

static void pieces_are_not_compressed(void **state)
{
    struct fixture *f = *state;
    struct client_call_options options = testing_options("/test.Service/Hold", &f->outcome);
    options.gzip = true;
    ask_with(f, options);
    send_in_pieces(f->t.held, 10 * PIECE, PIECE);
    finish(f, status_ok());
    assert_ended(f, STATUS_OK);
    assert_body(f, 10 * PIECE);
}

static void *answer_from_thread(void *argument)
{
    struct grpc_call *call = argument;
    for (int i = 0; i < 20; i++)
        send_in_pieces(call, 10 * PIECE, PIECE);
    grpc_call_finish(call, status_ok());
    return NULL;
}

static void pieces_from_another_thread(void **state)
{
    struct fixture *f = *state;
    pthread_t thread;
    ask(f);
    assert_int_equal(pthread_create(&thread, NULL, answer_from_thread, f->t.held), 0);
    f->t.held = NULL;
    for (int i = 0; i < 5; i++)
        testing_pump(&f->c); /* beside the thread */
    assert_int_equal(pthread_join(thread, NULL), 0);
    testing_pump(&f->c);
    assert_ended(f, STATUS_OK);
    assert_int_equal(f->outcome.messages, 20);
    assert_body(f, 10 * PIECE);
}

/* What waits is no more than of whole messages, however large the one that was announced. */
static void pieces_wait_for_the_client(void **state)
{
    struct fixture *f = *state;
    size_t size = 64 << 20, at = 0;
    ask(f);
    client_call_pause(f->call, true);
    grpc_call_announce(f->t.held, (uint32_t)size);
    for (; !grpc_call_is_congested(f->t.held); at += PIECE) {
        assert_true(at < 16 << 20);
        send_piece(f->t.held, at, at + PIECE);
        if (at % (100 * PIECE) == 0)
            testing_pump(&f->c);
    }
    assert_int_equal(f->outcome.messages, 0);
    client_call_pause(f->call, false);
    for (; at < size; at += 1 << 20) {
        send_piece(f->t.held, at, at + (1 << 20) < size ? at + (1 << 20) : size);
        testing_pump(&f->c);
    }
    finish(f, status_ok());
    assert_ended(f, STATUS_OK);
    assert_int_equal(f->outcome.bytes, size);
}

/* --- cut short --- */

/* The client has half a message: no status may make it look whole, or like the end of the call. */
static void an_end_within_a_message_is_a_reset(void **state)
{
    static const struct {
        enum status_code code, seen;
    } ends[] = {
        {STATUS_ABORTED, STATUS_UNAVAILABLE},
        {STATUS_UNAVAILABLE, STATUS_UNAVAILABLE},
        {STATUS_CANCELLED, STATUS_CANCELLED},
        {STATUS_RESOURCE_EXHAUSTED, STATUS_RESOURCE_EXHAUSTED},
        {STATUS_PERMISSION_DENIED, STATUS_PERMISSION_DENIED},
        {STATUS_DATA_LOSS, STATUS_INTERNAL},
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        outcome_free(&f->outcome);
        f->outcome = (struct outcome){.messages = 0};
        ask(f);
        send_whole(f->t.held, "before");
        grpc_call_announce(f->t.held, 3 * PIECE);
        send_piece(f->t.held, 0, PIECE);
        testing_pump(&f->c);
        send_piece(f->t.held, PIECE, 2 * PIECE);
        finish(f, status_make(ends[i].code, "within"));
        assert_ended(f, ends[i].seen);
        assert_int_equal(f->outcome.messages, 1);
        assert_true(
            bytes_start_with(buffer_bytes(&f->outcome.words), bytes_of("the stream was reset")));
        assert_int_equal(f->t.last_record.code, ends[i].code);
        assert_true(grpc_connection_is_idle(f->t.connection));
    }
}

static void a_deadline_within_a_message(void **state)
{
    struct fixture *f = *state;
    const struct client_metadata timeout = {"grpc-timeout", bytes_of("50m")};
    struct client_call_options options = testing_options("/test.Service/Hold", &f->outcome);
    options.metadata = &timeout; /* as a header, so that only the server keeps time */
    options.metadata_count = 1;
    ask_with(f, options);
    grpc_call_announce(f->t.held, 3 * PIECE);
    send_piece(f->t.held, 0, PIECE);
    testing_pump(&f->c);
    testing_advance(&f->t, 50000);
    assert_int_equal(f->t.cancelled, 1);
    send_piece(f->t.held, PIECE, 2 * PIECE); /* of no interest any more */
    finish(f, status_ok());
    assert_ended(f, STATUS_CANCELLED);
    assert_int_equal(f->outcome.messages, 0);
    assert_int_equal(f->t.last_record.code, STATUS_DEADLINE_EXCEEDED);
}

static void a_client_that_cancels_within_a_message(void **state)
{
    struct fixture *f = *state;
    ask(f);
    grpc_call_announce(f->t.held, 3 * PIECE);
    send_piece(f->t.held, 0, PIECE);
    testing_pump(&f->c);
    client_call_cancel(f->call);
    testing_pump(&f->c);
    assert_int_equal(f->t.cancelled, 1);
    send_piece(f->t.held, PIECE, 2 * PIECE);
    finish(f, status_make(STATUS_CANCELLED, "as asked"));
    assert_int_equal(f->t.last_record.code, STATUS_CANCELLED);
    assert_true(grpc_connection_is_idle(f->t.connection));
}

static void a_piece_that_could_not_be_made(void **state)
{
    struct fixture *f = *state;
    ask(f);
    grpc_call_announce(f->t.held, 3 * PIECE);
    send_piece(f->t.held, 0, PIECE);
    struct buffer piece = {0};
    grpc_piece_start(&piece);
    piece.failed = true; /* as after a failed allocation */
    grpc_call_send_piece(f->t.held, &piece);
    assert_true(grpc_call_is_cancelled(f->t.held));
    finish(f, status_ok());
    assert_ended(f, STATUS_RESOURCE_EXHAUSTED);
    assert_int_equal(f->outcome.messages, 0);
}

static void a_connection_that_goes_within_a_message(void **state)
{
    struct fixture *f = *state;
    ask(f);
    grpc_call_announce(f->t.held, 3 * PIECE);
    send_piece(f->t.held, 0, PIECE);
    grpc_connection_destroy(f->t.connection);
    f->t.connection = NULL;
    assert_int_equal(f->t.cancelled, 1);
    grpc_call_finish(f->t.held, status_make(STATUS_CANCELLED, "gone"));
    f->t.held = NULL;
    testing_turn(&f->t);
    assert_int_equal(grpc_server_call_count(f->t.server), 0);
}

/* --- clients that take nothing --- */

/* So that something waits, of a message of which only the first part has been made. */
static void fill(struct fixture *f)
{
    ask(f);
    client_call_pause(f->call, true);
    grpc_call_announce(f->t.held, 64 << 20);
    for (size_t at = 0; !grpc_call_is_congested(f->t.held); at += 1 << 20) {
        assert_true(at < 32 << 20);
        send_piece(f->t.held, at, at + (1 << 20));
        testing_pump(&f->c);
    }
}

static void stand_still(struct fixture *f, int sweeps)
{
    for (int i = 0; i < sweeps; i++)
        testing_advance(&f->t, f->t.options.stall_timeout_us / SWEEPS);
}

static void a_client_that_takes_nothing_of_a_message_loses_it(void **state)
{
    struct fixture *f = *state;
    fill(f);
    stand_still(f, SWEEPS_WITHIN_MESSAGE);
    assert_int_equal(f->t.cancelled, 0);
    stand_still(f, 1);
    assert_int_equal(f->t.cancelled, 1); /* what is held for it goes at once */
    finish(f, status_make(STATUS_CANCELLED, "as told"));
    assert_int_equal(f->t.last_record.code, STATUS_ABORTED);
    assert_ended(f, STATUS_UNAVAILABLE);
    assert_int_equal(f->outcome.messages, 0);
}

static void a_client_that_takes_a_little_keeps_its_message(void **state)
{
    struct fixture *f = *state;
    fill(f);
    for (int i = 0; i < 3; i++) {
        stand_still(f, SWEEPS_WITHIN_MESSAGE);
        client_call_pause(f->call, false);
        testing_pump(&f->c);
        client_call_pause(f->call, true);
        for (size_t at = 0; !grpc_call_is_congested(f->t.held); at += 1 << 20) {
            assert_true(at < 32 << 20);
            send_piece(f->t.held, at, at + (1 << 20));
            testing_pump(&f->c);
        }
    }
    assert_int_equal(f->t.cancelled, 0);
    finish(f, status_make(STATUS_CANCELLED, "enough"));
}

/* Nothing is held for what has been made. */
static void a_client_that_waits_between_messages_has_more_time(void **state)
{
    struct fixture *f = *state;
    ask(f);
    client_call_pause(f->call, true);
    while (!grpc_call_is_congested(f->t.held)) {
        send_in_pieces(f->t.held, 1 << 20, 1 << 20);
        testing_pump(&f->c);
    }
    stand_still(f, SWEEPS);
    assert_int_equal(f->t.cancelled, 0);
    stand_still(f, 1);
    testing_pump(&f->c);
    assert_int_equal(f->t.cancelled, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(pieces_make_a_message),
        TEST(a_status_follows_a_whole_message),
        TEST(other_messages_go_before_and_after),
        TEST(pieces_are_not_compressed),
        TEST(pieces_from_another_thread),
        TEST(pieces_wait_for_the_client),
        TEST(an_end_within_a_message_is_a_reset),
        TEST(a_deadline_within_a_message),
        TEST(a_client_that_cancels_within_a_message),
        TEST(a_piece_that_could_not_be_made),
        TEST(a_connection_that_goes_within_a_message),
        TEST(a_client_that_takes_nothing_of_a_message_loses_it),
        TEST(a_client_that_takes_a_little_keeps_its_message),
        TEST(a_client_that_waits_between_messages_has_more_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
