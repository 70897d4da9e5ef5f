/* One write by a clock that was ahead condemned live data for as long as it had been ahead.
 *
 * Found in a review, by a script that set the clock forty days ahead for one write of another row.
 * Versions never go back, so the time that they are made of stayed forty days ahead, over restarts;
 * and reads, updates and the tables that are kept for a while after their deletion asked that time
 * how old things are. So reads hid what a rule of 30 days condemned, ReadModifyWriteRow began
 * counters anew, and a table deleted a moment ago was gone for good. Ages are judged by the wall
 * clock.
 *
 * The other side of it: the server's own times went on by a 4096th of a microsecond a write, so
 * that versions of one cell, written seconds apart, replaced each other. */
#include "base/testing/testing_clock.h"
#include "cluster/cluster_private.h"
#include "cluster/rows.h"
#include "cluster/testing/testing.h"

#define DAY_US (INT64_C(86400) * 1000000)

static struct hands_clock hands = {.clock = HANDS_CLOCK};
static const struct gc_rule thirty_days = {.kind = GC_MAX_AGE, .max_age_us = 30 * DAY_US};

static int setup(void **state)
{
    struct cluster_fixture *f = cluster_fixture_create(&thirty_days);
    atomic_store(&hands.wall_us, clock_wall_us(clock_system()));
    atomic_store(&hands.steady_us, DAY_US);
    f->log.fd = -1;
    f->options.clock = &hands.clock;
    f->options.undelete_window_us = 7 * DAY_US;
    reopen_test_cluster(f);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    cluster_fixture_destroy(*state);
    return 0;
}

/* What such a write leaves. The wall clock itself stays, since maintenance may look at it. */
static void write_by_a_clock_ahead(struct cluster_fixture *f)
{
    int64_t ahead_us = hands.wall_us + 40 * DAY_US;
    assert_ok(commit_raise_version(f->cluster->home->commits, version_at(ahead_us)));
    assert_ok(try_write(f, "other", setting(f, FAMILY_G, "q", 1, "y")));
    assert_true(cluster_version_us(f->cluster) >= ahead_us);
    assert_int_equal(cluster_wall_us(f->cluster), hands.wall_us);
}

static void reads_show_what_is_not_too_old(void **state)
{
    struct cluster_fixture *f = *state;
    assert_ok(try_write(f, "a", setting(f, FAMILY_F, "q", hands.wall_us, "x")));
    write_by_a_clock_ahead(f);
    assert_scan(f, "", "", false, "a=x other=y");
    reopen_test_cluster(f);
    assert_scan(f, "", "", false, "a=x other=y");
    atomic_fetch_add(&hands.wall_us, 31 * DAY_US);
    assert_scan(f, "", "", false, "other=y");
}

struct counting {
    struct row_update update;
    struct task start;
    struct event event;
    size_t cells;
};

static status count_cells(struct row_update *update, const struct cell_list *cells,
                          struct packed_change *change, bool *writes)
{
    struct counting *counting = (struct counting *)(void *)update;
    (void)change;
    counting->cells = cells->count;
    *writes = false;
    return status_ok();
}

static void counted(struct row_update *update, status result)
{
    event_add(&((struct counting *)(void *)update)->event, result);
}

static void start_counting(struct task *task)
{
    rows_update(&LIST_ENTRY(&task->link, struct counting, start.link)->update);
}

static size_t cells_that_an_update_sees(struct cluster_fixture *f, const char *row_key)
{
    struct counting counting = {.update = {.table = f->table,
                                           .row_key = bytes_of(row_key),
                                           .schema = table_schema(f->table),
                                           .arena = arena_create(1 << 20),
                                           .loop = f->loop,
                                           .decide = count_cells,
                                           .done = counted},
                                .start = {.run = start_counting}};
    event_init(&counting.event);
    loop_post(f->loop, &counting.start);
    assert_ok(event_wait(&counting.event, 1));
    arena_destroy(counting.update.arena);
    return counting.cells;
}

static void updates_see_what_is_not_too_old(void **state)
{
    struct cluster_fixture *f = *state;
    assert_ok(try_write(f, "a", setting(f, FAMILY_F, "q", hands.wall_us, "x")));
    write_by_a_clock_ahead(f);
    assert_int_equal(cells_that_an_update_sees(f, "a"), 1);
    atomic_fetch_add(&hands.wall_us, 31 * DAY_US);
    assert_int_equal(cells_that_an_update_sees(f, "a"), 0);
}

static void deleted_tables_are_kept_for_their_time(void **state)
{
    static const char name[] = "projects/p/instances/i/tables/u";
    struct cluster_fixture *f = *state;
    const struct table_spec spec = {.name = name, .schema = table_schema(f->table)};
    struct table *table;
    assert_ok(cluster_create_table(f->cluster, &spec, &table));
    assert_ok(cluster_delete_table(f->cluster, bytes_of(name), NULL));
    table_release(table);
    write_by_a_clock_ahead(f);
    maintenance_run_once(f->cluster->maintenance);
    assert_ok(cluster_deleted_table(f->cluster, bytes_of(name), &table));
    assert_ok(cluster_undelete_table(f->cluster, table, NULL));
    table_release(table);
}

static void the_servers_times_go_on(void **state)
{
    struct cluster_fixture *f = *state;
    atomic_fetch_add(&hands.wall_us, -DAY_US / 24);
    int64_t last_us = cluster_version_us(f->cluster);
    for (int i = 0; i < 10; i++) {
        atomic_fetch_add(&hands.steady_us, 300000);
        assert_ok(try_write(f, "a", setting(f, FAMILY_G, "q", 1, "y")));
        assert_true(cluster_version_us(f->cluster) >= last_us + 150000);
        last_us = cluster_version_us(f->cluster);
        if (i == 5)
            reopen_test_cluster(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(reads_show_what_is_not_too_old, setup, teardown),
        cmocka_unit_test_setup_teardown(updates_see_what_is_not_too_old, setup, teardown),
        cmocka_unit_test_setup_teardown(deleted_tables_are_kept_for_their_time, setup, teardown),
        cmocka_unit_test_setup_teardown(the_servers_times_go_on, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
