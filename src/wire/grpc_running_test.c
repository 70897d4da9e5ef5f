/* What runs on a connection, as a look shows it, and calls that another thread ends: whatever they
 * have sent by then, their clients never take the answer for a whole one. */
#include "wire/testing/grpc_testing.h"

#include <string.h>

enum { SEEN_MOST = 8, FLOOD = 10 << 20 };

struct fixture {
    struct testing t; /* first: the clock and the service find it */
    struct testing_client c;
    struct outcome outcome;
    struct outcome others[2];
    struct grpc_running seen[SEEN_MOST];
    size_t count;
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
    testing_client_stop(&f->c);
    testing_stop(&f->t);
    outcome_free(&f->outcome);
    outcome_free(&f->others[0]);
    outcome_free(&f->others[1]);
    free(f);
    return 0;
}

static void ask(struct fixture *f, const char *method, const char *request, struct outcome *outcome)
{
    struct client_call_options options = testing_options(method, outcome);
    testing_call(&f->c, &options, bytes_of(request));
    testing_pump(&f->c);
}

static void note(void *context, const struct grpc_running *call)
{
    struct fixture *f = context;
    assert_true(f->count < SEEN_MOST);
    f->seen[f->count++] = *call;
}

/* The number of calls that run. */
static size_t look(struct fixture *f)
{
    f->count = 0;
    grpc_connection_visit(f->t.connection, f, note);
    return f->count;
}

static bool end(struct fixture *f, int32_t stream_id)
{
    return grpc_connection_end_call(f->t.connection, stream_id,
                                    status_make(STATUS_CANCELLED, "by somebody"));
}

static void has_ended(struct outcome *outcome, enum status_code code, const char *words)
{
    assert_true(outcome->ended);
    assert_int_equal(outcome->code, code);
    assert_true(bytes_equal(buffer_bytes(&outcome->words), bytes_of(words)));
}

static void finish_held(struct fixture *f)
{
    grpc_call_finish(f->t.held, status_ok());
    f->t.held = NULL;
    testing_pump(&f->c);
}

/* --- looking --- */

static void nothing_runs(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(look(f), 0);
    ask(f, "/test.Service/Echo", "gone", &f->outcome);
    assert_int_equal(look(f), 0);
    assert_true(grpc_connection_id(f->t.connection) > 0);
}

static void a_call_is_described(void **state)
{
    struct fixture *f = *state;
    f->t.now_us = 5000;
    ask(f, "/test.Service/Hold", "what is asked", &f->outcome);
    grpc_call_step(f->t.held, CALL_AWAITS_LOCK);
    grpc_call_count(f->t.held, 3, 17);
    assert_int_equal(look(f), 1);
    const struct grpc_running *call = &f->seen[0];
    assert_string_equal(call->method->name, "Hold");
    assert_true(bytes_equal(call->request, bytes_of("what is asked")));
    assert_int_equal(call->begun_us, 5000);
    assert_int_equal(call->deadline_us, INT64_MAX);
    assert_int_equal(call->request_bytes, strlen("what is asked"));
    assert_int_equal(call->response_bytes, 0);
    assert_int_equal(call->step, CALL_AWAITS_LOCK);
    assert_int_equal(call->items, 3);
    assert_int_equal(call->seen, 17);
    assert_int_equal(call->connection_id, grpc_connection_id(f->t.connection));
    assert_false(call->is_cancelled);
    grpc_call_is_at(f->t.held, CALL_READS);
    look(f);
    assert_int_equal(f->seen[0].step, CALL_READS);
    finish_held(f);
    assert_int_equal(look(f), 0);
}

/* A call's memory is another's before: what that did is not told of this one. */
static void a_call_begins_with_nothing(void **state)
{
    struct fixture *f = *state;
    ask(f, "/test.Service/Hold", "", &f->outcome);
    grpc_call_step(f->t.held, CALL_COMMITS);
    grpc_call_count(f->t.held, 3, 17);
    finish_held(f);
    ask(f, "/test.Service/Hold", "", &f->others[0]);
    assert_int_equal(look(f), 1);
    assert_int_equal(f->seen[0].step, CALL_WORKS);
    assert_int_equal(f->seen[0].items, 0);
    assert_int_equal(f->seen[0].seen, 0);
    finish_held(f);
}

static void the_latest_comes_first(void **state)
{
    struct fixture *f = *state;
    ask(f, "/test.Service/Keep", "1", &f->outcome);
    ask(f, "/test.Service/Keep", "2", &f->others[0]);
    assert_int_equal(look(f), 2);
    assert_true(bytes_equal(f->seen[0].request, bytes_of("2")));
    assert_true(bytes_equal(f->seen[1].request, bytes_of("1")));
    assert_true(f->seen[0].stream_id > f->seen[1].stream_id);
    for (int i = 0; i < 2; i++)
        grpc_call_finish(f->t.kept[i], status_ok());
}

static void a_call_that_awaits_its_client_is_seen_to(void **state)
{
    struct fixture *f = *state;
    f->t.to_flood = FLOOD;
    f->t.is_unread = true;
    ask(f, "/test.Service/Flood", "", &f->outcome);
    assert_int_equal(look(f), 1);
    assert_int_equal(f->seen[0].step, CALL_AWAITS_CLIENT);
    f->t.is_unread = false;
    testing_pump(&f->c);
    has_ended(&f->outcome, STATUS_OK, "");
}

/* --- ending --- */

static void a_call_is_ended(void **state)
{
    struct fixture *f = *state;
    ask(f, "/test.Service/Hold", "", &f->outcome);
    look(f);
    int32_t id = f->seen[0].stream_id;
    assert_true(end(f, id));
    assert_int_equal(f->t.cancelled, 1);
    look(f);
    assert_true(f->count == 0 || f->seen[0].is_cancelled);
    assert_false(end(f, id)); /* it is answered */
    testing_pump(&f->c);
    has_ended(&f->outcome, STATUS_CANCELLED, "by somebody");
    finish_held(f); /* well, and too late */
    assert_int_equal(f->t.last_record.code, STATUS_CANCELLED);
    assert_false(end(f, id));
}

/* Rows have been sent; then comes what happened, not an end as if they were all. */
static void what_was_sent_is_no_whole_answer(void **state)
{
    struct fixture *f = *state;
    ask(f, "/test.Service/Wait", "", &f->outcome);
    assert_int_equal(f->outcome.messages, 1);
    look(f);
    assert_true(end(f, f->seen[0].stream_id));
    testing_pump(&f->c);
    has_ended(&f->outcome, STATUS_CANCELLED, "by somebody");
    assert_int_equal(look(f), 0);
}

/* Messages wait for the client, one of them half written: it hears the code by a reset. */
static void a_half_message_is_no_whole_answer(void **state)
{
    struct fixture *f = *state;
    f->t.to_flood = FLOOD;
    f->t.is_unread = true;
    ask(f, "/test.Service/Flood", "", &f->outcome);
    look(f);
    assert_true(end(f, f->seen[0].stream_id));
    f->t.is_unread = false;
    testing_pump(&f->c);
    assert_true(f->outcome.ended);
    assert_int_equal(f->outcome.code, STATUS_CANCELLED);
    assert_true(f->outcome.bytes < FLOOD);
    assert_null(f->t.held); /* its handler has stopped */
}

/* The handler has finished on its thread, and the loop does not know yet. */
static void an_end_that_is_late_is_not_heard(void **state)
{
    struct fixture *f = *state;
    struct buffer message = {0};
    ask(f, "/test.Service/Hold", "", &f->outcome);
    look(f);
    grpc_message_start(&message);
    buffer_append_bytes(&message, bytes_of("all of it"));
    grpc_call_send(f->t.held, &message);
    grpc_call_finish(f->t.held, status_ok());
    f->t.held = NULL;
    assert_true(end(f, f->seen[0].stream_id));
    testing_pump(&f->c);
    has_ended(&f->outcome, STATUS_CANCELLED, "by somebody");
}

static void other_calls_go_on(void **state)
{
    struct fixture *f = *state;
    ask(f, "/test.Service/Hold", "", &f->outcome);
    look(f);
    int32_t id = f->seen[0].stream_id;
    ask(f, "/test.Service/Keep", "", &f->others[0]);
    assert_false(end(f, id + 100));
    assert_false(end(f, 0));
    assert_true(end(f, id));
    grpc_call_finish(f->t.kept[0], status_ok());
    finish_held(f);
    has_ended(&f->others[0], STATUS_OK, "");
    ask(f, "/test.Service/Echo", "on", &f->others[1]);
    has_ended(&f->others[1], STATUS_OK, "");
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(nothing_runs),
        TEST(a_call_is_described),
        TEST(a_call_begins_with_nothing),
        TEST(the_latest_comes_first),
        TEST(a_call_that_awaits_its_client_is_seen_to),
        TEST(a_call_is_ended),
        TEST(what_was_sent_is_no_whole_answer),
        TEST(a_half_message_is_no_whole_answer),
        TEST(an_end_that_is_late_is_not_heard),
        TEST(other_calls_go_on),
    };
    return cmocka_run_group_tests_name("wire_grpc_running", tests, NULL, NULL);
}
