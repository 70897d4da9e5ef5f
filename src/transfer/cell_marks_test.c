/* Marks of cells: once each, and resolved by what the source's row has. */
#include "transfer/cell_marks.h"

#include "base/testing/testing.h"
#include "wire/proto.h"

#include <stdio.h>

enum { ARENA_LIMIT = 1 << 20, MS = 1000, MANY = 5000 };

struct fixture {
    struct arena *arena;
    struct cell_marks *marks;
};

static int setup(void **state)
{
    static struct fixture fixture;
    fixture = (struct fixture){arena_create(ARENA_LIMIT), cell_marks_create()};
    *state = &fixture;
    return fixture.arena == NULL || fixture.marks == NULL;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    cell_marks_destroy(fixture->marks);
    arena_destroy(fixture->arena);
    return 0;
}

static void mark(struct fixture *fixture, const char *row, enum mark_kind kind,
                 const char *qualifier, int64_t timestamp_us)
{
    const struct cell_mark at = {.kind = kind,
                                 .family = "s",
                                 .qualifier = bytes_of(qualifier),
                                 .timestamp_us = timestamp_us};
    assert_ok(cell_marks_add(fixture->marks, bytes_of(row), &at));
}

/* What the first row's marks come to, as text: "-q@1" a deletion, "+q@1" a merge. */
static const char *resolve(struct fixture *fixture, const struct move_cell *cells, size_t count)
{
    static char text[1000];
    Bt__Mutation **all;
    size_t mutations, size = 0;
    text[0] = '\0';
    assert_ok(
        cell_marks_resolve(fixture->marks, 0, cells, count, fixture->arena, &all, &mutations));
    for (size_t i = 0; i < mutations; i++) {
        const Bt__Mutation__DeleteFromColumn *deletion = all[i]->delete_from_column;
        const Bt__Mutation__MergeToCell *merge = all[i]->merge_to_cell;
        bool is_merge = all[i]->mutation_case == BT__MUTATION__MUTATION_MERGE_TO_CELL;
        bytes qualifier =
            proto_bytes(is_merge ? merge->column_qualifier->raw_value : deletion->column_qualifier);
        int64_t time = is_merge ? merge->timestamp->raw_timestamp_micros
                                : deletion->time_range->start_timestamp_micros;
        size += (size_t)snprintf(text + size, sizeof text - size, "%s%c%.*s@%d", i > 0 ? " " : "",
                                 is_merge ? '+' : '-', (int)qualifier.size,
                                 (const char *)qualifier.data, (int)(time / MS));
    }
    return text;
}

static const struct move_cell there[] = {
    {.family = "other", .qualifier = {(const uint8_t *)"a", 1}, .timestamp_us = MS},
    {.family = "s", .qualifier = {(const uint8_t *)"a", 1}, .timestamp_us = 2 * MS},
    {.family = "s", .qualifier = {(const uint8_t *)"a", 1}, .timestamp_us = MS},
    {.family = "s", .qualifier = {(const uint8_t *)"b", 1}, .timestamp_us = MS},
};

enum { THERE = sizeof there / sizeof *there };

static void marked_cells_are_set_or_removed(void **state)
{
    struct fixture *fixture = *state;
    mark(fixture, "r", MARK_CELL, "a", MS);
    assert_string_equal(resolve(fixture, there, THERE), "-a@1 +a@1");
    mark(fixture, "r", MARK_CELL, "gone", 3 * MS);
    assert_string_equal(resolve(fixture, there, THERE), "-a@1 +a@1 -gone@3");
    assert_string_equal(resolve(fixture, NULL, 0), "-gone@3 -a@1");
    assert_string_equal(resolve(fixture, there, THERE), "-a@1 +a@1 -gone@3");
}

static void ranges_bring_what_is_there(void **state)
{
    struct fixture *fixture = *state;
    mark(fixture, "r", MARK_COLUMN, "a", 0);
    assert_string_equal(resolve(fixture, there, THERE), "-a@2 +a@2 -a@1 +a@1");
    assert_string_equal(resolve(fixture, NULL, 0), "");
    mark(fixture, "r", MARK_FAMILY, "", 0);
    assert_string_equal(resolve(fixture, there, THERE), "-a@2 +a@2 -a@1 +a@1 -b@1 +b@1");
}

static void marks_count_once(void **state)
{
    struct fixture *fixture = *state;
    char row[8], column[8];
    for (int times = 0; times < 2; times++)
        for (int i = 0; i < MANY; i++) {
            snprintf(row, sizeof row, "%04d", (i * 7) % 100);
            snprintf(column, sizeof column, "%d", i);
            mark(fixture, row, MARK_CELL, column, MS);
        }
    assert_int_equal(cell_marks_count(fixture->marks), MANY);
    assert_int_equal(cell_marks_rows(fixture->marks), 100);
    cell_marks_sort(fixture->marks);
    for (size_t i = 1; i < 100; i++)
        assert_true(bytes_compare(cell_marks_row_key(fixture->marks, i - 1),
                                  cell_marks_row_key(fixture->marks, i)) < 0);
    cell_marks_clear(fixture->marks);
    assert_int_equal(cell_marks_count(fixture->marks), 0);
    mark(fixture, "r", MARK_CELL, "a", MS);
    assert_string_equal(resolve(fixture, there, THERE), "-a@1 +a@1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(marked_cells_are_set_or_removed, setup, teardown),
        cmocka_unit_test_setup_teardown(ranges_bring_what_is_there, setup, teardown),
        cmocka_unit_test_setup_teardown(marks_count_once, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
