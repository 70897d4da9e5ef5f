/* Each place where the gRPC server or client may run out of memory is met once, nghttp2's included:
 * nothing leaks, nothing crashes, and an answer that arrives as OK is whole. And what a connection
 * keeps that has nothing to do, or has gone. */
#include "wire/grpc_private.h"
#include "wire/testing/grpc_testing.h"

#include "base/limits.h"
#include "base/testing/failmalloc.h"

enum { TEXT_SIZE = 5000, FLOOD_SIZE = 600000, KINDS = 5 };

static void create_and_destroy(void *context)
{
    static struct testing t; /* only its address is used */
    struct loop *loop = context;
    const struct grpc_method method = {.name = "Method"};
    const struct grpc_service service = {.name = "a", .methods = &method, .method_count = 1};
    const struct grpc_service *const services[] = {&service};
    struct grpc_server_options options;
    struct grpc_server *server;
    struct grpc_spares *spares;
    struct grpc_connection *connection = NULL;
    struct grpc_client *client;
    grpc_server_options_init(&options);
    status s = grpc_server_create(&options, services, 1, &server);
    if (status_is_ok(s)) {
        s = grpc_spares_create(&spares);
        if (status_is_ok(s))
            s = grpc_connection_create(server, loop, spares, &t, NULL, &connection);
        grpc_connection_destroy(connection);
        grpc_spares_destroy(spares);
    }
    grpc_server_destroy(server);
    if (status_is_ok(s)) {
        s = grpc_client_create(loop, "test", &t, NULL, &client);
        grpc_client_destroy(client);
    }
    status_ignore(s); /* may be anything; what counts is what is left behind */
}

static void test_creation(void **state)
{
    struct loop *loop;
    (void)state;
    assert_ok(loop_create(clock_system(), &loop));
    failmalloc_each(create_and_destroy, loop);
    loop_destroy(loop);
}

/* Buffers of the test itself get their memory beforehand. */
static void reserve(struct buffer *buffer, size_t size)
{
    assert_non_null(buffer_reserve(buffer, size));
}

static void reserve_outcome(struct outcome *outcome)
{
    reserve(&outcome->last, 1 << 16);
    reserve(&outcome->words, 1000);
    reserve(&outcome->details, 1000);
    reserve(&outcome->header, 1000);
    reserve(&outcome->trailer, 1000);
}

/* One call of each kind; starting one may fail. */
static void call_all(struct testing_client *c, struct outcome *outcomes)
{
    static const uint8_t text[TEXT_SIZE];
    static const char *const methods[KINDS] = {"/test.Service/Echo", "/test.Service/Echo",
                                               "/test.Service/Fail", "/test.Service/Chat",
                                               "/test.Service/Flood"};
    for (int i = 0; i < KINDS; i++) {
        struct client_call_options options = testing_options(methods[i], &outcomes[i]);
        struct buffer message = {0};
        struct client_call *call;
        options.gzip = i == 1;
        options.timeout_us = 1000000;
        grpc_message_start(&message);
        buffer_append(&message, text, i < 2 ? TEXT_SIZE : 10);
        status s = grpc_client_start(c->client, &options, &message, &call);
        outcomes[i].ended = !status_is_ok(s);
        outcomes[i].code = s.code;
        status_ignore(s);
    }
}

static void check_outcomes(const struct outcome *outcomes)
{
    static const size_t sizes[KINDS] = {TEXT_SIZE, TEXT_SIZE, 0, 10, FLOOD_SIZE};
    for (int i = 0; i < KINDS; i++) {
        assert_true(outcomes[i].ended);
        if (outcomes[i].code == STATUS_OK)
            assert_int_equal(outcomes[i].bytes, sizes[i]);
    }
}

/* Whether any allocation failed. */
static bool run_with(size_t allocations)
{
    struct testing t = {.to_flood = FLOOD_SIZE};
    struct testing_client c;
    struct outcome outcomes[KINDS] = {{0}};
    testing_start(&t);
    testing_client_start(&c, &t);
    reserve(&t.to_server, 1 << 20);
    reserve(&t.from_server, 1 << 21);
    for (int i = 0; i < KINDS; i++)
        reserve_outcome(&outcomes[i]);
    failmalloc_start(allocations);
    call_all(&c, outcomes);
    testing_pump(&c);
    bool failed = failmalloc_stop();
    testing_client_stop(&c);
    check_outcomes(outcomes);
    if (!failed)
        for (int i = 0; i < KINDS; i++)
            assert_int_equal(outcomes[i].code, i == 2 ? STATUS_ABORTED : STATUS_OK);
    testing_stop(&t);
    for (int i = 0; i < KINDS; i++)
        outcome_free(&outcomes[i]);
    return failed;
}

static void test_calls(void **state)
{
    enum { MOST = 5000 };
    (void)state;
    size_t allocations = 0;
    while (run_with(allocations))
        assert_true(++allocations < MOST);
    assert_true(allocations > 100);
}

/* Makes a call on a connection of its own. */
static void call_once(struct testing *t)
{
    struct testing_client c;
    struct outcome outcome = {0};
    struct client_call_options options = testing_options("/test.Service/Echo", &outcome);
    testing_client_start(&c, t);
    testing_call(&c, &options, bytes_of("hello"));
    testing_pump(&c);
    testing_client_stop(&c);
    assert_int_equal(outcome.code, STATUS_OK);
    outcome_free(&outcome);
}

static void test_idle_connections_have_no_batch(void **state)
{
    struct testing t = {0};
    (void)state;
    testing_start(&t);
    call_once(&t);
    assert_null(t.connection->output.batch);
    assert_int_equal(t.spares->batches.count, 1);
    testing_stop(&t);
}

static void open_and_close(struct testing *t)
{
    struct grpc_connection *connection;
    assert_ok(grpc_connection_create(t->server, t->loop, t->spares, t, NULL, &connection));
    grpc_connection_destroy(connection);
}

static void test_what_many_connections_left_is_freed(void **state)
{
    struct testing t = {0};
    (void)state;
    testing_start(&t);
    call_once(&t);
    for (int i = 1; i < LIMIT_SPARES_CONNECTIONS; i++)
        open_and_close(&t);
    assert_true(t.spares->memory.kept_bytes > 0);
    assert_int_equal(t.spares->call_count, 1);
    open_and_close(&t);
    assert_int_equal(t.spares->memory.kept_bytes, 0);
    assert_int_equal(t.spares->call_count, 0);
    assert_int_equal(t.spares->batches.count, 0);
    testing_stop(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_creation),
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_idle_connections_have_no_batch),
        cmocka_unit_test(test_what_many_connections_left_is_freed),
    };
    return cmocka_run_group_tests_name("wire_grpc_memory", tests, NULL, NULL);
}
