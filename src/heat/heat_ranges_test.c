/* Tests of finding a key's range. */
#include "heat/heat_ranges.h"

#include "base/testing/testing.h"

#include <stdio.h>

static struct heat_ranges *make(const char *const *borders, size_t count)
{
    bytes keys[16];
    struct heat_ranges *ranges;
    for (size_t i = 0; i < count; i++)
        keys[i] = bytes_of(borders[i]);
    assert_ok(heat_ranges_create(keys, count, NULL, &ranges));
    return ranges;
}

static size_t find(const struct heat_ranges *ranges, const char *key)
{
    return heat_ranges_find(ranges, bytes_of(key));
}

static void one_range_has_every_key(void **state)
{
    (void)state;
    struct heat_ranges *ranges = make(NULL, 0);
    assert_int_equal(ranges->count, 1);
    assert_int_equal(find(ranges, ""), 0);
    assert_int_equal(find(ranges, "\xff\xff"), 0);
    assert_int_equal(heat_range_start(ranges, 0).size, 0);
    assert_int_equal(heat_range_end(ranges, 0).size, 0);
    heat_ranges_destroy(ranges);
}

static void a_border_belongs_to_the_range_behind_it(void **state)
{
    (void)state;
    const char *const borders[] = {"b", "b1", "m"};
    struct heat_ranges *ranges = make(borders, 3);
    assert_int_equal(find(ranges, "a"), 0);
    assert_int_equal(find(ranges, "b"), 1);
    assert_int_equal(heat_ranges_find(ranges, bytes_make("b\0", 2)), 1);
    assert_int_equal(find(ranges, "b1"), 2);
    assert_int_equal(find(ranges, "l"), 2);
    assert_int_equal(find(ranges, "mm"), 3);
    assert_true(bytes_equal(heat_range_start(ranges, 3), bytes_of("m")));
    assert_true(bytes_equal(heat_range_end(ranges, 0), bytes_of("b")));
    heat_ranges_destroy(ranges);
}

/* All of them agree in more bytes than are looked at first. */
static void borders_that_share_their_beginning_are_told_apart(void **state)
{
    (void)state;
    const char *const borders[] = {"tenant/000000001", "tenant/000000001/a", "tenant/000000001/b",
                                   "tenant/000000002", "tenant/1"};
    struct heat_ranges *ranges = make(borders, 5);
    assert_int_equal(ranges->shared.size, strlen("tenant/"));
    assert_int_equal(find(ranges, "tenant"), 0);
    assert_int_equal(find(ranges, "tenant/000000000zzz"), 0);
    assert_int_equal(find(ranges, "tenant/000000001"), 1);
    assert_int_equal(find(ranges, "tenant/000000001/azz"), 2);
    assert_int_equal(find(ranges, "tenant/000000001/b"), 3);
    assert_int_equal(find(ranges, "tenant/000000002"), 4);
    assert_int_equal(find(ranges, "tenant/2"), 5);
    assert_int_equal(find(ranges, "tenanu"), 5);
    heat_ranges_destroy(ranges);
}

/* Against a walk over the borders. */
static void any_key_is_found_where_a_walk_finds_it(void **state)
{
    (void)state;
    enum { BORDERS = 999, KEYS = 20000 };
    static char texts[BORDERS][16];
    static bytes borders[BORDERS];
    struct heat_ranges *ranges;
    unsigned random = 1;
    for (unsigned i = 0; i < BORDERS; i++) {
        int size = snprintf(texts[i], sizeof texts[i], "k%06u%s", i * 7, i % 3 == 0 ? "x" : "");
        borders[i] = bytes_make(texts[i], (size_t)size);
    }
    assert_ok(heat_ranges_create(borders, BORDERS, NULL, &ranges));
    for (unsigned i = 0; i < KEYS; i++) {
        char key[16];
        random = random * 1103515245 + 12345;
        snprintf(key, sizeof key, "k%06u%s", random / 65536 % 7100, i % 2 == 0 ? "x" : "");
        size_t walked = 0;
        while (walked < BORDERS && bytes_compare(borders[walked], bytes_of(key)) <= 0)
            walked++;
        assert_int_equal(find(ranges, key), walked);
    }
    heat_ranges_destroy(ranges);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_range_has_every_key),
        cmocka_unit_test(a_border_belongs_to_the_range_behind_it),
        cmocka_unit_test(borders_that_share_their_beginning_are_told_apart),
        cmocka_unit_test(any_key_is_found_where_a_walk_finds_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
