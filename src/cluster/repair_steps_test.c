/* Repair of a table with a damaged file, with a disk that fails, at each of its steps, and without
 * memory.
 *
 * Rows are in one table file, of which a block is damaged. A repair is told again and again, with
 * the faults and ends of steps_testing.h. Whatever becomes of it,
 *
 *     each row that was not hit is what it was, or refused while the disk does not read it;
 *     each that was hit is refused, or gone; and
 *     a repair without faults brings all back into service: then rows can be written there that
 *     the next start has. */
#include "base/testing/failmalloc.h"
#include "cluster/testing/damaged_testing.h"

static void fill(struct cluster_fixture *f)
{
    open_test_cluster(f);
    f->table = create_test_table(f->cluster, NULL);
    for (unsigned i = 0; i < ROWS; i++) {
        char key[8], value[VALUE + 1];
        key_of(key, i);
        value_of(value, i);
        set_cell(f, key, value);
    }
    assert_ok(keyspace_flush(f->table->tablets[0]->keyspace));
    end_life(f);
}

/* What may be refused. */
enum refusals { NOTHING, WHAT_WAS_HIT, ANYTHING };

static void assert_row(struct cluster_fixture *f, unsigned i, bool is_hit, enum refusals refusals)
{
    char key[8], value[VALUE + 1], right[VALUE + 16];
    struct buffer text = {0};
    key_of(key, i);
    value_of(value, i);
    snprintf(right, sizeof right, "%s=%s", key, value);
    if (read_one(f, key, &text))
        assert_string_equal((const char *)text.data, is_hit ? "" : right);
    else if (refusals == NOTHING || (!is_hit && refusals == WHAT_WAS_HIT))
        fail_msg("%s is refused, is hit: %d, may be refused: %d", key, is_hit, refusals);
    buffer_free(&text);
}

static void assert_rows(struct cluster_fixture *f, const struct hit *hit, enum refusals refusals)
{
    for (unsigned i = 0; i < ROWS; i++) {
        char key[8];
        key_of(key, i);
        assert_row(f, i, was_hit(hit, key), refusals);
    }
}

static status repair(struct cluster_fixture *f)
{
    const struct table_repair_options options = {.lost = ignore_lost};
    return table_repair(f->table, &options);
}

/* --- the story --- */

/* What a repair has said to be in service stays so: what is written there is there. */
static void use_repaired(struct cluster_fixture *f, struct hit *hit)
{
    for (unsigned i = 0; i < ROWS; i++) {
        char key[8], value[VALUE + 1];
        key_of(key, i);
        value_of(value, i);
        if (was_hit(hit, key))
            set_cell(f, key, value);
    }
    *hit = (struct hit){.count = 0};
    assert_rows(f, hit, NOTHING);
    end_life(f);
    begin_without_damage(f);
    assert_rows(f, hit, NOTHING);
    end_life(f);
}

/* The next start, and a repair without faults. */
static void recover(struct cluster_fixture *f, struct hit *hit, enum refusals refusals)
{
    begin_life(f);
    assert_ok(cluster_look_for_damage(f->cluster));
    assert_rows(f, hit, refusals);
    assert_ok(repair(f));
    assert_rows(f, hit, NOTHING);
    end_life(f);
    begin_without_damage(f);
    assert_rows(f, hit, NOTHING);
    use_repaired(f, hit);
}

/* False if the fault did not come. */
static bool repair_with_fault(enum fault_operation operation, unsigned pass, enum ending ending)
{
    struct cluster_fixture f;
    struct hit hit;
    char copy[64];
    enum refusals refusals = operation == FAULT_READ ? ANYTHING : WHAT_WAS_HIT;
    make_steps_fixture(&f);
    make_steps_directory(copy, sizeof copy);
    fill(&f);
    flip(f.directory);
    faults = fault_fs_create();
    begin_life(&f);
    find_hit(&f, &hit);
    fault_fs_fail(faults, operation, "", FAULT_IO, pass);
    status s = repair(&f);
    bool failed = !status_is_ok(s);
    bool came = failed || fault_fs_failures(faults) > 0;
    status_free(s);
    if (ending != STOP && failed)
        cut_power(&f, copy, ending);
    fault_fs_heal(faults);
    if (f.options.data_directory == f.directory)
        assert_rows(&f, &hit, failed ? refusals : NOTHING);
    end_life(&f);
    end_faults();
    recover(&f, &hit, refusals);
    remove_test_directory(copy);
    free_steps_fixture(&f);
    return came;
}

static void test_each_write_fails(void **state)
{
    (void)state;
    tell_with_each_fault(FAULT_APPEND, repair_with_fault);
}

static void test_each_sync_fails(void **state)
{
    (void)state;
    tell_with_each_fault(FAULT_SYNC, repair_with_fault);
}

static void test_each_directory_sync_fails(void **state)
{
    (void)state;
    tell_with_each_fault(FAULT_SYNC_DIRECTORY, repair_with_fault);
}

static void test_each_making_of_a_file_fails(void **state)
{
    (void)state;
    tell_with_each_fault(FAULT_CREATE, repair_with_fault);
}

/* A look waits for a second for a disk that does not read: some of the reads will do. */
static void test_reads_fail(void **state)
{
    static const unsigned passes[] = {0, 1, 3, 5, 8, 12};
    (void)state;
    for (size_t i = 0; i < sizeof passes / sizeof *passes; i++)
        (void)repair_with_fault(FAULT_READ, passes[i], i % 2 == 0 ? STOP : POWER_CUT);
}

static void test_each_allocation_fails(void **state)
{
    enum { MOST = 2000 };
    struct cluster_fixture f;
    struct hit hit;
    bool is_repaired = false;
    size_t count = 0;
    (void)state;
    make_steps_fixture(&f);
    fill(&f);
    flip(f.directory);
    begin_life(&f);
    find_hit(&f, &hit);
    for (; !is_repaired; count++) {
        assert_true(count < MOST);
        failmalloc_start(count);
        status s = repair(&f);
        bool failed = failmalloc_stop();
        is_repaired = status_is_ok(s);
        assert_true(failed || is_repaired);
        assert_rows(&f, &hit, is_repaired ? NOTHING : WHAT_WAS_HIT);
        status_free(s);
    }
    assert_true(count > 1);
    use_repaired(&f, &hit);
    free_steps_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_write_fails),
        cmocka_unit_test(test_each_sync_fails),
        cmocka_unit_test(test_each_directory_sync_fails),
        cmocka_unit_test(test_each_making_of_a_file_fails),
        cmocka_unit_test(test_reads_fail),
        cmocka_unit_test(test_each_allocation_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
