/* Tests of which tablets are found to be hot. Time passes when a test says so, and the process has
 * used what it really has: in a window of a microsecond or two that is more than the machine gives,
 * in one of a day next to nothing. */
#include "cluster/heat/heat.h"

#include "base/testing/testing_clock.h"
#include "cluster/testing/testing.h"

static struct turned_clock hands = {.clock = TURNED_CLOCK};

enum { SHORT_WINDOW_US = 1, QUARTER_US = 5 };
#define DAY_US (INT64_C(24) * 3600 * 1000000)

static int setup(void **state)
{
    struct cluster_fixture *f = cluster_fixture_create(NULL);
    hands.now_us = 50 * 365 * DAY_US;
    f->options.clock = &hands.clock;
    f->options.heat_window_us = SHORT_WINDOW_US;
    f->options.maintenance_by_hand = true;
    reopen_test_cluster(f);
    split_at(f, "m");
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    cluster_fixture_destroy(*state);
    return 0;
}

static void look_after(struct cluster_fixture *f, int64_t us)
{
    hands.now_us += us;
    maintenance_run_once(f->cluster->maintenance);
}

static void write_to(struct cluster_fixture *f, const char *row, unsigned times)
{
    for (unsigned i = 0; i < times; i++)
        set_cell(f, row, "v");
}

struct found {
    unsigned count;
    uint64_t last_id;
    uint64_t after; /* only what has a greater id */
    unsigned most;  /* to visit */
    double percent;
    int64_t from_us;
    int64_t until_us;
    char start[8];
};

static bool note(void *context, const struct hot_tablet *hot)
{
    struct found *found = context;
    assert_true(hot->id > found->last_id);
    found->last_id = hot->id;
    if (hot->id <= found->after)
        return true;
    assert_string_equal(hot->table, TEST_TABLE);
    found->percent = hot->cpu_percent;
    found->from_us = hot->from_us;
    found->until_us = hot->until_us;
    snprintf(found->start, sizeof found->start, "%.*s", (int)hot->start.size,
             (const char *)hot->start.data);
    return ++found->count != found->most;
}

static struct found hot_after(struct cluster_fixture *f, uint64_t after, unsigned most)
{
    struct found found = {.after = after, .most = most};
    cluster_hot_tablets(f->cluster, note, &found);
    return found;
}

static struct found all_hot(struct cluster_fixture *f)
{
    return hot_after(f, 0, UINT32_MAX);
}

static void the_busy_tablet_is_hot(void **state)
{
    struct cluster_fixture *f = *state;
    look_after(f, SHORT_WINDOW_US);
    assert_int_equal(all_hot(f).count, 0);
    int64_t before_us = hands.now_us;
    write_to(f, "z", 100);
    write_to(f, "a", 1);
    look_after(f, SHORT_WINDOW_US);
    struct found found = all_hot(f);
    assert_true(found.count >= 1);
    assert_string_equal(found.start, "m");
    assert_true(found.percent >= HEAT_LEAST_PERCENT);
    assert_int_equal(found.from_us, before_us);
    assert_int_equal(found.until_us, before_us + SHORT_WINDOW_US);
}

static void rows_share_the_time(void **state)
{
    struct cluster_fixture *f = *state;
    look_after(f, SHORT_WINDOW_US);
    write_to(f, "a", 30);
    write_to(f, "z", 10);
    look_after(f, SHORT_WINDOW_US);
    struct found first = hot_after(f, 0, 1);
    struct found second = hot_after(f, first.last_id, 1);
    assert_string_equal(first.start, "");
    assert_string_equal(second.start, "m");
    assert_true(first.percent > 2.99 * second.percent && first.percent < 3.01 * second.percent);
}

static void look_a_quarter_later(struct cluster_fixture *f, unsigned writes)
{
    write_to(f, "z", writes);
    look_after(f, QUARTER_US);
}

static void is_from_until(const struct found *found, int64_t from_us, int64_t until_us)
{
    assert_string_equal(found->start, "m");
    assert_true(found->percent >= HEAT_LEAST_PERCENT);
    assert_int_equal(found->from_us, from_us);
    assert_int_equal(found->until_us, until_us);
}

/* While a tablet stays hot it is told once, up to the end of the window; also after a start. */
static void a_hot_tablet_is_told_before_the_window_ends(void **state)
{
    struct cluster_fixture *f = *state;
    f->options.heat_window_us = 4 * QUARTER_US;
    f->options.maintenance_by_hand = true;
    reopen_test_cluster(f);
    int64_t from_us = hands.now_us;
    look_a_quarter_later(f, 10);
    struct found found = all_hot(f);
    assert_int_equal(found.count, 1);
    is_from_until(&found, from_us, from_us + QUARTER_US);
    look_a_quarter_later(f, 10);
    found = all_hot(f);
    assert_int_equal(found.count, 1);
    is_from_until(&found, from_us, from_us + 2 * QUARTER_US);
    look_a_quarter_later(f, 0);
    found = all_hot(f);
    assert_int_equal(found.count, 1);
    is_from_until(&found, from_us, from_us + 2 * QUARTER_US);
    look_a_quarter_later(f, 10); /* it ends */
    look_a_quarter_later(f, 10);
    reopen_test_cluster(f);
    found = hot_after(f, found.last_id, 1);
    is_from_until(&found, from_us + 3 * QUARTER_US, from_us + 4 * QUARTER_US);
    found = hot_after(f, found.last_id, 1);
    is_from_until(&found, from_us + 4 * QUARTER_US, from_us + 5 * QUARTER_US);
    assert_int_equal(all_hot(f).count, 3);
}

static void a_range_that_is_hot_again_is_counted_once(void **state)
{
    struct cluster_fixture *f = *state;
    assert_int_equal(heat_hot_range_count(f->cluster), 0);
    look_after(f, SHORT_WINDOW_US);
    for (unsigned i = 0; i < 3; i++) {
        write_to(f, "a", 10);
        write_to(f, "z", 10);
        look_after(f, SHORT_WINDOW_US);
        assert_int_equal(heat_hot_range_count(f->cluster), 2);
    }
    assert_int_equal(all_hot(f).count, 6);
    look_after(f, DAY_US);
    look_after(f, SHORT_WINDOW_US);
    assert_int_equal(heat_hot_range_count(f->cluster), 0);
}

/* A background scan is no load, whatever it reads: the rest is as hot as it was. */
static void background_scans_are_not_hot(void **state)
{
    struct cluster_fixture *f = *state;
    const struct key_range all = {.from = {0}};
    struct scan_row row;
    enum row_outcome outcome;
    write_to(f, "a", 1);
    write_to(f, "z", 1);
    look_after(f, SHORT_WINDOW_US);
    uint64_t before = all_hot(f).last_id;
    for (unsigned i = 0; i < 100; i++) {
        struct arena *arena = arena_create(1 << 20);
        struct scan *scan;
        assert_ok(scan_create(&(struct scan_spec){.table = f->table,
                                                  .ranges = &all,
                                                  .range_count = 1,
                                                  .schema = table_schema(f->table),
                                                  .is_background = true,
                                                  .arena = arena},
                              &scan));
        do
            assert_ok(scan_next(scan, STORE_READ_ANY, &row, &outcome));
        while (outcome != ROW_END);
        scan_destroy(scan);
        arena_destroy(arena);
    }
    look_after(f, SHORT_WINDOW_US);
    assert_int_equal(hot_after(f, before, UINT32_MAX).count, 0);
}

static void nothing_is_hot_that_takes_little(void **state)
{
    struct cluster_fixture *f = *state;
    look_after(f, SHORT_WINDOW_US);
    write_to(f, "a", 100);
    look_after(f, DAY_US);
    assert_int_equal(all_hot(f).count, 0);
    look_after(f, SHORT_WINDOW_US); /* and nothing at all was served in this one */
    assert_int_equal(all_hot(f).count, 0);
}

static void a_day_later_it_is_forgotten(void **state)
{
    struct cluster_fixture *f = *state;
    look_after(f, SHORT_WINDOW_US);
    write_to(f, "a", 10);
    look_after(f, SHORT_WINDOW_US);
    assert_int_equal(all_hot(f).count, 1);
    look_after(f, DAY_US);
    assert_int_equal(all_hot(f).count, 1);
    look_after(f, SHORT_WINDOW_US);
    assert_int_equal(all_hot(f).count, 0);
}

static void hot_tablets_that_are_known_are_bounded(void **state)
{
    struct cluster_fixture *f = *state;
    look_after(f, SHORT_WINDOW_US);
    for (unsigned i = 0; i < HEAT_MOST + 5; i++) {
        struct tablet *tablet = table_route(f->table, bytes_of("a"));
        atomic_fetch_add(&tablet->rows_read, 1);
        tablet_release(tablet);
        look_after(f, SHORT_WINDOW_US);
    }
    struct found found = all_hot(f);
    assert_int_equal(found.count, HEAT_MOST);
    assert_int_equal(found.last_id, HEAT_MOST + 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_busy_tablet_is_hot, setup, teardown),
        cmocka_unit_test_setup_teardown(rows_share_the_time, setup, teardown),
        cmocka_unit_test_setup_teardown(a_hot_tablet_is_told_before_the_window_ends, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_range_that_is_hot_again_is_counted_once, setup, teardown),
        cmocka_unit_test_setup_teardown(background_scans_are_not_hot, setup, teardown),
        cmocka_unit_test_setup_teardown(nothing_is_hot_that_takes_little, setup, teardown),
        cmocka_unit_test_setup_teardown(a_day_later_it_is_forgotten, setup, teardown),
        cmocka_unit_test_setup_teardown(hot_tablets_that_are_known_are_bounded, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
