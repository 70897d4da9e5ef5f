/* Tests of clock_watch.h: what is logged of the clocks, and what is not. */
#include "cluster/clock_watch.h"

#include "base/testing/testing_log.h"

#define MINUTE_US INT64_C(60000000)

struct fixture {
    struct clock_watch watch;
    struct clock_look now;
    struct log log;
    char text[1024];
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->log = testing_log();
    f->now = (struct clock_look){.wall_us = 1000 * MINUTE_US, .steady_us = MINUTE_US};
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    close(f->log.fd);
    free(f);
    return 0;
}

/* Time passes by both clocks; then the wall clock is set. Returns what is logged of it. */
static const char *look(struct fixture *f, int64_t passes_us, int64_t set_us)
{
    f->now.wall_us += passes_us + set_us;
    f->now.steady_us += passes_us;
    clock_watch_look(&f->watch, &f->log, &f->now);
    return testing_log_take(&f->log, f->text, sizeof f->text);
}

static void a_clock_that_is_right_is_not_told_of(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 200; i++)
        assert_string_equal(look(f, MINUTE_US, i % 2 == 0 ? 20000 : -20000), "");
}

static void a_clock_that_is_set_is_told_of(void **state)
{
    struct fixture *f = *state;
    look(f, MINUTE_US, 0);
    assert_non_null(strstr(look(f, MINUTE_US, 90 * MINUTE_US), "forward_seconds=5400"));
    assert_string_equal(look(f, MINUTE_US, 0), "");
    assert_non_null(strstr(look(f, MINUTE_US, -2 * MINUTE_US), "forward_seconds=-120"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_clock_that_is_right_is_not_told_of, setup, teardown),
        cmocka_unit_test_setup_teardown(a_clock_that_is_set_is_told_of, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
