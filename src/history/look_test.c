/* Tests of looks: what two of them say of the time in between, out of metrics as they are counted.
 */
#include "history/look.h"

#include "base/testing/testing.h"

#define SECOND_US INT64_C(1000000)
#define TABLE     "projects/p/instances/i/tables/t"

struct fixture {
    struct metrics *metrics;
    struct arena *arena;
    struct history_look *before;
    struct history_look *now;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    assert_ok(metrics_create(&f->metrics));
    f->arena = arena_create(1 << 20);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    history_look_destroy(f->before);
    history_look_destroy(f->now);
    arena_destroy(f->arena);
    metrics_destroy(f->metrics);
    free(f);
    return 0;
}

static void call(struct fixture *f, const char *method, enum status_code code, int64_t us)
{
    metrics_rpc_ended(metrics_rpc(f->metrics, method), METRICS_PROFILE_NONE, code, us);
}

static void tell_table(struct fixture *f, int64_t rows_read, int64_t bytes)
{
    struct metric_series series[] = {{.labels = {TABLE}, .value = rows_read},
                                     {.labels = {"other"}, .value = 77}};
    assert_ok(metrics_replace(f->metrics, METRIC_BY_table_rows_read_total, series, 2));
    series[0].value = bytes;
    assert_ok(metrics_replace(f->metrics, METRIC_BY_table_bytes, series, 2));
}

static void look_before(struct fixture *f)
{
    assert_ok(history_look_take(f->metrics, 5 * SECOND_US, &f->before));
}

static struct history_point look_now(struct fixture *f)
{
    struct history_point point;
    assert_ok(history_look_take(f->metrics, 15 * SECOND_US, &f->now));
    assert_ok(history_look_point(f->now, f->before, 60 * SECOND_US, f->arena, &point));
    return point;
}

static void counters_are_rates_and_gauges_are_as_they_stand(void **state)
{
    struct fixture *f = *state;
    metrics_add(f->metrics, METRIC_received_bytes_total, 1000);
    metrics_set(f->metrics, METRIC_connections, 3);
    metrics_add(f->metrics, METRIC_process_cpu_seconds_total, 100 * SECOND_US);
    look_before(f);
    metrics_add(f->metrics, METRIC_received_bytes_total, 500);
    metrics_set(f->metrics, METRIC_connections, 4);
    metrics_add(f->metrics, METRIC_process_cpu_seconds_total, 5 * SECOND_US);
    struct history_point point = look_now(f);
    assert_true(point.from_us == 60 * SECOND_US && point.seconds == 10);
    assert_true(point.values[HISTORY_received_bytes] == 50);
    assert_true(point.values[HISTORY_connections] == 4);
    assert_true(fabs(point.values[HISTORY_processors] - 0.5) < 1e-9);
    assert_true(isnan(point.values[HISTORY_rows_read])); /* that is a table's */
}

static void calls_are_those_of_clients_that_ended_in_between(void **state)
{
    struct fixture *f = *state;
    call(f, "google.bigtable.v2.Bigtable/ReadRows", STATUS_OK, 900);
    look_before(f);
    for (int i = 0; i < 30; i++)
        call(f, "google.bigtable.v2.Bigtable/ReadRows", STATUS_OK, 900);
    for (int i = 0; i < 10; i++)
        call(f, "google.bigtable.v2.Bigtable/MutateRow", STATUS_UNAVAILABLE, 70000);
    call(f, "trestle.insight.v1.Insight/GetMetrics", STATUS_OK, 900);
    struct history_point point = look_now(f);
    assert_true(point.values[HISTORY_requests] == 4);
    assert_true(point.values[HISTORY_errors] == 1);
    assert_int_equal(point.method_count, 2);
    assert_string_equal(point.methods[0].name, "google.bigtable.v2.Bigtable/ReadRows");
    assert_true(point.methods[0].rate == 3 && point.methods[1].rate == 1);
    assert_true(point.values[HISTORY_p50_seconds] < 0.0012);
    assert_true(point.values[HISTORY_p99_seconds] > 0.03);
    assert_int_equal(point.buckets[0].count + point.buckets[1].count, 40);
}

/* Nothing ended: there is no time that it took. */
static void an_idle_time_has_no_quantiles(void **state)
{
    struct fixture *f = *state;
    call(f, "google.bigtable.v2.Bigtable/ReadRows", STATUS_OK, 900);
    look_before(f);
    struct history_point point = look_now(f);
    assert_true(point.values[HISTORY_requests] == 0);
    assert_true(isnan(point.values[HISTORY_p50_seconds]));
    assert_int_equal(point.bucket_count + point.method_count, 0);
}

static void a_table_is_told_of_when_something_moved(void **state)
{
    struct fixture *f = *state;
    struct history_point point;
    tell_table(f, 100, 4000);
    look_before(f);
    (void)look_now(f);
    const struct looked_table *table = f->now->tables.items;
    assert_int_equal(f->now->tables.count, 1); /* "other" is none */
    assert_string_equal(table->name, TABLE);
    assert_false(history_look_table(f->now, f->before, table, 0, &point));
    assert_true(point.values[HISTORY_bytes] == 4000);
    history_look_destroy(f->now);
    tell_table(f, 150, 4000);
    (void)look_now(f);
    table = f->now->tables.items;
    assert_true(history_look_table(f->now, f->before, table, 0, &point));
    assert_true(point.values[HISTORY_rows_read] == 5);
    assert_true(isnan(point.values[HISTORY_rows_written])); /* nobody told it */
}

/* A table that is deleted and made again counts from nothing. */
static void what_a_table_made_anew_has_counted_is_told(void **state)
{
    struct fixture *f = *state;
    struct history_point point;
    tell_table(f, 100, 4000);
    look_before(f);
    tell_table(f, 20, 10);
    (void)look_now(f);
    assert_true(history_look_table(f->now, f->before, f->now->tables.items, 0, &point));
    assert_true(point.values[HISTORY_rows_read] == 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(counters_are_rates_and_gauges_are_as_they_stand, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(calls_are_those_of_clients_that_ended_in_between, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(an_idle_time_has_no_quantiles, setup, teardown),
        cmocka_unit_test_setup_teardown(a_table_is_told_of_when_something_moved, setup, teardown),
        cmocka_unit_test_setup_teardown(what_a_table_made_anew_has_counted_is_told, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
