/* Views with a disk that fails, at each step of their life: while one is made, populated, follows
 * its source, its rows are dropped.
 *
 * A story is told again and again, with the faults and ends of steps_testing.h. The next start must
 * find a view that comes to what its query gives then, whatever was lost. */
#include "cluster/testing/steps_testing.h"
#include "views/testing/views_testing.h"

#define COUNTS TEST_VIEW_OF("counts")
static const char count_query[] =
    "SELECT f['q'] AS q, COUNT(*) AS n, MIN(_key) AS k FROM t GROUP BY q";

static status write_row(struct views_fixture *v, const char *key)
{
    return try_write(v->f, key, setting(v->f, FAMILY_F, "q", 1, key[1] == '1' ? "x" : "y"));
}

static status make_view(struct views_fixture *v, const char *unused)
{
    (void)unused;
    if (control_has(v->control, RESOURCE_MATERIALIZED_VIEW, COUNTS))
        return status_ok();
    return try_create_view(v, COUNTS, count_query);
}

static status settle(struct views_fixture *v, const char *unused)
{
    (void)unused;
    return views_settle(v->views);
}

static status drop_rows(struct views_fixture *v, const char *prefix)
{
    return table_drop_rows(v->f->table, bytes_of(prefix));
}

static const struct step {
    status (*run)(struct views_fixture *v, const char *argument);
    const char *argument;
} steps[] = {
    {write_row, "a1"}, {write_row, "b2"}, {make_view, NULL}, {settle, NULL},
    {write_row, "c1"}, {write_row, "a2"}, {settle, NULL},    {drop_rows, "a"},
    {write_row, "a1"}, {settle, NULL},    {write_row, "c2"}, {settle, NULL},
};

enum { STEPS = sizeof steps / sizeof *steps };

/* Whether no step failed. */
static bool tell(struct views_fixture *v)
{
    for (size_t i = 0; i < STEPS; i++) {
        status s = steps[i].run(v, steps[i].argument);
        bool failed = !status_is_ok(s);
        status_free(s);
        if (failed)
            return false;
    }
    return true;
}

/* The next start; then the story once more. */
static void recover(struct views_fixture *v)
{
    begin_steps_life(v->f);
    start_views(v);
    assert_ok(control_edit(v->control, put_instance, NULL));
    assert_ok(make_view(v, NULL));
    assert_ok(views_settle(v->views));
    assert_equal_to_query(v, "counts", count_query);
    assert_true(tell(v));
    assert_equal_to_query(v, "counts", count_query);
    stop_views(v);
    end_steps_life(v->f);
}

/* The story with a fault after `pass` operations that work; false if it did not come to that. */
static bool tell_with_fault(enum fault_operation operation, unsigned pass, enum ending ending)
{
    struct cluster_fixture f;
    struct views_fixture v = {.f = &f, .piece_rows = 1};
    char copy[64];
    make_steps_fixture(&f);
    arena_set_limit(f.arena, SIZE_MAX / 2);
    f.options.maintenance_by_hand = true;
    begin_faulty_life(&f, copy, sizeof copy);
    start_views(&v);
    assert_ok(control_edit(v.control, put_instance, NULL));
    fault_fs_fail(faults, operation, "", FAULT_IO, pass);
    bool is_whole = tell(&v);
    bool came = fault_fs_failures(faults) > 0;
    meet_ending(&f, copy, ending, is_whole);
    stop_views(&v);
    end_steps_life(&f);
    end_faults();
    recover(&v);
    remove_test_directory(copy);
    free_steps_fixture(&f);
    return came || !is_whole;
}

static void each_write_fails(void **state)
{
    (void)state;
    tell_with_each_fault(FAULT_APPEND, tell_with_fault);
}

static void each_sync_fails(void **state)
{
    (void)state;
    tell_with_each_fault(FAULT_SYNC, tell_with_fault);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_write_fails),
        cmocka_unit_test(each_sync_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
