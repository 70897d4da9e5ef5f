/* Tests of garbage collection without traffic: what nobody reads or writes goes all the same. */
#include "cluster/gc_pass.h"
#include "cluster/testing.h"

#include <stdatomic.h>

/* A wall clock that a test sets. */
struct test_clock {
    struct clock clock;
    atomic_llong wall_us;
};

static int64_t test_wall_us(struct clock *clock)
{
    return atomic_load(&((struct test_clock *)(void *)clock)->wall_us);
}

static int64_t test_steady_us(struct clock *clock)
{
    (void)clock;
    return clock_steady_us(clock_system());
}

static struct test_clock test_clock = {
    .clock = {.wall_us = test_wall_us, .steady_us = test_steady_us}};

enum { LIFE_US = 1800 * 1000000 };

/* Cells of f live for half an hour; the pass comes as often as maintenance wakes. */
static int setup(void **state)
{
    static const struct gc_rule half_an_hour = {.kind = GC_MAX_AGE, .max_age_us = LIFE_US};
    struct cluster_fixture *f = cluster_fixture_create(&half_an_hour);
    atomic_store(&test_clock.wall_us, INT64_C(1700000000) * 1000000);
    assert_ok(metrics_create(&f->options.metrics));
    f->options.clock = &test_clock.clock;
    f->options.gc_interval_us = 1;
    reopen_test_cluster(f);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct metrics *metrics = ((struct cluster_fixture *)*state)->options.metrics;
    cluster_fixture_destroy(*state);
    metrics_destroy(metrics);
    return 0;
}

/* Waits until so many whole passes have been made from now on. */
static void await_passes(struct cluster_fixture *f, int64_t passes)
{
    struct metrics *metrics = f->options.metrics;
    int64_t until = metrics_value(metrics, METRIC_gc_passes_total) + passes + 1;
    while (metrics_value(metrics, METRIC_gc_passes_total) < until)
        maintenance_run_once(f->cluster->maintenance);
}

static size_t record_count(struct cluster_fixture *f, const char *from, const char *to)
{
    struct tablet *tablet = table_route(f->table, bytes_of(""));
    struct store_cursor_options options = {
        .lower = bytes_of(from), .upper = bytes_of(to), .reach = STORE_ANYWHERE};
    struct store_cursor *cursor;
    size_t count = 0;
    assert_ok(store_cursor_create(tablet->keyspace, &options, &cursor));
    for (store_cursor_first(cursor); store_cursor_valid(cursor); store_cursor_next(cursor))
        count++;
    assert_ok(store_cursor_status(cursor));
    store_cursor_destroy(cursor);
    tablet_release(tablet);
    return count;
}

static void write_at(struct cluster_fixture *f, const char *row_key, const char *qualifier,
                     int64_t wall_us, const char *value)
{
    assert_ok(try_write(f, row_key, setting(f, FAMILY_F, qualifier, wall_us, value)));
}

/* Its history is operands alone, never a put: compactions see no value to tidy. */
static void a_key_that_was_only_merged_goes_when_its_cells_expire(void **state)
{
    struct cluster_fixture *f = *state;
    int64_t now = atomic_load(&test_clock.wall_us);
    write_at(f, "a", "1", now, "x");
    write_at(f, "a", "2", now, "y");
    write_at(f, "stays", "1", now + INT64_C(2) * LIFE_US, "z");
    assert_int_equal(record_count(f, "R", "S"), 2);
    atomic_store(&test_clock.wall_us, now + INT64_C(2) * LIFE_US);
    await_passes(f, 3);
    assert_scan(f, "", "", false, "stays=z");
    assert_int_equal(record_count(f, "R", "S"), 1);
}

static void spilled_cells_expire_too(void **state)
{
    struct cluster_fixture *f = *state;
    int64_t now = atomic_load(&test_clock.wall_us);
    char large[1000] = {0};
    memset(large, 'v', sizeof large - 1);
    write_at(f, "a", "1", now, large);
    write_at(f, "a", "2", now + INT64_C(2) * LIFE_US, large);
    assert_int_equal(record_count(f, "S", "T"), 2);
    atomic_store(&test_clock.wall_us, now + INT64_C(2) * LIFE_US);
    await_passes(f, 3);
    assert_int_equal(record_count(f, "S", "T"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_key_that_was_only_merged_goes_when_its_cells_expire,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(spilled_cells_expire_too, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
