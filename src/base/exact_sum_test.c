/* Exact sums: known sums, that order and what was taken back do not matter, and what is written. */
#include "base/exact_sum.h"

#include "base/testing/testing.h"

#include <float.h>
#include <math.h>

static double sum_of(const double *values, size_t count)
{
    struct exact_sum sum = {0};
    for (size_t i = 0; i < count; i++)
        exact_sum_add(&sum, values[i]);
    return (double)exact_sum_value(&sum);
}

static void known_sums(void **state)
{
    (void)state;
    static const struct {
        double values[4];
        double sum;
    } cases[] = {
        {{0.1, 0.2, 0.3, 0}, 0.6}, /* one after the other: 0.6000000000000001 */
        {{1e308, 1e308, -1e308, 0}, 1e308},
        {{1e300, 1, -1e300, 0}, 1},
        {{DBL_TRUE_MIN, 0, 0, 0}, DBL_TRUE_MIN},
        {{DBL_MIN, -DBL_TRUE_MIN, 0, 0}, DBL_MIN - DBL_TRUE_MIN},
        {{1, 0x1p-53, 0, 0}, 1}, /* half way: to the even */
        {{1, 0x1p-53, 0x1p-1074, 0}, 1 + DBL_EPSILON},
        {{-1, -0x1p-53, -0x1p-1074, 0}, -1 - DBL_EPSILON},
        {{DBL_MAX, DBL_MAX, 0, 0}, INFINITY},
        {{-DBL_MAX, -DBL_MAX, 0, 0}, -INFINITY},
        {{-0.0, -0.0, -0.0, -0.0}, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double sum = sum_of(cases[i].values, 4);
        if (sum != cases[i].sum)
            print_error("case %zu: %.17g, not %.17g\n", i, sum, cases[i].sum);
        assert_true(sum == cases[i].sum);
    }
}

static void special_numbers_come_and_go(void **state)
{
    (void)state;
    struct exact_sum sum = {0};
    exact_sum_add(&sum, 2.5);
    exact_sum_add(&sum, INFINITY);
    assert_true(isinf((double)exact_sum_value(&sum)));
    exact_sum_add(&sum, -INFINITY);
    assert_true(isnan((double)exact_sum_value(&sum)));
    exact_sum_take(&sum, INFINITY);
    assert_true((double)exact_sum_value(&sum) == -INFINITY);
    exact_sum_add(&sum, NAN);
    exact_sum_take(&sum, -INFINITY);
    assert_true(isnan((double)exact_sum_value(&sum)) && exact_sum_is_special(&sum));
    exact_sum_take(&sum, NAN);
    assert_false(exact_sum_is_special(&sum));
    assert_true((double)exact_sum_value(&sum) == 2.5);
}

/* Any double that is a number. */
static double random_double(uint64_t *seed)
{
    double value;
    do {
        *seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407U;
        uint64_t bits = *seed ^ *seed >> 31;
        memcpy(&value, &bits, sizeof value);
    } while (!isfinite(value));
    return value;
}

static void check_written(const struct exact_sum *sum)
{
    struct buffer out = {0};
    struct exact_sum again;
    exact_sum_append(&out, sum);
    bytes rest = buffer_bytes(&out);
    assert_true(exact_sum_take_written(&rest, &again));
    assert_int_equal(rest.size, 0);
    assert_memory_equal(&again, sum, sizeof again);
    for (size_t size = 0; size < out.size; size++) {
        rest = bytes_make(out.data, size);
        assert_false(exact_sum_take_written(&rest, &again));
    }
    buffer_free(&out);
}

static void what_is_taken_back_leaves_nothing(void **state)
{
    (void)state;
    enum { COUNT = 1000 };
    static double values[COUNT];
    struct exact_sum sum = {0}, half = {0}, nothing = {0};
    uint64_t seed = 7;
    for (size_t i = 0; i < COUNT; i++) {
        values[i] = random_double(&seed);
        exact_sum_add(i % 2 == 0 ? &sum : &half, values[i]);
        check_written(&sum);
    }
    exact_sum_merge(&sum, &half);
    assert_true((double)exact_sum_value(&sum) == sum_of(values, COUNT));
    for (size_t i = COUNT; i-- > 0;)
        if (i % 2 == 0)
            exact_sum_take(&sum, values[i]);
    exact_sum_unmerge(&sum, &half);
    assert_memory_equal(&sum, &nothing, sizeof sum);
    check_written(&sum);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_sums),
        cmocka_unit_test(special_numbers_come_and_go),
        cmocka_unit_test(what_is_taken_back_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
