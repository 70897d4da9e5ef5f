/* A row that was not in memory counted twice among those that its tablet was asked for.
 *
 * A read looks into memory first, on its connection's loop; what is not there is asked for once
 * more, on a thread that may wait for the disk. Both noted it. So a tablet that is read from the
 * disk looked twice as busy as it was to who splits tablets by their load, and had twice its share
 * of the time in the list of hot tablets.
 *
 * Here: rows of a cold table are read, and then again, by their keys and as a range. Files that are
 * not the system's own are never taken from its cache, so the first time the disk is waited for. */
#include "cluster/rows.h"
#include "cluster/table.h"
#include "cluster/testing/steps_testing.h"
#include "tablet/tablet.h"

static const char KEYS[] = "abcdefgh";

static struct tablet *only_tablet(struct cluster_fixture *f)
{
    assert_int_equal(f->table->tablet_count, 1);
    return f->table->tablets[0];
}

static unsigned long long rows_read(struct cluster_fixture *f)
{
    return atomic_load(&only_tablet(f)->rows_read);
}

static int set_up(void **state)
{
    struct cluster_fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    faults = fault_fs_create();
    make_steps_fixture(f);
    open_test_cluster(f);
    f->table = create_test_table(f->cluster, NULL);
    for (const char *key = KEYS; *key != 0; key++)
        set_cell(f, (char[]){*key, 0}, (char[]){*key, 0});
    assert_ok(keyspace_flush(only_tablet(f)->keyspace));
    reopen_test_cluster(f);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct cluster_fixture *f = *state;
    table_release(f->table);
    close_test_cluster(f);
    fault_fs_destroy(faults);
    faults = NULL;
    free_steps_fixture(f);
    free(f);
    return 0;
}

/* Returns how many looks into memory found that a row is not there. */
static unsigned read_all(struct cluster_fixture *f, const struct key_range *ranges, size_t count)
{
    struct arena *arena = arena_create(1 << 20);
    struct scan_spec spec = {.table = f->table,
                             .ranges = ranges,
                             .range_count = count,
                             .schema = table_schema(f->table),
                             .arena = arena};
    struct scan *scan;
    enum row_outcome outcome = ROW_ABSENT;
    unsigned misses = 0;
    assert_ok(scan_create(&spec, &scan));
    while (outcome != ROW_END) {
        struct scan_row row;
        enum store_read_tier read_tier =
            outcome == ROW_NOT_CACHED ? STORE_READ_ANY : STORE_READ_CACHED;
        assert_ok(scan_next(scan, read_tier, &row, &outcome));
        misses += outcome == ROW_NOT_CACHED;
    }
    scan_destroy(scan);
    arena_destroy(arena);
    return misses;
}

/* Cold, then warm: the same number of rows is counted for both. */
static void assert_counted_once(struct cluster_fixture *f, const struct key_range *ranges,
                                size_t count)
{
    unsigned long long before = rows_read(f);
    assert_true(read_all(f, ranges, count) > 0);
    unsigned long long cold = rows_read(f) - before;
    assert_int_equal(read_all(f, ranges, count), 0);
    assert_int_equal(cold, rows_read(f) - before - cold);
    assert_in_range(cold, sizeof KEYS - 1, sizeof KEYS);
}

static void keys_count_once(void **state)
{
    struct key_range points[sizeof KEYS - 1];
    for (size_t i = 0; i < sizeof KEYS - 1; i++)
        points[i] = (struct key_range){.from = {(const uint8_t *)&KEYS[i], 1}, .is_point = true};
    assert_counted_once(*state, points, sizeof KEYS - 1);
}

static void a_range_counts_once(void **state)
{
    struct key_range all = {.from = bytes_of("a"), .to = bytes_of("z")};
    assert_counted_once(*state, &all, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(keys_count_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_range_counts_once, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
