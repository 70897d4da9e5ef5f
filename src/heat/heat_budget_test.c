/* Ranges follow traffic. */
#include "heat/heat_budget.h"

#include "base/testing/testing.h"

enum { ALL = 4096, MOST = 1024, MANY = 1000 };

static struct heat_claim *idle(size_t count)
{
    struct heat_claim *claims = calloc(count, sizeof *claims);
    assert_non_null(claims);
    return claims;
}

static size_t sum_of(const struct heat_claim *claims, size_t count)
{
    size_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        assert_in_range(claims[i].share, 1, MOST);
        sum += claims[i].share;
    }
    return sum;
}

static void three_of_a_thousand_are_as_fine_as_three(void **state)
{
    (void)state;
    struct heat_claim *claims = idle(MANY);
    for (size_t i = 0; i < 3; i++)
        claims[i * 100].traffic = 1000 * (i + 1);
    heat_budget_share(claims, MANY, ALL, MOST);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(claims[i * 100].share, MOST);
    assert_int_equal(claims[1].share, 1);
    free(claims);
}

static void few_busy_tables_have_all_that_they_can_use(void **state)
{
    (void)state;
    struct heat_claim claims[4] = {{.traffic = 1}, {.traffic = 1000000}, {.traffic = 5}, {0}};
    heat_budget_share(claims, 4, ALL, MOST);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(claims[i].share, MOST);
    assert_int_equal(claims[3].share, 1);
}

static void unused_ranges_go_to_other_tables(void **state)
{
    (void)state;
    struct heat_claim claims[12] = {{.traffic = 1000000}, {.traffic = 900000}};
    for (size_t i = 2; i < 12; i++)
        claims[i].traffic = 10;
    heat_budget_share(claims, 12, ALL, MOST);
    assert_int_equal(claims[0].share, MOST);
    assert_int_equal(claims[1].share, MOST);
    for (size_t i = 2; i < 12; i++)
        assert_in_range(claims[i].share, 200, 205);
    assert_true(sum_of(claims, 12) <= ALL);
}

static void shares_are_as_traffic_is(void **state)
{
    (void)state;
    struct heat_claim *claims = idle(MANY);
    for (size_t i = 0; i < MANY; i++)
        claims[i].traffic = i;
    heat_budget_share(claims, MANY, ALL, MOST);
    assert_true(sum_of(claims, MANY) <= ALL);
    assert_true(sum_of(claims, MANY) > ALL - MANY);
    for (size_t i = 1; i < MANY; i++)
        assert_true(claims[i].share >= claims[i - 1].share);
    free(claims);
}

static void each_table_has_a_range_though_there_are_fewer(void **state)
{
    (void)state;
    struct heat_claim *claims = idle(2 * ALL);
    claims[7].traffic = UINT64_MAX;
    heat_budget_share(claims, 2 * ALL, ALL, MOST);
    assert_int_equal(sum_of(claims, 2 * ALL), 2 * ALL);
    free(claims);
}

static void no_tables_and_idle_ones(void **state)
{
    (void)state;
    struct heat_claim claims[2] = {{0}};
    heat_budget_share(claims, 0, ALL, MOST);
    heat_budget_share(claims, 2, ALL, MOST);
    assert_int_equal(claims[0].share, 1);
    assert_int_equal(claims[1].share, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(three_of_a_thousand_are_as_fine_as_three),
        cmocka_unit_test(few_busy_tables_have_all_that_they_can_use),
        cmocka_unit_test(unused_ranges_go_to_other_tables),
        cmocka_unit_test(shares_are_as_traffic_is),
        cmocka_unit_test(each_table_has_a_range_though_there_are_fewer),
        cmocka_unit_test(no_tables_and_idle_ones),
    };
    return cmocka_run_group_tests_name("cluster_heat_budget", tests, NULL, NULL);
}
