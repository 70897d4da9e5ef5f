#include "tablet/testing/testing.h"

static int setup(void **state)
{
    *state = tablet_fixture_create();
    return 0;
}

static int teardown(void **state)
{
    tablet_fixture_destroy(*state);
    return 0;
}

/* Writes `f:q@1=<key>` to each row named by a letter. */
static void write_rows(struct tablet_fixture *f, const char *letters)
{
    for (; *letters != '\0'; letters++) {
        const char key[2] = {*letters};
        write_change(f, key, set_cell(f, FAMILY_F, "q", 1, key));
    }
}

/* A big value beside the record, and a small one in it. */
static void write_overflow_row(struct tablet_fixture *f, const char *row_key)
{
    struct row_change *change = new_change(f);
    row_change_set(change, FAMILY_F, bytes_of("big"), 9, bytes_of("0123456789"));
    row_change_set(change, FAMILY_F, bytes_of("small"), 8, bytes_of("s"));
    write_change(f, row_key, pack(change, 10));
}

/* --- reading a range --- */

struct range {
    const char *from;
    const char *to;
    bool reversed;
    enum store_read_tier read_tier;
    unsigned pause_every; /* 0: never */
    size_t budget;
    bool (*skip)(void *context, bytes row_key);
};

/* The keys found, one after the other; a '!' for a row that is too large, a '?' for a spent budget.
 * In static memory. */
static const char *keys_of(struct tablet_fixture *f, struct row_read_options *options,
                           const struct range *range)
{
    static char text[256];
    size_t size = 0;
    struct row_range_reader *reader;
    struct row row = {.cells.arena = arena_create(1 << 20)};
    enum row_outcome outcome = ROW_ABSENT;
    assert_ok(row_range_reader_create(f->rows, options, bytes_of(range->from), bytes_of(range->to),
                                      range->reversed, &reader));
    for (unsigned calls = 1; outcome != ROW_END && size < sizeof text - 2; calls++) {
        row_clear(&row);
        assert_ok(row_range_reader_next(reader, range->read_tier, range->skip, NULL, range->budget,
                                        &row, &outcome));
        if (outcome == ROW_NOT_CACHED)
            assert_ok(row_range_reader_next(reader, STORE_READ_ANY, range->skip, NULL,
                                            range->budget, &row, &outcome));
        if (outcome == ROW_FOUND || outcome == ROW_TOO_LARGE) {
            assert_true(bytes_equal(row.key, row_range_reader_last_scanned(reader)));
            text[size++] = (char)row.key.data[0];
        }
        if (outcome == ROW_TOO_LARGE)
            text[size++] = '!';
        if (outcome == ROW_ABSENT)
            text[size++] = '?';
        if (range->pause_every > 0 && calls % range->pause_every == 0)
            row_range_reader_pause(reader);
    }
    text[size] = '\0';
    row_clear(&row);
    row_range_reader_destroy(reader);
    arena_destroy(row.cells.arena);
    return text;
}

static const char *scan(struct tablet_fixture *f, const struct range *range)
{
    struct row_read_options options = read_options_of(f);
    struct range full = *range;
    full.budget = range->budget == 0 ? 100 : range->budget;
    return keys_of(f, &options, &full);
}

static void a_range_is_read_in_order(void **state)
{
    struct tablet_fixture *f = *state;
    write_rows(f, "dbeac");
    for (enum store_read_tier read_tier = STORE_READ_CACHED; read_tier <= STORE_READ_ANY;
         read_tier++) {
        assert_string_equal(scan(f, &(struct range){.from = "", .to = "", .read_tier = read_tier}),
                            "abcde");
        assert_string_equal(
            scan(f, &(struct range){.from = "b", .to = "d", .read_tier = read_tier}), "bc");
        assert_string_equal(
            scan(f, &(struct range){.from = "bb", .to = "", .read_tier = read_tier}), "cde");
        assert_string_equal(
            scan(f,
                 &(struct range){.from = "", .to = "", .reversed = true, .read_tier = read_tier}),
            "edcba");
        assert_string_equal(
            scan(f,
                 &(struct range){.from = "b", .to = "d", .reversed = true, .read_tier = read_tier}),
            "cb");
        assert_string_equal(
            scan(f, &(struct range){.from = "x", .to = "z", .read_tier = read_tier}), "");
    }
}

static void a_paused_range_goes_on_after_its_last_row(void **state)
{
    struct tablet_fixture *f = *state;
    write_rows(f, "abcdefg");
    write_overflow_row(f, "d");
    for (unsigned every = 1; every <= 3; every++) {
        struct range forward = {.from = "", .to = "", .pause_every = every};
        struct range backward = {.from = "", .to = "", .reversed = true, .pause_every = every};
        assert_string_equal(scan(f, &forward), "abcdefg");
        assert_string_equal(scan(f, &backward), "gfedcba");
    }
}

/* On a file system that is not the system's own nothing is taken from the page cache. */
static void what_is_not_cached_is_said_and_then_read(void **state)
{
    struct tablet_fixture *f = *state;
    write_rows(f, "abc");
    write_overflow_row(f, "b");
    close_queue(f);
    open_queue(f);
    assert_ok(keyspace_flush(f->rows));
    close_queue(f);
    f->faults = fault_fs_create();
    assert_non_null(f->faults);
    open_queue(f);
    struct row_read_options options = read_options_of(f);
    struct row row = {.cells.arena = arena_create(1 << 20)};
    enum row_outcome outcome;
    assert_ok(row_read(f->rows, &options, bytes_of("b"), STORE_READ_CACHED, &row, &outcome));
    assert_int_equal(outcome, ROW_NOT_CACHED);
    row_clear(&row);
    arena_destroy(row.cells.arena);
    assert_string_equal(
        scan(f, &(struct range){.from = "", .to = "", .read_tier = STORE_READ_CACHED}), "abc");
    assert_string_equal(scan(f, &(struct range){.from = "",
                                                .to = "",
                                                .reversed = true,
                                                .read_tier = STORE_READ_CACHED}),
                        "cba");
    assert_row(f, "b", "f:big@9=0123456789 f:q@1=b f:small@8=s");
}

static void rows_without_cells_are_passed_over(void **state)
{
    struct tablet_fixture *f = *state;
    write_rows(f, "abcdef");
    for (const char *key = "bcde"; *key != '\0'; key++) {
        struct row_change *change = new_change(f);
        row_change_delete_row(change);
        write_change(f, (const char[]){*key, '\0'}, pack(change, SIZE_MAX));
    }
    assert_string_equal(scan(f, &(struct range){.from = "", .to = ""}), "af");
    assert_string_equal(scan(f, &(struct range){.from = "", .to = "", .budget = 2}), "a??f");
}

static bool skip_b_and_c(void *context, bytes row_key)
{
    (void)context;
    return row_key.data[0] == 'b' || row_key.data[0] == 'c';
}

static void rows_are_skipped_by_their_key(void **state)
{
    struct tablet_fixture *f = *state;
    write_rows(f, "abcd");
    assert_string_equal(scan(f, &(struct range){.from = "", .to = "", .skip = skip_b_and_c}), "ad");
}

static void a_row_that_is_too_large_does_not_end_the_range(void **state)
{
    struct tablet_fixture *f = *state;
    struct row_read_options options = read_options_of(f);
    write_rows(f, "abc");
    write_overflow_row(f, "b");
    options.size_limit = 10;
    assert_string_equal(keys_of(f, &options, &(struct range){.from = "", .to = "", .budget = 100}),
                        "ab!c");
}

/* A reader of a range that meets rows while they are overflowed, changed and deleted. */
static void a_row_is_as_it_is_when_it_is_reached(void **state)
{
    struct tablet_fixture *f = *state;
    struct row_read_options options = read_options_of(f);
    struct row_range_reader *reader;
    struct row row = {.cells.arena = arena_create(1 << 20)};
    struct buffer text = {0};
    enum row_outcome outcome;
    write_rows(f, "abc");
    assert_ok(
        row_range_reader_create(f->rows, &options, bytes_of(""), bytes_of(""), false, &reader));
    assert_ok(row_range_reader_next(reader, STORE_READ_ANY, NULL, NULL, 10, &row, &outcome));
    row_range_reader_pause(reader);
    write_overflow_row(f, "b");
    row_clear(&row);
    assert_ok(row_range_reader_next(reader, STORE_READ_ANY, NULL, NULL, 10, &row, &outcome));
    row_text(&row, &text);
    assert_string_equal((const char *)text.data, "f:big@9=0123456789 f:q@1=b f:small@8=s");
    row_clear(&row);
    row_range_reader_destroy(reader);
    buffer_free(&text);
    arena_destroy(row.cells.arena);
}

static void readers_say_which_rows_want_maintenance(void **state)
{
    struct tablet_fixture *f = *state;
    struct row_read_options options = read_options_of(f);
    struct row row = {.cells.arena = arena_create(1 << 20)};
    enum row_outcome outcome;
    write_rows(f, "a");
    write_overflow_row(f, "b");
    options.overflow_bytes = 4096;
    assert_ok(row_read(f->rows, &options, bytes_of("a"), STORE_READ_ANY, &row, &outcome));
    assert_false(row.wants_maintenance);
    options.overflow_bytes = 5;
    assert_ok(row_read(f->rows, &options, bytes_of("a"), STORE_READ_ANY, &row, &outcome));
    assert_true(row.wants_maintenance);
    options.overflow_bytes = 4096;
    assert_ok(row_read(f->rows, &options, bytes_of("b"), STORE_READ_ANY, &row, &outcome));
    assert_false(row.wants_maintenance);
    struct row_change *change = new_change(f);
    row_change_delete_family(change, FAMILY_F);
    write_change(f, "b", pack(change, SIZE_MAX));
    row_clear(&row);
    assert_ok(row_read(f->rows, &options, bytes_of("b"), STORE_READ_ANY, &row, &outcome));
    assert_int_equal(outcome, ROW_ABSENT);
    assert_true(row.wants_maintenance);
    row_clear(&row);
    arena_destroy(row.cells.arena);
}

/* Also of those that it passes over: their key must be known. */
static void a_range_stops_at_an_absent_row_that_wants_maintenance(void **state)
{
    struct tablet_fixture *f = *state;
    struct row_read_options options = read_options_of(f);
    struct row_range_reader *reader;
    struct row row = {.cells.arena = arena_create(1 << 20)};
    enum row_outcome outcome;
    write_overflow_row(f, "a");
    write_rows(f, "c");
    struct row_change *change = new_change(f);
    row_change_delete_row(change);
    write_change(f, "a", pack(change, SIZE_MAX));
    assert_ok(
        row_range_reader_create(f->rows, &options, bytes_of(""), bytes_of(""), false, &reader));
    assert_ok(row_range_reader_next(reader, STORE_READ_ANY, NULL, NULL, 10, &row, &outcome));
    assert_int_equal(outcome, ROW_ABSENT);
    assert_true(row.wants_maintenance);
    assert_true(bytes_equal(row.key, bytes_of("a")));
    row_clear(&row);
    assert_ok(row_range_reader_next(reader, STORE_READ_ANY, NULL, NULL, 10, &row, &outcome));
    assert_int_equal(outcome, ROW_FOUND);
    assert_false(row.wants_maintenance);
    row_clear(&row);
    assert_ok(row_range_reader_next(reader, STORE_READ_ANY, NULL, NULL, 10, &row, &outcome));
    assert_int_equal(outcome, ROW_END);
    assert_false(row.wants_maintenance);
    row_range_reader_destroy(reader);
    arena_destroy(row.cells.arena);
}

/* --- values that are left in the store --- */

enum { LEFT_CELLS = 6, SMALL_VALUE = 6, LARGE_VALUE = 2 << 20 };

/* Cells f:a@9 to f:f@9, each beside the record, their values of so many of its letter. */
static void write_large_row(struct tablet_fixture *f, size_t size)
{
    struct row_change *change = new_change(f);
    static const char *const names[LEFT_CELLS] = {"a", "b", "c", "d", "e", "f"};
    for (int i = 0; i < LEFT_CELLS; i++) {
        uint8_t *value = arena_alloc(f->arena, size);
        assert_non_null(value);
        memset(value, names[i][0], size);
        row_change_set(change, FAMILY_F, bytes_of(names[i]), 9, bytes_make(value, size));
    }
    write_change(f, "row", pack(change, 1));
}

/* With the value of the first cell, if it is a small one. */
static struct row read_large_row(struct tablet_fixture *f)
{
    struct row_read_options options = read_options_of(f);
    struct row row = {.cells.arena = arena_create(1 << 20)};
    enum row_outcome outcome;
    options.defer_after = SMALL_VALUE;
    assert_ok(row_read(f->rows, &options, bytes_of("row"), STORE_READ_ANY, &row, &outcome));
    assert_int_equal(outcome, ROW_FOUND);
    assert_int_equal(row.cells.count, LEFT_CELLS);
    return row;
}

static void end_row(struct row *row)
{
    row_clear(row);
    assert_null(row->left);
    arena_destroy(row->cells.arena);
}

static void assert_left(struct row *row, size_t index)
{
    const struct cell *cell = &row->cells.items[index];
    enum row_outcome outcome;
    bytes value;
    assert_true(cell_is_deferred(cell));
    assert_ok(row_load_value(row, cell, STORE_READ_ANY, &value, &outcome));
    assert_int_equal(outcome, ROW_FOUND);
    assert_int_equal(value.size, cell->value.size);
    assert_int_equal(value.data[0], 'a' + index);
    assert_int_equal(value.data[value.size - 1], 'a' + index);
}

static void assert_all_values(struct row *row)
{
    for (size_t i = 1; i < LEFT_CELLS; i++)
        assert_left(row, i);
}

static void values_are_got_one_by_one(void **state)
{
    struct tablet_fixture *f = *state;
    write_large_row(f, SMALL_VALUE);
    struct row row = read_large_row(f);
    assert_all_values(&row);
    assert_false(cell_is_deferred(&row.cells.items[0]));
    assert_left(&row, 4); /* in any order, and after a pause */
    assert_left(&row, 1);
    row_release_value(&row);
    assert_left(&row, 1);
    assert_left(&row, 3);
    end_row(&row);
}

static void values_are_of_the_instant_of_their_row(void **state)
{
    struct tablet_fixture *f = *state;
    write_large_row(f, SMALL_VALUE);
    struct row row = read_large_row(f);
    struct row_change *change = new_change(f);
    row_change_delete_row(change);
    row_change_set(change, FAMILY_F, bytes_of("c"), 9, bytes_of("another"));
    write_change(f, "row", pack(change, 1));
    assert_all_values(&row);
    end_row(&row);
    assert_row(f, "row", "f:c@9=another");
}

/* Its age condemns the row's cells after they were read: they are folded when they are got. */
static void values_outlive_their_age_for_a_moment(void **state)
{
    struct tablet_fixture *f = *state;
    static const struct gc_rule young = {.kind = GC_MAX_AGE, .max_age_us = 1000};
    schema_destroy(f->schema);
    f->schema = test_schema(&young);
    f->rules.schema = f->schema;
    f->clock.wall_us = 500;
    write_large_row(f, SMALL_VALUE);
    struct row row = read_large_row(f);
    f->clock.wall_us = 5000;
    assert_all_values(&row);
    end_row(&row);
    assert_row(f, "row", "");
}

static void a_value_that_was_collected_aborts(void **state)
{
    struct tablet_fixture *f = *state;
    write_large_row(f, SMALL_VALUE);
    struct row row = read_large_row(f);
    struct cell gone = row.cells.items[2];
    enum row_outcome outcome;
    bytes value;
    gone.timestamp_us = 8;
    assert_status(row_load_value(&row, &gone, STORE_READ_ANY, &value, &outcome), STATUS_ABORTED);
    assert_all_values(&row);
    end_row(&row);
}

/* The values are too large for the store's cache, and nothing is taken from the page cache. */
static void a_value_that_is_not_cached_is_said_to_be_so(void **state)
{
    struct tablet_fixture *f = *state;
    write_large_row(f, LARGE_VALUE);
    close_queue(f);
    open_queue(f);
    assert_ok(keyspace_flush(f->rows));
    close_queue(f);
    f->faults = fault_fs_create();
    assert_non_null(f->faults);
    open_queue(f);
    struct row row = read_large_row(f);
    struct cell *cell = &row.cells.items[1];
    enum row_outcome outcome;
    bytes value;
    assert_ok(row_load_value(&row, cell, STORE_READ_CACHED, &value, &outcome));
    assert_int_equal(outcome, ROW_NOT_CACHED);
    assert_all_values(&row);
    assert_left(&row, 0);
    end_row(&row);
}

/* Everything is in memory. */
static void what_is_looked_at_at_once_is_not_cached(void **state)
{
    struct tablet_fixture *f = *state;
    write_large_row(f, SMALL_VALUE);
    struct row_read_options options = read_options_of(f);
    struct row row = {.cells.arena = arena_create(1 << 20)};
    struct row_range_reader *reader;
    enum row_outcome outcome;
    options.defer_after = SMALL_VALUE;
    options.looks_at_left = true;
    assert_ok(row_read(f->rows, &options, bytes_of("row"), STORE_READ_CACHED, &row, &outcome));
    assert_int_equal(outcome, ROW_NOT_CACHED);
    row_clear(&row);
    assert_ok(
        row_range_reader_create(f->rows, &options, bytes_of(""), bytes_of(""), false, &reader));
    assert_ok(row_range_reader_next(reader, STORE_READ_CACHED, NULL, NULL, 10, &row, &outcome));
    assert_int_equal(outcome, ROW_NOT_CACHED);
    assert_null(row.left);
    row_clear(&row);
    assert_ok(row_range_reader_next(reader, STORE_READ_ANY, NULL, NULL, 10, &row, &outcome));
    assert_int_equal(outcome, ROW_FOUND);
    assert_all_values(&row);
    row_range_reader_destroy(reader);
    end_row(&row);
}

/* --- several records at once --- */

/* The value of the row's first cell; NULL: there is no row. In static memory. */
static const char *take(struct tablet_fixture *f, struct row_records *records, size_t i,
                        const char *row_key)
{
    static char text[16];
    struct row_read_options options = read_options_of(f);
    struct row row = {.cells.arena = arena_create(1 << 20)};
    enum row_outcome outcome;
    options.commits = NULL;
    assert_true(row_records_has(records, i));
    assert_ok(row_records_take(records, i, f->rows, &options, bytes_of(row_key), &row, &outcome));
    assert_false(row_records_has(records, i));
    assert_true(bytes_equal(row.key, bytes_of(row_key)));
    if (outcome == ROW_FOUND)
        snprintf(text, sizeof text, "%.*s", (int)row.cells.items[0].value.size,
                 (const char *)row.cells.items[0].value.data);
    end_row(&row);
    return outcome == ROW_FOUND ? text : NULL;
}

static void records_that_are_read_at_once_are_taken_in_any_order(void **state)
{
    struct tablet_fixture *f = *state;
    struct row_read_options options = read_options_of(f);
    struct row_records records = {0};
    const bytes keys[] = {bytes_of("a"), bytes_of("b"), bytes_of("c"), bytes_of("x")};
    options.commits = NULL;
    write_rows(f, "abc");
    write_overflow_row(f, "b");
    assert_ok(row_records_read(&records, f->rows, &options, keys, 4));
    write_change(f, "c", set_cell(f, FAMILY_F, "q", 1, "new"));
    assert_string_equal(take(f, &records, 2, "c"), "c"); /* as old as the call */
    assert_string_equal(take(f, &records, 0, "a"), "a");
    assert_string_equal(take(f, &records, 1, "b"), "0123456789");
    assert_null(take(f, &records, 3, "x"));
    assert_false(row_records_has(&records, 4));
    row_records_rest(&records);
    assert_false(row_records_has(&records, 0));
    row_records_free(&records);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_range_is_read_in_order, setup, teardown),
        cmocka_unit_test_setup_teardown(a_paused_range_goes_on_after_its_last_row, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_not_cached_is_said_and_then_read, setup, teardown),
        cmocka_unit_test_setup_teardown(rows_without_cells_are_passed_over, setup, teardown),
        cmocka_unit_test_setup_teardown(rows_are_skipped_by_their_key, setup, teardown),
        cmocka_unit_test_setup_teardown(a_row_that_is_too_large_does_not_end_the_range, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_row_is_as_it_is_when_it_is_reached, setup, teardown),
        cmocka_unit_test_setup_teardown(readers_say_which_rows_want_maintenance, setup, teardown),
        cmocka_unit_test_setup_teardown(values_are_got_one_by_one, setup, teardown),
        cmocka_unit_test_setup_teardown(values_are_of_the_instant_of_their_row, setup, teardown),
        cmocka_unit_test_setup_teardown(values_outlive_their_age_for_a_moment, setup, teardown),
        cmocka_unit_test_setup_teardown(a_value_that_was_collected_aborts, setup, teardown),
        cmocka_unit_test_setup_teardown(a_value_that_is_not_cached_is_said_to_be_so, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_range_stops_at_an_absent_row_that_wants_maintenance,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_looked_at_at_once_is_not_cached, setup, teardown),
        cmocka_unit_test_setup_teardown(records_that_are_read_at_once_are_taken_in_any_order, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
