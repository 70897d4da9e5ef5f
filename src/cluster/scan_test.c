/* Tests of scans: of those whose filters look at values that were left in the store, and of how far
 * one says that it has come. */
#include "base/testing/testing.h"
#include "cluster/cluster_private.h"
#include "cluster/testing/testing.h"
#include "google/bigtable/v2/data.pb-c.h"

/* Of a row's values the first two are kept. */
enum { CELLS = 6, VALUE_BYTES = SCAN_VALUES_KEPT / 2 };

static const char *const names[CELLS] = {"a", "b", "c", "d", "e", "f"};

/* Cells f:a@1 to f:f@1, their values so many of the letter, or another. */
static void write_large_row(struct cluster_fixture *f, const char *row_key, char letter)
{
    struct row_change *change = row_change_create(f->arena);
    assert_non_null(change);
    for (size_t i = 0; i < CELLS; i++) {
        uint8_t *value = arena_alloc(f->arena, VALUE_BYTES);
        assert_non_null(value);
        memset(value, letter == 0 ? names[i][0] : letter, VALUE_BYTES);
        row_change_set(change, FAMILY_F, bytes_of(names[i]), 1, bytes_make(value, VALUE_BYTES));
    }
    assert_ok(try_write(f, row_key, change));
}

static int setup(void **state)
{
    *state = cluster_fixture_create(NULL);
    return 0;
}

static int teardown(void **state)
{
    cluster_fixture_destroy(*state);
    return 0;
}

/* --- a scan --- */

struct filtered {
    struct arena *arena;
    struct filter *filter;
    struct scan *scan;
    struct scan_row row;
};

/* Of values that begin with `from` or a letter after it; of the range, or the single key. */
static struct filtered start_of(struct cluster_fixture *f, struct key_range range, const char *from,
                                bool (*is_given_up)(const void *context), const void *context,
                                bool is_background)
{
    struct filtered filtered = {.arena = arena_create(1 << 20)};
    const struct filter_spec spec = {.kind = FILTER_VALUE_RANGE,
                                     .range = {.has_start = true, .start = bytes_of(from)}};
    assert_non_null(filtered.arena);
    assert_ok(filter_compile(&spec, filtered.arena, &filtered.filter));
    struct key_range *ranges = arena_alloc(filtered.arena, sizeof *ranges);
    assert_non_null(ranges);
    *ranges = range;
    assert_ok(scan_create(&(struct scan_spec){.table = f->table,
                                              .ranges = ranges,
                                              .range_count = 1,
                                              .schema = table_schema(f->table),
                                              .filter = filtered.filter,
                                              .defers_values = true,
                                              .is_given_up = is_given_up,
                                              .is_background = is_background,
                                              .context = context,
                                              .arena = filtered.arena},
                          &filtered.scan));
    return filtered;
}

static struct filtered start(struct cluster_fixture *f, struct key_range range, const char *from,
                             bool (*is_given_up)(const void *context), const void *context)
{
    return start_of(f, range, from, is_given_up, context, false);
}

static const struct key_range everything;
static const struct key_range row_a = {.from = {.data = (const uint8_t *)"a", .size = 1},
                                       .to = {.data = (const uint8_t *)"a", .size = 2},
                                       .is_point = true};

static void end(struct filtered *filtered)
{
    scan_destroy(filtered->scan);
    filter_destroy(filtered->filter);
    arena_destroy(filtered->arena);
}

static enum row_outcome next(struct filtered *filtered, enum store_read_tier read_tier)
{
    enum row_outcome outcome;
    do
        assert_ok(scan_next(filtered->scan, read_tier, &filtered->row, &outcome));
    while (outcome == ROW_ABSENT);
    return outcome;
}

static void assert_value(struct filtered *filtered, const struct cell *cell)
{
    bytes value = cell->value;
    enum row_outcome outcome = ROW_FOUND;
    if (cell_is_deferred(cell))
        assert_ok(scan_load_value(filtered->scan, cell, STORE_READ_ANY, &value, &outcome));
    assert_int_equal(outcome, ROW_FOUND);
    assert_int_equal(value.size, VALUE_BYTES);
    assert_int_equal(value.data[0], cell->qualifier.data[0]);
    assert_int_equal(value.data[value.size - 1], cell->qualifier.data[0]);
}

/* The row as written, from the cell of that place on. */
static void assert_row_from(struct filtered *filtered, const char *row_key, size_t first)
{
    assert_true(bytes_equal(filtered->row.key, bytes_of(row_key)));
    assert_int_equal(filtered->row.cells->count, CELLS - first);
    for (size_t i = 0; i < filtered->row.cells->count; i++) {
        const struct cell *cell = &filtered->row.cells->items[i];
        assert_int_equal(cell->qualifier.data[0], names[first + i][0]);
        assert_int_equal(cell_is_deferred(cell), first + i >= 2);
        assert_value(filtered, cell);
    }
}

/* --- tests --- */

static void a_filter_gets_the_values_that_were_left(void **state)
{
    struct cluster_fixture *f = *state;
    write_large_row(f, "a", 0);
    for (size_t first = 0; first < CELLS; first++) {
        struct filtered filtered =
            start(f, first % 2 == 0 ? everything : row_a, names[first], NULL, NULL);
        assert_int_equal(next(&filtered, STORE_READ_ANY), ROW_FOUND);
        assert_true(filtered.row.has_deferred);
        assert_row_from(&filtered, "a", first);
        assert_int_equal(next(&filtered, STORE_READ_ANY), ROW_END);
        end(&filtered);
    }
}

/* However much of it is in memory: a loop has no time for that. */
static void a_row_with_values_left_is_not_for_the_loop(void **state)
{
    struct cluster_fixture *f = *state;
    const struct key_range ranges[] = {everything, row_a};
    set_cell(f, "0", "d");
    write_large_row(f, "a", 0);
    set_cell(f, "b", "e");
    for (size_t i = 0; i < 2; i++) {
        struct filtered filtered = start(f, ranges[i], "c", NULL, NULL);
        if (!ranges[i].is_point)
            assert_int_equal(next(&filtered, STORE_READ_CACHED), ROW_FOUND);
        assert_int_equal(next(&filtered, STORE_READ_CACHED), ROW_NOT_CACHED);
        scan_pause(filtered.scan);
        assert_int_equal(next(&filtered, STORE_READ_CACHED), ROW_NOT_CACHED);
        assert_int_equal(next(&filtered, STORE_READ_ANY), ROW_FOUND);
        assert_row_from(&filtered, "a", 2);
        if (!ranges[i].is_point)
            assert_int_equal(next(&filtered, STORE_READ_CACHED), ROW_FOUND);
        assert_int_equal(next(&filtered, STORE_READ_CACHED), ROW_END);
        assert_int_equal(scan_counts(filtered.scan).rows_seen, ranges[i].is_point ? 1 : 3);
        end(&filtered);
    }
}

/* Values in a write buffer, which no file is read for: so it is their size that counts. */
static void a_filter_waits_for_room_for_the_largest_value(void **state)
{
    struct cluster_fixture *f = *state;
    const struct key_range ranges[] = {everything, row_a};
    write_large_row(f, "a", 0);
    for (size_t i = 0; i < 4; i++) {
        struct filtered filtered = start_of(f, ranges[i % 2], "c", NULL, NULL, i >= 2);
        struct store_read_bound all =
            store_bound_reads((struct store_read_bound){.most = VALUE_BYTES - 1});
        assert_int_equal(next(&filtered, STORE_READ_ANY), ROW_NOT_CACHED);
        struct store_read_bound bound =
            store_bound_reads((struct store_read_bound){.most = VALUE_BYTES});
        assert_int_equal(bound.refused, VALUE_BYTES);
        assert_int_equal(next(&filtered, STORE_READ_ANY), ROW_FOUND);
        assert_row_from(&filtered, "a", 2);
        bound = store_bound_reads(all);
        assert_int_equal(bound.refused, 0);
        end(&filtered);
    }
}

static void what_passes_is_of_the_instant_of_its_row(void **state)
{
    struct cluster_fixture *f = *state;
    write_large_row(f, "a", 0);
    struct filtered filtered = start(f, row_a, "b", NULL, NULL);
    assert_int_equal(next(&filtered, STORE_READ_ANY), ROW_FOUND);
    write_large_row(f, "a", 'z');
    assert_row_from(&filtered, "a", 1);
    end(&filtered);
}

static void a_row_of_which_none_passes_does_not_come(void **state)
{
    struct cluster_fixture *f = *state;
    write_large_row(f, "a", 0);
    write_large_row(f, "b", 'z');
    struct filtered filtered = start(f, everything, "y", NULL, NULL);
    assert_int_equal(next(&filtered, STORE_READ_ANY), ROW_FOUND);
    assert_true(bytes_equal(filtered.row.key, bytes_of("b")));
    assert_int_equal(next(&filtered, STORE_READ_ANY), ROW_END);
    end(&filtered);
}

/* So that it may share a message with others. */
static void what_passes_may_have_no_value_left(void **state)
{
    struct cluster_fixture *f = *state;
    write_large_row(f, "a", 'a');
    struct row_change *change = row_change_create(f->arena);
    assert_non_null(change);
    row_change_set(change, FAMILY_G, bytes_of("q"), 1, bytes_of("small"));
    assert_ok(try_write(f, "a", change));
    struct filtered filtered = start(f, row_a, "s", NULL, NULL);
    assert_int_equal(next(&filtered, STORE_READ_ANY), ROW_FOUND);
    assert_int_equal(filtered.row.cells->count, 1);
    assert_false(filtered.row.has_deferred);
    end(&filtered);
}

/* At the question with this number. */
struct impatience {
    int *asked;
    int most;
};

static bool is_out_of_patience(const void *context)
{
    const struct impatience *impatience = context;
    return ++*impatience->asked == impatience->most;
}

static void a_filter_may_be_given_up_within_a_row(void **state)
{
    struct cluster_fixture *f = *state;
    int asked = 0;
    enum row_outcome outcome;
    const struct impatience impatience = {.asked = &asked, .most = 3};
    write_large_row(f, "a", 0);
    struct filtered filtered = start(f, row_a, "a", is_out_of_patience, &impatience);
    status s = scan_next(filtered.scan, STORE_READ_ANY, &filtered.row, &outcome);
    assert_int_equal(s.code, STATUS_CANCELLED);
    status_free(s);
    assert_int_equal(asked, 3);
    end(&filtered);
}

/* Its reader goes with the tablet, and what the next tablets have none of says nothing. */
static void what_was_scanned_last_outlives_its_tablet(void **state)
{
    struct cluster_fixture *f = *state;
    set_cell(f, "a", "v");
    set_cell(f, "b", "v");
    split_at(f, "m");
    split_at(f, "t");
    struct filtered filtered = start(f, everything, "z", NULL, NULL);
    assert_int_equal(scan_last_scanned(filtered.scan).size, 0);
    assert_int_equal(next(&filtered, STORE_READ_ANY), ROW_END);
    assert_true(bytes_equal(scan_last_scanned(filtered.scan), bytes_of("b")));
    end(&filtered);
}

/* --- points in the background --- */

enum { POINTS = 100 };

/* Of rows from p00 on each third is there. */
static struct key_range *write_points(struct cluster_fixture *f)
{
    struct key_range *points = arena_zalloc(f->arena, POINTS * sizeof *points);
    assert_non_null(points);
    for (size_t i = 0; i < POINTS; i++) {
        char key[8];
        snprintf(key, sizeof key, "p%02zu", i);
        points[i].from = arena_copy(f->arena, bytes_of(key));
        points[i].is_point = true;
        if (i % 3 == 0)
            set_cell(f, key, "v");
    }
    return points;
}

static void assert_points(struct cluster_fixture *f, const struct key_range *points, bool reversed)
{
    struct filtered filtered = {.arena = arena_create(1 << 20)};
    const struct scan_spec spec = {.table = f->table,
                                   .ranges = points,
                                   .range_count = POINTS,
                                   .reversed = reversed,
                                   .schema = table_schema(f->table),
                                   .is_background = true,
                                   .arena = filtered.arena};
    assert_non_null(filtered.arena);
    assert_ok(scan_create(&spec, &filtered.scan));
    size_t found = 0;
    for (enum row_outcome outcome; (outcome = next(&filtered, STORE_READ_ANY)) != ROW_END;) {
        size_t at = reversed ? (POINTS - 1) / 3 - found : found;
        assert_true(bytes_equal(filtered.row.key, points[3 * at].from));
        assert_int_equal(filtered.row.cells->count, 1);
        if (++found % 7 == 0)
            scan_pause(filtered.scan);
    }
    assert_int_equal(found, (POINTS + 2) / 3);
    end(&filtered);
}

/* Records are read ahead, of one tablet each time. */
static void points_in_the_background_come_in_order(void **state)
{
    struct cluster_fixture *f = *state;
    struct key_range *points = write_points(f);
    split_at(f, "p31");
    split_at(f, "p32");
    for (int times = 0; times < 2; times++) {
        assert_points(f, points, false);
        assert_points(f, points, true);
        assert_ok(keyspace_flush(f->table->spaces[0].keyspace));
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_filter_gets_the_values_that_were_left),
        TEST(a_row_with_values_left_is_not_for_the_loop),
        TEST(a_filter_waits_for_room_for_the_largest_value),
        TEST(what_passes_is_of_the_instant_of_its_row),
        TEST(a_row_of_which_none_passes_does_not_come),
        TEST(what_passes_may_have_no_value_left),
        TEST(a_filter_may_be_given_up_within_a_row),
        TEST(what_was_scanned_last_outlives_its_tablet),
        TEST(points_in_the_background_come_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
