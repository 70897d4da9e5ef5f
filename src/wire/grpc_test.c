/* Tests of gRPC's two sides against each other, in memory. */
#include "wire/grpc_testing.h"

#include "base/limits.h"
#include "wire/grpc_text.h"

#include <pthread.h>

struct fixture {
    struct testing t;
    struct testing_client c;
    struct outcome outcome;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
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

static void assert_text(const struct buffer *buffer, const char *expected)
{
    bytes b = buffer_bytes(buffer);
    if (!bytes_equal(b, bytes_of(expected)))
        print_error("\"%.*s\" instead of \"%s\"\n", (int)b.size, (const char *)b.data, expected);
    assert_true(bytes_equal(b, bytes_of(expected)));
}

/* Calls and waits for the end. */
static void ask(struct fixture *f, const char *path, const char *request)
{
    struct client_call_options options = testing_options(path, &f->outcome);
    testing_call(&f->c, &options, bytes_of(request));
    testing_pump(&f->c);
}

static void test_unary(void **state)
{
    struct fixture *f = *state;
    testing_pump(&f->c); /* the settings, so that the answer's writes can be counted */
    f->t.writes = 0;
    ask(f, "/test.Service/Echo", "hello");
    assert_true(f->outcome.ended);
    assert_int_equal(f->outcome.code, STATUS_OK);
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
    assert_int_equal(f->outcome.code, STATUS_OK);
    assert_text(&f->outcome.last, "hello");
}

static void test_empty_message(void **state)
{
    struct fixture *f = *state;
    ask(f, "/test.Service/Echo", "");
    assert_int_equal(f->outcome.code, STATUS_OK);
    assert_int_equal(f->outcome.messages, 1);
    assert_int_equal(f->outcome.last.size, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_unary, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_bytes_one_by_one, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_empty_message, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("wire_grpc", tests, NULL, NULL);
}
