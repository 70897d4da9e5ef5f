/* When calls are refused for want of memory, and when no longer; and what gives way before that. */
#include "server/memory_guard.h"

#include "base/testing/testing.h"
#include "base/testing/testing_clock.h"

enum { MB = 1 << 20 };

static const struct log silent = {.fd = -1, .level = LOG_ERROR};

struct fixture {
    struct hands_clock clock;
    struct memory_guard guard;
    uint64_t cache_bytes; /* as the guard said last */
};

static void note_cache(void *context, uint64_t bytes)
{
    *(uint64_t *)context = bytes;
}

static void init(struct fixture *f, uint64_t memory_mb)
{
    *f = (struct fixture){.clock = {.clock = HANDS_CLOCK, .steady_us = 1000000},
                          .cache_bytes = 48 * MB};
    f->guard = (struct memory_guard){.limit_bytes = memory_mb * MB,
                                     .clock = &f->clock.clock,
                                     .log = &silent,
                                     .limit_cache = note_cache,
                                     .context = &f->cache_bytes,
                                     .cache_bytes = 48 * MB};
    assert_ok(metrics_create(&f->guard.metrics));
}

static void judge(struct fixture *f, uint64_t bytes_mb, struct memory_wishes wishes)
{
    memory_guard_judge(&f->guard, bytes_mb * MB, &wishes);
}

struct step {
    uint64_t bytes_mb, wanted_mb;
    bool is_short;
};

static void go(uint64_t memory_mb, const struct step *steps, size_t count)
{
    struct fixture f;
    init(&f, memory_mb);
    for (size_t i = 0; i < count; i++) {
        judge(&f, steps[i].bytes_mb, (struct memory_wishes){.wanted = steps[i].wanted_mb * MB});
        assert_int_equal(atomic_load(&f.guard.is_short), steps[i].is_short);
    }
    metrics_destroy(f.guard.metrics);
}

static void test_short_and_no_longer(void **state)
{
    static const struct step steps[] = {
        {900, 0, false}, {959, 0, false}, {960, 0, true},    {900, 0, true},   {896, 0, true},
        {895, 0, false}, {959, 0, false}, {500, 460, false}, {500, 461, true}, {500, 400, false}};
    (void)state;
    go(1024, steps, sizeof steps / sizeof *steps);
}

/* What is under way takes no less until the next look. */
static void test_short_with_little_memory(void **state)
{
    static const struct step steps[] = {{447, 0, false}, {448, 0, true},  {416, 0, true},
                                        {415, 0, false}, {447, 0, false}, {300, 180, false},
                                        {300, 181, true}};
    (void)state;
    go(512, steps, sizeof steps / sizeof *steps);
}

static void test_the_cache_gives_way(void **state)
{
    struct fixture f;
    (void)state;
    init(&f, 512);
    judge(&f, 415, (struct memory_wishes){0});
    assert_int_equal(f.cache_bytes, 48 * MB);
    judge(&f, 416, (struct memory_wishes){0});
    assert_int_equal(f.cache_bytes, 24 * MB);
    for (int i = 0; i < 9; i++)
        judge(&f, 420, (struct memory_wishes){0});
    assert_int_equal(f.cache_bytes, 6 * MB); /* an eighth */
    judge(&f, 380, (struct memory_wishes){0});
    assert_int_equal(f.cache_bytes, 6 * MB); /* it would be 422 then */
    judge(&f, 370, (struct memory_wishes){.is_busy = true});
    assert_int_equal(f.cache_bytes, 6 * MB);
    judge(&f, 370, (struct memory_wishes){0});
    assert_int_equal(f.cache_bytes, 48 * MB);
    metrics_destroy(f.guard.metrics);
}

/* Long before the memory is used up. */
static void test_the_cache_gives_way_to_those_that_wait(void **state)
{
    struct fixture f;
    (void)state;
    init(&f, 512);
    judge(&f, 200, (struct memory_wishes){.is_wanted = true});
    assert_int_equal(f.cache_bytes, 24 * MB);
    assert_false(atomic_load(&f.guard.is_short));
    judge(&f, 200, (struct memory_wishes){0});
    assert_int_equal(f.cache_bytes, 48 * MB);
    judge(&f, 230, (struct memory_wishes){.wanted = 211 * MB, .growth = 40 * MB});
    assert_int_equal(f.cache_bytes, 24 * MB);
    assert_false(atomic_load(&f.guard.is_short));
    judge(&f, 270, (struct memory_wishes){.wanted = 211 * MB});
    assert_int_equal(f.cache_bytes, 12 * MB);
    assert_true(atomic_load(&f.guard.is_short));
    metrics_destroy(f.guard.metrics);
}

static void test_the_peak_is_kept(void **state)
{
    struct fixture f;
    (void)state;
    init(&f, 1024);
    judge(&f, 960, (struct memory_wishes){0});
    judge(&f, 500, (struct memory_wishes){0});
    assert_int_equal(f.guard.peak_bytes, 960ull * MB);
    metrics_destroy(f.guard.metrics);
}

static void test_without_a_limit(void **state)
{
    struct memory_guard guard = {.limit_bytes = 0};
    const struct memory_wishes wishes = {.wanted = 1, .is_wanted = true};
    (void)state;
    memory_guard_judge(&guard, 1ull << 40, &wishes);
    assert_false(atomic_load(&guard.is_short));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_short_and_no_longer),
        cmocka_unit_test(test_short_with_little_memory),
        cmocka_unit_test(test_the_cache_gives_way),
        cmocka_unit_test(test_the_cache_gives_way_to_those_that_wait),
        cmocka_unit_test(test_the_peak_is_kept),
        cmocka_unit_test(test_without_a_limit),
    };
    return cmocka_run_group_tests_name("cmd_memory_guard", tests, NULL, NULL);
}
