/* How much of a processor upkeep takes, with clocks that the test turns. */
#include "base/testing/testing.h"
#include "views/pace.h"

enum { PIECE_US = 10 * 1000, PROCESSORS = 2 };

/* A thread that works in pieces while others of the process take so much of the processors. Returns
 * its share of one, over the second half of the time. */
static double share_with_others(double others, bool is_pressed)
{
    struct view_pace pace = {0};
    struct view_pace_sample now = {0};
    int64_t half_us = 0, half_steady_us = 0;
    view_pace_begin(&pace, &now);
    for (int i = 0; i < 1000; i++) {
        now.steady_us += PIECE_US;
        now.thread_us += PIECE_US;
        now.process_us += (int64_t)((1 + others) * PIECE_US);
        int64_t rest_us = view_pace_rest_us(&pace, &now, PROCESSORS, is_pressed);
        now.steady_us += rest_us;
        now.process_us += (int64_t)(others * (double)rest_us);
        view_pace_begin(&pace, &now);
        if (i == 500) {
            half_us = now.thread_us;
            half_steady_us = now.steady_us;
        }
    }
    return (double)(now.thread_us - half_us) / (double)(now.steady_us - half_steady_us);
}

static void it_takes_what_is_idle(void **unused)
{
    (void)unused;
    assert_true(share_with_others(0, false) > 0.99);
    assert_true(share_with_others(0.8, false) > 0.99);
}

static void it_takes_a_tenth_where_nothing_is(void **unused)
{
    (void)unused;
    double share = share_with_others(2, false);
    assert_true(share > 0.09 && share < 0.11);
}

static void it_gives_way_to_those_that_want_more_than_they_have(void **unused)
{
    (void)unused;
    double share = share_with_others(1.5, false);
    assert_true(share > 0.09 && share < 0.6);
}

static void it_gives_way_while_writes_wait(void **unused)
{
    (void)unused;
    double share = share_with_others(0, true);
    assert_true(share > 0.09 && share < 0.11);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_takes_what_is_idle),
        cmocka_unit_test(it_takes_a_tenth_where_nothing_is),
        cmocka_unit_test(it_gives_way_to_those_that_want_more_than_they_have),
        cmocka_unit_test(it_gives_way_while_writes_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
