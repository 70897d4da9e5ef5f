/* Tests of how small a part of a table a range is: by bytes, by rows, within sections. */
#include "cluster/heat/heat_part.h"

#include "base/testing/failmalloc.h"
#include "base/testing/testing.h"

#include <stdio.h>

/* Ranges of even size: ten of "a" with a row each, one of "b", two of "c" with 45 rows each. */
static const char *const BORDERS[] = {"a1", "a2", "a3", "a4", "a5", "a6",
                                      "a7", "a8", "a9", "b0", "c0", "c5"};
static const uint32_t ROWS[] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 10, 45, 45};
enum { BORDER_COUNT = sizeof BORDERS / sizeof *BORDERS };

static struct heat_ranges *make(const uint32_t *rows)
{
    bytes borders[BORDER_COUNT];
    struct heat_ranges *ranges;
    for (size_t i = 0; i < BORDER_COUNT; i++)
        borders[i] = bytes_of(BORDERS[i]);
    assert_ok(
        heat_ranges_create(borders, BORDER_COUNT, &(struct heat_weights){.rows = rows}, &ranges));
    return ranges;
}

static bytes by_letter(bytes key)
{
    return bytes_make(key.data, 1);
}

static unsigned percent(const struct heat_ranges *data, heat_section *section_of, const char *start,
                        const char *end)
{
    double part;
    assert_ok(heat_part_of_sections(data, section_of, bytes_of(start), bytes_of(end), &part));
    return (unsigned)(part * 100 + 0.5);
}

static void without_rows_bytes_count(void **state)
{
    (void)state;
    struct heat_ranges *data = make(NULL);
    assert_int_equal(percent(data, NULL, "", ""), 100);
    assert_int_equal(percent(data, NULL, "c0", ""), 15);
    assert_int_equal(percent(data, NULL, "a1", "a2"), 8);
    assert_int_equal(percent(data, NULL, "a11", "a12"), 4);
    assert_true(heat_part_of_data(data, bytes_of("c0"), bytes_of("")) < 0.16);
    heat_ranges_destroy(data);
}

/* Tablets begin ranges, so that some have less than others. */
static void ranges_weigh_what_they_have(void **state)
{
    (void)state;
    static const uint64_t sizes[BORDER_COUNT + 1] = {100, 10, 10, 10, 10,  10, 10,
                                                     10,  10, 10, 10, 300, 500};
    bytes borders[BORDER_COUNT];
    struct heat_ranges *data, *copy;
    for (size_t i = 0; i < BORDER_COUNT; i++)
        borders[i] = bytes_of(BORDERS[i]);
    const struct heat_weights weights = {.sizes = sizes, .rows = ROWS};
    assert_ok(heat_ranges_create(borders, BORDER_COUNT, &weights, &data));
    assert_ok(heat_ranges_copy(data, &copy));
    assert_int_equal(percent(copy, NULL, "a1", "b0"), 9);
    assert_int_equal(percent(copy, NULL, "c0", "c5"), 41); /* by its rows */
    assert_int_equal(percent(copy, NULL, "", "a1"), 10);
    assert_int_equal((int)(heat_part_of_data(copy, bytes_of("c5"), bytes_of("")) * 100 + 0.5), 50);
    heat_ranges_destroy(copy);
    heat_ranges_destroy(data);
}

static void many_small_rows_are_no_small_part(void **state)
{
    (void)state;
    struct heat_ranges *data = make(ROWS), *copy;
    assert_int_equal(percent(data, NULL, "c0", ""), 82);
    assert_int_equal(percent(data, NULL, "c0", "c5"), 41);
    assert_int_equal(percent(data, NULL, "c1", "c2"), 20);
    assert_int_equal(percent(data, NULL, "a1", "a2"), 8);
    assert_ok(heat_ranges_copy(data, &copy));
    assert_int_equal(percent(copy, NULL, "c0", "c5"), 41);
    heat_ranges_destroy(copy);
    heat_ranges_destroy(data);
}

static void a_section_is_a_whole(void **state)
{
    (void)state;
    struct heat_ranges *data = make(NULL);
    assert_int_equal(percent(data, by_letter, "c0", ""), 100);
    assert_int_equal(percent(data, by_letter, "c0", "c5"), 50);
    assert_int_equal(percent(data, by_letter, "a1", "a2"), 11);
    assert_int_equal(percent(data, by_letter, "a1", "a3"), 22);
    assert_int_equal(percent(data, by_letter, "", "a2"), 11);
    assert_int_equal(percent(data, by_letter, "", ""), 100);
    heat_ranges_destroy(data);
}

/* What ends within a range of the next section has half of that, and it may be all there is. */
static void the_greatest_part_of_a_section_counts(void **state)
{
    (void)state;
    struct heat_ranges *data = make(NULL);
    assert_int_equal(percent(data, by_letter, "a9", "b0"), 11);
    assert_int_equal(percent(data, by_letter, "a9", "b5"), 50);
    assert_int_equal(percent(data, by_letter, "a9", "c0"), 100);
    assert_int_equal(percent(data, by_letter, "b0", "c3"), 100);
    heat_ranges_destroy(data);
}

static void rows_count_within_sections(void **state)
{
    (void)state;
    static const uint32_t rows[] = {1, 11, 1, 1, 1, 1, 1, 1, 1, 1, 10, 45, 45};
    struct heat_ranges *data = make(rows);
    assert_int_equal(percent(data, by_letter, "a1", "a2"), 58);
    assert_int_equal(percent(data, by_letter, "a2", "a3"), 11);
    heat_ranges_destroy(data);
}

/* Rows before the first border may be of any section. */
static void a_range_of_unknown_rows_is_all_of_the_data(void **state)
{
    (void)state;
    struct heat_ranges *data = make(NULL), *one;
    assert_int_equal(percent(data, by_letter, "", "a1"), 100);
    assert_ok(heat_ranges_create(NULL, 0, NULL, &one));
    assert_int_equal(percent(one, by_letter, "", ""), 100);
    assert_int_equal(percent(one, NULL, "", "m"), 50);
    heat_ranges_destroy(one);
    heat_ranges_destroy(data);
}

static void measure(void *context)
{
    double part;
    status s = heat_part_of_sections(context, by_letter, bytes_of("a1"), bytes_of("c3"), &part);
    assert_true(s.code == STATUS_OK || s.code == STATUS_RESOURCE_EXHAUSTED);
    status_free(s);
}

static void memory_may_fail(void **state)
{
    (void)state;
    struct heat_ranges *data = make(ROWS);
    failmalloc_each(measure, data);
    heat_ranges_destroy(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_rows_bytes_count),
        cmocka_unit_test(ranges_weigh_what_they_have),
        cmocka_unit_test(many_small_rows_are_no_small_part),
        cmocka_unit_test(a_section_is_a_whole),
        cmocka_unit_test(the_greatest_part_of_a_section_counts),
        cmocka_unit_test(rows_count_within_sections),
        cmocka_unit_test(a_range_of_unknown_rows_is_all_of_the_data),
        cmocka_unit_test(memory_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
