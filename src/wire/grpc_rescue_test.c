/* Tests of grpc_call_set_rescue: who has a call when its handler could not serve it. */
#include "wire/testing/grpc_testing.h"

struct fixture {
    struct testing t;
    struct testing_client c;
    struct outcome outcome;
    bool takes;   /* what `rescue` says */
    int rescues;  /* how often it was asked */
    bool is_here; /* it has the call */
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

static bool rescue(void *context, struct grpc_call *call)
{
    struct fixture *f = context;
    assert_ptr_equal(call, f->t.held);
    f->rescues++;
    f->is_here = f->takes;
    return f->takes;
}

/* A call that its handler has, and that would be rescued. */
static void hold(struct fixture *f, bool takes)
{
    struct client_call_options options = testing_options("/test.Service/Hold", &f->outcome);
    f->takes = takes;
    testing_call(&f->c, &options, bytes_of("please"));
    testing_pump(&f->c);
    assert_non_null(f->t.held);
    grpc_call_set_rescue(f->t.held, f, rescue);
}

/* The handler, or who has rescued it, ends it: from another thread than the loop's. */
static void finish(struct fixture *f, enum status_code code)
{
    status s = code == STATUS_OK ? status_ok() : status_make(code, "sorry");
    grpc_call_finish(f->t.held, s);
    testing_pump(&f->c);
    if (!f->is_here || f->outcome.ended)
        f->t.held = NULL;
}

static void say(struct fixture *f, const char *words)
{
    struct buffer message = {0};
    grpc_message_start(&message);
    buffer_append_bytes(&message, bytes_of(words));
    grpc_call_send(f->t.held, &message);
    testing_pump(&f->c);
}

static void assert_end(struct fixture *f, enum status_code code, int rescues)
{
    assert_true(f->outcome.ended);
    assert_int_equal(f->outcome.code, code);
    assert_int_equal(f->rescues, rescues);
    assert_int_equal(f->t.records, 1);
    assert_int_equal(f->t.last_record.code, code);
    assert_int_equal(grpc_server_call_count(f->t.server), 0);
}

/* --- tests --- */

static void test_another_one_answers(void **state)
{
    struct fixture *f = *state;
    hold(f, true);
    grpc_call_add_header(f->t.held, "x-answer", bytes_of("the handler's"));
    grpc_call_add_trailer(f->t.held, "x-trailer", bytes_of("the handler's"));
    finish(f, STATUS_UNAVAILABLE);
    assert_int_equal(f->rescues, 1);
    assert_false(f->outcome.ended);
    assert_int_equal(f->t.records, 0);
    say(f, "here you are");
    finish(f, STATUS_OK);
    assert_end(f, STATUS_OK, 1);
    assert_int_equal(f->outcome.messages, 1);
    assert_true(bytes_equal(buffer_bytes(&f->outcome.last), bytes_of("here you are")));
    assert_int_equal(f->outcome.header.size + f->outcome.trailer.size, 0);
}

static void test_nobody_is_asked_twice(void **state)
{
    struct fixture *f = *state;
    hold(f, true);
    finish(f, STATUS_UNAVAILABLE);
    finish(f, STATUS_UNAVAILABLE);
    assert_end(f, STATUS_UNAVAILABLE, 1);
}

static void test_who_declines_leaves_it_as_it_is(void **state)
{
    struct fixture *f = *state;
    hold(f, false);
    finish(f, STATUS_UNAVAILABLE);
    assert_end(f, STATUS_UNAVAILABLE, 1);
    assert_true(bytes_equal(buffer_bytes(&f->outcome.words), bytes_of("sorry")));
}

static void test_other_ends_are_the_handlers(void **state)
{
    static const enum status_code codes[] = {STATUS_OK, STATUS_NOT_FOUND, STATUS_RESOURCE_EXHAUSTED,
                                             STATUS_DATA_LOSS};
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        f->outcome.ended = false;
        f->t.records = 0;
        hold(f, true);
        finish(f, codes[i]);
        assert_end(f, codes[i], 0);
    }
}

static void test_what_has_begun_is_not_rescued(void **state)
{
    struct fixture *f = *state;
    hold(f, true);
    say(f, "the beginning");
    finish(f, STATUS_UNAVAILABLE);
    assert_end(f, STATUS_UNAVAILABLE, 0);
}

static void test_who_has_gone_is_not_rescued(void **state)
{
    struct fixture *f = *state;
    struct client_call_options options = testing_options("/test.Service/Hold", &f->outcome);
    f->takes = true;
    struct client_call *call = testing_call(&f->c, &options, bytes_of("please"));
    testing_pump(&f->c);
    grpc_call_set_rescue(f->t.held, f, rescue);
    client_call_cancel(call);
    testing_pump(&f->c);
    finish(f, STATUS_UNAVAILABLE);
    assert_int_equal(f->rescues, 0);
    assert_int_equal(grpc_server_call_count(f->t.server), 0);
}

/* The deadline counts for who has it then, too. */
static void test_the_deadline_stays(void **state)
{
    enum { DEADLINE_US = 1000000 };
    struct fixture *f = *state;
    struct client_call_options options = testing_options("/test.Service/Hold", &f->outcome);
    options.timeout_us = DEADLINE_US;
    f->takes = true;
    testing_call(&f->c, &options, bytes_of("please"));
    testing_pump(&f->c);
    grpc_call_set_rescue(f->t.held, f, rescue);
    finish(f, STATUS_UNAVAILABLE);
    assert_true(f->is_here && !grpc_call_is_cancelled(f->t.held));
    testing_advance(&f->t, DEADLINE_US + 1000);
    testing_pump(&f->c);
    assert_true(grpc_call_is_cancelled(f->t.held));
    finish(f, STATUS_UNAVAILABLE);
    assert_end(f, STATUS_DEADLINE_EXCEEDED, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_another_one_answers),
        TEST(test_nobody_is_asked_twice),
        TEST(test_who_declines_leaves_it_as_it_is),
        TEST(test_other_ends_are_the_handlers),
        TEST(test_what_has_begun_is_not_rescued),
        TEST(test_who_has_gone_is_not_rescued),
        TEST(test_the_deadline_stays),
    };
    return cmocka_run_group_tests_name("grpc_rescue", tests, NULL, NULL);
}
