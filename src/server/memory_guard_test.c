/* When calls are refused for want of memory, and when no longer. */
#include "server/memory_guard.h"

#include "base/testing/testing.h"
#include "base/testing/testing_clock.h"

enum { MB = 1 << 20 };

static void test_short_and_no_longer(void **state)
{
    const struct {
        uint64_t bytes_mb, wanted_mb;
        bool is_short;
    } steps[] = {{900, 0, false},  {959, 0, false},  {960, 0, true},  {900, 0, true},
                 {896, 0, true},   {895, 0, false},  {959, 0, false}, {500, 524, false},
                 {500, 525, true}, {500, 500, false}};
    struct hands_clock clock = {.clock = HANDS_CLOCK, .steady_us = 1000000};
    static const struct log silent = {.fd = -1, .level = LOG_ERROR};
    struct memory_guard guard = {
        .limit_bytes = 1024ull * MB, .clock = &clock.clock, .log = &silent};
    (void)state;
    assert_ok(metrics_create(&guard.metrics));
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        memory_guard_judge(&guard, steps[i].bytes_mb * MB, steps[i].wanted_mb * MB);
        assert_int_equal(atomic_load(&guard.is_short), steps[i].is_short);
    }
    assert_int_equal(guard.peak_bytes, 960ull * MB);
    metrics_destroy(guard.metrics);
}

static void test_without_a_limit(void **state)
{
    struct memory_guard guard = {.limit_bytes = 0};
    (void)state;
    memory_guard_judge(&guard, 1ull << 40, 1);
    assert_false(atomic_load(&guard.is_short));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_short_and_no_longer),
        cmocka_unit_test(test_without_a_limit),
    };
    return cmocka_run_group_tests_name("cmd_memory_guard", tests, NULL, NULL);
}
