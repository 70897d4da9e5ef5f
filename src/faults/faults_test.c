/* Draws: which calls are hit, how often, and that a seed makes them the same again. */
#include "faults/faults.h"

#include "base/testing/failmalloc.h"
#include "base/testing/testing.h"
#include "base/varint.h"

#include <string.h>

enum { READ_ROWS, MUTATE_ROW, METHODS };
enum { DRAWS = 20000 };

static const struct grpc_method data_methods[] = {{.name = "ReadRows"}, {.name = "MutateRow"}};
static const struct grpc_method watch_methods[] = {{.name = "GetSettings"}};
static const struct grpc_service data = {
    .name = "google.bigtable.v2.Bigtable", .methods = data_methods, .method_count = METHODS};
static const struct grpc_service watch = {
    .name = "trestle.insight.v1.Insight", .methods = watch_methods, .method_count = 1};
static const struct grpc_service *const services[] = {&data, &watch};

static status create(const char *text, struct metrics *metrics, struct faults **out)
{
    struct fault_rules rules;
    assert_ok(fault_rules_parse(bytes_of(text), &rules));
    return faults_create(&rules, services, 2, metrics, out);
}

static struct faults *make(const char *text)
{
    struct faults *faults;
    assert_ok(create(text, NULL, &faults));
    return faults;
}

static const bytes nothing = {NULL, 0};

static bool is_nothing(struct grpc_fault fault)
{
    return fault.delay_us == 0 && fault.code == STATUS_OK && fault.after == 0;
}

static void rules_add_up(void **state)
{
    (void)state;
    struct faults *faults = make("ReadRows: delay=50ms; MutateRow: error=ABORTED; *: delay=7us; "
                                 "ReadRows: error=INTERNAL, after=2; *: error=UNKNOWN");
    struct grpc_fault fault = faults_draw(faults, READ_ROWS, nothing);
    assert_int_equal(fault.delay_us, 50007);
    assert_int_equal(fault.code, STATUS_INTERNAL);
    assert_int_equal(fault.after, 2);
    fault = faults_draw(faults, MUTATE_ROW, nothing);
    assert_int_equal(fault.delay_us, 7);
    assert_int_equal(fault.code, STATUS_ABORTED);
    assert_int_equal(fault.after, 0);
    assert_non_null(strstr(fault.words, "--inject"));
    assert_true(is_nothing(faults_draw(faults, METHODS, nothing))); /* Insight's */
    faults_destroy(faults);
}

/* Within five times what chance makes of it (a deviation of 42), every time: the seed is given. */
static void rates_are_kept(void **state)
{
    (void)state;
    struct metrics *metrics;
    struct faults *faults;
    assert_ok(metrics_create(&metrics));
    assert_ok(create("seed=1; ReadRows: error=UNAVAILABLE, rate=0.1", metrics, &faults));
    int hit = 0;
    for (int i = 0; i < DRAWS; i++)
        hit += faults_draw(faults, READ_ROWS, nothing).code == STATUS_UNAVAILABLE;
    assert_in_range(hit, DRAWS / 10 - 210, DRAWS / 10 + 210);
    assert_int_equal(metrics_value(metrics, METRIC_injected_faults_total), hit);
    assert_true(is_nothing(faults_draw(faults, MUTATE_ROW, nothing)));
    faults_destroy(faults);
    metrics_destroy(metrics);
}

static void delays_fill_their_range(void **state)
{
    (void)state;
    struct faults *faults = make("seed=2; *: delay=10us..19us");
    int seen[10] = {0};
    for (int i = 0; i < DRAWS; i++) {
        int64_t delay_us = faults_draw(faults, READ_ROWS, nothing).delay_us;
        assert_in_range(delay_us, 10, 19);
        seen[delay_us - 10]++;
    }
    for (int i = 0; i < 10; i++)
        assert_in_range(seen[i], DRAWS / 10 - 210, DRAWS / 10 + 210);
    faults_destroy(faults);
}

/* The outcomes of the first 64 calls, as bits. */
static uint64_t outcomes(const char *text)
{
    struct faults *faults = make(text);
    uint64_t bits = 0;
    for (int i = 0; i < 64; i++)
        bits = bits << 1 | (faults_draw(faults, READ_ROWS, nothing).code == STATUS_ABORTED);
    faults_destroy(faults);
    return bits;
}

static void a_seed_repeats(void **state)
{
    (void)state;
    uint64_t first = outcomes("seed=3; ReadRows: error=ABORTED, rate=0.5");
    assert_true(first == outcomes("seed=3; ReadRows: error=ABORTED, rate=0.5"));
    assert_true(first != outcomes("seed=4; ReadRows: error=ABORTED, rate=0.5"));
    /* Another rule, behind it, changes nothing of it. */
    assert_true(first ==
                outcomes("seed=3; ReadRows: error=ABORTED, rate=0.5; *: delay=1us, rate=0.5"));
}

/* What was chosen can be read and given again. */
static void a_seed_that_was_chosen_is_told(void **state)
{
    (void)state;
    struct faults *faults = make("ReadRows: error=ABORTED, rate=0.5");
    struct buffer text = {0};
    faults_write(faults, &text);
    buffer_append_byte(&text, '\0');
    uint64_t bits = 0;
    for (int i = 0; i < 64; i++)
        bits = bits << 1 | (faults_draw(faults, READ_ROWS, nothing).code == STATUS_ABORTED);
    assert_true(bits == outcomes((const char *)text.data));
    buffer_free(&text);
    faults_destroy(faults);
}

static struct buffer request_for(const char *table)
{
    enum { TABLE_NAME = 1 << 3 | 2 };
    struct buffer request = {0};
    buffer_append_byte(&request, TABLE_NAME);
    buffer_append_varint(&request, strlen(table));
    buffer_append_bytes(&request, bytes_of(table));
    return request;
}

static bool is_hit(struct faults *faults, const char *table)
{
    struct buffer request = request_for(table);
    bool hit = !is_nothing(faults_draw(faults, READ_ROWS, buffer_bytes(&request)));
    buffer_free(&request);
    return hit;
}

static void a_table_may_be_meant(void **state)
{
    (void)state;
    struct faults *faults = make("ReadRows: delay=1us, table=orders");
    assert_true(is_hit(faults, "projects/p/instances/i/tables/orders"));
    assert_true(is_hit(faults, "projects/p/instances/i/tables/orders/authorizedViews/v"));
    assert_false(is_hit(faults, "projects/p/instances/i/tables/orders2"));
    assert_false(is_hit(faults, "projects/p/instances/orders"));
    assert_false(is_hit(faults, ""));
    assert_true(is_nothing(faults_draw(faults, READ_ROWS, bytes_of("\xff")))); /* no message */
    faults_destroy(faults);
}

static void rules_about_nothing_are_refused(void **state)
{
    (void)state;
    struct faults *faults;
    assert_status(create("ReadRow: delay=1ms", NULL, &faults), STATUS_INVALID_ARGUMENT);
    assert_null(faults);
    assert_status(create("GetSettings: delay=1ms", NULL, &faults), STATUS_INVALID_ARGUMENT);
    assert_status(create("trestle.insight.v1.Insight/*: delay=1ms", NULL, &faults),
                  STATUS_INVALID_ARGUMENT);
    assert_ok(create("google.bigtable.v2.Bigtable/*: delay=1ms", NULL, &faults));
    faults_destroy(faults);
}

static void create_without_memory(void *context)
{
    struct faults *faults;
    (void)context;
    struct fault_rules rules;
    assert_ok(fault_rules_parse(bytes_of("*: delay=1ms"), &rules));
    status s = faults_create(&rules, services, 2, NULL, &faults);
    assert_true(status_is_ok(s) == (faults != NULL));
    status_ignore(s);
    faults_destroy(faults);
}

static void memory_runs_out(void **state)
{
    (void)state;
    failmalloc_each(create_without_memory, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_add_up),
        cmocka_unit_test(rates_are_kept),
        cmocka_unit_test(delays_fill_their_range),
        cmocka_unit_test(a_seed_repeats),
        cmocka_unit_test(a_seed_that_was_chosen_is_told),
        cmocka_unit_test(a_table_may_be_meant),
        cmocka_unit_test(rules_about_nothing_are_refused),
        cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
