/* Tests of deletions.h: tables deleted, kept, brought back, and dropped for good. */
#include "cluster/deletions.h"

#include "base/limits.h"
#include "base/testing/testing_clock.h"
#include "cluster/testing/testing.h"

#include <stdatomic.h>

#define DAY_US (INT64_C(24) * 3600 * 1000000)

static const char instance[] = "projects/p/instances/i/tables/";

static struct set_clock test_clock = {.clock = SET_CLOCK};

static void pass_time(int64_t us)
{
    atomic_fetch_add(&test_clock.wall_us, us);
}

/* `*state` is the rule of f, or NULL. */
static int setup(void **state)
{
    struct cluster_fixture *f = cluster_fixture_create(*state);
    atomic_store(&test_clock.wall_us, clock_wall_us(clock_system()));
    assert_ok(metrics_create(&f->options.metrics));
    f->options.clock = &test_clock.clock;
    f->options.undelete_window_us = 7 * DAY_US;
    reopen_test_cluster(f);
    *state = f;
    return 0;
}

/* The fixture's table is there again, whatever the test has done. */
static int teardown(void **state)
{
    struct cluster_fixture *f = *state;
    struct metrics *metrics = f->options.metrics;
    if (f->table == NULL)
        f->table = create_test_table(f->cluster, NULL);
    cluster_fixture_destroy(f);
    metrics_destroy(metrics);
    return 0;
}

/* --- what tests do --- */

static void delete_t(struct cluster_fixture *f)
{
    table_release(f->table);
    f->table = NULL;
    assert_ok(cluster_delete_table(f->cluster, bytes_of(TEST_TABLE), NULL));
}

static status try_undelete(struct cluster_fixture *f)
{
    struct table *table;
    TRY(cluster_deleted_table(f->cluster, bytes_of(TEST_TABLE), &table));
    status s = cluster_undelete_table(f->cluster, table, NULL);
    if (status_is_ok(s))
        f->table = table;
    else
        table_release(table);
    return s;
}

static void reopen(struct cluster_fixture *f)
{
    if (f->table != NULL)
        table_release(f->table);
    close_test_cluster(f);
    open_test_cluster(f);
    status s = cluster_table(f->cluster, bytes_of(TEST_TABLE), &f->table);
    assert_true(status_is_ok(s) || s.code == STATUS_NOT_FOUND);
    status_free(s);
}

static size_t keyspace_count(const struct cluster_fixture *f)
{
    size_t count = 0;
    while (store_keyspace_at(f->cluster->home->store, count) != NULL)
        count++;
    return count;
}

static int64_t metric(const struct cluster_fixture *f, enum metric which)
{
    return metrics_value(f->options.metrics, which);
}

/* --- tests --- */

static void a_deleted_table_comes_back_as_it_was(void **state)
{
    struct cluster_fixture *f = *state;
    uint64_t id = table_id(f->table);
    set_cell(f, "a", "1");
    set_cell(f, "m", "2");
    split_at(f, "k");
    int64_t tablets = metric(f, METRIC_tablets);
    for (unsigned restarts = 0; restarts < 2; restarts++) {
        delete_t(f);
        assert_int_equal(metric(f, METRIC_tablets), tablets - 2);
        if (restarts == 1)
            reopen(f);
        assert_null(f->table);
        assert_status(cluster_table(f->cluster, bytes_of(TEST_TABLE), &f->table), STATUS_NOT_FOUND);
        assert_ok(try_undelete(f));
        assert_int_equal(table_id(f->table), id); /* tokens are known by it */
        assert_int_equal(table_tablet_count(f->table), 2);
        assert_scan(f, "", "", false, "a=1 m=2");
    }
    reopen(f);
    assert_scan(f, "", "", false, "a=1 m=2");
    set_cell(f, "b", "3");
    assert_scan(f, "", "", true, "m=2 b=3 a=1");
}

static void the_newest_of_a_name_comes_back(void **state)
{
    struct cluster_fixture *f = *state;
    set_cell(f, "a", "older");
    delete_t(f);
    f->table = create_test_table(f->cluster, NULL);
    assert_status(try_undelete(f), STATUS_ALREADY_EXISTS);
    set_cell(f, "a", "newer");
    delete_t(f);
    assert_int_equal(metric(f, METRIC_deleted_tables), 2);
    reopen(f);
    assert_ok(try_undelete(f));
    assert_scan(f, "", "", false, "a=newer");
    assert_status(try_undelete(f), STATUS_ALREADY_EXISTS);
    assert_int_equal(metric(f, METRIC_deleted_tables), 1);
}

/* A request that found the table before its deletion may still hold it. */
static void a_deleted_table_cannot_be_changed(void **state)
{
    struct cluster_fixture *f = *state;
    struct table *held = f->table;
    table_retain(held);
    struct tablet *tablet = table_route(held, bytes_of("k"));
    delete_t(f);
    assert_status(reshape_split(held, tablet, bytes_of("k")), STATUS_NOT_FOUND);
    assert_ok(try_undelete(f));
    assert_ok(reshape_split(held, tablet, bytes_of("k")));
    tablet_release(tablet);
    table_release(held);
}

static void a_kept_table_goes_after_the_window(void **state)
{
    struct cluster_fixture *f = *state;
    size_t keyspaces = keyspace_count(f);
    delete_t(f);
    pass_time(7 * DAY_US - 1000000);
    maintenance_run_once(f->cluster->maintenance);
    assert_ok(try_undelete(f));
    delete_t(f);
    struct table *held;
    assert_ok(cluster_deleted_table(f->cluster, bytes_of(TEST_TABLE), &held));
    pass_time(7 * DAY_US);
    maintenance_run_once(f->cluster->maintenance);
    assert_status(try_undelete(f), STATUS_NOT_FOUND);
    assert_status(cluster_undelete_table(f->cluster, held, NULL), STATUS_NOT_FOUND);
    assert_int_equal(keyspace_count(f), keyspaces);
    table_release(held);
    maintenance_run_once(f->cluster->maintenance);
    assert_int_equal(keyspace_count(f), keyspaces - 1);
    assert_int_equal(metric(f, METRIC_deleted_tables_dropped_early_total), 0);
}

/* The window may be another after a restart. */
static void without_a_window_nothing_is_kept(void **state)
{
    struct cluster_fixture *f = *state;
    size_t keyspaces = keyspace_count(f);
    delete_t(f);
    f->options.undelete_window_us = 0;
    reopen(f);
    maintenance_run_once(f->cluster->maintenance);
    assert_int_equal(keyspace_count(f), keyspaces - 1);
    f->table = create_test_table(f->cluster, NULL);
    delete_t(f);
    assert_status(try_undelete(f), STATUS_NOT_FOUND);
}

static void kept_tables_go_when_space_is_short(void **state)
{
    struct cluster_fixture *f = *state;
    set_cell(f, "a", "1");
    delete_t(f);
    maintenance_run_once(f->cluster->maintenance);
    assert_true(metric(f, METRIC_deleted_tables_bytes) > 0);
    f->options.disk_reserve_bytes = UINT64_MAX;
    reopen(f);
    maintenance_run_once(f->cluster->maintenance);
    assert_status(try_undelete(f), STATUS_NOT_FOUND);
    assert_int_equal(metric(f, METRIC_deleted_tables_dropped_early_total), 1);
    assert_int_equal(metric(f, METRIC_deleted_tables_bytes), 0);
    f->options.disk_reserve_bytes = 0;
    reopen(f);
}

static void an_instances_deleted_tables_go_with_it(void **state)
{
    struct cluster_fixture *f = *state;
    delete_t(f);
    f->table = create_test_table(f->cluster, NULL);
    delete_t(f);
    assert_ok(cluster_delete_tables(f->cluster, bytes_of("projects/p/instances/other/"), NULL));
    assert_int_equal(metric(f, METRIC_deleted_tables), 2);
    f->table = create_test_table(f->cluster, NULL);
    table_release(f->table);
    f->table = NULL;
    assert_ok(cluster_delete_tables(f->cluster, bytes_of(instance), NULL));
    assert_int_equal(metric(f, METRIC_deleted_tables), 0);
    reopen(f);
    assert_status(try_undelete(f), STATUS_NOT_FOUND);
    assert_int_equal(f->cluster->kept_count + f->cluster->table_count, 0);
    assert_int_equal(keyspace_count(f), 1 + f->cluster->home->preallocated_count);
}

/* A thousand that are kept, by their records alone: they share the keyspace of a table that
 * stands. */
static void put_deleted_tables(struct cluster_fixture *f, size_t count)
{
    struct cluster *cluster = f->cluster;
    struct store_batch *batch = store_batch_create();
    for (size_t i = 0; i < count; i++) {
        struct table_record table = table_record_of(f->table);
        struct tablet_record tablet = tablet_record_of(f->table, f->table->tablets[0]);
        table.id = tablet.table_id = cluster->next_id++;
        tablet.id = cluster->next_id++;
        table.deleted_us = cluster_wall_us(cluster) + (int64_t)i;
        assert_ok(catalog_put_table(batch, cluster->catalog, &table));
        assert_ok(catalog_put_tablet(batch, cluster->catalog, &tablet));
    }
    assert_ok(catalog_put_next_id(batch, cluster->catalog, cluster->next_id));
    assert_ok(commit_write(cluster->home->commits, COMMIT_CATALOG, batch, NULL));
    store_batch_destroy(batch);
}

static void no_more_are_kept_than_the_limit(void **state)
{
    struct cluster_fixture *f = *state;
    delete_t(f);
    pass_time(1000000);
    f->table = create_test_table(f->cluster, NULL);
    size_t keyspaces = keyspace_count(f);
    put_deleted_tables(f, LIMIT_DELETED_TABLES);
    reopen(f);
    maintenance_run_once(f->cluster->maintenance);
    assert_int_equal(metric(f, METRIC_deleted_tables), LIMIT_DELETED_TABLES);
    assert_int_equal(keyspace_count(f), keyspaces - 1); /* the oldest's */
}

/* What was condemned while the table was deleted does not come back with it. */
static const struct gc_rule a_day = {.kind = GC_MAX_AGE, .max_age_us = DAY_US};

static void cells_expire_in_deleted_tables(void **state)
{
    struct cluster_fixture *f = *state;
    int64_t now = cluster_wall_us(f->cluster);
    assert_ok(try_write(f, "a", setting(f, FAMILY_F, "q", now, "mortal")));
    assert_ok(try_write(f, "a", setting(f, FAMILY_G, "q", now, "immortal")));
    assert_ok(try_write(f, "b", setting(f, FAMILY_F, "q", now, "mortal")));
    delete_t(f);
    pass_time(2 * DAY_US);
    reopen(f);
    assert_ok(try_undelete(f));
    assert_scan(f, "", "", false, "a=immortal");
}

#define A_TEST(name, rule)                                                                         \
    cmocka_unit_test_prestate_setup_teardown(name, setup, teardown, (void *)(uintptr_t)(rule))

int main(void)
{
    const struct CMUnitTest tests[] = {
        A_TEST(a_deleted_table_comes_back_as_it_was, NULL),
        A_TEST(the_newest_of_a_name_comes_back, NULL),
        A_TEST(a_deleted_table_cannot_be_changed, NULL),
        A_TEST(a_kept_table_goes_after_the_window, NULL),
        A_TEST(without_a_window_nothing_is_kept, NULL),
        A_TEST(kept_tables_go_when_space_is_short, NULL),
        A_TEST(an_instances_deleted_tables_go_with_it, NULL),
        A_TEST(no_more_are_kept_than_the_limit, NULL),
        A_TEST(cells_expire_in_deleted_tables, &a_day),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
