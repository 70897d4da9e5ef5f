/* Calls for data that find no place: the requests of all connections together are bounded, memory
 * is nearly used up, or the connection is one that is kept for operators. What is no data is served
 * all the same. */
#include "wire/grpc_private.h"
#include "wire/testing/grpc_testing.h"

enum {
    MOST = 1000,
    LONG = LIMIT_STREAM_WINDOW_BYTES + 1000,
    SMALL_PART = LIMIT_STREAM_WINDOW_BYTES / 4
};

struct fixture {
    struct testing t;
    struct testing_client c;
    struct request_room room;
    atomic_bool is_short;
    struct outcome outcomes[5]; /* of calls that may end with the client alone */
};

static int set_up_with(void **state, size_t part)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    grpc_server_options_init(&f->t.options);
    request_room_init(&f->room, MOST);
    request_room_set_part(&f->room, part);
    f->t.options.room = &f->room;
    f->t.options.is_short = &f->is_short;
    testing_start(&f->t);
    f->t.service.is_data = true;
    testing_client_start(&f->c, &f->t);
    *state = f;
    return 0;
}

static int set_up(void **state)
{
    return set_up_with(state, LIMIT_STREAM_WINDOW_BYTES);
}

static int set_up_small_parts(void **state)
{
    return set_up_with(state, SMALL_PART);
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    testing_client_stop(&f->c);
    testing_stop(&f->t);
    for (size_t i = 0; i < sizeof f->outcomes / sizeof *f->outcomes; i++)
        outcome_free(&f->outcomes[i]);
    request_room_destroy(&f->room);
    free(f);
    return 0;
}

static size_t held(const struct fixture *f)
{
    const struct request_share *share = &f->t.server->room->held;
    return share->long_bytes + share->short_bytes;
}

static void start(struct fixture *f, const char *method, size_t size, struct outcome *outcome)
{
    static const uint8_t zeroes[MOST];
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
    start(f, "/test.Service/Keep", 800, f->outcomes);
    assert_int_equal(f->t.kept_count, 1);
    assert_int_equal(outcome_of(f, 150), STATUS_OK);
    assert_int_equal(outcome_of(f, 500), STATUS_RESOURCE_EXHAUSTED);
    f->t.service.is_data = false;
    assert_int_equal(outcome_of(f, 500), STATUS_OK);
    f->t.service.is_data = true;
    grpc_call_finish(f->t.kept[0], status_ok());
    testing_pump(&f->c);
    assert_true(f->outcomes[0].ended);
    assert_int_equal(held(f), 0);
    assert_int_equal(outcome_of(f, 500), STATUS_OK);
}

/* What others hold is given back on other threads. */
static void hold_elsewhere(struct fixture *f, size_t size)
{
    const struct request_share share = {.long_bytes = size};
    request_room_take_anyway(f->t.server->room, share);
}

static void give_back_elsewhere(struct fixture *f, size_t size)
{
    const struct request_share share = {.long_bytes = size};
    request_room_give_back(f->t.server->room, share);
    testing_pump(&f->c);
}

static void start_of(struct fixture *f, size_t size, struct outcome *outcome, int64_t timeout_us)
{
    static const uint8_t zeroes[LONG];
    struct client_call_options options = testing_options("/test.Service/Echo", outcome);
    if (timeout_us > 0)
        options.timeout_us = timeout_us;
    testing_call(&f->c, &options, bytes_make(zeroes, size));
    testing_pump(&f->c);
}

static void start_long(struct fixture *f, struct outcome *outcome, int64_t timeout_us)
{
    start_of(f, LONG, outcome, timeout_us);
}

static void test_a_long_message_waits_for_others(void **state)
{
    struct fixture *f = *state;
    hold_elsewhere(f, MOST);
    start_long(f, f->outcomes, 0);
    assert_false(f->outcomes[0].ended);
    assert_int_equal(f->t.server->room->parts, LIMIT_STREAM_WINDOW_BYTES);
    assert_int_equal(held(f), MOST); /* it holds nothing itself */
    give_back_elsewhere(f, MOST);
    assert_true(f->outcomes[0].ended);
    assert_int_equal(f->outcomes[0].code, STATUS_OK);
    assert_int_equal(held(f), 0);
}

/* The first of a connection waits in the room, the others behind it. All have their turn. */
static void test_long_messages_wait_for_each_other(void **state)
{
    enum { CALLS = 5 };
    struct fixture *f = *state;
    f->t.server->room->most = 8 * LONG; /* parts of so many */
    hold_elsewhere(f, 8 * LONG);
    for (int i = 0; i < CALLS; i++)
        start_long(f, &f->outcomes[i], 0);
    assert_int_equal(f->outcomes[CALLS - 1].code, STATUS_RESOURCE_EXHAUSTED); /* not in the parts */
    give_back_elsewhere(f, 8 * LONG);
    for (int i = 0; i < CALLS; i++) {
        assert_true(f->outcomes[i].ended);
        assert_int_equal(f->outcomes[i].code == STATUS_OK, i < 2);
    }
    assert_int_equal(held(f), 0);
    assert_int_equal(f->t.server->room->parts, 0);
}

/* In the same room, since each has sent less. So shorter ones wait, too. */
static void test_with_smaller_parts_more_wait(void **state)
{
    enum { CALLS = 5 };
    struct fixture *f = *state;
    f->t.server->room->most = 8 * LONG;
    hold_elsewhere(f, 8 * LONG);
    for (int i = 0; i < CALLS - 1; i++)
        start_long(f, &f->outcomes[i], 0);
    start_of(f, SMALL_PART + 1, &f->outcomes[CALLS - 1], 0);
    assert_int_equal(f->t.server->room->parts, CALLS * SMALL_PART);
    for (int i = 0; i < CALLS; i++)
        assert_false(f->outcomes[i].ended);
    give_back_elsewhere(f, 8 * LONG);
    for (int i = 0; i < CALLS; i++)
        assert_int_equal(f->outcomes[i].code, STATUS_OK);
    assert_int_equal(held(f), 0);
    assert_int_equal(f->t.server->room->parts, 0);
}

static void test_the_deadline_ends_the_waiting(void **state)
{
    struct fixture *f = *state;
    hold_elsewhere(f, MOST);
    start_long(f, &f->outcomes[0], 1000 * 1000);
    assert_int_equal(f->t.server->room->parts, LIMIT_STREAM_WINDOW_BYTES);
    testing_advance(&f->t, 1000 * 1000);
    testing_pump(&f->c);
    assert_true(f->outcomes[0].ended);
    assert_int_equal(f->outcomes[0].code, STATUS_DEADLINE_EXCEEDED);
    assert_int_equal(f->t.server->room->parts, 0);
    assert_true(list_is_empty(&f->t.server->room->waiting));
    start_long(f, &f->outcomes[1], 0);
    give_back_elsewhere(f, MOST);
    assert_int_equal(f->outcomes[1].code, STATUS_OK);
}

/* Also of a client that gave no deadline. */
static void test_no_call_waits_for_ever(void **state)
{
    struct fixture *f = *state;
    hold_elsewhere(f, MOST);
    start_long(f, f->outcomes, 0);
    int sweeps = 0;
    for (; sweeps < 30 && !f->outcomes[0].ended; sweeps++) {
        testing_advance(&f->t, f->t.options.stall_timeout_us / 20);
        testing_pump(&f->c);
    }
    assert_in_range(sweeps, 20, 22);
    assert_int_equal(f->outcomes[0].code, STATUS_RESOURCE_EXHAUSTED);
    assert_true(list_is_empty(&f->t.server->room->waiting));
    give_back_elsewhere(f, MOST);
}

/* Granted or not: its place is for others. */
static void test_a_granted_call_loses_its_connection(void **state)
{
    struct fixture *f = *state;
    hold_elsewhere(f, MOST);
    start_long(f, f->outcomes, 0);
    const struct request_share share = {.long_bytes = MOST};
    request_room_give_back(f->t.server->room, share); /* its loop has not heard of it */
    assert_int_equal(held(f), LONG);
    grpc_connection_destroy(f->t.connection);
    f->t.connection = NULL;
    testing_turn(&f->t);
    assert_int_equal(held(f), 0);
    assert_int_equal(f->t.server->room->parts, 0);
}

static void test_a_waiting_call_loses_its_connection(void **state)
{
    struct fixture *f = *state;
    hold_elsewhere(f, MOST);
    start_long(f, f->outcomes, 0);
    grpc_connection_destroy(f->t.connection);
    f->t.connection = NULL;
    testing_turn(&f->t);
    assert_true(list_is_empty(&f->t.server->room->waiting));
    assert_int_equal(f->t.server->room->parts, 0);
    const struct request_share share = {.long_bytes = MOST};
    request_room_give_back(f->t.server->room, share);
    assert_int_equal(held(f), 0);
}

/* One that can never be is not waited for. */
static void test_a_message_beyond_its_own_limit(void **state)
{
    struct fixture *f = *state;
    hold_elsewhere(f, MOST);
    f->t.server->options.max_message_size = LONG - 1;
    start_long(f, f->outcomes, 0);
    assert_true(f->outcomes[0].ended);
    assert_int_equal(f->outcomes[0].code, STATUS_RESOURCE_EXHAUSTED);
    give_back_elsewhere(f, MOST);
}

/* Whose connection has gone gives its place back, too. */
static void test_a_call_without_connection_gives_its_place_back(void **state)
{
    struct fixture *f = *state;
    start(f, "/test.Service/Keep", 800, f->outcomes);
    grpc_connection_destroy(f->t.connection);
    f->t.connection = NULL;
    assert_true(held(f) >= 800);
    grpc_call_finish(f->t.kept[0], status_ok());
    testing_turn(&f->t);
    assert_int_equal(held(f), 0);
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
        TEST(test_a_long_message_waits_for_others),
        TEST(test_long_messages_wait_for_each_other),
        cmocka_unit_test_setup_teardown(test_with_smaller_parts_more_wait, set_up_small_parts,
                                        tear_down),
        TEST(test_the_deadline_ends_the_waiting),
        TEST(test_no_call_waits_for_ever),
        TEST(test_a_granted_call_loses_its_connection),
        TEST(test_a_waiting_call_loses_its_connection),
        TEST(test_a_message_beyond_its_own_limit),
        TEST(test_a_call_without_connection_gives_its_place_back),
        TEST(test_short_of_memory),
        TEST(test_no_data_on_a_reserved_connection),
    };
    return cmocka_run_group_tests_name("wire_grpc_bounds", tests, NULL, NULL);
}
