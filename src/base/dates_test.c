/* Tests of dates.h. */
#include "base/dates.h"

#include "base/testing/testing.h"

#define DAY_US INT64_C(86400000000)

static void to_the_second_where_that_tells_them_apart(void **state)
{
    const int64_t us[] = {DAY_US + 999999, DAY_US + 1000000, DAY_US + 999999};
    date_text texts[3];
    (void)state;
    dates_tell(us, 3, texts);
    assert_string_equal(texts[0], "1970-01-02T00:00:00Z");
    assert_string_equal(texts[1], "1970-01-02T00:00:01Z");
    assert_string_equal(texts[2], "1970-01-02T00:00:00Z");
}

static void to_the_microsecond_where_not(void **state)
{
    const int64_t us[] = {DAY_US, DAY_US + 1, 0};
    date_text texts[3];
    (void)state;
    dates_tell(us, 3, texts);
    assert_string_equal(texts[0], "1970-01-02T00:00:00.000000Z");
    assert_string_equal(texts[1], "1970-01-02T00:00:00.000001Z");
    assert_string_equal(texts[2], "1970-01-01T00:00:00.000000Z");
}

static void years_that_have_no_text(void **state)
{
    const int64_t us[] = {INT64_MAX, INT64_MAX - 1};
    date_text texts[2];
    (void)state;
    dates_tell(us, 2, texts);
    assert_string_equal(texts[0], "");
    assert_string_equal(texts[1], "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(to_the_second_where_that_tells_them_apart),
        cmocka_unit_test(to_the_microsecond_where_not),
        cmocka_unit_test(years_that_have_no_text),
    };
    return cmocka_run_group_tests_name("dates", tests, NULL, NULL);
}
