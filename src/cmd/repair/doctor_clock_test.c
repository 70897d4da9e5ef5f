/* Tests of doctor_clock.h: what is told of versions and moments ahead of the clock. */
#include "cmd/repair/doctor_clock.h"

#include "base/testing/testing.h"
#include "tablet/commit.h"

#include <stdlib.h>

#define DAY_US (INT64_C(86400) * 1000000)

static const int64_t now_us = INT64_C(1700000000) * 1000000;

/* A clock that allows for a minute, as doctor_clock_init makes it. */
static struct doctor_clock clock_with_ceiling(int64_t ceiling_us)
{
    return (struct doctor_clock){now_us + 60000000, version_at(ceiling_us)};
}

static void assert_printed(const struct doctor_clock *clock, const struct doctor_ahead *ahead,
                           const char *expected)
{
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    assert_non_null(to);
    doctor_clock_print(clock, ahead, "t", to);
    doctor_clock_print_ceiling(clock, to);
    assert_int_equal(fclose(to), 0);
    assert_string_equal(text, expected);
    free(text);
}

static void note(const struct doctor_clock *clock, struct doctor_ahead *ahead, int64_t version_us,
                 int64_t moment_us)
{
    const struct entry entry = {.kind = ENTRY_CELL, .version = version_at(version_us)};
    doctor_clock_note(clock, &entry, ahead);
    doctor_clock_note_moment(clock, moment_us, ahead);
}

static void right_times_are_not_told(void **state)
{
    (void)state;
    const struct doctor_clock clock = clock_with_ceiling(now_us + 1000000);
    struct doctor_ahead ahead = {0};
    note(&clock, &ahead, now_us - DAY_US, now_us - DAY_US);
    note(&clock, &ahead, now_us + 999999, now_us + 1000000);
    assert_printed(&clock, &ahead, "");
    assert_int_equal(ahead.entries_above + ahead.moments_above, 0);
}

static void times_ahead_are_told_by_kind(void **state)
{
    (void)state;
    const struct doctor_clock clock = clock_with_ceiling(now_us + 41 * DAY_US);
    struct doctor_ahead ahead = {0};
    note(&clock, &ahead, now_us, now_us);
    note(&clock, &ahead, now_us + 40 * DAY_US, now_us + DAY_US + DAY_US / 8);
    note(&clock, &ahead, now_us + 3 * DAY_US, now_us);
    assert_printed(&clock, &ahead,
                   "ahead of the clock: table t: 2 versions, by up to 40 days\n"
                   "ahead of the clock: table t: 1 moments of Datastore, by up to 27 hours\n"
                   "ahead of the clock: what a server writes next, by 41 days "
                   "(docs/internals/clocks.md)\n");
    assert_int_equal(ahead.entries_above + ahead.moments_above, 0);
}

/* As former releases left moments, when the clock was set back. */
static void times_above_the_ceiling_are_counted(void **state)
{
    (void)state;
    const struct doctor_clock clock = clock_with_ceiling(now_us);
    struct doctor_ahead ahead = {0};
    note(&clock, &ahead, now_us - 1, now_us + 1);
    note(&clock, &ahead, now_us, now_us);
    assert_int_equal(ahead.entries_above, 1);
    assert_int_equal(ahead.moments_above, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(right_times_are_not_told),
        cmocka_unit_test(times_ahead_are_told_by_kind),
        cmocka_unit_test(times_above_the_ceiling_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
