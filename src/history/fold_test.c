/* Tests of folding: what was counted adds up, in whatever grouping. */
#include "history/fold.h"

#include "base/testing/testing.h"

#include <stdio.h>

#define SECOND_US INT64_C(1000000)

static struct arena *arena;

static int setup(void **state)
{
    (void)state;
    arena = arena_create(16 << 20);
    return arena == NULL;
}

static int teardown(void **state)
{
    (void)state;
    arena_destroy(arena);
    return 0;
}

static struct history_point point_of(int64_t second, double requests)
{
    struct history_point point;
    history_point_init(&point, second * SECOND_US, 10);
    point.values[HISTORY_requests] = requests;
    return point;
}

static void rates_are_weighted_by_time_and_sizes_are_the_newest(void **state)
{
    struct history_point points[] = {point_of(0, 5), point_of(10, 20)};
    struct history_point folded;
    (void)state;
    points[1].seconds = 20;
    points[0].values[HISTORY_table_bytes] = 100;
    points[1].values[HISTORY_table_bytes] = 70;
    points[0].values[HISTORY_connections] = 9;
    points[0].values[HISTORY_health] = 2;
    points[1].values[HISTORY_health] = 0;
    assert_ok(history_point_fold(points, 2, 0, arena, &folded));
    assert_true(folded.from_us == 0 && folded.seconds == 30);
    assert_true(folded.values[HISTORY_requests] == (5 * 10 + 20 * 20) / 30.0);
    assert_true(folded.values[HISTORY_table_bytes] == 70);
    assert_true(folded.values[HISTORY_connections] == 9); /* of the time that it is known of */
    assert_true(folded.values[HISTORY_health] == 2);
    assert_true(isnan(folded.values[HISTORY_memory_bytes]));
}

/* A quarter of the calls took up to 4 ms, the rest up to 1. */
static void quantiles_are_those_of_all_calls(void **state)
{
    struct history_point points[] = {point_of(0, 5), point_of(10, 20)};
    struct history_point folded;
    (void)state;
    history_point_add_calls(&points[0], 1000, 10);
    history_point_add_calls(&points[1], 1000, 65);
    history_point_add_calls(&points[1], 4000, 25);
    for (size_t i = 0; i < 2; i++)
        history_point_set_quantiles(&points[i]);
    assert_ok(history_point_fold(points, 2, 0, arena, &folded));
    assert_int_equal(folded.bucket_count, 2);
    assert_int_equal(folded.buckets[0].count, 75);
    assert_int_equal(folded.buckets[1].count, 25);
    assert_true(fabs(folded.values[HISTORY_p50_seconds] - 0.0005 * (1 + 50 / 75.0)) < 1e-9);
    assert_true(folded.values[HISTORY_p99_seconds] > 0.0039);
    assert_true(folded.values[HISTORY_p99_seconds] < 0.004);
}

static void the_busiest_methods_are_kept_and_the_rest_is_others(void **state)
{
    struct history_method methods[HISTORY_METHODS + 4];
    double sum = 0;
    (void)state;
    for (size_t i = 0; i < HISTORY_METHODS + 4; i++) {
        char name[16];
        snprintf(name, sizeof name, "S/M%zu", i);
        methods[i] = (struct history_method){arena_string(arena, bytes_of(name)), (double)i};
        sum += (double)i;
    }
    size_t count = history_methods_keep(methods, HISTORY_METHODS + 4);
    assert_int_equal(count, HISTORY_METHODS);
    assert_string_equal(methods[0].name, "S/M19");
    assert_string_equal(methods[count - 1].name, HISTORY_OTHERS);
    for (size_t i = 0; i < count; i++)
        sum -= methods[i].rate;
    assert_true(sum == 0);
}

static void methods_fold_by_name(void **state)
{
    static const struct history_method first[] = {{"S/A", 4}, {HISTORY_OTHERS, 1}};
    static const struct history_method second[] = {{"S/B", 8}};
    struct history_point points[] = {point_of(0, 5), point_of(10, 20)};
    struct history_point folded;
    (void)state;
    points[0].methods = first;
    points[0].method_count = 2;
    points[1].methods = second;
    points[1].method_count = 1;
    assert_ok(history_point_fold(points, 2, 0, arena, &folded));
    assert_int_equal(folded.method_count, 3);
    assert_string_equal(folded.methods[0].name, "S/B");
    assert_true(folded.methods[0].rate == 4);
    assert_string_equal(folded.methods[1].name, "S/A");
    assert_true(folded.methods[1].rate == 2);
    assert_string_equal(folded.methods[2].name, HISTORY_OTHERS);
}

static void steps_without_points_are_left_out(void **state)
{
    struct history_point items[] = {point_of(50, 1), point_of(60, 2), point_of(200, 3)};
    const struct history_points points = {items, 3};
    struct history_points folded;
    (void)state;
    assert_ok(history_fold(&points, 60 * SECOND_US, NULL, arena, &folded));
    assert_int_equal(folded.count, 3);
    assert_int_equal(folded.items[0].from_us, 0);
    assert_int_equal(folded.items[1].from_us, 60 * SECOND_US);
    assert_int_equal(folded.items[2].from_us, 180 * SECOND_US);
}

/* A table that was asked for during ten of sixty seconds was asked for that much less a second. */
static void a_table_has_the_time_that_the_server_saw(void **state)
{
    struct history_point busy = point_of(10, NAN), server[] = {point_of(0, 1), point_of(60, 1)};
    const struct history_points points = {&busy, 1}, seen = {server, 2};
    struct history_points folded, filled;
    (void)state;
    busy.values[HISTORY_rows_read] = 60;
    busy.values[HISTORY_bytes] = 123;
    server[0].seconds = server[1].seconds = 60;
    assert_ok(history_fold(&points, 60 * SECOND_US, &seen, arena, &folded));
    assert_int_equal(folded.count, 1);
    assert_true(folded.items[0].values[HISTORY_rows_read] == 10);
    assert_ok(history_fill(&folded, &seen, arena, &filled));
    assert_int_equal(filled.count, 2);
    assert_true(filled.items[0].values[HISTORY_rows_read] == 10);
    assert_true(filled.items[1].values[HISTORY_rows_read] == 0);
    assert_true(filled.items[1].values[HISTORY_bytes] == 123);
    assert_int_equal(filled.items[1].from_us, 60 * SECOND_US);
}

/* Minutes of ten seconds, and hours of these, come to what hours of ten seconds come to. */
static void the_grouping_does_not_matter(void **state)
{
    enum { COUNT = 720 };
    struct history_point items[COUNT];
    const struct history_points points = {items, COUNT};
    struct history_points minutes, hours, at_once;
    (void)state;
    for (size_t i = 0; i < COUNT; i++) {
        items[i] = point_of((int64_t)i * 10, (double)(i * i % 97));
        history_point_add_calls(&items[i], 1000, 1 + i % 7);
        history_point_add_calls(&items[i], 8000, i % 3);
        items[i].values[HISTORY_disk_free_bytes] = (double)i;
    }
    assert_ok(history_fold(&points, 60 * SECOND_US, NULL, arena, &minutes));
    assert_ok(history_fold(&minutes, 3600 * SECOND_US, NULL, arena, &hours));
    assert_ok(history_fold(&points, 3600 * SECOND_US, NULL, arena, &at_once));
    assert_int_equal(minutes.count, 120);
    assert_int_equal(hours.count, 2);
    for (size_t i = 0; i < 2; i++) {
        const double *a = hours.items[i].values, *b = at_once.items[i].values;
        assert_true(fabs(a[HISTORY_requests] - b[HISTORY_requests]) < 1e-6);
        assert_true(a[HISTORY_disk_free_bytes] == b[HISTORY_disk_free_bytes]);
        assert_true(a[HISTORY_p99_seconds] == b[HISTORY_p99_seconds]);
        assert_int_equal(hours.items[i].buckets[1].count, at_once.items[i].buckets[1].count);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_are_weighted_by_time_and_sizes_are_the_newest),
        cmocka_unit_test(quantiles_are_those_of_all_calls),
        cmocka_unit_test(the_busiest_methods_are_kept_and_the_rest_is_others),
        cmocka_unit_test(methods_fold_by_name),
        cmocka_unit_test(steps_without_points_are_left_out),
        cmocka_unit_test(a_table_has_the_time_that_the_server_saw),
        cmocka_unit_test(the_grouping_does_not_matter),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
