/* Tests of heat that is kept, over windows, ten minutes, hours, and starts. Time passes when a test
 * says so. */
#include "cluster/heat/heat_matrix.h"

#include "cluster/heat/heat_store.h"
#include "cluster/row_group.h"
#include "cluster/testing/heat_testing.h"
#include "cluster/testing/update_testing.h"

static void write_rows(struct cluster_fixture *f, const char *prefix, unsigned count)
{
    char row[32];
    for (unsigned i = 0; i < count; i++) {
        snprintf(row, sizeof row, "%s%04u", prefix, i);
        set_cell(f, row, "some value that has a length");
    }
}

static struct heat_matrix read_matrix(struct cluster_fixture *f, int64_t from_us)
{
    struct heat_matrix matrix;
    assert_ok(
        heat_matrix_read(f->table, from_us, hands.now_us, HEAT_MOST_RANGES, f->arena, &matrix));
    return matrix;
}

static struct heat_record sum_of(struct cluster_fixture *f, int64_t from_us)
{
    struct heat_matrix matrix = read_matrix(f, from_us);
    struct heat_record sum;
    assert_ok(heat_matrix_sum(&matrix, f->arena, &sum));
    return sum;
}

static uint64_t total(const struct heat_record *record, enum heat_number number)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < record->count; i++)
        sum += record->entries[i].sum.numbers[number];
    return sum;
}

static uint64_t total_under(const struct heat_record *record, const char *prefix,
                            enum heat_number number)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < record->count; i++)
        if (bytes_start_with(record->entries[i].start, bytes_of(prefix)))
            sum += record->entries[i].sum.numbers[number];
    return sum;
}

/* --- counting, by every way there is to a row --- */

static void read_range(struct cluster_fixture *f, bool is_point)
{
    struct key_range range = {
        .from = bytes_of("a0000"), .to = bytes_of("a0010"), .is_point = is_point};
    struct buffer text = {0};
    assert_ok(scan_text(f, &range, 1, false, 0, &text));
    buffer_free(&text);
}

struct counted_update {
    struct test_update base; /* first */
    struct cluster_fixture *fixture;
};

static status decide(struct row_update *update, const struct cell_list *cells,
                     struct packed_change *change, bool *writes)
{
    struct counted_update *self = (struct counted_update *)(void *)update;
    (void)cells;
    *writes = true;
    return row_change_pack(setting(self->fixture, FAMILY_F, "q", 2, "w"), 1 << 20, change);
}

static void update_row(struct cluster_fixture *f, const char *row)
{
    struct counted_update self = {.base.update = {.decide = decide}, .fixture = f};
    test_update_run(f, &self.base, row);
}

static void write_group(struct cluster_fixture *f)
{
    struct grouped_row rows[] = {{.row_key = bytes_of("a0001")}, {.row_key = bytes_of("z0001")}};
    struct row_group group = {.table = f->table, .rows = rows, .count = 2, .arena = f->arena};
    for (unsigned i = 0; i < 2; i++)
        assert_ok(row_change_pack(setting(f, FAMILY_F, "q", 3, "v"), 1 << 20, &rows[i].change));
    assert_ok(row_group_write(&group));
}

static void every_kind_of_request_is_counted(void **state)
{
    struct cluster_fixture *f = *state;
    write_rows(f, "a", 20);
    pass(f, MINUTE_US);
    int64_t from_us = hands.now_us;
    read_range(f, false);
    read_range(f, true);
    update_row(f, "a0003");
    write_group(f);
    pass(f, MINUTE_US);
    struct heat_record sum = sum_of(f, from_us);
    assert_int_equal(total(&sum, HEAT_READS), 10 + 1 + 1);
    assert_int_equal(total(&sum, HEAT_TIMED_READS), 2);
    assert_int_equal(total(&sum, HEAT_WRITES), 1 + 2);
    assert_int_equal(total(&sum, HEAT_TIMED_WRITES), 3);
    assert_int_equal(total_under(&sum, "z", HEAT_WRITES), 0); /* it has no range of its own yet */
    assert_true(total(&sum, HEAT_READ_BYTES) > 11 * strlen("some value that has a length"));
    assert_true(total(&sum, HEAT_WRITTEN_BYTES) > 0);
    assert_true(total(&sum, HEAT_LARGEST_ROW) > strlen("some value that has a length"));
}

static void nothing_is_counted_if_it_is_switched_off(void **state)
{
    struct cluster_fixture *f = *state;
    f->options.heat = false;
    reopen_test_cluster(f);
    write_rows(f, "a", 20);
    read_range(f, false);
    pass(f, MINUTE_US);
    pass(f, MINUTE_US);
    assert_int_equal(read_matrix(f, 0).time_count, 0);
    struct table *kept;
    assert_status(cluster_table(f->cluster, bytes_of(HEAT_TABLE), &kept), STATUS_NOT_FOUND);
}

/* --- ranges --- */

static void a_hot_range_stands_out(void **state)
{
    struct cluster_fixture *f = *state;
    write_rows(f, "cold", 200);
    write_rows(f, "hot", 20);
    write_rows(f, "warm", 200);
    pass(f, MINUTE_US);
    int64_t from_us = hands.now_us;
    for (unsigned i = 0; i < 9; i++)
        write_rows(f, "hot", 20);
    write_rows(f, "cold", 20);
    pass(f, MINUTE_US);
    struct heat_record sum = sum_of(f, from_us);
    struct heat_run run = heat_busiest_run(&sum, 0, sum.count - 1, 1u << HEAT_WRITES, 0.85);
    assert_true(bytes_start_with(sum.entries[run.first].start, bytes_of("hot")) ||
                bytes_start_with(sum.entries[run.first].end, bytes_of("hot")));
    assert_true(bytes_compare(sum.entries[run.last].end, bytes_of("warm0005")) < 0);
    assert_int_equal(total(&sum, HEAT_WRITES), 200);
    assert_in_range(total_under(&sum, "hot", HEAT_WRITES), 160, 180);
}

/* Where else most writes are seen depends on whether maintenance came by in the middle of the load.
 */
static void ranges_follow_what_is_written_within_a_window(void **state)
{
    struct cluster_fixture *f = *state;
    set_cell(f, "a", "v");
    pass(f, 1000000); /* now it has ranges: one */
    write_rows(f, "a", 3000);
    pass(f, 1000000); /* more than was there by far */
    write_rows(f, "a", 100);
    pass(f, MINUTE_US);
    struct heat_record sum = sum_of(f, 0);
    size_t fine = 0;
    for (size_t i = 0; i < sum.count; i++)
        fine += bytes_start_with(sum.entries[i].start, bytes_of("a00"));
    assert_in_range(total(&sum, HEAT_WRITES), 2800, 3400); /* so many are estimated */
    assert_true(fine > 10);
}

/* --- time --- */

/* By what maintenance sees once a second; what reads and splits do is no write. */
static void how_long_nothing_was_written_is_known(void **state)
{
    struct cluster_fixture *f = *state;
    enum { SECOND = 1000000 };
    assert_int_equal(heat_unwritten_us(f->table), 0);
    write_rows(f, "a", 10);
    assert_int_equal(heat_unwritten_us(f->table), 0);
    for (unsigned i = 0; i < 3; i++) {
        pass(f, SECOND);
        assert_int_equal(heat_unwritten_us(f->table), i * SECOND);
        read_range(f, false);
    }
    write_rows(f, "a", 1);
    pass(f, SECOND);
    assert_int_equal(heat_unwritten_us(f->table), 0);
    pass(f, MINUTE_US);
    pass(f, MINUTE_US);
    assert_int_equal(heat_unwritten_us(f->table), 2 * MINUTE_US);
}

static void each_window_has_its_column(void **state)
{
    struct cluster_fixture *f = *state;
    for (unsigned i = 1; i <= 3; i++) {
        write_rows(f, "a", 10 * i);
        pass(f, MINUTE_US);
    }
    pass(f, MINUTE_US); /* nothing happened in it */
    struct heat_matrix matrix = read_matrix(f, 0);
    assert_int_equal(matrix.time_count, 3);
    for (unsigned i = 0; i < 3; i++) {
        uint64_t writes = 0;
        assert_int_equal(matrix.times[i].from_us, BEGIN_US + i * MINUTE_US);
        assert_int_equal(matrix.times[i].until_us, BEGIN_US + (i + 1) * MINUTE_US);
        for (size_t range = 0; range < matrix.range_count; range++)
            if (matrix.times[i].sums[range] != NULL)
                writes += matrix.times[i].sums[range]->numbers[HEAT_WRITES];
        assert_int_equal(writes, 10 * (i + 1));
    }
}

static void the_open_window_is_the_last_column(void **state)
{
    struct cluster_fixture *f = *state;
    write_rows(f, "a", 10);
    hands.now_us += MINUTE_US / 4;
    struct heat_matrix matrix = read_matrix(f, 0); /* without a word by maintenance */
    assert_int_equal(matrix.time_count, 1);
    assert_true(matrix.ends_open);
    assert_int_equal(matrix.times[0].from_us, BEGIN_US);
    assert_int_equal(matrix.times[0].until_us, BEGIN_US + MINUTE_US / 4);
    assert_true(matrix.times[0].cpu_percent == 0); /* maintenance has not looked yet */
    pass(f, MINUTE_US / 4); /* now it has ranges that fit: what was counted is a part */
    matrix = read_matrix(f, 0);
    assert_true(matrix.times[0].cpu_percent > 0);
    write_rows(f, "a", 7);
    struct heat_record sum = sum_of(f, 0);
    assert_int_equal(total(&sum, HEAT_WRITES), 17);
    assert_int_equal(total_under(&sum, "a0006", HEAT_WRITES), 2);
    pass(f, MINUTE_US);
    matrix = read_matrix(f, 0);
    assert_int_equal(matrix.time_count, 1); /* it is not there twice */
    assert_false(matrix.ends_open);
    write_rows(f, "a", 5);
    hands.now_us += MINUTE_US / 4;
    sum = sum_of(f, 0);
    assert_int_equal(total(&sum, HEAT_WRITES), 22);
    sum = sum_of(f, hands.now_us + 1); /* it began before that */
    assert_int_equal(sum.count, 0);
}

static void times_become_one(void **state)
{
    struct cluster_fixture *f = *state;
    for (unsigned i = 0; i < 10; i++) {
        set_cell(f, i < 5 ? "a" : "z", "v");
        pass(f, MINUTE_US);
    }
    struct heat_matrix matrix = read_matrix(f, BEGIN_US);
    assert_int_equal(matrix.time_count, 10);
    assert_ok(heat_matrix_join(&matrix, BEGIN_US, hands.now_us, 10, f->arena));
    assert_int_equal(matrix.time_count, 10);
    assert_ok(heat_matrix_join(&matrix, BEGIN_US, hands.now_us, 3, f->arena));
    assert_int_equal(matrix.time_count, 3);
    assert_int_equal(matrix.times[0].from_us, BEGIN_US);
    assert_int_equal(matrix.times[0].until_us, BEGIN_US + 4 * MINUTE_US);
    assert_int_equal(matrix.times[2].until_us, BEGIN_US + 10 * MINUTE_US);
    struct heat_record sum;
    assert_ok(heat_matrix_sum(&matrix, f->arena, &sum));
    assert_int_equal(total(&sum, HEAT_WRITES), 10);
}

/* By the ranges of later on, of which none stands out. */
static void a_coarse_window_is_spread_evenly(void **state)
{
    struct cluster_fixture *f = *state;
    for (unsigned i = 0; i < 2; i++) {
        write_rows(f, "a", 350);
        if (i == 0)
            pass(f, MINUTE_US);
    }
    pass(f, MINUTE_US);
    struct heat_matrix matrix = read_matrix(f, BEGIN_US);
    assert_int_equal(matrix.time_count, 2);
    assert_true(matrix.range_count > 100);
    for (size_t i = 0; i < matrix.range_count; i++)
        if (matrix.times[0].sums[i] != NULL)
            assert_in_range(matrix.times[0].sums[i]->numbers[HEAT_WRITES], 0,
                            350 / matrix.range_count + 1);
}

static void a_start_changes_nothing(void **state)
{
    struct cluster_fixture *f = *state;
    write_rows(f, "a", 10);
    pass(f, MINUTE_US);
    write_rows(f, "a", 5); /* of a window that the stop cuts short */
    hands.now_us += MINUTE_US / 2;
    reopen_test_cluster(f);
    struct heat_record sum = sum_of(f, 0);
    assert_int_equal(total(&sum, HEAT_WRITES), 15);
    assert_int_equal(sum.until_us, BEGIN_US + MINUTE_US + MINUTE_US / 2);
}

/* However long that takes: more often than a window may have parts. */
static void a_window_that_cannot_be_written_is_written_later(void **state)
{
    struct cluster_fixture *f = *state;
    enum { REFUSALS = 2 * HEAT_PARTS };
    write_rows(f, "a", 10);
    pass(f, MINUTE_US);
    for (unsigned i = 0; i < REFUSALS; i++) {
        write_rows(f, "a", 3);
        refuse_writes(f, true);
        pass(f, MINUTE_US);
        refuse_writes(f, false);
    }
    assert_true(read_matrix(f, BEGIN_US).ends_open);
    struct heat_record sum = sum_of(f, BEGIN_US);
    assert_int_equal(total(&sum, HEAT_WRITES), 10 + 3 * REFUSALS);
    pass(f, 0);
    struct heat_matrix matrix = read_matrix(f, BEGIN_US);
    assert_int_equal(matrix.time_count, 2);
    assert_false(matrix.ends_open);
    assert_int_equal(matrix.times[1].from_us, BEGIN_US + MINUTE_US);
    assert_int_equal(matrix.times[1].until_us, hands.now_us);
    sum = sum_of(f, BEGIN_US);
    assert_int_equal(total(&sum, HEAT_WRITES), 10 + 3 * REFUSALS);
}

static void minutes_become_hours(void **state)
{
    struct cluster_fixture *f = *state;
    enum { HOURS = 3 };
    for (unsigned i = 0; i < HOURS * 60; i++) {
        set_cell(f, i % 2 == 0 ? "a" : "z", "v");
        pass(f, MINUTE_US);
        if (i == 75)
            reopen_test_cluster(f);
    }
    pass(f, 7 * HOUR_US); /* the minutes have gone */
    struct heat_matrix matrix = read_matrix(f, BEGIN_US);
    struct heat_record sum = sum_of(f, BEGIN_US);
    assert_int_equal(matrix.time_count, HOURS * 6);
    assert_int_equal(total(&sum, HEAT_WRITES), HOURS * 60);
    pass(f, 5 * DAY_US); /* and so have the ten minutes */
    matrix = read_matrix(f, BEGIN_US);
    sum = sum_of(f, BEGIN_US);
    assert_int_equal(matrix.time_count, HOURS);
    assert_int_equal(total(&sum, HEAT_WRITES), HOURS * 60);
    pass(f, 28 * DAY_US);
    assert_int_equal(read_matrix(f, BEGIN_US).time_count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_kind_of_request_is_counted, setup_windows,
                                        teardown_windows),
        cmocka_unit_test_setup_teardown(nothing_is_counted_if_it_is_switched_off, setup_windows,
                                        teardown_windows),
        cmocka_unit_test_setup_teardown(a_hot_range_stands_out, setup_windows, teardown_windows),
        cmocka_unit_test_setup_teardown(ranges_follow_what_is_written_within_a_window,
                                        setup_windows, teardown_windows),
        cmocka_unit_test_setup_teardown(how_long_nothing_was_written_is_known, setup_windows,
                                        teardown_windows),
        cmocka_unit_test_setup_teardown(each_window_has_its_column, setup_windows,
                                        teardown_windows),
        cmocka_unit_test_setup_teardown(the_open_window_is_the_last_column, setup_windows,
                                        teardown_windows),
        cmocka_unit_test_setup_teardown(times_become_one, setup_windows, teardown_windows),
        cmocka_unit_test_setup_teardown(a_coarse_window_is_spread_evenly, setup_windows,
                                        teardown_windows),
        cmocka_unit_test_setup_teardown(a_start_changes_nothing, setup_windows, teardown_windows),
        cmocka_unit_test_setup_teardown(a_window_that_cannot_be_written_is_written_later,
                                        setup_windows, teardown_windows),
        cmocka_unit_test_setup_teardown(minutes_become_hours, setup_windows, teardown_windows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
