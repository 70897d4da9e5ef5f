/* Views over a real cluster: what is in them, when it comes and goes, and what becomes of them over
 * restarts. Work is done by hand where a test says when. */
#include "views/testing/views_testing.h"

#define COUNTS TEST_VIEW_OF("counts")
static const char count_query[] = "SELECT f['q'] AS q, COUNT(*) AS n FROM t GROUP BY q";

static void put(struct views_fixture *v, const char *key, const char *value)
{
    set_cell(v->f, key, value);
}

static void remove_row(struct views_fixture *v, const char *key)
{
    struct row_change *change = row_change_create(v->f->arena);
    assert_non_null(change);
    row_change_delete_row(change);
    assert_ok(try_write(v->f, key, change));
}

static enum view_state state_of(struct views_fixture *v, const char *name)
{
    struct view_found found;
    assert_ok(views_find(v->views, name, &found));
    if (found.table != NULL)
        table_release(found.table);
    return found.state;
}

static void a_view_has_what_was_there_before_it(void **state)
{
    struct views_fixture *v = *state;
    put(v, "r1", "a");
    put(v, "r2", "b");
    put(v, "r3", "a");
    create_view(v, COUNTS, count_query);
    assert_int_equal(state_of(v, COUNTS), VIEW_POPULATING);
    assert_ok(views_settle(v->views));
    assert_int_equal(state_of(v, COUNTS), VIEW_READY);
    assert_query(v, "SELECT * FROM counts", " b\"a\" 2\n b\"b\" 1\n");
}

static void it_follows_its_source(void **state)
{
    struct views_fixture *v = *state;
    create_view(v, COUNTS, count_query);
    assert_ok(views_settle(v->views));
    assert_query(v, "SELECT * FROM counts", "");
    put(v, "r1", "a");
    put(v, "r2", "a");
    assert_ok(views_settle(v->views));
    assert_query(v, "SELECT * FROM counts", " b\"a\" 2\n");
    put(v, "r1", "b"); /* it goes from one group to another */
    assert_ok(views_settle(v->views));
    assert_query(v, "SELECT * FROM counts", " b\"a\" 1\n b\"b\" 1\n");
    remove_row(v, "r2"); /* the last of its group */
    assert_ok(views_settle(v->views));
    assert_query(v, "SELECT * FROM counts", " b\"b\" 1\n");
}

static void an_index_follows_its_source(void **state)
{
    static const char query[] = "SELECT f['q'] AS q, _key AS k FROM t ORDER BY q, k";
    struct views_fixture *v = *state;
    put(v, "r1", "a");
    create_view(v, TEST_VIEW_OF("byq"), query);
    assert_ok(views_settle(v->views));
    assert_query(v, "SELECT * FROM byq", " b\"a\" b\"r1\"\n");
    put(v, "r1", "b");
    put(v, "r2", "a");
    assert_ok(views_settle(v->views));
    assert_query(v, "SELECT * FROM byq", " b\"a\" b\"r2\"\n b\"b\" b\"r1\"\n");
    remove_row(v, "r1");
    assert_ok(views_settle(v->views));
    assert_query(v, "SELECT * FROM byq", " b\"a\" b\"r2\"\n");
}

static void rows_that_are_dropped_leave_it(void **state)
{
    struct views_fixture *v = *state;
    put(v, "a1", "x");
    put(v, "a2", "y");
    put(v, "b1", "x");
    create_view(v, COUNTS, count_query);
    assert_ok(views_settle(v->views));
    assert_ok(table_drop_rows(v->f->table, bytes_of("a")));
    put(v, "a1", "z");
    assert_ok(views_settle(v->views));
    assert_query(v, "SELECT * FROM counts", " b\"x\" 1\n b\"z\" 1\n");
    assert_ok(table_drop_rows(v->f->table, bytes_of("")));
    assert_ok(views_settle(v->views));
    assert_query(v, "SELECT * FROM counts", "");
}

static void a_restart_goes_on(void **state)
{
    struct views_fixture *v = *state;
    put(v, "r1", "a");
    create_view(v, COUNTS, count_query);
    assert_ok(views_settle(v->views));
    put(v, "r2", "a");
    reopen_views(v);
    put(v, "r3", "a");
    assert_ok(views_settle(v->views));
    assert_int_equal(state_of(v, COUNTS), VIEW_READY);
    assert_query(v, "SELECT * FROM counts", " b\"a\" 3\n");
}

/* Until a thread had opened it, it was said to be populating, and could not be read. */
static void a_view_can_be_read_from_the_start_on(void **state)
{
    struct views_fixture *v = *state;
    put(v, "r1", "a");
    create_view(v, COUNTS, count_query);
    assert_ok(views_settle(v->views));
    reopen_views(v);
    struct view_found found;
    assert_ok(views_find(v->views, COUNTS, &found));
    assert_int_equal(found.state, VIEW_READY);
    assert_true(found.is_readable);
    assert_non_null(found.table);
    table_release(found.table);
}

static void a_view_that_is_deleted_and_made_anew_has_nothing_of_the_old_one(void **state)
{
    struct views_fixture *v = *state;
    put(v, "r1", "a");
    create_view(v, COUNTS, count_query);
    assert_ok(views_settle(v->views));
    delete_view(v, COUNTS);
    struct view_found found;
    assert_status(views_find(v->views, COUNTS, &found), STATUS_NOT_FOUND);
    create_view(v, COUNTS, "SELECT g['q'] AS q, COUNT(*) AS n FROM t GROUP BY q");
    assert_ok(views_settle(v->views));
    assert_query(v, "SELECT * FROM counts", " NULL 1\n");
}

static void a_view_whose_table_was_lost_is_made_anew(void **state)
{
    struct views_fixture *v = *state;
    put(v, "r1", "a");
    create_view(v, COUNTS, count_query);
    assert_ok(views_settle(v->views));
    stop_views(v);
    assert_ok(cluster_delete_view(v->f->cluster, bytes_of(COUNTS), NULL));
    start_views(v);
    put(v, "r2", "a");
    assert_ok(views_settle(v->views));
    assert_query(v, "SELECT * FROM counts", " b\"a\" 2\n");
}

/* Its records, or its rows, are out of service: so it was until the next start. */
static void close_part_of(struct views_fixture *v, const char *name, bool is_of_records)
{
    struct table *table;
    assert_ok(cluster_table(v->f->cluster, bytes_of(name), &table));
    struct keyspace *keyspace = is_of_records ? table->view.records : table->spaces[0].keyspace;
    const struct store_damage damage = {
        .keyspace_id = keyspace_id(keyspace), .file = 1, .what = "a test", .is_remembered = true};
    assert_ok(keyspace_close_range(keyspace, &damage));
    table_release(table);
}

static void a_view_that_is_damaged_is_populated_anew(void **state)
{
    struct views_fixture *v = *state;
    put(v, "r1", "a");
    create_view(v, COUNTS, count_query);
    assert_ok(views_settle(v->views));
    for (int i = 0; i < 2; i++) {
        close_part_of(v, COUNTS, i == 1);
        put(v, "r2", "a");
        assert_ok(views_settle(v->views));
        assert_int_equal(state_of(v, COUNTS), VIEW_READY);
        assert_query(v, "SELECT * FROM counts", " b\"a\" 2\n");
    }
}

static void threads_keep_it_up(void **state)
{
    struct views_fixture *v = *state;
    create_view(v, COUNTS, count_query);
    create_view(v, TEST_VIEW_OF("byq"), "SELECT f['q'] AS q, _key AS k FROM t ORDER BY q, k");
    for (int i = 0; i < 300; i++) {
        char key[16];
        snprintf(key, sizeof key, "r%d", i % 100);
        put(v, key, i % 7 < 3 ? "a" : "b");
        if (i == 200)
            assert_ok(views_settle(v->views));
    }
    assert_ok(views_settle(v->views));
    assert_equal_to_query(v, "counts", count_query);
    assert_equal_to_query(v, "byq", "SELECT f['q'] AS q, _key AS k FROM t");
    delete_view(v, COUNTS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_view_has_what_was_there_before_it, views_setup,
                                        views_teardown),
        cmocka_unit_test_setup_teardown(it_follows_its_source, views_setup, views_teardown),
        cmocka_unit_test_setup_teardown(an_index_follows_its_source, views_setup, views_teardown),
        cmocka_unit_test_setup_teardown(rows_that_are_dropped_leave_it, views_setup,
                                        views_teardown),
        cmocka_unit_test_setup_teardown(a_view_can_be_read_from_the_start_on, views_setup,
                                        views_teardown),
        cmocka_unit_test_setup_teardown(a_restart_goes_on, views_setup, views_teardown),
        cmocka_unit_test_setup_teardown(
            a_view_that_is_deleted_and_made_anew_has_nothing_of_the_old_one, views_setup,
            views_teardown),
        cmocka_unit_test_setup_teardown(a_view_whose_table_was_lost_is_made_anew, views_setup,
                                        views_teardown),
        cmocka_unit_test_setup_teardown(a_view_that_is_damaged_is_populated_anew, views_setup,
                                        views_teardown),
        cmocka_unit_test_setup_teardown(threads_keep_it_up, views_setup_with_threads,
                                        views_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
