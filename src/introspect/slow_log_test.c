/* Tests of what is kept of slow requests, on a clock that the test turns; what a request's plan is,
 * and who sent it, is made up here. */
#include "introspect/slow_log.h"

#include "base/limits.h"
#include "base/testing/testing.h"
#include "introspect/slow_plan.h"

#include <stdio.h>
#include <unistd.h>

enum { THRESHOLD_US = 1000, SECOND_US = 1000000 };

struct grpc_call {
    const char *traceparent; /* NULL: none */
    const char *key;         /* of the plan; NULL: none */
};

static struct {
    struct clock clock; /* first: the clock finds the rest */
    int64_t now_us;
    struct log log;
    FILE *lines;
    struct metrics *metrics;
    struct slow_log *slow;
    struct grpc_call call;
} f;

static int64_t hand_us(struct clock *clock)
{
    (void)clock;
    return f.now_us;
}

/* --- the fakes --- */

bool grpc_call_header(struct grpc_call *call, const char *name, bytes *value)
{
    assert_string_equal(name, "traceparent");
    if (call->traceparent != NULL)
        *value = bytes_of(call->traceparent);
    return call->traceparent != NULL;
}

void slow_plan_make(const struct grpc_call_record *record, struct arena *arena,
                    struct slow_plan *out)
{
    (void)arena;
    out->resource = bytes_of("tables/\n");
    out->app_profile = "profile";
    if (f.call.key == NULL)
        buffer_append_format(&out->words, "%s\nsecond \"line\"\n", record->method->name);
    else
        buffer_append_format(&out->words, "1 key: \"%s\"\n", f.call.key);
}

void access_append_principal(struct access *access, struct grpc_call *call,
                             const struct access_peer *peer, struct buffer *principal)
{
    (void)access;
    (void)call;
    (void)peer;
    buffer_append_bytes(principal, bytes_of("user:somebody"));
}

/* --- */

static int set_up(void **state)
{
    (void)state;
    f.clock = (struct clock){.wall_us = hand_us, .steady_us = hand_us};
    f.now_us = (int64_t)1000 * SECOND_US;
    f.lines = tmpfile();
    assert_non_null(f.lines);
    f.log = (struct log){.fd = fileno(f.lines), .level = LOG_INFO, .clock = &f.clock};
    f.call = (struct grpc_call){.traceparent = NULL};
    assert_ok(metrics_create(&f.metrics));
    const struct slow_log_options options = {
        .threshold_us = THRESHOLD_US, .log = &f.log, .clock = &f.clock, .metrics = f.metrics};
    assert_ok(slow_log_create(&options, &f.slow));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    slow_log_destroy(f.slow);
    metrics_destroy(f.metrics);
    fclose(f.lines);
    return 0;
}

static const struct grpc_service service = {.name = "S"};
static const struct grpc_method method = {.name = "M", .kind = GRPC_UNARY};

static struct grpc_call_record record_of(int64_t duration_us)
{
    return (struct grpc_call_record){.service = &service,
                                     .method = &method,
                                     .code = STATUS_OK,
                                     .duration_us = duration_us,
                                     .request_bytes = 5,
                                     .response_bytes = 6,
                                     .items = 7,
                                     .seen = 8,
                                     .call = &f.call};
}

static void add(int64_t duration_us)
{
    const struct grpc_call_record record = record_of(duration_us);
    slow_log_add(f.slow, &record, NULL);
}

/* As many as the rate allows, and as many more as are left, a second each. */
static void add_many(size_t count, int64_t duration_us)
{
    for (size_t i = 0; i < count; i++) {
        if (i % LIMIT_SLOW_REQUESTS_A_SECOND == 0)
            f.now_us += SECOND_US;
        add(duration_us);
    }
}

static size_t list(const struct slow_request *out[SLOW_REQUESTS_MOST])
{
    size_t count = slow_log_list(f.slow, out);
    for (size_t i = 0; i < count; i++)
        slow_request_release(out[i]); /* the log has them as long as nothing is added */
    assert_int_equal(slow_log_count(f.slow), count);
    return count;
}

static const char *logged(void)
{
    static char text[1 << 16];
    ssize_t size = pread(fileno(f.lines), text, sizeof text - 1, 0);
    assert_true(size >= 0);
    text[size] = '\0';
    return text;
}

static void test_which_are_slow(void **state)
{
    struct grpc_call_record record = record_of(THRESHOLD_US);
    struct grpc_method bidi = {.name = "B", .kind = GRPC_BIDI};
    const struct grpc_service health = {.name = "grpc.health.v1.Health"};
    const struct grpc_method watch = {.name = "Watch", .kind = GRPC_SERVER_STREAMING};
    (void)state;
    assert_true(slow_log_concerns(f.slow, &record));
    record.client_us = 1;
    assert_false(slow_log_concerns(f.slow, &record));
    record.duration_us++;
    assert_true(slow_log_concerns(f.slow, &record));
    record.method = &bidi;
    assert_false(slow_log_concerns(f.slow, &record));
    record.service = &health;
    record.method = &watch;
    assert_false(slow_log_concerns(f.slow, &record));
    const struct grpc_service insight = {.name = "trestle.insight.v1.Insight"};
    const struct grpc_method profile = {.name = "GetCpuProfile", .kind = GRPC_UNARY};
    record.service = &insight; /* the caller said how long */
    record.method = &profile;
    assert_false(slow_log_concerns(f.slow, &record));
    record.method = &method;
    assert_true(slow_log_concerns(f.slow, &record));
    record.method = NULL; /* the path named none */
    assert_false(slow_log_concerns(f.slow, &record));
}

static void test_a_slow_request_is_kept(void **state)
{
    const struct slow_request *kept[SLOW_REQUESTS_MOST];
    struct grpc_call_record record = record_of(2500);
    (void)state;
    record.client_us = 500;
    f.call.traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    slow_log_add(f.slow, &record, (void *)&f); /* access control is on */
    assert_int_equal(list(kept), 1);
    assert_int_equal(kept[0]->started_us, f.now_us - 2500);
    assert_int_equal(kept[0]->duration_us, 2500);
    assert_int_equal(kept[0]->client_us, 500);
    assert_int_equal(kept[0]->items, 7);
    assert_int_equal(kept[0]->seen, 8);
    assert_int_equal(kept[0]->request_bytes, 5);
    assert_int_equal(kept[0]->answer_bytes, 6);
    assert_string_equal(kept[0]->method, "S/M");
    assert_string_equal(kept[0]->resource, "tables/\\x0a");
    assert_string_equal(kept[0]->app_profile, "profile");
    assert_string_equal(kept[0]->principal, "user:somebody");
    assert_string_equal(kept[0]->trace_id, "0af7651916cd43dd8448eb211c80319c");
    assert_string_equal(kept[0]->plan, "M\nsecond \"line\"\n");
    assert_int_equal(metrics_value(f.metrics, METRIC_slow_requests_total), 1);
}

static void test_the_line(void **state)
{
    (void)state;
    add(2500);
    assert_non_null(strstr(logged(), "msg=\"slow request\" method=S/M resource="));
    assert_non_null(strstr(logged(), "duration_us=2500 client_us=0 status=OK rows=7 rows_seen=8"));
    assert_non_null(strstr(logged(), "plan=\"M; second \\\"line\\\"\"\n"));
}

/* The log has no personal data; the list has, for which a permission is needed. */
static void test_personal_data_is_not_in_the_line(void **state)
{
    const struct slow_request *kept[SLOW_REQUESTS_MOST];
    (void)state;
    f.call.key = "t7#jo.smith@example.com#2026";
    add(2500);
    assert_non_null(strstr(logged(), "plan=\"1 key: \\\"t7#<e-mail>#2026\\\"\""));
    assert_null(strstr(logged(), "smith"));
    assert_int_equal(list(kept), 1);
    assert_non_null(strstr(kept[0]->plan, "jo.smith@example.com"));
}

/* Bytes that are no ASCII stand in the plan as \xNN, and some of an address as %NN. */
static void test_personal_data_that_is_escaped_is_not_in_the_line(void **state)
{
    (void)state;
    f.call.key = "t7#bj\xc3\xb6rn.smith%40example.com";
    add(2500);
    assert_non_null(strstr(logged(), "plan=\"1 key: \\\"t7#<e-mail>\\\"\""));
    assert_null(strstr(logged(), "smith"));
}

static void test_so_many_a_second(void **state)
{
    const struct slow_request *kept[SLOW_REQUESTS_MOST];
    enum { MORE = 7 };
    (void)state;
    for (size_t i = 0; i < LIMIT_SLOW_REQUESTS_A_SECOND + MORE; i++)
        add(2000);
    assert_int_equal(list(kept), LIMIT_SLOW_REQUESTS_A_SECOND);
    assert_int_equal(metrics_value(f.metrics, METRIC_slow_requests_total),
                     LIMIT_SLOW_REQUESTS_A_SECOND + MORE);
    f.now_us += SECOND_US;
    add(2000);
    assert_int_equal(list(kept), LIMIT_SLOW_REQUESTS_A_SECOND + 1);
    assert_non_null(strstr(logged(), "untold=7"));
}

static void test_the_latest_and_the_slowest(void **state)
{
    const struct slow_request *kept[SLOW_REQUESTS_MOST];
    (void)state;
    f.now_us += SECOND_US;
    add(9999);
    add_many(100, 3000);
    add_many(1000, 2000);
    assert_int_equal(list(kept), SLOW_REQUESTS_MOST);
    for (size_t i = 0; i < 256; i++)
        assert_int_equal(kept[i]->duration_us, 2000); /* the latest, first */
    for (size_t i = 256; i < SLOW_REQUESTS_MOST - 1; i++)
        assert_int_equal(kept[i]->duration_us, 3000);
    assert_int_equal(kept[SLOW_REQUESTS_MOST - 1]->duration_us, 9999);
}

static void test_slow_ones_of_long_ago_are_forgotten(void **state)
{
    const struct slow_request *kept[SLOW_REQUESTS_MOST];
    (void)state;
    add_many(64, 9999);
    f.now_us += (int64_t)2 * 3600 * SECOND_US;
    add_many(SLOW_REQUESTS_MOST, 2000);
    assert_int_equal(list(kept), SLOW_REQUESTS_MOST);
    for (size_t i = 0; i < SLOW_REQUESTS_MOST; i++)
        assert_int_equal(kept[i]->duration_us, 2000);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_which_are_slow),
        TEST(test_a_slow_request_is_kept),
        TEST(test_the_line),
        TEST(test_personal_data_is_not_in_the_line),
        TEST(test_personal_data_that_is_escaped_is_not_in_the_line),
        TEST(test_so_many_a_second),
        TEST(test_the_latest_and_the_slowest),
        TEST(test_slow_ones_of_long_ago_are_forgotten),
    };
    return cmocka_run_group_tests_name("insight_slow_log", tests, NULL, NULL);
}
