/* What has come free goes back to the system, and is looked for no more often than it is worth. */
#include "os/allocator.h"

#include "base/testing/testing.h"
#include "base/testing/testing_clock.h"

#include <stdlib.h>
#include <string.h>

enum { MB = 1 << 20, PIECE = 16 << 10, PIECES = 64 * MB / PIECE, SECOND = 1000 * 1000 };

/* The sanitizers have allocators of their own, which keep what they like. */
static bool is_sanitized(void)
{
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
    return true;
#else
    return false;
#endif
}

/* Each piece with a small one behind it that stays: so nothing comes free at the end. */
static void fill(void *pieces[PIECES], void *kept[PIECES])
{
    for (size_t i = 0; i < PIECES; i++) {
        pieces[i] = malloc(PIECE);
        kept[i] = malloc(1);
        assert_non_null(pieces[i]);
        memset(pieces[i], 1, PIECE);
    }
}

static void free_all(void *pieces[PIECES])
{
    for (size_t i = 0; i < PIECES; i++)
        free(pieces[i]);
}

static void test_freed_memory_is_given_back(void **state)
{
    static void *pieces[PIECES], *kept[PIECES];
    struct hands_clock clock = {.clock = HANDS_CLOCK, .steady_us = SECOND};
    struct allocator_upkeep upkeep = {0};
    (void)state;
    allocator_set_up();
    fill(pieces, kept);
    allocator_tend(&upkeep, &clock.clock); /* all is in use */
    assert_int_equal(upkeep.given_back_bytes, 0);
    free_all(pieces);
    if (!is_sanitized()) {
        const struct allocator_use use = allocator_use();
        assert_true(allocator_has_idle(&use));
    }
    clock.steady_us = upkeep.next_us - 1;
    allocator_tend(&upkeep, &clock.clock); /* not yet */
    assert_int_equal(upkeep.given_back_bytes, 0);
    clock.steady_us = upkeep.next_us;
    allocator_tend(&upkeep, &clock.clock);
    if (!is_sanitized())
        assert_in_range(upkeep.given_back_bytes, 40 * MB, 80 * MB);
    free_all(kept);
}

static void test_idle_memory(void **state)
{
    const struct {
        uint64_t resident_mb, used_mb;
        bool is_idle;
    } cases[] = {
        {.resident_mb = 8, .used_mb = 0, .is_idle = false},
        {.resident_mb = 9, .used_mb = 0, .is_idle = true},
        {.resident_mb = 1032, .used_mb = 960, .is_idle = true},
        {.resident_mb = 1028, .used_mb = 960, .is_idle = false},
        {.resident_mb = 0, .used_mb = 960, .is_idle = false}, /* /proc does not tell */
        {.resident_mb = 10, .used_mb = 960, .is_idle = false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct allocator_use use = {.resident_bytes = cases[i].resident_mb * MB,
                                          .used_bytes = cases[i].used_mb * MB};
        assert_int_equal(allocator_has_idle(&use), cases[i].is_idle);
    }
}

static void test_looks_that_gain_little_or_take_long_are_few(void **state)
{
    (void)state;
    assert_int_equal(allocator_pause_us(0, true, 0), 5 * SECOND);
    assert_int_equal(allocator_pause_us(0, false, 0), 5 * SECOND);
    assert_int_equal(allocator_pause_us(5 * SECOND, false, 0), 10 * SECOND);
    assert_int_equal(allocator_pause_us(20 * SECOND, false, 0), 30 * SECOND);
    assert_int_equal(allocator_pause_us(30 * SECOND, true, 0), 5 * SECOND);
    assert_int_equal(allocator_pause_us(5 * SECOND, true, SECOND), 100 * SECOND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_freed_memory_is_given_back),
        cmocka_unit_test(test_idle_memory),
        cmocka_unit_test(test_looks_that_gain_little_or_take_long_are_few),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
