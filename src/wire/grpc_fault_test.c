/* Calls that are delayed or fail on purpose, and what ends them meanwhile, on a clock that the test
 * turns. */
#include "wire/testing/grpc_testing.h"

#include "base/testing/failmalloc.h"

enum { DELAY_US = 50000 };

struct fixture {
    struct testing t; /* first: the server's context */
    struct testing_client c;
    struct outcome outcome;
    struct grpc_fault fault; /* of the next call */
    int asked;
};

static struct grpc_fault inject(void *context, size_t method_index, bytes request)
{
    struct fixture *f = context;
    assert_true(method_index < 8);
    assert_true(bytes_equal(request, bytes_of("hello")));
    f->asked++;
    return f->fault;
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    grpc_server_options_init(&f->t.options);
    f->t.options.inject = inject;
    testing_start(&f->t);
    testing_client_start(&f->c, &f->t);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    testing_client_stop(&f->c);
    testing_stop(&f->t);
    outcome_free(&f->outcome);
    free(f);
    return 0;
}

static struct client_call *ask(struct fixture *f, const char *method, struct grpc_fault fault)
{
    struct client_call_options options = testing_options(method, &f->outcome);
    f->fault = fault;
    struct client_call *call = testing_call(&f->c, &options, bytes_of("hello"));
    testing_pump(&f->c);
    return call;
}

static void ended(struct fixture *f, enum status_code code)
{
    assert_true(f->outcome.ended);
    assert_int_equal(f->outcome.code, code);
    assert_int_equal(f->t.records, 1);
    assert_int_equal(f->t.last_record.code, code);
    assert_int_equal(grpc_server_call_count(f->t.server), 0);
}

static const struct grpc_fault delayed = {.delay_us = DELAY_US};

static void calls_are_left_alone(void **state)
{
    struct fixture *f = *state;
    ask(f, "/test.Service/Echo", (struct grpc_fault){0});
    ended(f, STATUS_OK);
    assert_int_equal(f->asked, 1);
    assert_int_equal(f->t.handled, 1);
}

static void a_delay_is_as_long_as_it_is(void **state)
{
    struct fixture *f = *state;
    ask(f, "/test.Service/Echo", delayed);
    testing_advance(&f->t, DELAY_US - 1);
    assert_int_equal(f->t.handled, 0);
    testing_advance(&f->t, 1);
    assert_int_equal(f->t.handled, 1);
    testing_pump(&f->c);
    ended(f, STATUS_OK);
    assert_true(bytes_equal(buffer_bytes(&f->outcome.last), bytes_of("hello")));
    assert_int_equal(f->t.last_record.duration_us, DELAY_US);
}

static void an_error_says_that_it_is_injected(void **state)
{
    struct fixture *f = *state;
    ask(f, "/test.Service/Echo",
        (struct grpc_fault){.code = STATUS_UNAVAILABLE, .words = "on purpose"});
    ended(f, STATUS_UNAVAILABLE);
    assert_true(bytes_equal(buffer_bytes(&f->outcome.words), bytes_of("on purpose")));
    assert_int_equal(f->t.handled, 0);
}

static void an_error_after_a_delay(void **state)
{
    struct fixture *f = *state;
    ask(f, "/test.Service/Echo",
        (struct grpc_fault){.delay_us = DELAY_US, .code = STATUS_ABORTED, .words = "w"});
    assert_false(f->outcome.ended);
    testing_advance(&f->t, DELAY_US);
    testing_pump(&f->c);
    ended(f, STATUS_ABORTED);
    assert_int_equal(f->t.handled, 0);
}

static void a_deadline_passes_meanwhile(void **state)
{
    struct fixture *f = *state;
    const struct client_metadata timeout = {"grpc-timeout", bytes_of("20m")};
    struct client_call_options options = testing_options("/test.Service/Echo", &f->outcome);
    options.metadata = &timeout; /* as a header, so that only the server keeps time */
    options.metadata_count = 1;
    f->fault = delayed;
    testing_call(&f->c, &options, bytes_of("hello"));
    testing_pump(&f->c);
    testing_advance(&f->t, 20000);
    testing_advance(&f->t, DELAY_US); /* before the answer is read */
    testing_pump(&f->c);
    ended(f, STATUS_DEADLINE_EXCEEDED);
    assert_int_equal(f->t.handled, 0);
}

static void a_client_gives_up_meanwhile(void **state)
{
    struct fixture *f = *state;
    struct client_call *call = ask(f, "/test.Service/Echo", delayed);
    client_call_cancel(call);
    testing_pump(&f->c);
    ended(f, STATUS_CANCELLED);
    assert_true(grpc_connection_is_idle(f->t.connection));
    testing_advance(&f->t, DELAY_US);
    assert_int_equal(f->t.handled, 0);
}

static void a_connection_goes_meanwhile(void **state)
{
    struct fixture *f = *state;
    ask(f, "/test.Service/Echo", delayed);
    grpc_connection_destroy(f->t.connection);
    f->t.connection = NULL;
    assert_int_equal(grpc_server_call_count(f->t.server), 0);
    assert_int_equal(f->t.records, 1);
    testing_advance(&f->t, DELAY_US);
    assert_int_equal(f->t.handled, 0);
}

/* As at a stop of the server. */
static void a_drain_waits_for_a_delayed_call(void **state)
{
    struct fixture *f = *state;
    ask(f, "/test.Service/Echo", delayed);
    grpc_connection_drain(f->t.connection);
    testing_pump(&f->c);
    assert_false(grpc_connection_is_finished(f->t.connection));
    testing_advance(&f->t, DELAY_US);
    testing_pump(&f->c);
    ended(f, STATUS_OK);
    assert_true(grpc_connection_is_finished(f->t.connection));
}

static const struct grpc_fault cut = {.code = STATUS_UNAVAILABLE, .after = 2, .words = "cut"};

static void a_stream_is_cut(void **state)
{
    struct fixture *f = *state;
    f->t.to_flood = 5 * 20000;
    ask(f, "/test.Service/Flood", cut);
    ended(f, STATUS_UNAVAILABLE);
    assert_int_equal(f->outcome.messages, 2);
    assert_int_equal(f->outcome.bytes, 2 * 20000);
    assert_true(f->t.to_flood > 0); /* the handler has stopped */
}

/* One that only waits is told when the stream has ended. */
static void a_handler_that_waits_is_told(void **state)
{
    struct fixture *f = *state;
    ask(f, "/test.Service/Wait",
        (struct grpc_fault){.code = STATUS_UNAVAILABLE, .after = 1, .words = "cut"});
    ended(f, STATUS_UNAVAILABLE);
    assert_int_equal(f->outcome.messages, 1);
    assert_int_equal(f->t.cancelled, 1);
}

/* One message, and then OK: the cut comes before that. */
static void a_unary_call_is_cut(void **state)
{
    struct fixture *f = *state;
    ask(f, "/test.Service/Echo",
        (struct grpc_fault){.code = STATUS_INTERNAL, .after = 1, .words = "cut"});
    ended(f, STATUS_INTERNAL);
    assert_int_equal(f->t.handled, 1);
}

static void a_stream_that_is_shorter_is_not_cut(void **state)
{
    struct fixture *f = *state;
    f->t.to_flood = 20000;
    ask(f, "/test.Service/Flood", cut);
    ended(f, STATUS_OK);
    assert_int_equal(f->outcome.messages, 1);
}

static void many_delays_at_once_take_turns(void **state)
{
    enum { CALLS = 20 };
    struct fixture *f = *state;
    static struct outcome outcomes[CALLS];
    for (int i = 0; i < CALLS; i++) {
        struct client_call_options options = testing_options("/test.Service/Echo", &outcomes[i]);
        f->fault = (struct grpc_fault){.delay_us = (CALLS - i) * 1000};
        testing_call(&f->c, &options, bytes_of("hello"));
        testing_pump(&f->c);
    }
    for (int i = 0; i < CALLS; i++) {
        assert_int_equal(f->t.handled, i);
        testing_advance(&f->t, 1000);
        testing_pump(&f->c);
        assert_true(outcomes[CALLS - 1 - i].ended);
        outcome_free(&outcomes[CALLS - 1 - i]);
    }
}

/* Without memory for the timer the call fails; nothing else does. */
static void memory_runs_out(void **state)
{
    struct fixture *f = *state;
    bool ran_out = true;
    for (size_t count = 0; ran_out; count++) {
        struct client_call_options options = testing_options("/test.Service/Echo", &f->outcome);
        f->fault = delayed;
        testing_call(&f->c, &options, bytes_of("hello"));
        testing_client_flush(&f->c);
        failmalloc_start(count);
        testing_turn(&f->t);
        ran_out = failmalloc_stop();
        testing_advance(&f->t, DELAY_US);
        if (!ran_out) {
            testing_pump(&f->c);
            assert_true(f->outcome.ended);
            assert_int_equal(f->outcome.code, STATUS_OK);
            return;
        }
        assert_true(count < 1000);
        testing_client_stop(
            &f->c); /* what came of it, if anything, is whole: the sanitizers look */
        testing_stop(&f->t);
        outcome_free(&f->outcome);
        *f = (struct fixture){.asked = 0};
        grpc_server_options_init(&f->t.options);
        f->t.options.inject = inject;
        testing_start(&f->t);
        testing_client_start(&f->c, &f->t);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(calls_are_left_alone),
        TEST(a_delay_is_as_long_as_it_is),
        TEST(an_error_says_that_it_is_injected),
        TEST(an_error_after_a_delay),
        TEST(a_deadline_passes_meanwhile),
        TEST(a_client_gives_up_meanwhile),
        TEST(a_connection_goes_meanwhile),
        TEST(a_drain_waits_for_a_delayed_call),
        TEST(a_stream_is_cut),
        TEST(a_handler_that_waits_is_told),
        TEST(a_unary_call_is_cut),
        TEST(a_stream_that_is_shorter_is_not_cut),
        TEST(many_delays_at_once_take_turns),
        TEST(memory_runs_out),
    };
    return cmocka_run_group_tests_name("wire_grpc_fault", tests, NULL, NULL);
}
