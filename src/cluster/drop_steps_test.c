/* Drops of rows with a disk that fails, at each step of theirs: of the commit, of the pass that
 * compacts what is dropped and looks at it, of the commit that forgets the drop.
 *
 * A story is told again and again, with the faults and ends of steps_testing.h. The next start must
 * find the rows as before the step that failed or as after it, and can tell the story to its end:
 * neither a row that was dropped, nor half of a sum, may be back. */
#include "cluster/testing/steps_testing.h"

/* --- the story --- */

static status write_a(struct cluster_fixture *f, const char *value)
{
    return try_write(f, "a", setting(f, FAMILY_F, "q", 1, value));
}

static status add_to_n(struct cluster_fixture *f, const char *amount)
{
    uint8_t state[8] = {[7] = (uint8_t)(*amount - '0')};
    bytes kept = arena_copy(f->arena, bytes_make(state, sizeof state));
    struct row_change *change = row_change_create(f->arena);
    assert_non_null(change);
    row_change_add(change, ENTRY_SUM, FAMILY_SUM, bytes_of("n"), 0, kept);
    return try_write(f, "n", change);
}

static status flush(struct cluster_fixture *f, const char *unused)
{
    (void)unused;
    return keyspace_flush(f->table->spaces[0].keyspace);
}

static status drop_rows(struct cluster_fixture *f, const char *prefix)
{
    return table_drop_rows(f->table, bytes_of(prefix));
}

/* Until all drops are forgotten, unless something keeps that. */
static status pass_over(struct cluster_fixture *f, const char *unused)
{
    (void)unused;
    struct table_space *space = &f->table->spaces[0];
    for (int i = 0; i < 2 && row_drops_count(space->drops) > 0; i++) {
        space->pass.not_until_us = 0;
        maintenance_run_once(f->cluster->maintenance);
    }
    return row_drops_count(space->drops) == 0 ? status_ok()
                                              : status_make(STATUS_UNAVAILABLE, "it is kept");
}

/* `after`: the value of a, and the sum of n, once the step is done. */
static const struct step {
    status (*run)(struct cluster_fixture *f, const char *argument);
    const char *argument;
    const char *after;
} steps[] = {
    {write_a, "1", "1 0"},    {add_to_n, "1", "1 1"},   {flush, NULL, "1 1"},
    {add_to_n, "2", "1 3"},   {drop_rows, "n", "1 0"},  {add_to_n, "4", "1 4"},
    {write_a, "2", "2 4"},    {flush, NULL, "2 4"},     {drop_rows, "a", "- 4"},
    {pass_over, NULL, "- 4"}, {add_to_n, "1", "- 5"},   {write_a, "3", "3 5"},
    {drop_rows, "", "- 0"},   {pass_over, NULL, "- 0"}, {add_to_n, "2", "- 2"},
};

enum { STEPS = sizeof steps / sizeof *steps };

/* --- what there is --- */

/* What is behind the name of the one row in the range, of which this is byte `at`; `none` if there
 * is no row. */
static unsigned byte_of(struct cluster_fixture *f, const char *from, const char *to, size_t at,
                        unsigned none)
{
    const struct key_range range = {.from = bytes_of(from), .to = bytes_of(to)};
    struct buffer text = {0};
    assert_ok(scan_text(f, &range, 1, false, 0, &text));
    const uint8_t *value = memchr(text.data, '=', text.size);
    unsigned byte = value == NULL ? none : value[1 + at];
    buffer_free(&text);
    return byte;
}

static void show(struct cluster_fixture *f, char out[8])
{
    char value = (char)byte_of(f, "a", "b", 0, '-');
    snprintf(out, 8, "%c %u", value, byte_of(f, "n", "o", 7, 0) % 100);
}

/* Where the story is to go on: behind `done` steps, or one more if that was done when it failed. */
static size_t find_state(struct cluster_fixture *f, size_t done)
{
    const char *before = done == 0 ? "- 0" : steps[done - 1].after;
    char seen[8];
    show(f, seen);
    if (strcmp(seen, before) == 0)
        return done;
    assert_true(done < STEPS);
    assert_string_equal(seen, steps[done].after);
    return done + 1;
}

/* --- lives of the process --- */

/* Goes on until a step fails; returns how many are done. */
static size_t tell(struct cluster_fixture *f, size_t done)
{
    for (; done < STEPS; done++) {
        status s = steps[done].run(f, steps[done].argument);
        bool failed = !status_is_ok(s);
        status_free(s);
        if (failed)
            break;
    }
    return done;
}

/* The next start, and the rest of the story. */
static void recover(struct cluster_fixture *f, size_t done)
{
    begin_steps_life(f);
    assert_int_equal(tell(f, find_state(f, done)), STEPS);
    assert_int_equal(find_state(f, STEPS), STEPS);
    end_steps_life(f);
    begin_steps_life(f);
    assert_int_equal(find_state(f, STEPS), STEPS);
    assert_ok(pass_over(f, NULL));
    assert_int_equal(find_state(f, STEPS), STEPS);
    end_steps_life(f);
}

/* The story with a fault after `pass` operations that work; false if it did not come to that. */
static bool tell_with_fault(enum fault_operation operation, unsigned pass, enum ending ending)
{
    struct cluster_fixture f;
    char copy[64];
    make_steps_fixture(&f);
    f.options.maintenance_by_hand = true;
    make_steps_directory(copy, sizeof copy);
    faults = fault_fs_create();
    open_test_cluster(&f);
    f.table = create_test_table(f.cluster, NULL);
    fault_fs_fail(faults, operation, "", FAULT_IO, pass);
    size_t done = tell(&f, 0);
    bool came = fault_fs_failures(faults) > 0;
    if (ending != STOP && done < STEPS) /* or else the store is not at rest */
        cut_power(&f, copy, ending);
    fault_fs_heal(faults);
    end_steps_life(&f);
    end_faults();
    recover(&f, done);
    remove_test_directory(copy);
    free_steps_fixture(&f);
    return came || done < STEPS;
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

static void each_directory_sync_fails(void **state)
{
    (void)state;
    tell_with_each_fault(FAULT_SYNC_DIRECTORY, tell_with_fault);
}

/* Folds throw away what it covers, and tables with that may be synced before the log is. */
static void a_drop_is_synced_whatever_else_is(void **state)
{
    struct cluster_fixture f;
    (void)state;
    make_steps_fixture(&f);
    f.options.maintenance_by_hand = true;
    f.options.durability = STORE_ASYNC;
    faults = fault_fs_create();
    open_test_cluster(&f);
    f.table = create_test_table(f.cluster, NULL);
    fault_fs_fail(faults, FAULT_SYNC, "", FAULT_IO, 0);
    set_cell(&f, "a", "1");
    assert_int_equal(fault_fs_failures(faults), 0);
    status s = table_drop_rows(f.table, bytes_of("a"));
    assert_false(status_is_ok(s));
    assert_true(fault_fs_failures(faults) > 0);
    status_free(s);
    fault_fs_heal(faults);
    end_steps_life(&f);
    end_faults();
    free_steps_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_write_fails),
        cmocka_unit_test(each_sync_fails),
        cmocka_unit_test(each_directory_sync_fails),
        cmocka_unit_test(a_drop_is_synced_whatever_else_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
