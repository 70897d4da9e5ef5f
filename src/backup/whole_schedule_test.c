/* When a scheduled backup is due, tried again, overdue. */
#include "backup/whole_schedule.h"

#include "base/testing/testing.h"

static const int64_t SECOND = 1000000, HOUR = INT64_C(3600) * 1000000;

static struct whole_schedule daily(void)
{
    return (struct whole_schedule){.period_us = 24 * HOUR, .is_known = true};
}

static void the_first_is_due_at_once(void **state)
{
    (void)state;
    struct whole_schedule schedule = daily();
    assert_int_equal(whole_schedule_wait_us(&schedule, 100 * HOUR, HOUR), 0);
    assert_false(whole_schedule_is_overdue(&schedule, 100 * HOUR));
    schedule.is_known = false; /* then the place is asked first */
    schedule.newest_us = 100 * HOUR;
    assert_int_equal(whole_schedule_wait_us(&schedule, 100 * HOUR, HOUR), 0);
}

static void the_next_is_due_a_period_after_the_newest(void **state)
{
    (void)state;
    struct whole_schedule schedule = daily();
    whole_schedule_note(&schedule, STATUS_OK, 100 * HOUR, 7 * HOUR);
    assert_int_equal(whole_schedule_wait_us(&schedule, 100 * HOUR, 7 * HOUR), 24 * HOUR);
    assert_int_equal(whole_schedule_wait_us(&schedule, 124 * HOUR - SECOND, 0), SECOND);
    assert_int_equal(whole_schedule_wait_us(&schedule, 300 * HOUR, 0), 0);
    assert_false(whole_schedule_is_overdue(&schedule, 125 * HOUR - SECOND));
    assert_true(whole_schedule_is_overdue(&schedule, 125 * HOUR));
}

static void a_failed_backup_is_tried_again_after_an_hour(void **state)
{
    (void)state;
    struct whole_schedule schedule = daily();
    whole_schedule_note(&schedule, STATUS_OK, 100 * HOUR, 0);
    whole_schedule_note(&schedule, STATUS_UNAVAILABLE, 0, 7 * HOUR);
    assert_int_equal(schedule.newest_us, 100 * HOUR);
    assert_int_equal(whole_schedule_wait_us(&schedule, 124 * HOUR, 7 * HOUR), HOUR);
    assert_int_equal(whole_schedule_wait_us(&schedule, 0, 8 * HOUR), 0);
    assert_true(whole_schedule_is_overdue(&schedule, 100 * HOUR));
    whole_schedule_note(&schedule, STATUS_CANCELLED, 0, 8 * HOUR); /* a user's wish */
    assert_int_equal(whole_schedule_wait_us(&schedule, 0, 8 * HOUR), HOUR);
    assert_false(whole_schedule_is_overdue(&schedule, 100 * HOUR));
    whole_schedule_note(&schedule, STATUS_OK, 125 * HOUR, 9 * HOUR);
    assert_false(whole_schedule_is_overdue(&schedule, 125 * HOUR));
}

static void a_short_period_has_less_patience(void **state)
{
    (void)state;
    struct whole_schedule schedule = {.period_us = 60 * SECOND, .is_known = true};
    whole_schedule_note(&schedule, STATUS_OK, HOUR, 0);
    assert_true(whole_schedule_is_overdue(&schedule, HOUR + 120 * SECOND));
    whole_schedule_note(&schedule, STATUS_UNAVAILABLE, 0, 0);
    assert_int_equal(whole_schedule_wait_us(&schedule, HOUR, 0), 60 * SECOND);
}

static void a_clock_that_was_set_back_stops_nothing(void **state)
{
    (void)state;
    struct whole_schedule schedule = daily();
    whole_schedule_note(&schedule, STATUS_OK, 1000 * HOUR, 0);
    assert_int_equal(whole_schedule_wait_us(&schedule, 10 * HOUR, 0), 0);
    whole_schedule_note(&schedule, STATUS_OK, 10 * HOUR, 0);
    assert_int_equal(whole_schedule_wait_us(&schedule, 10 * HOUR, 0), 24 * HOUR);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_is_due_at_once),
        cmocka_unit_test(the_next_is_due_a_period_after_the_newest),
        cmocka_unit_test(a_failed_backup_is_tried_again_after_an_hour),
        cmocka_unit_test(a_short_period_has_less_patience),
        cmocka_unit_test(a_clock_that_was_set_back_stops_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
