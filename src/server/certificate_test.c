/* Tests of certificate.h: when a certificate is told of. */
#include "server/certificate.h"

#include "base/testing/testing.h"

#define DAY_US (INT64_C(24) * 3600 * 1000000)

static const char *told(const struct certificate_dates *dates, int64_t now_us)
{
    static struct condition_view view;
    const struct log log = {.fd = -1, .level = LOG_ERROR, .clock = clock_system()};
    struct condition *condition;
    assert_ok(condition_create(&log, clock_system(), NULL, &condition));
    certificate_look(condition, dates, now_us);
    condition_look(condition, &view);
    condition_destroy(condition);
    return view.count == 0 ? "" : view.reasons[0].text;
}

static void a_certificate_of_a_year_is_told_two_weeks_before(void **state)
{
    (void)state;
    const struct certificate_dates dates = {"x.pem", 0, 365 * DAY_US};
    assert_string_equal(told(&dates, 0), "");
    assert_string_equal(told(&dates, 351 * DAY_US), "");
    assert_string_equal(told(&dates, 351 * DAY_US + 1),
                        "the certificate x.pem ends at 1971-01-01T00:00:00Z, in 335 hours");
}

static void a_certificate_of_a_day_is_told_a_fifth_before(void **state)
{
    (void)state;
    const struct certificate_dates dates = {"x.pem", 0, DAY_US};
    assert_string_equal(told(&dates, DAY_US - DAY_US / 5), "");
    assert_string_not_equal(told(&dates, DAY_US - DAY_US / 6), "");
}

static void an_ended_certificate_is_told(void **state)
{
    (void)state;
    const struct certificate_dates dates = {"x.pem", 0, DAY_US};
    assert_string_equal(told(&dates, DAY_US + 1),
                        "the certificate x.pem has ended at 1970-01-02T00:00:00Z: clients do not "
                        "accept it");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_certificate_of_a_year_is_told_two_weeks_before),
        cmocka_unit_test(a_certificate_of_a_day_is_told_a_fifth_before),
        cmocka_unit_test(an_ended_certificate_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
