/* Tests of how a table's keys are parted for counting. */
#include "cluster/heat/heat_choice.h"

#include "cluster/heat/heat_part.h"
#include "cluster/testing/testing.h"

/* The test alone chooses ranges: maintenance, once a second, could choose while it writes. */
static int setup(void **state)
{
    struct cluster_fixture *f = cluster_fixture_create(NULL);
    maintenance_stop(f->cluster->maintenance);
    f->cluster->maintenance = NULL;
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    cluster_fixture_destroy(*state);
    return 0;
}

static struct heat_ranges *choose_walking(struct cluster_fixture *f, size_t most, size_t walked)
{
    struct heat_ranges *ranges;
    uint64_t size;
    assert_ok(heat_choose_ranges(f->table, most, walked, &size, &ranges));
    return ranges;
}

static struct heat_ranges *choose(struct cluster_fixture *f, size_t most)
{
    return choose_walking(f, most, HEAT_MOST_WALKED);
}

static void fill(struct cluster_fixture *f, const char *prefix, unsigned from, unsigned count)
{
    char row[64], value[200];
    memset(value, 'v', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    for (unsigned i = from; i < from + count; i++) {
        snprintf(row, sizeof row, "%s%05u", prefix, i);
        set_cell(f, row, value);
    }
}

/* How many of the rows that fill has made are in the fullest range. */
static unsigned most_rows(const struct heat_ranges *ranges, const char *prefix, unsigned count)
{
    unsigned rows[HEAT_MOST_RANGES] = {0}, most = 0;
    char row[64];
    for (unsigned i = 0; i < count; i++) {
        snprintf(row, sizeof row, "%s%05u", prefix, i);
        unsigned *in = &rows[heat_ranges_find(ranges, bytes_of(row))];
        if (++*in > most)
            most = *in;
    }
    return most;
}

static void an_empty_table_has_one_range(void **state)
{
    struct heat_ranges *ranges = choose(*state, 100);
    assert_int_equal(ranges->count, 1);
    heat_ranges_destroy(ranges);
}

static void tablets_begin_ranges(void **state)
{
    struct cluster_fixture *f = *state;
    split_at(f, "m");
    split_at(f, "q");
    struct heat_ranges *ranges = choose(f, 100);
    assert_int_equal(ranges->count, 3);
    assert_true(bytes_equal(heat_range_start(ranges, 1), bytes_of("m")));
    heat_ranges_destroy(ranges);
}

static void ranges_have_about_the_same_size(void **state)
{
    struct cluster_fixture *f = *state;
    enum { ROWS = 1000, MOST = 50 };
    fill(f, "some/long/prefix/that/all/have/", 0, ROWS);
    for (unsigned turn = 0; turn < 2; turn++) {
        struct heat_ranges *ranges = choose(f, MOST);
        assert_in_range(ranges->count, MOST / 4, MOST);
        assert_true(most_rows(ranges, "some/long/prefix/that/all/have/", ROWS) < 4 * ROWS / MOST);
        assert_true(bytes_start_with(heat_range_start(ranges, 1), bytes_of("some/long/prefix/")));
        heat_ranges_destroy(ranges);
        assert_ok(keyspace_flush(f->table->tablets[0]->keyspace));
    }
}

static unsigned count_rows(const struct heat_ranges *ranges)
{
    unsigned rows = 0;
    for (size_t i = 0; i < ranges->count; i++)
        rows += ranges->rows[i];
    return rows;
}

/* Not where some of them were too many to look at. */
static void rows_are_counted_with_their_ranges(void **state)
{
    struct cluster_fixture *f = *state;
    enum { ROWS = 300, MOST = 50 };
    fill(f, "a", 0, ROWS);
    fill(f, "m", 0, ROWS);
    split_at(f, "m");
    struct heat_ranges *ranges = choose(f, MOST);
    assert_int_equal(count_rows(ranges), 2 * ROWS);
    for (size_t i = 0; i < ranges->count; i++)
        assert_in_range(ranges->rows[i], 1, 4 * 2 * ROWS / MOST);
    size_t first = heat_ranges_find(ranges, bytes_of("m00000"));
    assert_true(bytes_equal(heat_range_start(ranges, first), bytes_of("m")));
    heat_ranges_destroy(ranges);
    ranges = choose_walking(f, MOST, ROWS + 10);
    assert_null(ranges->rows);
    heat_ranges_destroy(ranges);
}

/* They lie in a file as they were. Some are written anew. */
static void dropped_rows_are_not_counted(void **state)
{
    struct cluster_fixture *f = *state;
    enum { ROWS = 300, NEW = 20, MOST = 50 };
    f->options.maintenance_by_hand = true;
    reopen_test_cluster(f);
    fill(f, "a", 0, ROWS);
    fill(f, "m", 0, ROWS);
    assert_ok(keyspace_compact(f->table->tablets[0]->keyspace, bytes_of(""), bytes_of("")));
    assert_ok(table_drop_rows(f->table, bytes_of("a")));
    fill(f, "a", 0, NEW);
    struct heat_ranges *ranges = choose(f, MOST);
    assert_int_equal(count_rows(ranges), NEW + ROWS);
    assert_true(most_rows(ranges, "m", ROWS) < 4 * (NEW + ROWS) / MOST);
    heat_ranges_destroy(ranges);
}

/* Rows of large cells have a mark in their records, and nothing else. */
static void rows_that_came_behind_a_drop_are_counted(void **state)
{
    struct cluster_fixture *f = *state;
    enum { MOST = 50 };
    char large[600];
    memset(large, 'x', sizeof large - 1);
    large[sizeof large - 1] = 0;
    f->options.maintenance_by_hand = true;
    f->options.overflow_bytes = 256;
    reopen_test_cluster(f);
    fill(f, "a", 0, 10);
    assert_ok(table_drop_rows(f->table, bytes_of("")));
    set_cell(f, "b", large);
    struct heat_ranges *ranges = choose(f, MOST);
    assert_int_equal(count_rows(ranges), 1);
    heat_ranges_destroy(ranges);
}

/* Who holds the drops has them still, and nobody else. */
static void rows_that_are_kept_for_a_backup_are_not_counted(void **state)
{
    struct cluster_fixture *f = *state;
    struct row_drops *drops = f->table->spaces[0].drops;
    enum { ROWS = 30, MOST = 50 };
    fill(f, "a", 0, ROWS);
    fill(f, "m", 0, ROWS);
    row_drops_hold(drops);
    assert_ok(table_drop_rows(f->table, bytes_of("a")));
    struct heat_ranges *ranges = choose(f, MOST);
    assert_int_equal(count_rows(ranges), ROWS);
    heat_ranges_destroy(ranges);
    row_drops_let_go(drops);
}

/* In a file, where sizes are those of blocks. */
static void where_rows_are_too_many_to_look_at_keys_are_halved(void **state)
{
    struct cluster_fixture *f = *state;
    enum { ROWS = 20000, MOST = 50 };
    fill(f, "row/", 0, ROWS);
    assert_ok(keyspace_flush(f->table->tablets[0]->keyspace));
    struct heat_ranges *ranges = choose_walking(f, MOST, ROWS / 2);
    assert_in_range(ranges->count, MOST / 4, MOST);
    assert_true(most_rows(ranges, "row/", ROWS) < 4 * ROWS / MOST);
    heat_ranges_destroy(ranges);
}

static void keys_are_halved_where_rows_are_left(void **state)
{
    struct cluster_fixture *f = *state;
    enum { ROWS = 10000, MOST = 50 };
    f->options.maintenance_by_hand = true;
    reopen_test_cluster(f);
    fill(f, "a", 0, ROWS);
    fill(f, "m", 0, ROWS);
    assert_ok(keyspace_flush(f->table->tablets[0]->keyspace));
    assert_ok(table_drop_rows(f->table, bytes_of("a")));
    struct heat_ranges *ranges = choose_walking(f, MOST, ROWS / 2);
    assert_true(most_rows(ranges, "m", ROWS) < 4 * ROWS / MOST);
    assert_int_equal(most_rows(ranges, "a", ROWS), ROWS); /* in one, as nothing */
    heat_ranges_destroy(ranges);
}

static void chosen_ranges_follow_the_data(void **state)
{
    struct cluster_fixture *f = *state;
    enum { ROWS = 500, MOST = 64 };
    fill(f, "a/", 0, ROWS);
    struct heat_ranges *before = choose(f, MOST);
    assert_int_equal(heat_ranges_find(before, bytes_of("z/00000")), before->count - 1);
    fill(f, "z/", 0, ROWS);
    struct heat_ranges *after = choose(f, MOST);
    size_t first = heat_ranges_find(after, bytes_of("z/00000"));
    assert_true(first > after->count / 4 && first < after->count * 3 / 4);
    assert_true(most_rows(after, "z/", ROWS) < ROWS / 8);
    heat_ranges_destroy(before);
    heat_ranges_destroy(after);
}

static double part_of_data(const struct heat_ranges *ranges, const char *from, const char *to)
{
    double part;
    assert_ok(heat_part_of_sections(ranges, NULL, bytes_of(from), bytes_of(to), &part));
    double of_bytes = heat_part_of_data(ranges, bytes_of(from), bytes_of(to));
    return of_bytes > part ? of_bytes : part;
}

/* By the store's estimates ten rows that wait in a write buffer two hundred times have two thirds
 * of the data: those of a tablet of their own would, beside other tablets. */
static void rows_that_are_written_over_weigh_what_they_have(void **state)
{
    struct cluster_fixture *f = *state;
    enum { ROWS = 1000, HOT = 10 };
    fill(f, "a", 0, ROWS);
    for (unsigned turn = 0; turn < 200; turn++)
        fill(f, "a", 500, HOT);
    for (unsigned tablets = 1; tablets <= 5; tablets++) {
        struct heat_ranges *ranges = choose(f, HEAT_MOST_RANGES);
        assert_true(part_of_data(ranges, "a00500", "a00510") <= 0.02);
        assert_true(most_rows(ranges, "a", ROWS) <= 4);
        heat_ranges_destroy(ranges);
        split_at(f,
                 (const char *[]){"a00500", "a00510", "a00505", "a00507", "a00900"}[tablets - 1]);
    }
}

static void there_are_never_more_than_allowed(void **state)
{
    struct cluster_fixture *f = *state;
    fill(f, "a/", 0, 100);
    for (const char *at = "b\0c\0d\0e\0f\0g\0h\0i\0j\0"; *at != '\0'; at += 2)
        split_at(f, at);
    for (size_t most = 1; most < 20; most++) {
        struct heat_ranges *ranges = choose(f, most);
        assert_in_range(ranges->count, 1, most);
        heat_ranges_destroy(ranges);
    }
}

static unsigned most_of_data(struct cluster_fixture *f, const char *prefix, unsigned count)
{
    struct heat_ranges *ranges;
    assert_ok(heat_table_data(f->table, HEAT_MOST_RANGES, HEAT_MOST_WALKED, &ranges));
    unsigned most = most_rows(ranges, prefix, count);
    heat_ranges_destroy(ranges);
    return most;
}

/* A page of the console asks every few seconds where the data is. */
static void a_question_for_the_data_gets_the_counted_ranges(void **state)
{
    struct cluster_fixture *f = *state;
    fill(f, "a", 0, 1000);
    heat_table_choose(f->table, HEAT_MOST_RANGES, false, true);
    assert_true(most_of_data(f, "a", 1000) < 10);
    fill(f, "z", 0, 50);
    assert_int_equal(most_of_data(f, "z", 50), 50); /* no ranges were chosen since */
    fill(f, "z", 50, 450);
    assert_true(most_of_data(f, "z", 500) < 10); /* too many by now: they were chosen again */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_empty_table_has_one_range, setup, teardown),
        cmocka_unit_test_setup_teardown(tablets_begin_ranges, setup, teardown),
        cmocka_unit_test_setup_teardown(ranges_have_about_the_same_size, setup, teardown),
        cmocka_unit_test_setup_teardown(rows_are_counted_with_their_ranges, setup, teardown),
        cmocka_unit_test_setup_teardown(dropped_rows_are_not_counted, setup, teardown),
        cmocka_unit_test_setup_teardown(rows_that_came_behind_a_drop_are_counted, setup, teardown),
        cmocka_unit_test_setup_teardown(rows_that_are_kept_for_a_backup_are_not_counted, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(keys_are_halved_where_rows_are_left, setup, teardown),
        cmocka_unit_test_setup_teardown(where_rows_are_too_many_to_look_at_keys_are_halved, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(chosen_ranges_follow_the_data, setup, teardown),
        cmocka_unit_test_setup_teardown(rows_that_are_written_over_weigh_what_they_have, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(there_are_never_more_than_allowed, setup, teardown),
        cmocka_unit_test_setup_teardown(a_question_for_the_data_gets_the_counted_ranges, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
