/* Calls for data that find no place: the requests of all connections together are bounded, memory
 * is nearly used up, or the connection is one that is kept for operators. What is no data is served
 * all the same. */
#include "wire/grpc_private.h"
#include "wire/grpc_testing.h"

enum { MOST = 1000 };

struct fixture {
    struct testing t;
    struct testing_client c;
    atomic_bool is_short;
    struct outcome outcome; /* of a call that may end with the client alone */
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    grpc_server_options_init(&f->t.options);
    f->t.options.max_requests = MOST;
    f->t.options.is_short = &f->is_short;
    testing_start(&f->t);
    f->t.service.is_data = true;
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

static void start(struct fixture *f, const char *method, size_t size, struct outcome *outcome)
{
    static const uint8_t zeroes[2 * MOST];
    struct client_call_options options = testing_options(method, outcome);
    testing_call(&f->c, &options, bytes_make(zeroes, size));
    testing_pump(&f->c);
}

static enum status_code outcome_of(struct fixture *f, size_t size)
{
    struct outcome outcome = {0};
    start(f, "/test.Service/Echo", size, &outcome);
    assert_true(outcome.ended);
    outcome_free(&outcome);
    return outcome.code;
}

static void test_all_requests_are_bounded(void **state)
{
    struct fixture *f = *state;
    struct outcome kept = {0};
    start(f, "/test.Service/Keep", 800, &kept);
    assert_int_equal(f->t.kept_count, 1);
    assert_int_equal(outcome_of(f, 150), STATUS_OK);
    assert_int_equal(outcome_of(f, 300), STATUS_RESOURCE_EXHAUSTED);
    f->t.service.is_data = false;
    assert_int_equal(outcome_of(f, 300), STATUS_OK);
    f->t.service.is_data = true;
    grpc_call_finish(f->t.kept[0], status_ok());
    testing_pump(&f->c);
    assert_true(kept.ended);
    assert_int_equal(atomic_load(&f->t.server->buffered), 0);
    assert_int_equal(outcome_of(f, 300), STATUS_OK);
    assert_int_equal(outcome_of(f, 2 * MOST), STATUS_OK); /* alone */
    outcome_free(&kept);
}

/* Whose connection has gone gives its place back, too. */
static void test_a_call_without_connection_gives_its_place_back(void **state)
{
    struct fixture *f = *state;
    start(f, "/test.Service/Keep", 800, &f->outcome);
    grpc_connection_destroy(f->t.connection);
    f->t.connection = NULL;
    assert_true(atomic_load(&f->t.server->buffered) >= 800);
    grpc_call_finish(f->t.kept[0], status_ok());
    testing_turn(&f->t);
    assert_int_equal(atomic_load(&f->t.server->buffered), 0);
}

static void test_short_of_memory(void **state)
{
    struct fixture *f = *state;
    atomic_store(&f->is_short, true);
    assert_int_equal(outcome_of(f, 10), STATUS_RESOURCE_EXHAUSTED);
    f->t.service.is_data = false;
    assert_int_equal(outcome_of(f, 10), STATUS_OK);
    f->t.service.is_data = true;
    atomic_store(&f->is_short, false);
    assert_int_equal(outcome_of(f, 10), STATUS_OK);
}

static void test_no_data_on_a_reserved_connection(void **state)
{
    struct fixture *f = *state;
    grpc_connection_set_reserved(f->t.connection);
    f->t.service.is_data = false;
    assert_int_equal(outcome_of(f, 10), STATUS_OK);
    assert_false(f->t.connection->is_draining);
    f->t.service.is_data = true;
    assert_int_equal(outcome_of(f, 10), STATUS_RESOURCE_EXHAUSTED);
    assert_true(f->t.connection->is_draining);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_all_requests_are_bounded),
        TEST(test_a_call_without_connection_gives_its_place_back),
        TEST(test_short_of_memory),
        TEST(test_no_data_on_a_reserved_connection),
    };
    return cmocka_run_group_tests_name("wire_grpc_bounds", tests, NULL, NULL);
}
