/* Tests of placed.h: what is kept over starts, from where on changes are applied, and what want of
 * memory and damage leave. */
#include "replica/placed.h"

#include "base/testing/failmalloc.h"
#include "cluster/catalog_txn.h"
#include "cluster/testing/testing.h"

#define A "projects/p/instances/a"
#define B "projects/p/instances/b"
#define C "projects/p/instances/c"

enum { ORIGIN = 3 };

struct fixture {
    struct cluster_fixture *base;
    struct placed *placed;
};

static void open_placed(struct fixture *f)
{
    assert_ok(placed_open(f->base->cluster, &f->placed));
}

static void start_anew(struct fixture *f)
{
    placed_close(f->placed);
    reopen_test_cluster(f->base);
    open_placed(f);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->base = cluster_fixture_create(NULL);
    open_placed(f);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    placed_close(f->placed);
    cluster_fixture_destroy(f->base);
    free(f);
    return 0;
}

static void set(struct fixture *f, const char *name, placed_state state)
{
    const struct placed_instance to = {.state = state, .made_in = 7, .has_rows = true};
    placed_lock_changes(f->placed);
    assert_ok(placed_set(f->placed, name, &to));
    placed_unlock_changes(f->placed);
}

static void begin(struct fixture *f, uint64_t since)
{
    placed_lock_changes(f->placed);
    assert_ok(placed_set_since(f->placed, since));
    placed_unlock_changes(f->placed);
}

static void assert_state(struct fixture *f, const char *name, placed_state state)
{
    struct placed_instance found;
    assert_true(placed_find(f->placed, bytes_of(name), &found));
    assert_int_equal(found.state, state);
}

static struct stream_position at(uint64_t sequence)
{
    return (struct stream_position){sequence, 0};
}

static void assert_rule(struct fixture *f, const char *name, uint64_t reached,
                        enum placed_rule rule)
{
    assert_int_equal(placed_rule(f->placed, bytes_of(name), ORIGIN, at(reached)), rule);
}

/* --- tests --- */

static void without_peers_all_is_here(void **state)
{
    struct fixture *f = *state;
    assert_false(placed_has_begun(f->placed));
    assert_true(placed_is_here(f->placed, bytes_of(A)));
    begin(f, 0);
    assert_false(placed_is_here(f->placed, bytes_of(A)));
    set(f, A, PLACED_HERE);
    assert_true(placed_is_here(f->placed, bytes_of(A)));
}

static void what_is_set_is_there_after_a_start(void **state)
{
    struct fixture *f = *state;
    begin(f, 40);
    set(f, B, PLACED_HERE);
    set(f, A, PLACED_WANTED);
    set(f, C, PLACED_LEAVING);
    start_anew(f);
    assert_int_equal(placed_since(f->placed), 40);
    assert_state(f, A, PLACED_WANTED);
    assert_state(f, B, PLACED_HERE);
    assert_true(placed_is_here(f->placed, bytes_of(C)));
    placed_lock_changes(f->placed);
    assert_ok(placed_forget(f->placed, B));
    placed_unlock_changes(f->placed);
    start_anew(f);
    struct placed_instance found;
    assert_false(placed_find(f->placed, bytes_of(B), &found));
}

static void a_copy_that_did_not_end_begins_anew(void **state)
{
    struct fixture *f = *state;
    begin(f, 0);
    set(f, A, PLACED_COPYING);
    assert_rule(f, A, 1, PLACED_APPLY);
    assert_false(placed_is_here(f->placed, bytes_of(A)));
    start_anew(f);
    assert_state(f, A, PLACED_WANTED);
    assert_rule(f, A, 1, PLACED_SKIP);
}

static void changes_are_applied_behind_a_place(void **state)
{
    struct fixture *f = *state;
    struct stream_position until;
    begin(f, 0);
    set(f, A, PLACED_WANTED);
    set(f, B, PLACED_HERE);
    placed_set_from(f->placed, A, ORIGIN, at(20));
    set(f, A, PLACED_HERE);
    assert_rule(f, A, 20, PLACED_SKIP);
    assert_rule(f, A, 21, PLACED_APPLY);
    assert_rule(f, B, 1, PLACED_APPLY);
    assert_rule(f, C, 1, PLACED_UNKNOWN);
    assert_true(placed_bound(f->placed, ORIGIN, at(10), &until));
    assert_int_equal(until.sequence, 20);
    assert_false(placed_bound(f->placed, ORIGIN, at(20), &until));
    assert_false(placed_bound(f->placed, ORIGIN + 1, at(0), &until));
    start_anew(f);
    assert_rule(f, A, 20, PLACED_SKIP);
    assert_rule(f, A, 21, PLACED_APPLY);
}

static void what_comes_again_is_left_out(void **state)
{
    struct fixture *f = *state;
    begin(f, 0);
    set(f, A, PLACED_HERE);
    set(f, B, PLACED_WANTED);
    set(f, C, PLACED_LEAVING);
    placed_lock_changes(f->placed);
    assert_ok(placed_raise(f->placed, ORIGIN, at(50)));
    assert_ok(placed_raise(f->placed, ORIGIN, at(30))); /* which is less */
    placed_unlock_changes(f->placed);
    start_anew(f);
    assert_rule(f, A, 50, PLACED_SKIP);
    assert_rule(f, A, 51, PLACED_APPLY);
    assert_rule(f, C, 50, PLACED_SKIP);
    assert_int_equal(placed_from(f->placed, bytes_of(B), ORIGIN).sequence, 0);
}

static void what_is_made_now_is_here_at_once(void **state)
{
    struct fixture *f = *state;
    struct placed_instance found;
    assert_ok(placed_note_new(f->placed, A, 9)); /* there are no peers */
    assert_false(placed_find(f->placed, bytes_of(A), &found));
    begin(f, 8);
    assert_ok(placed_note_new(f->placed, A, 8)); /* it may be elsewhere */
    assert_false(placed_find(f->placed, bytes_of(A), &found));
    assert_ok(placed_note_new(f->placed, A, 9));
    assert_true(placed_is_here(f->placed, bytes_of(A)));
    set(f, B, PLACED_WANTED);
    assert_ok(placed_note_new(f->placed, B, 9));
    assert_state(f, B, PLACED_WANTED);
    start_anew(f); /* a start finds it out by itself */
    assert_false(placed_find(f->placed, bytes_of(A), &found));
}

static void the_end_forgets_all(void **state)
{
    struct fixture *f = *state;
    begin(f, 8);
    set(f, A, PLACED_WANTED);
    placed_lock_changes(f->placed);
    assert_ok(placed_end(f->placed));
    placed_unlock_changes(f->placed);
    assert_true(placed_is_here(f->placed, bytes_of(A)));
    start_anew(f);
    assert_false(placed_has_begun(f->placed));
}

static void put_record(struct fixture *f, const char *key, bytes value)
{
    struct catalog_txn *txn = catalog_txn_create(cluster_catalog(f->base->cluster));
    catalog_txn_put(txn, bytes_of(key), value);
    assert_ok(cluster_write_catalog(f->base->cluster, txn));
    catalog_txn_destroy(txn);
}

static void a_damaged_record_is_told(void **state)
{
    static const char *const keys[] = {"placed", "placed" A};
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        struct placed *placed;
        put_record(f, keys[i], bytes_of("\xff"));
        assert_status(placed_open(f->base->cluster, &placed), STATUS_DATA_LOSS);
        assert_null(placed);
        put_record(f, "placed", bytes_of("12345678"));
    }
}

static void open_in_need(void *context)
{
    struct fixture *f = context;
    struct placed *placed;
    status s = placed_open(f->base->cluster, &placed);
    assert_true(status_is_ok(s) || s.code == STATUS_RESOURCE_EXHAUSTED);
    status_free(s);
    placed_close(placed);
}

/* Whatever fails, what is told then is what there was before or what was asked for. The commit
 * thread's allocations fail, too: so it is set right then. */
static void change_in_need(void *context)
{
    struct fixture *f = context;
    const struct placed_instance here = {.state = PLACED_HERE, .made_in = 7};
    struct placed_instance found;
    placed_lock_changes(f->placed);
    status s = placed_set(f->placed, A, &here);
    placed_unlock_changes(f->placed);
    bool is_there = placed_find(f->placed, bytes_of(A), &found);
    assert_true(!status_is_ok(s) || (is_there && found.state == PLACED_HERE));
    status_free(s);
}

static void memory_runs_out_anywhere(void **state)
{
    struct fixture *f = *state;
    begin(f, 0);
    set(f, C, PLACED_HERE);
    failmalloc_each(open_in_need, f);
    failmalloc_each(change_in_need, f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(without_peers_all_is_here, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_set_is_there_after_a_start, setup, teardown),
        cmocka_unit_test_setup_teardown(a_copy_that_did_not_end_begins_anew, setup, teardown),
        cmocka_unit_test_setup_teardown(changes_are_applied_behind_a_place, setup, teardown),
        cmocka_unit_test_setup_teardown(what_comes_again_is_left_out, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_made_now_is_here_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(the_end_forgets_all, setup, teardown),
        cmocka_unit_test_setup_teardown(a_damaged_record_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(memory_runs_out_anywhere, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
