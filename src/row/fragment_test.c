/* Tests of the packed form: every byte of it, its order, its limits; of building changes. */
#include "row/fragment.h"
#include "row/testing/testing.h"

enum { ARENA_LIMIT = 64 << 20, NO_BIG_VALUES = 1 << 30 };

static void test_bytes_are_as_documented(void **state)
{
    (void)state;
    struct buffer out = FRAGMENT(row_tombstone(0x0102030405060708), family_tombstone(2, 7),
                                 cell_entry(2, "q", 1, "vw", 7), cell_entry(2, "q", 0, "", 7),
                                 column_tombstone(5, "", 64, 65, 0x0102030405060709));
    const uint8_t expected[] = {
        0x16, 1,    2,    3,    4,    5,    6,
        7,    8, /* head: tombstones, versions; base version */
        0x38,    /* row tombstone, all the same */
        0x11, 2, /* family tombstone, two families on */
        0x81, 0x9c, 0xb0, 0xd0, 0x80, 0xc1, 0x81,
        0x82, 0x02,                              /* zigzag of 7 - base */
        0x2b, 1,    'q',  2,    2,    'v',  'w', /* cell; time + 1 */
        0x3b, 1,    0,                           /* cell; time - 1; empty */
        0x12, 3,    2,    0x80, 0x01, 1, /* column tombstone: families + 3; version + 1; time;
                                            length */
    };
    assert_int_equal(out.size, sizeof expected);
    assert_memory_equal(out.data, expected, sizeof expected);
    assert_fragment(buffer_bytes(&out),
                    "r@72623859790382856 2@7 2:q:1=vw@7 2:q:0=@7 5:[64,65)@72623859790382857");
    buffer_free(&out);
}

static void test_mark_is_in_the_head(void **state)
{
    (void)state;
    struct entry mark = {
        .kind = ENTRY_OVERFLOW_MARK, .version = 9, .moved = 8, .purged = 7, .has_overflow = true};
    struct buffer out = FRAGMENT(mark, cell_entry(1, "a", 0, "v", 9));
    const uint8_t expected[] = {0x11, 0, 0, 0, 0, 0, 0, 0, 9, 1, 0,    0, 0, 0,   0, 0,  0,
                                8,    0, 0, 0, 0, 0, 0, 0, 7, 0, 0x63, 1, 1, 'a', 1, 'v'};
    assert_int_equal(out.size, sizeof expected);
    assert_memory_equal(out.data, expected, sizeof expected);
    assert_true(fragment_has_overflow(buffer_bytes(&out)));
    assert_fragment(buffer_bytes(&out), "m@9>8!7 1:a:0=v@9");
    buffer_free(&out);
    mark.has_overflow = false;
    out = FRAGMENT(mark);
    assert_false(fragment_has_overflow(buffer_bytes(&out)));
    assert_true(fragment_has_mark(buffer_bytes(&out)));
    assert_fragment(buffer_bytes(&out), "m-@9>8!7");
    buffer_free(&out);
}

static void test_extremes_survive(void **state)
{
    (void)state;
    struct buffer out =
        FRAGMENT(cell_entry(1, "", INT64_MAX, "a", UINT64_MAX), cell_entry(1, "", 0, "b", 0),
                 cell_entry(1, "", INT64_MIN, "c", 1), cell_entry(UINT32_MAX, "q", 5, "d", 2));
    assert_fragment(buffer_bytes(&out),
                    "1::9223372036854775807=a@-1 1::0=b@0 1::-9223372036854775808=c@1 "
                    "4294967295:q:5=d@2");
    buffer_free(&out);
}

/* Order and equality of versions stay, and what the mark says of them. */
static void test_versions_are_lowered_together(void **state)
{
    (void)state;
    const struct entry mark = {
        .kind = ENTRY_OVERFLOW_MARK, .version = 19, .moved = 18, .purged = 6, .has_overflow = true};
    struct buffer out =
        FRAGMENT(mark, row_tombstone(8), family_tombstone(2, 20), cell_entry(2, "q", 1, "v", 20),
                 cell_entry(2, "q", 0, "w", UINT64_MAX), column_tombstone(5, "", 64, 65, 19));
    assert_ok(fragment_lower_versions(out.data, out.size, 7));
    assert_fragment(buffer_bytes(&out), "m@12>11!0 r@1 2@13 2:q:1=v@13 2:q:0=w@-8 5:[64,65)@12");
    assert_status(fragment_lower_versions(out.data, out.size, 1), STATUS_OUT_OF_RANGE);
    assert_fragment(buffer_bytes(&out), "m@12>11!0 r@1 2@13 2:q:1=v@13 2:q:0=w@-8 5:[64,65)@12");
    out.data[out.size - 1] ^= 0xff;
    assert_status(fragment_lower_versions(out.data, out.size, 0), STATUS_DATA_LOSS);
    assert_status(fragment_lower_versions(out.data, 8, 0), STATUS_DATA_LOSS);
    buffer_free(&out);
    out = fragment_of(NULL, 0);
    assert_ok(fragment_lower_versions(out.data, out.size, 7));
    assert_fragment(buffer_bytes(&out), "");
    buffer_free(&out);
}

/* What format.md says of sizes. */
static void test_ten_cells_take_little_more_than_their_bytes(void **state)
{
    (void)state;
    enum { CELLS = 10, VALUE_SIZE = 100, NAME_SIZE = 6 };
    char names[CELLS][NAME_SIZE + 1];
    char value[VALUE_SIZE + 1] = "";
    struct entry cells[CELLS];
    memset(value, 'v', VALUE_SIZE);
    for (int i = 0; i < CELLS; i++) {
        snprintf(names[i], sizeof names[i], "field%d", i);
        cells[i] = cell_entry(1, names[i], 1700000000000000, value, 7);
    }
    struct buffer out = fragment_of(cells, CELLS);
    assert_int_equal(out.size, CELLS * (VALUE_SIZE + NAME_SIZE) + 48);
    buffer_free(&out);
}

static void test_flags_say_what_is_in_it(void **state)
{
    (void)state;
    struct buffer plain = FRAGMENT(cell_entry(1, "a", 1, "", 1), cell_entry(1, "b", 1, "", 1),
                                   cell_entry(2, "b", 1, "", 1));
    struct buffer versions = FRAGMENT(cell_entry(1, "a", 2, "", 1), cell_entry(1, "a", 1, "", 1));
    struct buffer deleted = FRAGMENT(family_tombstone(1, 1));
    struct buffer empty = fragment_of(NULL, 0);
    assert_false(fragment_has_versions(buffer_bytes(&plain)));
    assert_false(fragment_has_tombstones(buffer_bytes(&plain)));
    assert_false(fragment_has_mark(buffer_bytes(&plain)));
    assert_false(fragment_is_empty(buffer_bytes(&plain)));
    assert_true(fragment_has_versions(buffer_bytes(&versions)));
    assert_true(fragment_has_tombstones(buffer_bytes(&deleted)));
    assert_true(fragment_is_empty(buffer_bytes(&empty)));
    assert_true(empty.size > 0); /* a stored value is never empty */
    buffer_free(&plain);
    buffer_free(&versions);
    buffer_free(&deleted);
    buffer_free(&empty);
}

static void test_seek_stops_at_the_family(void **state)
{
    (void)state;
    struct buffer out = FRAGMENT(row_tombstone(1), cell_entry(2, "a", 0, "1", 1),
                                 cell_entry(2, "b", 0, "2", 1), cell_entry(5, "a", 0, "3", 1));
    struct fragment_reader reader;
    struct entry entry;
    for (uint32_t family = 0; family <= 6; family++) {
        assert_true(fragment_reader_start(&reader, buffer_bytes(&out)));
        fragment_reader_seek_family(&reader, family);
        bool found = fragment_reader_next(&reader, &entry);
        assert_int_equal(found, family <= 5);
        if (found)
            assert_int_equal(entry.family, family == 0 ? 0 : family <= 2 ? 2 : 5);
    }
    buffer_free(&out);
}

static void test_every_cut_and_every_flip_is_survived(void **state)
{
    (void)state;
    struct entry mark = {.kind = ENTRY_OVERFLOW_MARK, .version = 3, .has_overflow = true};
    struct buffer whole = FRAGMENT(mark, row_tombstone(9), cell_entry(2, "abc", 1000, "value", 9),
                                   column_tombstone(3, "d", 5, 90, 8));
    for (size_t size = 0; size < whole.size; size++) {
        uint8_t *copy = malloc(size + 1); /* as long as it is, for the address sanitizer */
        memcpy(copy, whole.data, size);
        status_ignore(fragment_check(bytes_make(copy, size)));
        free(copy);
    }
    for (size_t bit = 0; bit < 8 * whole.size; bit++) {
        whole.data[bit / 8] ^= (uint8_t)(1u << (bit % 8));
        status_ignore(fragment_check(buffer_bytes(&whole)));
        whole.data[bit / 8] ^= (uint8_t)(1u << (bit % 8));
    }
    assert_ok(fragment_check(buffer_bytes(&whole)));
    buffer_free(&whole);
}

static void test_damage_is_named(void **state)
{
    (void)state;
    struct buffer twice = FRAGMENT(cell_entry(1, "a", 1, "", 1), cell_entry(1, "a", 1, "", 1));
    struct buffer disorder = FRAGMENT(cell_entry(1, "b", 1, "", 1), cell_entry(1, "a", 1, "", 1));
    assert_status(fragment_check(buffer_bytes(&twice)), STATUS_DATA_LOSS);
    assert_status(fragment_check(buffer_bytes(&disorder)), STATUS_DATA_LOSS);
    assert_status(fragment_check(bytes_make("", 0)), STATUS_DATA_LOSS);
    assert_status(fragment_check(bytes_make("\x20\0\0\0\0\0\0\0\0", 9)), STATUS_DATA_LOSS);
    assert_ok(fragment_check(bytes_make("\x1f\0\0\0\0\0\0\0\0" /* flags: what may be there */
                                        "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
                                        27)));
    assert_status(fragment_check(bytes_make("\x10\0\0\0\0\0\0\0\0\x7f", 10)), STATUS_DATA_LOSS);
    buffer_free(&twice);
    buffer_free(&disorder);
}

/* --- changes --- */

struct fixture {
    struct arena *arena;
    struct row_change *change;
};

static int set_up(void **state)
{
    struct fixture *fixture = malloc(sizeof *fixture);
    fixture->arena = arena_create(ARENA_LIMIT);
    fixture->change = row_change_create(fixture->arena);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    arena_destroy(fixture->arena);
    free(fixture);
    return 0;
}

static void set(struct fixture *fixture, uint32_t family, const char *qualifier, int64_t time,
                const char *value)
{
    row_change_set(fixture->change, family, bytes_of(qualifier), time, bytes_of(value));
}

static void add(struct fixture *fixture, enum entry_kind kind, int64_t number)
{
    uint64_t word = htobe64((uint64_t)number);
    row_change_add(fixture->change, kind, 3, bytes_of("n"), 0,
                   arena_copy(fixture->arena, bytes_make(&word, sizeof word)));
}

/* As it is stored, with version 5. */
static void assert_change(struct fixture *fixture, const char *expected)
{
    struct packed_change packed;
    assert_ok(row_change_pack(fixture->change, NO_BIG_VALUES, &packed));
    fragment_set_version(packed.fragment.data, 5);
    assert_fragment(buffer_bytes(&packed.fragment), expected);
    assert_int_equal(packed.big_count, 0);
    buffer_free(&packed.fragment);
}

static void test_a_change_is_sorted(void **state)
{
    set(*state, 2, "b", 1, "w");
    set(*state, 2, "a", 1, "x");
    set(*state, 2, "a", 2, "y");
    set(*state, 1, "z", 1, "z");
    assert_change(*state, "1:z:1=z@5 2:a:2=y@5 2:a:1=x@5 2:b:1=w@5");
}

static void test_the_last_of_two_sets_counts(void **state)
{
    set(*state, 1, "a", 1, "first");
    set(*state, 1, "b", 1, "other");
    set(*state, 1, "a", 1, "last");
    assert_change(*state, "1:a:1=last@5 1:b:1=other@5");
}

static void test_a_deletion_takes_what_came_before_it(void **state)
{
    struct fixture *fixture = *state;
    set(fixture, 1, "a", 1, "gone");
    set(fixture, 1, "a", 9, "stays, outside");
    row_change_delete_column(fixture->change, 1, bytes_of("a"), 0, 5);
    set(fixture, 1, "a", 2, "stays, after");
    assert_change(fixture, "1:a[0,5)@5 1:a:9=stays, outside@5 1:a:2=stays, after@5");
}

static void test_deletions_of_families_and_rows(void **state)
{
    struct fixture *fixture = *state;
    set(fixture, 1, "a", 1, "gone");
    set(fixture, 2, "a", 1, "gone");
    row_change_delete_column(fixture->change, 2, bytes_of("a"), 0, INT64_MAX);
    row_change_delete_family(fixture->change, 2);
    row_change_delete_row(fixture->change);
    set(fixture, 2, "a", 1, "there");
    row_change_delete_family(fixture->change, 1);
    assert_change(fixture, "r@5 1@5 2:a:1=there@5");
}

static void test_empty_ranges_delete_nothing(void **state)
{
    struct fixture *fixture = *state;
    set(fixture, 1, "a", 1, "v");
    row_change_delete_column(fixture->change, 1, bytes_of("a"), 1, 1);
    assert_change(fixture, "1:a:1=v@5");
}

static void test_ranges_of_a_column_become_disjoint(void **state)
{
    struct fixture *fixture = *state;
    row_change_delete_column(fixture->change, 1, bytes_of("a"), 10, 30);
    row_change_delete_column(fixture->change, 1, bytes_of("a"), 50, INT64_MAX);
    row_change_delete_column(fixture->change, 1, bytes_of("a"), 20, 40);
    set(fixture, 1, "a", 25, "v");
    assert_change(fixture, "1:a[10,20)@5 1:a[20,40)@5 1:a[50,-)@5 1:a:25=v@5");
}

static void test_adds_of_a_request_add_up(void **state)
{
    struct fixture *fixture = *state;
    add(fixture, ENTRY_SUM, 5);
    add(fixture, ENTRY_SUM, -7);
    assert_change(fixture, "3:n:0+-2@5");
}

static void test_sums_wrap_around(void **state)
{
    struct fixture *fixture = *state;
    add(fixture, ENTRY_SUM, INT64_MAX);
    add(fixture, ENTRY_SUM, 1);
    assert_change(fixture, "3:n:0+-9223372036854775808@5");
}

static void test_minimum_and_maximum_are_signed(void **state)
{
    struct fixture *fixture = *state;
    add(fixture, ENTRY_MIN, 5);
    add(fixture, ENTRY_MIN, -7);
    assert_change(fixture, "3:n:0<-7@5");
    fixture->change = row_change_create(fixture->arena);
    add(fixture, ENTRY_MAX, 5);
    add(fixture, ENTRY_MAX, -7);
    assert_change(fixture, "3:n:0>5@5");
}

static void test_a_state_is_copied_by_delete_and_merge(void **state)
{
    struct fixture *fixture = *state;
    add(fixture, ENTRY_SUM, 5);
    row_change_delete_column(fixture->change, 3, bytes_of("n"), 0, INT64_MAX);
    add(fixture, ENTRY_SUM, 2);
    assert_change(fixture, "3:n[0,-)@5 3:n:0+2@5");
}

static void test_big_values_are_left_out(void **state)
{
    struct fixture *fixture = *state;
    struct packed_change packed;
    set(fixture, 1, "a", 1, "small");
    set(fixture, 1, "b", 2, "0123456789");
    set(fixture, 1, "c", 3, "0123456789 overwritten");
    set(fixture, 1, "c", 3, "123456789");
    assert_ok(row_change_pack(fixture->change, 10, &packed));
    fragment_set_version(packed.fragment.data, 5);
    assert_fragment(buffer_bytes(&packed.fragment), "m@5>0!0 1:a:1=small@5 1:c:3=123456789@5");
    assert_int_equal(packed.big_count, 1);
    assert_int_equal(packed_change_size(&packed), packed.fragment.size + packed.big[0].value.size);
    assert_true(packed.big[0].value.size > 0);
    assert_int_equal(packed.big[0].timestamp_us, 2);
    assert_true(bytes_equal(packed.big[0].qualifier, bytes_of("b")));
    buffer_free(&packed.fragment);
}

/* And where the arena has no more room, in memory of its own. */
static void test_a_change_lies_in_the_arena_that_it_is_given(void **state)
{
    (void)state;
    bool is_lent = true;
    struct arena *arena = arena_create(SIZE_MAX / 2), *home = arena_create(1000);
    for (int i = 0; i < 20; i++) {
        struct packed_change packed;
        struct row_change *change = row_change_create(arena);
        row_change_keep_in(change, home);
        row_change_set(change, 1, bytes_of("a"), i, bytes_of("v"));
        assert_ok(row_change_pack(change, NO_BIG_VALUES, &packed));
        assert_true(i > 0 || packed.fragment.is_lent);
        assert_true(is_lent || !packed.fragment.is_lent);
        is_lent = packed.fragment.is_lent;
        assert_ok(fragment_check(buffer_bytes(&packed.fragment)));
        packed_change_free(&packed);
        assert_null(packed.fragment.data);
    }
    assert_false(is_lent);
    arena_destroy(home);
    arena_destroy(arena);
}

static void test_without_memory_nothing_is_packed(void **state)
{
    (void)state;
    struct arena *arena = arena_create(4096);
    struct row_change *change = row_change_create(arena);
    struct packed_change packed;
    for (int i = 0; i < 1000; i++)
        row_change_set(change, 1, bytes_of("a"), i, bytes_of("v"));
    assert_status(row_change_pack(change, NO_BIG_VALUES, &packed), STATUS_RESOURCE_EXHAUSTED);
    assert_null(packed.fragment.data);
    arena_destroy(arena);
}

/* What took seconds if ranges were looked through one by one. */
static void test_a_hundred_thousand_ranges_of_one_column(void **state)
{
    enum { RANGES = 100000 };
    struct fixture *fixture = *state;
    struct packed_change packed;
    struct fragment_reader reader;
    struct entry entry;
    size_t count = 0;
    for (int i = 0; i < RANGES; i++)
        row_change_delete_column(fixture->change, 1, bytes_of("a"), i, 2 * RANGES - i);
    assert_ok(row_change_pack(fixture->change, NO_BIG_VALUES, &packed));
    assert_true(fragment_reader_start(&reader, buffer_bytes(&packed.fragment)));
    while (fragment_reader_next(&reader, &entry))
        count++;
    assert_int_equal(count, 2 * RANGES - 1);
    buffer_free(&packed.fragment);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes_are_as_documented),
        cmocka_unit_test(test_mark_is_in_the_head),
        cmocka_unit_test(test_extremes_survive),
        cmocka_unit_test(test_versions_are_lowered_together),
        cmocka_unit_test(test_ten_cells_take_little_more_than_their_bytes),
        cmocka_unit_test(test_flags_say_what_is_in_it),
        cmocka_unit_test(test_seek_stops_at_the_family),
        cmocka_unit_test(test_every_cut_and_every_flip_is_survived),
        cmocka_unit_test(test_damage_is_named),
        cmocka_unit_test_setup_teardown(test_a_change_is_sorted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_the_last_of_two_sets_counts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_deletion_takes_what_came_before_it, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_deletions_of_families_and_rows, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_empty_ranges_delete_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_ranges_of_a_column_become_disjoint, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_adds_of_a_request_add_up, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_sums_wrap_around, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_minimum_and_maximum_are_signed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_state_is_copied_by_delete_and_merge, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_big_values_are_left_out, set_up, tear_down),
        cmocka_unit_test(test_a_change_lies_in_the_arena_that_it_is_given),
        cmocka_unit_test(test_without_memory_nothing_is_packed),
        cmocka_unit_test_setup_teardown(test_a_hundred_thousand_ranges_of_one_column, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
