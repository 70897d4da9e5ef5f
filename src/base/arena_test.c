/* Tests of the arena: alignment, the limit, reset, and life without memory. */
#include "base/arena.h"

#include "base/testing/failmalloc.h"
#include "base/testing/testing.h"

#include <stdalign.h>

enum { LIMIT = 1 << 20 };

static int set_up(void **state)
{
    *state = arena_create(LIMIT);
    return *state == NULL;
}

static int tear_down(void **state)
{
    arena_destroy(*state);
    return 0;
}

static void memory_is_aligned_and_apart(void **state)
{
    uint8_t *pieces[500];
    for (size_t i = 0; i < 500; i++) {
        pieces[i] = arena_alloc(*state, i + 1);
        assert_non_null(pieces[i]);
        assert_int_equal((uintptr_t)pieces[i] % alignof(max_align_t), 0);
        memset(pieces[i], (int)i, i + 1);
    }
    for (size_t i = 0; i < 500; i++)
        for (size_t j = 0; j <= i; j++)
            assert_int_equal(pieces[i][j], (uint8_t)i);
}

static void the_limit_holds(void **state)
{
    assert_null(arena_alloc(*state, LIMIT + 1));
    assert_null(arena_alloc(*state, SIZE_MAX));
    assert_non_null(arena_alloc(*state, LIMIT));
    assert_null(arena_alloc(*state, 1));
    arena_reset(*state);
    size_t granted = 0;
    while (arena_alloc(*state, 1000) != NULL)
        granted += 1000;
    assert_in_range(granted, LIMIT - LIMIT / 50, LIMIT); /* what rounding takes */
    assert_null(arena_alloc(*state, 1000));
}

static void reset_gives_memory_back(void **state)
{
    size_t before = arena_footprint(*state);
    assert_non_null(arena_alloc(*state, LIMIT / 2));
    assert_true(arena_footprint(*state) > LIMIT / 2);
    arena_reset(*state);
    assert_int_equal(arena_footprint(*state), before);
}

/* Half of what is used is kept, and serves again. */
static void blocks_are_kept_for_what_comes(void **state)
{
    enum { PIECE = 1000, PIECES = 10000, KEPT = 5 << 20 };
    (void)state;
    struct arena *arena = arena_create(2 * PIECE * PIECES);
    assert_non_null(arena);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < PIECES; i++) {
            uint8_t *memory = arena_alloc(arena, PIECE);
            assert_non_null(memory);
            memset(memory, round, PIECE);
        }
        size_t footprint = arena_footprint(arena);
        assert_true(footprint >= PIECE * PIECES && footprint < PIECE * PIECES + (3 << 20));
        assert_null(arena_alloc(arena, 2 * PIECE * PIECES));
        arena_reset_keeping(arena, KEPT);
        assert_true(arena_footprint(arena) > KEPT - (1 << 20));
        assert_true(arena_footprint(arena) < KEPT + (1 << 20));
    }
    arena_reset(arena);
    assert_true(arena_footprint(arena) < 1 << 20);
    assert_non_null(arena_alloc(arena, PIECE * PIECES)); /* larger than any that is kept */
    arena_reset_keeping(arena, KEPT);
    assert_true(arena_footprint(arena) < 1 << 20);
    arena_destroy(arena);
}

static void zalloc_clears(void **state)
{
    for (int round = 0; round < 2; round++) { /* the second round meets used memory */
        uint8_t *memory = arena_zalloc(*state, 1000);
        assert_non_null(memory);
        for (size_t i = 0; i < 1000; i++)
            assert_int_equal(memory[i], 0);
        memset(memory, 0xff, 1000);
        arena_reset(*state);
    }
}

static void copies_are_whole(void **state)
{
    bytes copy = arena_copy(*state, bytes_make("a\0b", 3));
    assert_memory_equal(copy.data, "a\0b", 3);
    assert_int_equal(copy.size, 3);
    copy = arena_copy(*state, bytes_make(NULL, 0));
    assert_non_null(copy.data);
    assert_int_equal(copy.size, 0);
    assert_string_equal(arena_string(*state, bytes_of("text")), "text");
    assert_string_equal(arena_string(*state, bytes_make(NULL, 0)), "");
    copy = arena_copy(*state, bytes_make("x", LIMIT + 1)); /* refused before it is looked at */
    assert_null(copy.data);
    assert_int_equal(copy.size, 0);
}

static void fill(void *context)
{
    (void)context;
    struct arena *arena = arena_create(LIMIT);
    if (arena == NULL)
        return;
    for (int i = 0; i < 100; i++) {
        uint8_t *memory = arena_zalloc(arena, 3000);
        bytes copy = arena_copy(arena, bytes_of("copy"));
        if (memory != NULL)
            assert_int_equal(memory[2999], 0);
        assert_true(copy.size == (copy.data == NULL ? 0 : 4));
    }
    arena_destroy(arena);
}

static void memory_runs_out_anywhere(void **state)
{
    (void)state;
    failmalloc_each(fill, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(memory_is_aligned_and_apart, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_limit_holds, set_up, tear_down),
        cmocka_unit_test_setup_teardown(reset_gives_memory_back, set_up, tear_down),
        cmocka_unit_test(blocks_are_kept_for_what_comes),
        cmocka_unit_test_setup_teardown(zalloc_clears, set_up, tear_down),
        cmocka_unit_test_setup_teardown(copies_are_whole, set_up, tear_down),
        cmocka_unit_test(memory_runs_out_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
