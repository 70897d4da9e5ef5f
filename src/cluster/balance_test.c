/* Tests of tablets that split and merge by themselves, while rows are written and read. */
#include "base/metrics.h"
#include "cluster/testing/testing.h"

#include <stdatomic.h>

enum { SPLIT_BYTES = 64 << 10, VALUE_BYTES = 200 };

static void reopen_with(struct cluster_fixture *f, uint64_t split_bytes, uint64_t rows_per_second,
                        int64_t merge_after_us)
{
    f->options.balance = true;
    f->options.overflow_bytes = 64 << 10;
    f->options.split_bytes = split_bytes;
    f->options.split_rows_per_second = rows_per_second;
    f->options.merge_after_us = merge_after_us;
    reopen_test_cluster(f);
}

static int setup(void **state)
{
    struct cluster_fixture *f = cluster_fixture_create(NULL);
    assert_ok(metrics_create(&f->options.metrics));
    reopen_with(f, SPLIT_BYTES, UINT64_MAX, INT64_MAX / 2);
    *state = f;
    return 0;
}

static int64_t splits(struct cluster_fixture *f)
{
    return metrics_value(f->options.metrics, METRIC_tablet_splits_total);
}

static int64_t merges(struct cluster_fixture *f)
{
    return metrics_value(f->options.metrics, METRIC_tablet_merges_total);
}

/* One after the other, so that the balancer looks between them. */
static void write_rows(struct cluster_fixture *f, unsigned from, unsigned to)
{
    char value[VALUE_BYTES + 1] = {0};
    uint64_t random = from;
    for (unsigned i = from; i < to; i++) {
        char key[16];
        for (unsigned j = 0; j < VALUE_BYTES; j++) { /* letters that do not compress well */
            random = random * 6364136223846793005u + 1442695040888963407u;
            value[j] = (char)('A' + (random >> 33) % 58);
        }
        snprintf(key, sizeof key, "row%05u", i);
        set_cell(f, key, value);
        arena_reset(f->arena);
        if (i % 20 == 0)
            maintenance_wake(f->cluster->maintenance);
    }
}

/* Every row once, in order, both ways. */
static void check_rows(struct cluster_fixture *f, unsigned count)
{
    const struct key_range all = {.is_point = false};
    const size_t row_size = strlen("row00000=") + VALUE_BYTES + 1;
    for (unsigned reversed = 0; reversed < 2; reversed++) {
        struct buffer text = {0};
        assert_ok(scan_text(f, &all, 1, reversed == 1, 7, &text));
        assert_int_equal(text.size, count * row_size);
        for (unsigned i = 0; i < count; i++) {
            char expected[16];
            int size =
                snprintf(expected, sizeof expected, "row%05u=", reversed == 1 ? count - 1 - i : i);
            assert_memory_equal(text.data + i * row_size, expected, (size_t)size);
        }
        buffer_free(&text);
    }
}

static void let_it_look(struct cluster_fixture *f)
{
    for (unsigned i = 0; i < 20; i++)
        maintenance_run_once(f->cluster->maintenance);
}

static void a_tablet_splits_as_it_grows(void **state)
{
    struct cluster_fixture *f = *state;
    write_rows(f, 0, 2000);
    while (table_tablet_count(f->table) < 4)
        let_it_look(f);
    check_rows(f, 2000);
    assert_int_equal(merges(f), 0);
    struct tablet **tablets;
    size_t count;
    assert_ok(table_tablets(f->table, &tablets, &count));
    for (size_t i = 0; i < count; i++)
        tablet_release(tablets[i]);
    free(tablets);
    reopen_test_cluster(f);
    assert_true(table_tablet_count(f->table) >= count);
    check_rows(f, 2000);
}

/* A row that is larger than a tablet may be has no middle. */
static void one_large_row_does_not_split(void **state)
{
    struct cluster_fixture *f = *state;
    char *value = calloc(1, 4 * SPLIT_BYTES + 1);
    assert_non_null(value);
    memset(value, 'v', 4 * SPLIT_BYTES);
    set_cell(f, "row", value);
    free(value);
    let_it_look(f);
    assert_int_equal(table_tablet_count(f->table), 1);
    assert_int_equal(splits(f), 0);
}

static void small_idle_tablets_merge(void **state)
{
    struct cluster_fixture *f = *state;
    reopen_with(f, 1 << 20, UINT64_MAX, INT64_MAX / 2);
    write_rows(f, 0, 600);
    split_at(f, "row00200");
    split_at(f, "row00400");
    let_it_look(f);
    assert_int_equal(table_tablet_count(f->table), 3);
    reopen_with(f, 1 << 20, UINT64_MAX, 1000);
    while (table_tablet_count(f->table) > 1)
        let_it_look(f);
    check_rows(f, 600);
    let_it_look(f);
    assert_int_equal(splits(f), 2); /* those of the test */
    assert_int_equal(merges(f), 2);
}

/* What is in write buffers is only guessed at, and these tablets are smaller than one. */
static void flush(struct cluster_fixture *f)
{
    struct tablet *tablet = table_route(f->table, bytes_of(""));
    assert_ok(keyspace_flush(tablet->keyspace));
    tablet_release(tablet);
}

/* Tablets at their size neither split nor merge any more. */
static void nothing_flaps(void **state)
{
    struct cluster_fixture *f = *state;
    write_rows(f, 0, 1000);
    reopen_with(f, SPLIT_BYTES, UINT64_MAX, 1000);
    flush(f);
    let_it_look(f);
    let_it_look(f);
    int64_t splits_before = splits(f);
    int64_t merges_before = merges(f);
    let_it_look(f);
    let_it_look(f);
    assert_int_equal(splits(f), splits_before);
    assert_int_equal(merges(f), merges_before);
    check_rows(f, 1000);
}

struct load {
    struct cluster_fixture *fixture;
    atomic_bool is_over;
};

static void *keep_reading(void *argument)
{
    struct load *load = argument;
    while (!atomic_load(&load->is_over))
        check_rows(load->fixture, 100);
    return NULL;
}

static void a_busy_tablet_splits(void **state)
{
    struct cluster_fixture *f = *state;
    struct load load = {.fixture = f};
    pthread_t thread;
    write_rows(f, 0, 100);
    reopen_with(f, SPLIT_BYTES, 10, INT64_MAX / 2);
    assert_int_equal(pthread_create(&thread, NULL, keep_reading, &load), 0);
    while (table_tablet_count(f->table) < 3)
        let_it_look(f);
    atomic_store(&load.is_over, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    check_rows(f, 100);
}

/* A steady clock that a test sets. */
struct test_clock {
    struct clock clock;
    atomic_llong steady_us;
};

static int64_t test_wall_us(struct clock *clock)
{
    (void)clock;
    return clock_wall_us(clock_system());
}

static int64_t test_steady_us(struct clock *clock)
{
    return atomic_load(&((struct test_clock *)(void *)clock)->steady_us);
}

/* A second passes for each round of `writes` to rows of [from, to). Maintenance is woken meanwhile,
 * as deletions do: a look at once after another, which saw nothing, made a busy tablet an idle one.
 */
static void keep_writing(struct cluster_fixture *f, struct test_clock *clock, unsigned from,
                         unsigned to)
{
    enum { SECONDS = 4, WRITES = 1000 };
    for (unsigned second = 0; second < SECONDS; second++) {
        for (unsigned i = 0; i < WRITES; i++) {
            char key[16];
            snprintf(key, sizeof key, "row%05u", from + i * 7 % (to - from));
            set_cell(f, key, "v");
            arena_reset(f->arena);
            if (i % 100 == 0)
                maintenance_run_once(f->cluster->maintenance);
        }
        atomic_fetch_add(&clock->steady_us, 1000000);
        maintenance_run_once(f->cluster->maintenance);
    }
}

/* A tenth of the rows, at the end, takes all the load. */
static void a_hot_range_splits_in_the_middle_of_its_load(void **state)
{
    static struct test_clock clock = {
        .clock = {.wall_us = test_wall_us, .steady_us = test_steady_us}, .steady_us = 1000000};
    struct cluster_fixture *f = *state;
    f->options.clock = &clock.clock;
    reopen_with(f, 1 << 30, 900, INT64_MAX / 2);
    write_rows(f, 0, 1000);
    maintenance_run_once(f->cluster->maintenance);
    keep_writing(f, &clock, 900, 1000);
    assert_int_equal(table_tablet_count(f->table), 2);
    struct tablet *last = table_route(f->table, bytes_of("row00999"));
    assert_true(bytes_compare(last->start, bytes_of("row00920")) > 0);
    assert_true(bytes_compare(last->start, bytes_of("row00980")) < 0);
    tablet_release(last);
    keep_writing(f, &clock, 100, 101); /* one row: nothing to divide */
    assert_int_equal(table_tablet_count(f->table), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_tablet_splits_as_it_grows, setup,
                                        cluster_fixture_teardown),
        cmocka_unit_test_setup_teardown(one_large_row_does_not_split, setup,
                                        cluster_fixture_teardown),
        cmocka_unit_test_setup_teardown(small_idle_tablets_merge, setup, cluster_fixture_teardown),
        cmocka_unit_test_setup_teardown(nothing_flaps, setup, cluster_fixture_teardown),
        cmocka_unit_test_setup_teardown(a_busy_tablet_splits, setup, cluster_fixture_teardown),
        cmocka_unit_test_setup_teardown(a_hot_range_splits_in_the_middle_of_its_load, setup,
                                        cluster_fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
