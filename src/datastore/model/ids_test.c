/* Tests of ids: the numbers that production gives, and the way back. */
#include "datastore/model/ids.h"

#include "base/testing/testing.h"

/* As production's emulators gave them, one after the other. */
static void test_ids_are_productions(void **state)
{
    (void)state;
    assert_true(ds_scattered_id(1) == 5629499534213120);
    assert_true(ds_scattered_id(2) == 5066549580791808);
    assert_true(ds_scattered_id(3) == 6192449487634432);
    assert_true(ds_scattered_id(4) == 4785074604081152);
}

static void test_an_id_has_one_counter(void **state)
{
    (void)state;
    for (uint64_t counter = 1; counter < 100000; counter++)
        assert_true(ds_counter_of_id(ds_scattered_id(counter)) == counter);
    for (uint64_t counter = 1; counter <= DS_LAST_COUNTER; counter = 3 * counter + 1)
        assert_true(ds_counter_of_id(ds_scattered_id(counter)) == counter);
    assert_true(ds_counter_of_id(ds_scattered_id(DS_LAST_COUNTER)) == DS_LAST_COUNTER);
}

static void test_other_ids_have_none(void **state)
{
    (void)state;
    const int64_t first = DS_LAST_SEQUENTIAL_ID + 1;
    const int64_t others[] = {INT64_MIN, -1,        0,
                              1,         5,         DS_LAST_SEQUENTIAL_ID,
                              first,     INT64_MAX, first + (INT64_C(1) << 51)};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        assert_true(ds_counter_of_id(others[i]) == 0);
    assert_true(ds_counter_of_id(first + 1) != 0);
    assert_true(ds_counter_of_id(first + (INT64_C(1) << 51) - 1) == DS_LAST_COUNTER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ids_are_productions),
        cmocka_unit_test(test_an_id_has_one_counter),
        cmocka_unit_test(test_other_ids_have_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
