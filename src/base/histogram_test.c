/* Tests of the histogram: exact where it says so, within its error elsewhere, merged or not. */
#include "base/histogram.h"

#include "base/testing/testing.h"

static void small_values_are_exact(void **state)
{
    (void)state;
    for (uint64_t value = 0; value < 64; value++) {
        struct histogram h = {0};
        histogram_add(&h, value);
        histogram_add(&h, 1000);
        assert_int_equal(histogram_percentile(&h, 50), value);
    }
}

static void every_value_is_within_the_error(void **state)
{
    (void)state;
    for (unsigned bit = 6; bit < 63; bit++)
        for (unsigned step = 0; step < 100; step++) {
            uint64_t value = (1ull << bit) + (1ull << bit) / 100 * step;
            struct histogram h = {0};
            histogram_add(&h, value);
            histogram_add(&h, INT64_MAX);
            uint64_t read = histogram_percentile(&h, 50);
            uint64_t error = read > value ? read - value : value - read;
            assert_true(error <= value / 64);
        }
}

static void percentiles_of_a_ramp(void **state)
{
    (void)state;
    struct histogram h = {0};
    for (uint64_t value = 1; value <= 10000; value++)
        histogram_add(&h, value);
    assert_in_range(histogram_percentile(&h, 50), 4900, 5100);
    assert_in_range(histogram_percentile(&h, 99), 9700, 10000);
    assert_int_equal(histogram_percentile(&h, 100), 10000);
    assert_int_equal(histogram_percentile(&h, 0), 1);
    assert_int_equal(h.count, 10000);
    assert_int_equal(h.sum, 50005000);
}

static void empty_and_extreme(void **state)
{
    (void)state;
    struct histogram h = {0};
    assert_int_equal(histogram_percentile(&h, 99), 0);
    histogram_add(&h, UINT64_MAX);
    assert_int_equal(h.largest, INT64_MAX);
    assert_int_equal(histogram_percentile(&h, 50), INT64_MAX);
}

static void merged_is_as_if_added_to_one(void **state)
{
    (void)state;
    struct histogram one = {0}, two = {0}, both = {0};
    for (uint64_t i = 0; i < 5000; i++) {
        histogram_add(i % 3 == 0 ? &one : &two, i * i);
        histogram_add(&both, i * i);
    }
    histogram_merge(&one, &two);
    assert_memory_equal(&one, &both, sizeof both);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_values_are_exact),
        cmocka_unit_test(every_value_is_within_the_error),
        cmocka_unit_test(percentiles_of_a_ramp),
        cmocka_unit_test(empty_and_extreme),
        cmocka_unit_test(merged_is_as_if_added_to_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
