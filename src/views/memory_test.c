/* Views without memory: wherever it runs out while a view is kept up, that is tried again later,
 * and at rest each view is what its query gives. */
#include "base/testing/failmalloc.h"
#include "views/testing/views_testing.h"

enum { ROWS = 6, CHANGED = 3, LENGTH = 3000 };

static const struct view {
    const char *id;
    const char *query;
} views[] = {
    {"counts", "SELECT f['q'] AS q, COUNT(*) AS n, MIN(_key) AS k FROM t GROUP BY q"},
    {"shapes",
     "SELECT '*' AS _key, SUM(SAFE_CAST(SAFE_CAST(SUBSTR(f['q'], 1, 1) AS STRING) AS FLOAT64) / 7) "
     "AS s, HLL_COUNT.INIT(f['q']) AS h, MAX(CONCAT(f['q'], _key)) AS m FROM t "
     "GROUP BY _key"},
    {"byq", "SELECT CONCAT(f['q'], b'-') AS q, _key AS k FROM t ORDER BY q, k"},
};
enum { VIEWS = sizeof views / sizeof *views };

/* Some rows are others than they were, so that there is something to do. Their values are so long
 * that no arena has all of them in its first block. */
static void change_rows(struct views_fixture *v, size_t round)
{
    char key[8], value[LENGTH + 1];
    memset(value, 'x', LENGTH);
    value[LENGTH] = 0;
    for (size_t i = 0; i < CHANGED; i++) {
        snprintf(key, sizeof key, "r%zu", (round + i) % ROWS);
        value[0] = (char)('0' + round % 4 + i);
        set_cell(v->f, key, value);
    }
    if (round % 3 == 0)
        assert_ok(table_drop_rows(v->f->table, bytes_of("r1")));
    arena_reset(v->f->arena);
}

/* What is to be done now, by this thread, without memory from the allocation after `count` on.
 * Whether any failed. What failed is done once more, from what is in the table. */
static bool work_without_memory(struct views_fixture *v, size_t count)
{
    struct view_pace pace = {0};
    bool has_failed = false;
    for (int time = 0; time < 2; time++) {
        failmalloc_start(count);
        views_work(v->views, &pace);
        has_failed |= failmalloc_stop();
    }
    return has_failed;
}

static void assert_all_equal(struct views_fixture *v)
{
    for (size_t i = 0; i < VIEWS; i++)
        assert_equal_to_query(v, views[i].id, views[i].query);
}

static void create_all(struct views_fixture *v)
{
    char name[64];
    for (size_t i = 0; i < VIEWS; i++) {
        snprintf(name, sizeof name, TEST_VIEW_OF("%s"), views[i].id);
        create_view(v, name, views[i].query);
    }
}

static void every_allocation_may_fail(void **state)
{
    enum { MOST = 20000 };
    struct views_fixture *v = *state;
    create_all(v);
    assert_ok(views_settle(v->views));
    bool has_failed = true;
    size_t count = 0;
    for (; has_failed; count++) {
        assert_true(count < MOST);
        change_rows(v, count);
        has_failed = work_without_memory(v, count);
        assert_ok(views_settle(v->views));
        assert_all_equal(v);
    }
    print_message("# each of %zu allocations failed\n", count - 1);
    assert_true(count > 100);
}

/* What one row takes while it is evaluated is not to be had: that is no fault of the row. It was
 * left out, for as long as nothing changed it, as one that wants more than a row may have. */
static void a_row_is_not_left_out_for_want_of_memory(void **state)
{
    enum { LARGE = 64 << 10 };
    static const char query[] =
        "SELECT f['q'] AS q, _key AS k, LENGTH(REPEAT(f['q'], 100000)) AS n "
        "FROM t ORDER BY q, k";
    struct views_fixture *v = *state;
    struct view_pace pace = {0};
    create_view(v, TEST_VIEW_OF("long"), query);
    assert_ok(views_settle(v->views));
    set_cell(v->f, "r1", "a");
    failmalloc_start_large(LARGE);
    views_work(v->views, &pace);
    assert_true(failmalloc_stop());
    assert_ok(views_settle(v->views));
    assert_query(v, "SELECT * FROM long", " b\"a\" b\"r1\" 100000\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_allocation_may_fail, views_setup, views_teardown),
        cmocka_unit_test_setup_teardown(a_row_is_not_left_out_for_want_of_memory, views_setup,
                                        views_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
