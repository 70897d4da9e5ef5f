/* The calendar: calendar.c. */
#include "sql/time/calendar.h"

#include "base/testing/testing.h"

/* Day after day from a year before the first to a year after the last, as a calendar goes on. */
static void days_follow_one_another(void **state)
{
    (void)state;
    static const int32_t lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    struct civil_date date = {.year = 0, .month = 1, .day = 1};
    int64_t days = days_of_civil(date);
    assert_int_equal(days, -719528);
    for (; date.year <= 10000; days++) {
        bool is_leap = date.year % 4 == 0 && (date.year % 100 != 0 || date.year % 400 == 0);
        int32_t length = lengths[date.month - 1] + (date.month == 2 && is_leap);
        struct civil_date found = civil_of_days(days);
        assert_true(found.year == date.year && found.month == date.month && found.day == date.day);
        assert_int_equal(days_of_civil(date), days);
        if (date.day == 1)
            assert_int_equal(days_in_month(date.year, date.month), length);
        if (++date.day <= length)
            continue;
        date.day = 1;
        date.month = date.month % 12 + 1;
        date.year += date.month == 1;
    }
    assert_int_equal(days, 2932897 + 366);
}

static void months_and_days_may_be_beyond(void **state)
{
    (void)state;
    static const struct {
        struct civil_date beyond;
        struct civil_date within;
    } cases[] = {
        {{2020, 13, 1}, {2021, 1, 1}},  {{2020, 0, 1}, {2019, 12, 1}},
        {{2020, -11, 1}, {2019, 1, 1}}, {{2020, 25, 31}, {2022, 1, 31}},
        {{2020, 2, 30}, {2020, 3, 1}},  {{2020, 1, 0}, {2019, 12, 31}},
        {{2020, 1, 367}, {2021, 1, 1}}, {{0, 1, 1}, {0, 1, 1}},
        {{-1, 12, 31}, {-1, 12, 31}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(days_of_civil(cases[i].beyond), days_of_civil(cases[i].within));
}

static void days_are_checked(void **state)
{
    (void)state;
    static const struct {
        struct civil_date date;
        bool is_there;
    } cases[] = {
        {{1, 1, 1}, true},      {{9999, 12, 31}, true}, {{2000, 2, 29}, true},
        {{2024, 2, 29}, true},  {{1900, 2, 29}, false}, {{2023, 2, 29}, false},
        {{2024, 4, 31}, false}, {{2024, 0, 1}, false},  {{2024, 13, 1}, false},
        {{2024, 1, 0}, false},  {{0, 12, 31}, false},   {{10000, 1, 1}, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(is_civil(cases[i].date), cases[i].is_there);
}

static void rests_are_never_negative(void **state)
{
    (void)state;
    assert_int_equal(floor_div(7, 2), 3);
    assert_int_equal(floor_div(-7, 2), -4);
    assert_int_equal(floor_div(-8, 2), -4);
    assert_int_equal(floor_mod(7, 2), 1);
    assert_int_equal(floor_mod(-7, 2), 1);
    assert_int_equal(floor_mod(-8, 2), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(days_follow_one_another),
        cmocka_unit_test(months_and_days_may_be_beyond),
        cmocka_unit_test(days_are_checked),
        cmocka_unit_test(rests_are_never_negative),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
