/* Tests of how fast things go to other clusters, by a clock that is set by hand. */
#include "replica/link_rate.h"

#include "base/testing/testing.h"
#include "base/testing/testing_clock.h"

#define SECOND_US INT64_C(1000000)

struct fixture {
    struct hands_clock clock;
    struct link_rate rate;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->clock = (struct hands_clock){.clock = HANDS_CLOCK, .wall_us = 1000, .steady_us = 7000};
    link_rate_init(&f->rate, 1000000, &f->clock.clock);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    link_rate_destroy(&f->rate);
    free(f);
    return 0;
}

static void what_was_sent_is_paid_for(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(link_rate_wait_us(&f->rate, 2), 0);
    link_rate_charge(&f->rate, 2, 250000);
    assert_int_equal(link_rate_wait_us(&f->rate, 2), SECOND_US / 4);
    f->clock.steady_us += SECOND_US / 8;
    assert_int_equal(link_rate_wait_us(&f->rate, 2), SECOND_US / 8);
    link_rate_charge(&f->rate, 2, 250000); /* of another call to it */
    assert_int_equal(link_rate_wait_us(&f->rate, 2), 3 * SECOND_US / 8);
    f->clock.steady_us += SECOND_US;
    assert_int_equal(link_rate_wait_us(&f->rate, 2), 0);
}

static void nothing_is_saved_up(void **state)
{
    struct fixture *f = *state;
    f->clock.steady_us += 3600 * SECOND_US;
    link_rate_charge(&f->rate, 2, 1000000);
    assert_int_equal(link_rate_wait_us(&f->rate, 2), SECOND_US);
}

static void each_link_has_its_own(void **state)
{
    struct fixture *f = *state;
    link_rate_charge(&f->rate, 2, 1000000);
    assert_int_equal(link_rate_wait_us(&f->rate, 3), 0);
    assert_int_equal(link_rate_wait_us(&f->rate, VERSION_CLUSTERS - 1), 0);
}

static void without_a_bound_nothing_waits(void **state)
{
    struct fixture *f = *state;
    struct link_rate none;
    link_rate_init(&none, 0, &f->clock.clock);
    link_rate_charge(&none, 2, SIZE_MAX);
    assert_int_equal(link_rate_wait_us(&none, 2), 0);
    assert_int_equal(link_rate_piece(&none, 1 << 20), 1 << 20);
    link_rate_destroy(&none);
}

static void pieces_are_of_a_tenth_of_a_second(void **state)
{
    struct fixture *f = *state;
    struct link_rate slow;
    assert_int_equal(link_rate_piece(&f->rate, 1 << 20), 100000);
    assert_int_equal(link_rate_piece(&f->rate, 50000), 50000);
    link_rate_init(&slow, 1, &f->clock.clock);
    assert_int_equal(link_rate_piece(&slow, 1 << 20), 4096);
    link_rate_destroy(&slow);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_was_sent_is_paid_for),
        TEST(nothing_is_saved_up),
        TEST(each_link_has_its_own),
        TEST(without_a_bound_nothing_waits),
        TEST(pieces_are_of_a_tenth_of_a_second),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
