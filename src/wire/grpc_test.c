/* Tests of gRPC's two sides against each other, in memory. */
#include "wire/testing/grpc_testing.h"

#include "base/limits.h"
#include "wire/grpc_text.h"

#include <pthread.h>

enum { SLOW_US = 1000 };

struct fixture {
    struct testing t;
    struct testing_client c;
    struct outcome outcome;
    struct outcome other;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    grpc_server_options_init(&f->t.options);
    f->t.options.slow_us = SLOW_US;
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
    outcome_free(&f->other);
    free(f);
    return 0;
}

static void assert_text(const struct buffer *buffer, const char *expected)
{
    bytes b = buffer_bytes(buffer);
    if (!bytes_equal(b, bytes_of(expected)))
        print_error("\"%.*s\" instead of \"%s\"\n", (int)b.size, (const char *)b.data, expected);
    assert_true(bytes_equal(b, bytes_of(expected)));
}

/* Calls, and moves bytes until all is quiet. */
static struct client_call *ask(struct fixture *f, const char *method, const char *request)
{
    struct client_call_options options = testing_options(method, &f->outcome);
    struct client_call *call = testing_call(&f->c, &options, bytes_of(request));
    testing_pump(&f->c);
    return call;
}

static void assert_ended(const struct outcome *outcome, enum status_code code)
{
    assert_true(outcome->ended);
    if (outcome->code != code)
        print_error("%s: %.*s\n", status_code_name(outcome->code), (int)outcome->words.size,
                    (const char *)outcome->words.data);
    assert_int_equal(outcome->code, code);
}

static void finish_held(struct fixture *f, status s)
{
    assert_non_null(f->t.held);
    grpc_call_finish(f->t.held, s);
    f->t.held = NULL;
    testing_pump(&f->c);
}

/* --- answers --- */

static void test_unary(void **state)
{
    struct fixture *f = *state;
    testing_pump(&f->c); /* the settings, so that the answer's writes can be counted */
    f->t.writes = 0;
    ask(f, "/test.Service/Echo", "hello");
    assert_ended(&f->outcome, STATUS_OK);
    assert_int_equal(f->outcome.messages, 1);
    assert_text(&f->outcome.last, "hello");
    assert_text(&f->outcome.header, "early");
    assert_text(&f->outcome.trailer, "late");
    assert_int_equal(f->t.writes, 1); /* HEADERS, DATA and trailers together */
    assert_int_equal(f->t.records, 1);
    assert_int_equal(f->t.last_record.code, STATUS_OK);
    assert_string_equal(f->t.last_record.method->name, "Echo");
    assert_int_equal(f->t.last_record.request_bytes, 5);
    assert_int_equal(f->t.last_record.response_bytes, 5);
    assert_int_equal(grpc_server_call_count(f->t.server), 0);
    assert_true(grpc_connection_is_idle(f->t.connection));
}

static void test_bytes_one_by_one(void **state)
{
    struct fixture *f = *state;
    f->t.piece = 1;
    ask(f, "/test.Service/Echo", "hello");
    assert_ended(&f->outcome, STATUS_OK);
    assert_text(&f->outcome.last, "hello");
}

static void test_empty_message(void **state)
{
    struct fixture *f = *state;
    ask(f, "/test.Service/Echo", "");
    assert_ended(&f->outcome, STATUS_OK);
    assert_int_equal(f->outcome.messages, 1);
    assert_int_equal(f->outcome.last.size, 0);
}

static void test_calls_reuse_memory(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 100; i++) {
        f->outcome.ended = false;
        ask(f, "/test.Service/Echo", i % 2 == 0 ? "even" : "odd");
        assert_ended(&f->outcome, STATUS_OK);
        assert_text(&f->outcome.last, i % 2 == 0 ? "even" : "odd");
    }
    assert_int_equal(f->outcome.messages, 100);
}

static void test_error_with_words_and_details(void **state)
{
    struct fixture *f = *state;
    ask(f, "/test.Service/Fail", "50% of \"Zürich\"\n");
    assert_ended(&f->outcome, STATUS_ABORTED);
    assert_int_equal(f->outcome.messages, 0);
    assert_text(&f->outcome.words, "50% of \"Zürich\"\n");

    /* google.rpc.Status {code 10, message, details [Any {type_url, value "x"}]} */
    uint8_t decoded[256];
    size_t size;
    assert_true(f->outcome.details.size < 300);
    assert_true(base64_decode(buffer_bytes(&f->outcome.details), decoded, &size));
    assert_int_equal(decoded[0], 1 << 3);
    assert_int_equal(decoded[1], STATUS_ABORTED);
    assert_int_equal(decoded[2], 2 << 3 | 2);
    assert_memory_equal(decoded + 4, "50% of \"Zürich\"\n", decoded[3]);
    assert_int_equal(decoded[4 + decoded[3]], 3 << 3 | 2);
    assert_memory_equal(decoded + size - 3, "\022\001x", 3);
}

static void test_unknown_method(void **state)
{
    struct fixture *f = *state;
    ask(f, "/test.Service/Nonsense", "");
    assert_ended(&f->outcome, STATUS_UNIMPLEMENTED);
    assert_text(&f->outcome.words, "unknown method /test.Service/Nonsense");
    assert_int_equal(f->t.records, 1);
    assert_null(f->t.last_record.method);
    assert_int_equal(f->t.last_record.method_index, grpc_server_method_count(f->t.server));
}

static void test_metadata(void **state)
{
    struct fixture *f = *state;
    const struct client_metadata metadata[] = {{"x-other", bytes_of("plain")},
                                               {"x-test-bin", bytes_make("\0\1\2\377", 4)}};
    struct client_call_options options = testing_options("/test.Service/Echo", &f->outcome);
    options.metadata = metadata;
    options.metadata_count = 2;
    testing_call(&f->c, &options, bytes_of(""));
    testing_pump(&f->c);
    assert_ended(&f->outcome, STATUS_OK);
    assert_int_equal(f->t.header.size, 4);
    assert_memory_equal(f->t.header.data, "\0\1\2\377", 4);
}

static void test_bidirectional(void **state)
{
    struct fixture *f = *state;
    ask(f, "/test.Service/Chat", "one");
    assert_ended(&f->outcome, STATUS_OK);
    assert_int_equal(f->outcome.messages, 1);
    assert_text(&f->outcome.last, "one");
    assert_int_equal(f->t.handled, 2); /* the message, and that it was the last */
}

/* --- long messages, compression --- */

static bytes make_long(size_t size, uint8_t **memory)
{
    *memory = malloc(size);
    assert_non_null(*memory);
    uint32_t state = 1;
    for (size_t i = 0; i < size; i++) {
        state = state * 1664525 + 1013904223;
        (*memory)[i] = (uint8_t)(state >> 24);
    }
    return bytes_make(*memory, size);
}

static void echo_long(struct fixture *f, size_t size, bool gzip)
{
    uint8_t *memory;
    bytes message = make_long(size, &memory);
    if (gzip)
        memset(memory, 'x', size / 2);
    struct client_call_options options = testing_options("/test.Service/Echo", &f->outcome);
    options.gzip = gzip;
    testing_call(&f->c, &options, message);
    testing_pump(&f->c);
    assert_ended(&f->outcome, STATUS_OK);
    assert_true(bytes_equal(buffer_bytes(&f->outcome.last), message));
    free(memory);
}

/* 8 MiB: 32 times the stream's first window, and twice the client's. */
static void test_long_message(void **state)
{
    echo_long(*state, 8 << 20, false);
}

static void test_gzip_both_ways(void **state)
{
    struct fixture *f = *state;
    echo_long(f, 3 << 20, true);
}

static void test_gzip_saves_bytes(void **state)
{
    struct fixture *f = *state;
    static const char text[100000];
    struct client_call_options options = testing_options("/test.Service/Hold", &f->outcome);
    options.gzip = true;
    testing_call(&f->c, &options, bytes_make(text, sizeof text));
    testing_pump(&f->c);
    assert_int_equal(f->t.handled, 1);
    struct buffer answer = {0};
    grpc_message_start(&answer);
    buffer_append(&answer, text, sizeof text);
    grpc_call_send(f->t.held, &answer);
    testing_turn(&f->t); /* the message was handed to the loop */
    testing_turn(&f->t);
    assert_true(f->t.from_server.size > 0 && f->t.from_server.size < 2000);
    finish_held(f, status_ok());
    assert_ended(&f->outcome, STATUS_OK);
    assert_int_equal(f->outcome.bytes, sizeof text);
}

/* Says no once the handler has begun. */
static status admit_at_first(void *context, void *peer, struct grpc_call *call, size_t method_index,
                             bytes request)
{
    struct testing *t = context;
    (void)peer;
    (void)call;
    assert_int_equal(method_index, 2);
    assert_true(bytes_equal(request, bytes_of("what was asked")));
    return t->handled == 0 ? status_ok() : status_make(STATUS_PERMISSION_DENIED, "not any more");
}

static void test_admission_asked_again(void **state)
{
    struct fixture *f = *state;
    testing_client_stop(&f->c);
    testing_stop(&f->t);
    *f = (struct fixture){0};
    grpc_server_options_init(&f->t.options);
    f->t.options.admit = admit_at_first;
    testing_start(&f->t);
    testing_client_start(&f->c, &f->t);
    ask(f, "/test.Service/Hold", "what was asked");
    status s = grpc_call_admit_again(f->t.held);
    assert_int_equal(s.code, STATUS_PERMISSION_DENIED);
    finish_held(f, s);
    testing_pump(&f->c);
    assert_ended(&f->outcome, STATUS_PERMISSION_DENIED);
}

static void test_message_too_long(void **state)
{
    struct fixture *f = *state;
    testing_client_stop(&f->c);
    testing_stop(&f->t);
    f->t.options.max_message_size = 10000;
    testing_start(&f->t);
    testing_client_start(&f->c, &f->t);
    uint8_t *memory;
    bytes message = make_long(1 << 20, &memory);
    struct client_call_options options = testing_options("/test.Service/Echo", &f->outcome);
    testing_call(&f->c, &options, message);
    testing_pump(&f->c);
    assert_ended(&f->outcome, STATUS_RESOURCE_EXHAUSTED);
    assert_int_equal(f->t.handled, 0);

    options.context = &f->other;
    testing_call(&f->c, &options, bytes_make(memory, 10000));
    testing_pump(&f->c);
    assert_ended(&f->other, STATUS_OK);
    free(memory);
}

/* A client that refuses what is too long is sent no more of it than its window; what is as long as
 * it may be, it reads. */
static void test_long_answers_are_refused(void **state)
{
    enum { LIMIT = 1 << 20, WINDOW = 64 << 10, ROOM = 4 << 10 };
    struct fixture *f = *state;
    uint8_t *memory;
    bytes message = make_long(LIMIT + 1, &memory);
    uint64_t refused = 0;
    struct client_call_options options = testing_options("/test.Service/Echo", &f->outcome);
    options.message_limit = LIMIT;
    options.refused = &refused;
    grpc_client_narrow(f->c.client, WINDOW);
    testing_call(&f->c, &options, message);
    testing_pump(&f->c);
    assert_ended(&f->outcome, STATUS_RESOURCE_EXHAUSTED);
    assert_int_equal(f->outcome.messages, 0);
    assert_int_equal(refused, LIMIT + 1);
    assert_in_range(f->t.sent, WINDOW, WINDOW + ROOM);

    options.context = &f->other;
    testing_call(&f->c, &options, bytes_make(memory, LIMIT));
    testing_pump(&f->c);
    assert_ended(&f->other, STATUS_OK);
    assert_int_equal(f->other.bytes, LIMIT);
    free(memory);
}

/* A second long request waits until the first has been answered; a short one passes. */
static void test_requests_wait_for_admission(void **state)
{
    struct fixture *f = *state;
    testing_client_stop(&f->c);
    testing_stop(&f->t);
    f->t.options.max_buffered_requests = 3 << 20;
    testing_start(&f->t);
    testing_client_start(&f->c, &f->t);
    uint8_t *memory;
    bytes message = make_long(2 << 20, &memory);
    struct client_call_options options = testing_options("/test.Service/Hold", &f->outcome);
    testing_call(&f->c, &options, message);
    testing_pump(&f->c);
    assert_int_equal(f->t.handled, 1);
    options = testing_options("/test.Service/Echo", &f->other);
    testing_call(&f->c, &options, message);
    testing_pump(&f->c);
    assert_int_equal(f->t.handled, 1);
    struct outcome quick = {0};
    options.context = &quick;
    testing_call(&f->c, &options, bytes_of("short"));
    testing_pump(&f->c);
    assert_ended(&quick, STATUS_OK);
    assert_false(f->other.ended);
    finish_held(f, status_ok());
    assert_ended(&f->other, STATUS_OK);
    assert_int_equal(f->other.bytes, 2 << 20);
    outcome_free(&quick);
    free(memory);
}

/* --- deadlines, cancellation, threads --- */

static void test_deadline(void **state)
{
    struct fixture *f = *state;
    /* As a header, so that only the server keeps time. */
    const struct client_metadata timeout = {"grpc-timeout", bytes_of("50m")};
    struct client_call_options options = testing_options("/test.Service/Hold", &f->outcome);
    options.metadata = &timeout;
    options.metadata_count = 1;
    testing_call(&f->c, &options, bytes_of(""));
    testing_pump(&f->c);
    assert_int_equal(grpc_call_deadline_us(f->t.held), f->t.now_us + 50000);
    testing_advance(&f->t, 49999);
    assert_int_equal(f->t.cancelled, 0);
    testing_advance(&f->t, 1);
    assert_int_equal(f->t.cancelled, 1);
    assert_true(grpc_call_is_cancelled(f->t.held));
    testing_pump(&f->c);
    assert_ended(&f->outcome, STATUS_DEADLINE_EXCEEDED);
    finish_held(f, status_ok());
    assert_int_equal(f->t.last_record.code, STATUS_DEADLINE_EXCEEDED);
    assert_int_equal(f->t.last_record.duration_us, 50000);
}

static void test_deadline_kept_by_the_client(void **state)
{
    struct fixture *f = *state;
    struct client_call_options options = testing_options("/test.Service/Hold", &f->outcome);
    options.timeout_us = 50000;
    testing_call(&f->c, &options, bytes_of(""));
    f->t.is_stalled = true; /* nothing comes back */
    testing_pump(&f->c);
    testing_advance(&f->t, 50000);
    assert_ended(&f->outcome, STATUS_DEADLINE_EXCEEDED);
    f->t.is_stalled = false;
}

static void test_deadline_that_has_passed(void **state)
{
    struct fixture *f = *state;
    struct client_call_options options = testing_options("/test.Service/Hold", &f->outcome);
    options.timeout_us = 0;
    testing_call(&f->c, &options, bytes_of(""));
    testing_pump(&f->c);
    assert_ended(&f->outcome, STATUS_DEADLINE_EXCEEDED);
    assert_int_equal(f->t.handled, 0);
}

static void test_cancel(void **state)
{
    struct fixture *f = *state;
    struct client_call *call = ask(f, "/test.Service/Hold", "");
    assert_false(grpc_call_is_cancelled(f->t.held));
    client_call_cancel(call);
    assert_ended(&f->outcome, STATUS_CANCELLED);
    testing_pump(&f->c);
    assert_true(grpc_call_is_cancelled(f->t.held));
    assert_int_equal(f->t.cancelled, 1);
    finish_held(f, status_ok());
    assert_int_equal(f->t.last_record.code, STATUS_CANCELLED);
    assert_true(grpc_connection_is_idle(f->t.connection));
}

static void test_cancel_before_it_was_sent(void **state)
{
    struct fixture *f = *state;
    struct client_call_options options = testing_options("/test.Service/Echo", &f->outcome);
    struct client_call *call = testing_call(&f->c, &options, bytes_of("never"));
    client_call_cancel(call);
    assert_ended(&f->outcome, STATUS_CANCELLED);
    testing_pump(&f->c);
    assert_int_equal(f->t.handled, 0);
    assert_int_equal(grpc_client_call_count(f->c.client), 0);
}

static void test_cancelled_bidirectional_call_ends(void **state)
{
    struct fixture *f = *state;
    testing_pump(&f->c);
    struct client_call_options options = testing_options("/test.Service/Chat", &f->outcome);
    uint8_t *memory;
    bytes message = make_long(1 << 20, &memory); /* never whole: the last bytes are held back */
    struct client_call *call = testing_call(&f->c, &options, message);
    testing_client_flush(&f->c);
    f->t.to_server.size -= 100;
    testing_turn(&f->t);
    assert_int_equal(grpc_server_call_count(f->t.server), 1);
    client_call_cancel(call);
    testing_client_stop(&f->c);
    grpc_connection_destroy(f->t.connection);
    f->t.connection = NULL;
    testing_turn(&f->t);
    assert_int_equal(f->t.handled, 1); /* only told of the end */
    assert_int_equal(grpc_server_call_count(f->t.server), 0);
    free(memory);
}

static void *answer_from_thread(void *argument)
{
    struct grpc_call *call = argument;
    for (int i = 0; i < 100; i++) {
        struct buffer message = {0};
        grpc_message_start(&message);
        buffer_append_byte(&message, (uint8_t)i);
        grpc_call_send(call, &message);
    }
    grpc_call_finish(call, status_make(STATUS_OUT_OF_RANGE, "from afar"));
    return NULL;
}

static void test_answers_from_another_thread(void **state)
{
    struct fixture *f = *state;
    pthread_t thread;
    ask(f, "/test.Service/Hold", "");
    assert_int_equal(pthread_create(&thread, NULL, answer_from_thread, f->t.held), 0);
    f->t.held = NULL;
    for (int i = 0; i < 5; i++)
        testing_pump(&f->c); /* beside the thread */
    assert_int_equal(pthread_join(thread, NULL), 0);
    testing_pump(&f->c);
    assert_ended(&f->outcome, STATUS_OUT_OF_RANGE);
    assert_int_equal(f->outcome.messages, 100);
    assert_int_equal(f->outcome.last.data[0], 99);
}

static void test_finish_after_the_connection_is_gone(void **state)
{
    struct fixture *f = *state;
    pthread_t thread;
    ask(f, "/test.Service/Hold", "");
    grpc_connection_destroy(f->t.connection);
    f->t.connection = NULL;
    assert_int_equal(f->t.cancelled, 1);
    assert_true(grpc_call_is_cancelled(f->t.held));
    assert_int_equal(grpc_server_call_count(f->t.server), 1);
    assert_int_equal(pthread_create(&thread, NULL, answer_from_thread, f->t.held), 0);
    f->t.held = NULL;
    assert_int_equal(pthread_join(thread, NULL), 0);
    testing_turn(&f->t);
    assert_int_equal(grpc_server_call_count(f->t.server), 0);
    assert_int_equal(f->t.last_record.code, STATUS_CANCELLED);
}

static void test_failed_buffer_ends_the_call(void **state)
{
    struct fixture *f = *state;
    ask(f, "/test.Service/Hold", "");
    struct buffer message = {0};
    grpc_message_start(&message);
    message.failed = true; /* as after a failed allocation */
    grpc_call_send(f->t.held, &message);
    assert_true(grpc_call_is_cancelled(f->t.held));
    finish_held(f, status_ok());
    assert_ended(&f->outcome, STATUS_RESOURCE_EXHAUSTED);
    assert_int_equal(f->outcome.messages, 0);
}

/* --- flow control --- */

/* 20 MB pass through windows of a few, while the handler waits and goes on. */
static void test_congestion(void **state)
{
    struct fixture *f = *state;
    f->t.to_flood = 20000000;
    ask(f, "/test.Service/Flood", "");
    assert_ended(&f->outcome, STATUS_OK);
    assert_int_equal(f->outcome.bytes, 20000000);
    assert_true(f->t.flood_pauses > 10);
}

static void test_reader_that_pauses(void **state)
{
    struct fixture *f = *state;
    f->t.to_flood = 20000000;
    struct client_call_options options = testing_options("/test.Service/Flood", &f->outcome);
    struct client_call *call = testing_call(&f->c, &options, bytes_of(""));
    client_call_pause(call, true);
    testing_pump(&f->c);
    size_t before = f->outcome.bytes;
    assert_false(f->outcome.ended);
    assert_true(before < 5000000);             /* the client's window */
    assert_true(f->t.to_flood > 14000000);     /* little more was made */
    ask(f, "/test.Service/Fail", "no matter"); /* others are served */
    assert_true(f->outcome.ended);
    f->outcome.ended = false;
    client_call_pause(call, false);
    testing_pump(&f->c);
    assert_ended(&f->outcome, STATUS_OK);
    assert_int_equal(f->outcome.bytes, 20000000);
}

/* --- whose time it was --- */

static void test_time_in_which_answers_are_not_read(void **state)
{
    struct fixture *f = *state;
    f->t.to_flood = 20000000;
    struct client_call_options options = testing_options("/test.Service/Flood", &f->outcome);
    struct client_call *call = testing_call(&f->c, &options, bytes_of(""));
    client_call_pause(call, true);
    testing_pump(&f->c);
    testing_advance(&f->t, 3000000);
    client_call_pause(call, false);
    testing_pump(&f->c);
    assert_ended(&f->outcome, STATUS_OK);
    assert_int_equal(f->t.last_record.duration_us, 3000000);
    assert_int_equal(f->t.last_record.client_us, 3000000);
    assert_int_equal(grpc_call_record_served_us(&f->t.last_record), 0);
}

static void test_time_in_which_the_request_comes(void **state)
{
    struct fixture *f = *state;
    struct client_call_options options = testing_options("/test.Service/Hold", &f->outcome);
    testing_pump(&f->c);
    testing_call(&f->c, &options, bytes_of("a request"));
    testing_client_flush(&f->c);
    uint8_t last = f->t.to_server.data[--f->t.to_server.size];
    testing_turn(&f->t);
    assert_int_equal(f->t.handled, 0);
    testing_advance(&f->t, 2000000);
    buffer_append_byte(&f->t.to_server, last);
    testing_pump(&f->c);
    assert_false(grpc_call_is_slow(f->t.held));
    testing_advance(&f->t, SLOW_US - 1);
    assert_false(grpc_call_is_slow(f->t.held));
    testing_advance(&f->t, 1);
    assert_true(grpc_call_is_slow(f->t.held));
    grpc_call_count(f->t.held, 3, 1000);
    grpc_call_explain(f->t.held, bytes_of("why"));
    finish_held(f, status_ok());
    assert_int_equal(f->t.last_record.duration_us, 2000000 + SLOW_US);
    assert_int_equal(f->t.last_record.client_us, 2000000);
    assert_int_equal(f->t.last_record.items, 3);
    assert_int_equal(f->t.last_record.seen, 1000);
    assert_true(bytes_equal(f->t.last_record.explanation, bytes_of("why")));
    assert_int_equal(f->t.last_record.request.size, 9);
}

static void test_a_call_forgets_what_the_one_before_said(void **state)
{
    struct fixture *f = *state;
    ask(f, "/test.Service/Hold", "");
    grpc_call_count(f->t.held, 3, 1000);
    grpc_call_explain(f->t.held, bytes_of("why"));
    finish_held(f, status_ok());
    f->outcome.ended = false;
    ask(f, "/test.Service/Echo", "hello"); /* the same memory */
    assert_int_equal(f->t.last_record.items, 0);
    assert_int_equal(f->t.last_record.seen, 0);
    assert_int_equal(f->t.last_record.explanation.size, 0);
    assert_int_equal(f->t.last_record.client_us, 0);
}

static void test_socket_that_takes_nothing(void **state)
{
    struct fixture *f = *state;
    testing_pump(&f->c);
    f->t.to_flood = 20000000;
    f->t.is_stalled = true;
    ask(f, "/test.Service/Flood", "");
    assert_true(f->t.to_flood > 19000000);
    for (int i = 0; i < 2; i++) {
        testing_advance(&f->t, f->t.options.stall_timeout_us / 2);
        assert_false(grpc_connection_is_finished(f->t.connection));
    }
    f->t.is_stalled = false;
    testing_pump(&f->c);
    assert_ended(&f->outcome, STATUS_OK);
}

/* --- the end of a connection --- */

static void test_drain(void **state)
{
    struct fixture *f = *state;
    ask(f, "/test.Service/Hold", "");
    grpc_connection_drain(f->t.connection);
    testing_pump(&f->c);
    assert_false(grpc_connection_is_finished(f->t.connection));
    struct client_call_options options = testing_options("/test.Service/Echo", &f->other);
    struct buffer message = {0};
    struct client_call *call;
    grpc_message_start(&message);
    assert_status(grpc_client_start(f->c.client, &options, &message, &call), STATUS_UNAVAILABLE);
    finish_held(f, status_ok());
    assert_ended(&f->outcome, STATUS_OK);
    assert_true(grpc_connection_is_finished(f->t.connection));
    assert_true(grpc_client_is_finished(f->c.client));
}

/* A call that crosses the warning on its way is still served. */
static void test_call_that_crosses_drain(void **state)
{
    struct fixture *f = *state;
    testing_pump(&f->c);
    grpc_connection_drain(f->t.connection);
    ask(f, "/test.Service/Echo", "just in time");
    assert_ended(&f->outcome, STATUS_OK);
    assert_true(grpc_connection_is_finished(f->t.connection));
}

static void test_client_destroyed_with_calls(void **state)
{
    struct fixture *f = *state;
    ask(f, "/test.Service/Hold", "");
    testing_client_stop(&f->c);
    assert_ended(&f->outcome, STATUS_UNAVAILABLE);
}

static void test_two_methods_of_one_name(void **state)
{
    (void)state;
    struct grpc_server_options options;
    struct grpc_server *server;
    const struct grpc_method method = {.name = "Same"};
    const struct grpc_service service = {.name = "a", .methods = &method, .method_count = 1};
    const struct grpc_service *const services[] = {&service, &service};
    grpc_server_options_init(&options);
    assert_status(grpc_server_create(&options, services, 2, &server), STATUS_INVALID_ARGUMENT);
    assert_null(server);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_unary),
        TEST(test_bytes_one_by_one),
        TEST(test_empty_message),
        TEST(test_calls_reuse_memory),
        TEST(test_error_with_words_and_details),
        TEST(test_unknown_method),
        TEST(test_metadata),
        TEST(test_bidirectional),
        TEST(test_long_message),
        TEST(test_gzip_both_ways),
        TEST(test_gzip_saves_bytes),
        TEST(test_admission_asked_again),
        TEST(test_message_too_long),
        TEST(test_long_answers_are_refused),
        TEST(test_requests_wait_for_admission),
        TEST(test_deadline),
        TEST(test_deadline_kept_by_the_client),
        TEST(test_deadline_that_has_passed),
        TEST(test_cancel),
        TEST(test_cancel_before_it_was_sent),
        TEST(test_cancelled_bidirectional_call_ends),
        TEST(test_answers_from_another_thread),
        TEST(test_finish_after_the_connection_is_gone),
        TEST(test_failed_buffer_ends_the_call),
        TEST(test_congestion),
        TEST(test_reader_that_pauses),
        TEST(test_time_in_which_answers_are_not_read),
        TEST(test_time_in_which_the_request_comes),
        TEST(test_a_call_forgets_what_the_one_before_said),
        TEST(test_socket_that_takes_nothing),
        TEST(test_drain),
        TEST(test_call_that_crosses_drain),
        TEST(test_client_destroyed_with_calls),
        cmocka_unit_test(test_two_methods_of_one_name),
    };
    return cmocka_run_group_tests_name("wire_grpc", tests, NULL, NULL);
}
