/* What has come is noticed when it comes again, also by another process. */
#include "transfer/seen.h"

#include "base/testing/testing.h"

#include <stdio.h>
#include <unistd.h>

struct place {
    char directory[64];
    char path[96];
};

static int setup(void **state)
{
    struct place *place = calloc(1, sizeof *place);
    assert_non_null(place);
    snprintf(place->directory, sizeof place->directory, "/tmp/trestle-seen-XXXXXX");
    assert_non_null(mkdtemp(place->directory));
    snprintf(place->path, sizeof place->path, "%s/keys", place->directory);
    *state = place;
    return 0;
}

static int teardown(void **state)
{
    struct place *place = *state;
    unlink(place->path);
    rmdir(place->directory);
    free(place);
    return 0;
}

static struct seen *make(enum transfer_unique unique, const char *path)
{
    struct seen *seen;
    assert_ok(seen_create(unique, path, &seen));
    return seen;
}

static status add_row(struct seen *seen, uint64_t number)
{
    const struct move_change change = {.row_key = bytes_make(&number, sizeof number)};
    return seen_add(seen, &change, 0, &(uint64_t){0});
}

static void assert_seen(status s)
{
    assert_status(s, STATUS_ALREADY_EXISTS);
}

static void a_row_comes_once(void **state)
{
    enum { ROWS = 20000 };
    struct seen *seen = make(UNIQUE_ROWS, NULL);
    (void)state;
    for (uint64_t i = 0; i < ROWS; i++)
        assert_ok(add_row(seen, i));
    for (uint64_t i = 0; i < ROWS; i++)
        assert_seen(add_row(seen, i));
    seen_destroy(seen);
    seen = make(UNIQUE_NOTHING, NULL);
    assert_ok(add_row(seen, 1));
    assert_ok(add_row(seen, 1));
    seen_destroy(seen);
}

/* A transfer would lose a row to two keys that only look the same, and their hash of 64 bits (which
 * is for tables in memory) is one that such keys can be made for. */
static void rows_whose_hashes_meet_are_two(void **state)
{
    static const char one[] = "user/001/profile";
    static const char other[] = "user/002\x54\x5c\xaa\x15\xfe\x2a\x86\xd9";
    const struct move_change rows[] = {{.row_key = bytes_make(one, sizeof one - 1)},
                                       {.row_key = bytes_make(other, sizeof other - 1)}};
    struct seen *seen = make(UNIQUE_ROWS, NULL);
    (void)state;
    assert_true(bytes_hash(rows[0].row_key) == bytes_hash(rows[1].row_key));
    assert_ok(seen_add(seen, &rows[0], 0, &(uint64_t){0}));
    assert_ok(seen_add(seen, &rows[1], 0, &(uint64_t){0}));
    assert_seen(seen_add(seen, &rows[1], 0, &(uint64_t){0}));
    seen_destroy(seen);
}

static status add_cells(struct seen *seen, const char *row_key, const char *first,
                        const char *second)
{
    struct move_cell cells[] = {{.family = "f", .qualifier = bytes_of(first)},
                                {.family = "f", .qualifier = bytes_of(second)}};
    const struct move_change change = {
        .row_key = bytes_of(row_key), .cells = cells, .count = sizeof cells / sizeof *cells};
    return seen_add(seen, &change, 0, &(uint64_t){0});
}

static void a_cell_comes_once(void **state)
{
    struct seen *seen = make(UNIQUE_CELLS, NULL);
    (void)state;
    assert_ok(add_cells(seen, "r", "a", "b"));
    assert_ok(add_cells(seen, "s", "a", "b"));
    status s = add_cells(seen, "r", "c", "b");
    assert_string_equal(status_message(s), "one before it has the cell f:b of the row r at 0");
    status_free(s);
    assert_ok(add_cells(seen, "r", "c", "d")); /* what was refused has left nothing */
    s = add_cells(seen, "t", "a", "a");
    assert_string_equal(status_message(s), "it has twice the cell f:a of the row t at 0");
    status_free(s);
    assert_ok(add_cells(seen, "ra", "", "c")); /* not the row r and the qualifier a */
    seen_destroy(seen);
}

static void a_row_may_be_noted_again(void **state)
{
    struct seen *seen = make(UNIQUE_ROWS, NULL);
    (void)state;
    assert_false(seen_has_row(seen, bytes_of("a")));
    for (int i = 0; i < 2; i++)
        assert_ok(seen_note_row(seen, bytes_of("a")));
    assert_true(seen_has_row(seen, bytes_of("a")));
    assert_false(seen_has_row(seen, bytes_of("b")));
    assert_false(seen_is_full(seen));
    seen_destroy(seen);
}

static void another_process_knows_what_had_been_saved(void **state)
{
    const struct place *place = *state;
    uint64_t bytes, later;
    struct seen *seen = make(UNIQUE_ROWS, place->path);
    assert_ok(add_row(seen, 1));
    assert_ok(add_row(seen, 2));
    assert_ok(seen_save(seen, &bytes));
    assert_ok(add_row(seen, 3));
    assert_ok(seen_save(seen, &later));
    assert_true(later > bytes);
    seen_destroy(seen);

    seen = make(UNIQUE_ROWS, place->path);
    assert_ok(seen_restore(seen, bytes));
    assert_seen(add_row(seen, 1));
    assert_seen(add_row(seen, 2));
    assert_ok(add_row(seen, 3));
    assert_ok(seen_save(seen, &later));
    assert_int_equal(later, bytes / 2 * 3);
    seen_destroy(seen);

    seen = make(UNIQUE_ROWS, place->path);
    assert_status(seen_restore(seen, 100 * bytes), STATUS_DATA_LOSS);
    seen_remove_file(seen);
    seen_destroy(seen);
    assert_int_equal(access(place->path, F_OK), -1);
}

static status add_version(struct seen *seen, uint64_t number, int64_t timestamp_us, uint64_t tag,
                          uint64_t *first)
{
    struct move_cell cell = {.family = "f", .timestamp_us = timestamp_us};
    const struct move_change change = {
        .row_key = bytes_make(&number, sizeof number), .cells = &cell, .count = 1};
    return seen_add(seen, &change, tag, first);
}

static void a_version_comes_once_and_its_place_is_known(void **state)
{
    enum { ROWS = 20000 };
    const struct place *place = *state;
    uint64_t first, bytes;
    struct seen *seen = make(UNIQUE_VERSIONS, place->path);
    for (uint64_t i = 0; i < ROWS; i++) {
        assert_ok(add_version(seen, i, 1000, 2 * i, &first));
        assert_ok(add_version(seen, i, 2000, 2 * i + 1, &first));
    }
    assert_ok(seen_save(seen, &bytes));
    seen_destroy(seen);
    seen = make(UNIQUE_VERSIONS, place->path);
    assert_ok(seen_restore(seen, bytes));
    for (uint64_t i = 0; i < ROWS; i++) {
        assert_seen(add_version(seen, i, 2000, 1 << 20, &first));
        assert_int_equal(first, 2 * i + 1);
    }
    seen_destroy(seen);
}

static bool is_outdone(const struct seen *seen, uint64_t number, uint64_t tag)
{
    struct move_cell cell = {.family = "f", .timestamp_us = 1000};
    const struct move_change change = {
        .row_key = bytes_make(&number, sizeof number), .cells = &cell, .count = 1};
    return seen_is_outdone(seen, &change, tag);
}

static void the_last_version_counts(void **state)
{
    const struct place *place = *state;
    uint64_t first, bytes;
    struct seen *seen = make(UNIQUE_LAST, place->path);
    assert_ok(add_version(seen, 1, 1000, 5, &first));
    assert_false(is_outdone(seen, 1, 5));
    assert_ok(seen_save(seen, &bytes));
    assert_ok(add_version(seen, 1, 1000, 7, &first));
    assert_int_equal(first, 5);
    assert_ok(add_version(seen, 2, 1000, 8, &first));
    assert_ok(seen_save(seen, &bytes));
    seen_destroy(seen);
    seen = make(UNIQUE_LAST, place->path);
    assert_ok(seen_restore(seen, bytes));
    assert_true(is_outdone(seen, 1, 5));
    assert_false(is_outdone(seen, 1, 7));
    assert_false(is_outdone(seen, 2, 8));
    assert_false(is_outdone(seen, 3, 0));
    seen_destroy(seen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_row_comes_once, setup, teardown),
        cmocka_unit_test_setup_teardown(rows_whose_hashes_meet_are_two, setup, teardown),
        cmocka_unit_test_setup_teardown(a_cell_comes_once, setup, teardown),
        cmocka_unit_test_setup_teardown(a_version_comes_once_and_its_place_is_known, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(the_last_version_counts, setup, teardown),
        cmocka_unit_test_setup_teardown(a_row_may_be_noted_again, setup, teardown),
        cmocka_unit_test_setup_teardown(another_process_knows_what_had_been_saved, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
