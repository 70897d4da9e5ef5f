/* Tests of requests by the minute. */
#include "introspect/heat_minutes.h"

#include "base/testing/testing.h"

#define SECOND INT64_C(1000000)
#define MINUTE (60 * SECOND)

enum { MOST_TIMES = 16 };

/* A table of two ranges, whose second is another's. */
struct made {
    struct arena *arena;
    struct heat_sum sums[MOST_TIMES][2];
    const struct heat_sum *pointers[MOST_TIMES][2];
    struct heat_time times[MOST_TIMES];
    size_t count;
};

static const char OWNER, OTHER;

static int setup(void **state)
{
    static struct made made;
    made = (struct made){.arena = arena_create(1 << 20)};
    *state = &made;
    return made.arena == NULL;
}

static int teardown(void **state)
{
    arena_destroy(((struct made *)*state)->arena);
    return 0;
}

static void add(struct made *made, int64_t from_us, int64_t span_us, uint64_t writes)
{
    size_t at = made->count++;
    for (size_t i = 0; i < 2; i++)
        made->pointers[at][i] = &made->sums[at][i];
    made->sums[at][0].numbers[HEAT_WRITES] = writes / 2;
    made->sums[at][0].numbers[HEAT_TIMED_READS] = writes - writes / 2;
    made->sums[at][0].numbers[HEAT_READS] = 12345; /* by scans */
    made->sums[at][1].numbers[HEAT_WRITES] = 99999;
    made->times[at] = (struct heat_time){
        .from_us = from_us, .until_us = from_us + span_us, .sums = made->pointers[at]};
}

static struct heat_minutes minutes_of(const struct made *made)
{
    static const bytes starts[2];
    const void *const owners[] = {&OWNER, &OTHER};
    const struct heat_matrix matrix = {
        .range_count = 2, .starts = starts, .time_count = made->count, .times = made->times};
    struct heat_minutes out;
    assert_ok(heat_minutes_of(&matrix, owners, &OWNER, made->arena, &out));
    return out;
}

static void windows_of_a_minute_are_minutes(void **state)
{
    struct made *made = *state;
    assert_int_equal(minutes_of(made).count, 0);
    add(made, 5 * MINUTE + 7, MINUTE, 300);
    add(made, 6 * MINUTE + 7, MINUTE, 200);
    add(made, 9 * MINUTE, MINUTE / 2, 100); /* not over */
    struct heat_minutes minutes = minutes_of(made);
    assert_int_equal(minutes.count, 3);
    assert_int_equal(minutes.all[0].minute, 5);
    assert_true(minutes.all[0].requests == 300);
    assert_int_equal(minutes.all[1].minute, 6);
    assert_true(minutes.all[1].requests == 200);
    assert_int_equal(minutes.all[2].minute, 9);
    assert_true(minutes.all[2].requests == 100);
}

static void a_load_over_the_end_of_a_minute_is_one(void **state)
{
    struct made *made = *state;
    add(made, 5 * MINUTE, 20 * SECOND, 1);
    for (int i = 0; i < 4; i++)
        add(made, 5 * MINUTE + (40 + 10 * i) * SECOND, 10 * SECOND, 1000);
    add(made, 6 * MINUTE + 40 * SECOND, 10 * SECOND, 10); /* sixty seconds later */
    struct heat_minutes minutes = minutes_of(made);
    assert_int_equal(minutes.count, 2);
    assert_int_equal(minutes.all[0].minute, 5);
    assert_true(minutes.all[0].requests == 4000);
    assert_int_equal(minutes.all[1].minute, 6);
    assert_true(minutes.all[1].requests == 2010);
}

static void longer_times_count_with_their_mean(void **state)
{
    struct made *made = *state;
    add(made, 5 * MINUTE, 10 * MINUTE, 5000);
    struct heat_minutes minutes = minutes_of(made);
    assert_int_equal(minutes.count, 1);
    assert_true(minutes.all[0].requests == 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(windows_of_a_minute_are_minutes, setup, teardown),
        cmocka_unit_test_setup_teardown(a_load_over_the_end_of_a_minute_is_one, setup, teardown),
        cmocka_unit_test_setup_teardown(longer_times_count_with_their_mean, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
