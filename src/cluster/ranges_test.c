/* Tests of how a range of rows is divided into parts: borders rise, lie within, and leave parts of
 * about the same size, in a table of one tablet or of many. */
#include "cluster/ranges.h"

#include "cluster/testing/testing.h"

enum { ROWS = 600, VALUE_BYTES = 64 << 10, MOST = 8 }; /* 38 MB */

static void write_rows(struct cluster_fixture *f, unsigned count)
{
    char *value = calloc(1, VALUE_BYTES + 1);
    uint64_t random = 1;
    assert_non_null(value);
    for (unsigned i = 0; i < count; i++) {
        char key[16];
        for (unsigned j = 0; j < VALUE_BYTES; j++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            value[j] = (char)('A' + (random >> 33) % 58);
        }
        snprintf(key, sizeof key, "row%03u", i);
        set_cell(f, key, value);
        arena_reset(f->arena);
    }
    free(value);
}

static int setup(void **state)
{
    *state = cluster_fixture_create(NULL);
    return 0;
}

static uint64_t size_between(struct cluster_fixture *f, bytes from, bytes to)
{
    uint64_t size;
    assert_ok(table_range_size(f->table, from, to, &size));
    return size;
}

/* The parts of a range, none of which is much larger than the others are together on average. */
static void check_parts(struct cluster_fixture *f, const char *from, const char *to, size_t least)
{
    struct arena *arena = arena_create(SIZE_MAX / 2);
    bytes *borders, at = bytes_of(from);
    size_t count;
    assert_ok(table_divide(f->table, at, bytes_of(to), MOST, arena, &borders, &count));
    assert_in_range(count + 1, least, MOST);
    uint64_t part = size_between(f, at, bytes_of(to)) / (count + 1);
    for (size_t i = 0; i <= count; i++) {
        bytes end = i == count ? bytes_of(to) : borders[i];
        assert_true(end.size == 0 || bytes_compare(at, end) < 0);
        assert_true(size_between(f, at, end) < 2 * part);
        at = end;
    }
    arena_destroy(arena);
}

static void parts_are_about_as_large(void **state)
{
    struct cluster_fixture *f = *state;
    write_rows(f, ROWS);
    check_parts(f, "", "", 6);
    check_parts(f, "row100", "row400", 3);
    for (unsigned i = 0; i < ROWS; i += 40) {
        char key[16];
        snprintf(key, sizeof key, "row%03u", i);
        split_at(f, key);
    }
    check_parts(f, "", "", 6);
    check_parts(f, "row100", "row400", 3);
}

static void what_is_small_is_one_part(void **state)
{
    struct cluster_fixture *f = *state;
    struct arena *arena = arena_create(SIZE_MAX / 2);
    bytes *borders;
    size_t count = 1;
    assert_ok(table_divide(f->table, bytes_of(""), bytes_of(""), MOST, arena, &borders, &count));
    assert_int_equal(count, 0);
    write_rows(f, 300);
    assert_ok(
        table_divide(f->table, bytes_of(""), bytes_of("row050"), MOST, arena, &borders, &count));
    assert_int_equal(count, 0);
    assert_ok(table_divide(f->table, bytes_of(""), bytes_of(""), 1, arena, &borders, &count));
    assert_int_equal(count, 0);
    arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(parts_are_about_as_large, setup, cluster_fixture_teardown),
        cmocka_unit_test_setup_teardown(what_is_small_is_one_part, setup, cluster_fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
