/* Tests of how a call's steps are told. */
#include "wire/call_steps.h"

#include "base/testing/testing.h"

static void assert_told(const struct call_steps *steps, size_t at, enum call_step step,
                        int64_t from_us, int64_t to_us)
{
    assert_true(at < steps->count);
    assert_int_equal(steps->told[at].step, step);
    assert_int_equal(steps->told[at].from_us, from_us);
    assert_int_equal(steps->told[at].to_us, to_us);
}

static void test_one_after_the_other(void **state)
{
    (void)state;
    struct call_steps steps = {.now = CALL_WORKS};
    call_steps_begin(&steps, CALL_AWAITS_THREAD, 10);
    call_steps_begin(&steps, CALL_READS, 15);
    call_steps_begin(&steps, CALL_READS, 20); /* still */
    call_steps_begin(&steps, CALL_WORKS, 35);
    call_steps_begin(&steps, CALL_AWAITS_CLIENT, 40);
    call_steps_begin(&steps, CALL_WORKS, 100);
    assert_int_equal(steps.count, 3);
    assert_told(&steps, 0, CALL_AWAITS_THREAD, 10, 15);
    assert_told(&steps, 1, CALL_READS, 15, 35);
    assert_told(&steps, 2, CALL_AWAITS_CLIENT, 40, 100);
    assert_int_equal(steps.untold, 0);
}

static void test_what_took_no_time_is_not_told(void **state)
{
    (void)state;
    struct call_steps steps = {.now = CALL_WORKS};
    call_steps_begin(&steps, CALL_AWAITS_LOCK, 10);
    call_steps_begin(&steps, CALL_AWAITS_COMMIT, 0); /* it had the lock at once */
    call_steps_begin(&steps, CALL_COMMITS, 12);
    call_steps_begin(&steps, CALL_WORKS, 11); /* a moment before */
    assert_int_equal(steps.count, 1);
    assert_told(&steps, 0, CALL_AWAITS_COMMIT, 10, 12);
    assert_int_equal(steps.since_us, 12);
}

static void test_more_than_there_is_room_for(void **state)
{
    enum { TURNS = 2 * CALL_STEPS_TOLD };
    (void)state;
    struct call_steps steps = {.now = CALL_WORKS};
    for (int i = 0; i < TURNS; i++) {
        call_steps_begin(&steps, CALL_AWAITS_THREAD, 10 * i);
        call_steps_begin(&steps, CALL_READS, 10 * i + 3);
    }
    call_steps_begin(&steps, CALL_WORKS, 10 * TURNS);
    assert_int_equal(steps.count, CALL_STEPS_TOLD);
    assert_int_equal(steps.untold, 2 * TURNS - CALL_STEPS_TOLD);
    assert_int_equal(steps.total_us[CALL_AWAITS_THREAD], 3 * TURNS);
    assert_int_equal(steps.total_us[CALL_READS], 7 * TURNS);
    assert_int_equal(steps.total_us[CALL_AWAITS_CLIENT], 0);
}

static void test_names(void **state)
{
    (void)state;
    for (enum call_step step = CALL_RECEIVES; step < CALL_STEPS; step++)
        for (enum call_step other = CALL_RECEIVES; other < step; other++)
            assert_string_not_equal(call_step_name(step), call_step_name(other));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_after_the_other),
        cmocka_unit_test(test_what_took_no_time_is_not_told),
        cmocka_unit_test(test_more_than_there_is_room_for),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests_name("wire_call_steps", tests, NULL, NULL);
}
