/* Damage of rows that had been dropped before: what of it comes back into service by itself, and
 * what has to stay out. */
#include "cluster/testing/damaged_testing.h"

static int setup(void **state)
{
    static struct cluster_fixture f;
    make_steps_fixture(&f);
    f.options.maintenance_by_hand = true;
    open_test_cluster(&f);
    f.table = create_test_table(f.cluster, NULL);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct cluster_fixture *f = *state;
    end_life(f);
    free_steps_fixture(f);
    return 0;
}

/* All rows, in one table file. */
static void fill(struct cluster_fixture *f)
{
    for (unsigned i = 0; i < ROWS; i++) {
        char key[8], value[VALUE + 1];
        key_of(key, i);
        value_of(value, i);
        set_cell(f, key, value);
    }
    assert_ok(keyspace_flush(f->table->tablets[0]->keyspace));
}

enum { EACH = 10 };

/* Some rows anew, so that some of them are where the damage is. */
static void write_some(struct cluster_fixture *f)
{
    for (unsigned i = 0; i < ROWS; i += EACH) {
        char key[8];
        key_of(key, i);
        set_cell(f, key, "new");
    }
}

static void assert_some(struct cluster_fixture *f)
{
    for (unsigned i = 0; i < ROWS; i++) {
        char key[8], expected[16];
        struct buffer text = {0};
        key_of(key, i);
        snprintf(expected, sizeof expected, "%s=new", key);
        assert_true(read_one(f, key, &text));
        assert_string_equal((const char *)text.data, i % EACH == 0 ? expected : "");
        buffer_free(&text);
    }
}

static void damage_it(struct cluster_fixture *f, struct hit *hit)
{
    end_life(f);
    flip(f->directory);
    begin_life(f);
    find_hit(f, hit);
}

static struct row_drops *drops_of(const struct cluster_fixture *f)
{
    return f->table->spaces[0].drops;
}

static void run_passes(struct cluster_fixture *f)
{
    for (int i = 0; i < 20; i++) {
        f->table->spaces[0].pass.not_until_us = 0;
        maintenance_run_once(f->cluster->maintenance);
    }
}

static unsigned count_damage(struct cluster_fixture *f)
{
    struct hit hit = {.count = 0};
    assert_ok(cluster_list_damage(f->cluster, take_hit, &hit));
    return hit.count;
}

static void it_ends_with_the_pass(void **state)
{
    struct cluster_fixture *f = *state;
    struct hit hit;
    fill(f);
    assert_ok(table_drop_rows(f->table, bytes_of("k")));
    write_some(f);
    damage_it(f, &hit);
    run_passes(f);
    assert_int_equal(count_damage(f), 0);
    assert_int_equal(row_drops_count(drops_of(f)), 0);
    assert_some(f);
    end_life(f);
    begin_without_damage(f);
    assert_some(f);
}

static status take_words(void *context, const struct lost_rows *lost)
{
    buffer_append_format(context, "%s\n", lost->words);
    return status_ok();
}

/* What was written there since is no loss either. */
static void a_repair_gives_up_nothing(void **state)
{
    struct cluster_fixture *f = *state;
    struct buffer words = {0};
    struct hit hit;
    const struct table_repair_options options = {.lost = take_words, .context = &words};
    fill(f);
    assert_ok(table_drop_rows(f->table, bytes_of("")));
    write_some(f);
    damage_it(f, &hit);
    assert_ok(table_repair(f->table, &options));
    buffer_append_byte(&words, 0);
    assert_non_null(strstr((const char *)words.data, DAMAGE_OF_DELETED "\n"));
    buffer_free(&words);
    assert_int_equal(count_damage(f), 0);
    assert_some(f);
}

static void assert_hit_is_refused(struct cluster_fixture *f, const struct hit *hit)
{
    unsigned refused = 0;
    for (unsigned i = 0; i < ROWS; i++) {
        char key[8];
        struct buffer text = {0};
        key_of(key, i);
        assert_int_equal(read_one(f, key, &text), !was_hit(hit, key));
        refused += was_hit(hit, key);
        buffer_free(&text);
    }
    assert_true(refused > 0);
}

static void what_was_written_since_stays_damaged(void **state)
{
    struct cluster_fixture *f = *state;
    const struct table_repair_options options = {.lost = ignore_lost};
    struct hit hit;
    set_cell(f, "k", "old");
    assert_ok(keyspace_flush(f->table->tablets[0]->keyspace));
    assert_ok(table_drop_rows(f->table, bytes_of("k")));
    fill(f);
    damage_it(f, &hit);
    run_passes(f);
    assert_int_equal(count_damage(f), 1);
    assert_int_equal(row_drops_count(drops_of(f)), 1);
    assert_hit_is_refused(f, &hit);
    assert_ok(table_repair(f->table, &options));
    assert_int_equal(count_damage(f), 0);
    run_passes(f);
    assert_int_equal(row_drops_count(drops_of(f)), 0);
}

static void rows_beside_a_drop_stay_damaged(void **state)
{
    struct cluster_fixture *f = *state;
    struct hit hit;
    fill(f);
    assert_ok(table_drop_rows(f->table, bytes_of("k0000")));
    damage_it(f, &hit);
    run_passes(f);
    assert_int_equal(count_damage(f), 1);
    assert_int_equal(row_drops_count(drops_of(f)), 1);
}

/* A reader of before the drop is still to have them. */
static void it_stays_while_the_drop_is_held(void **state)
{
    struct cluster_fixture *f = *state;
    struct hit hit;
    fill(f);
    damage_it(f, &hit);
    row_drops_hold(drops_of(f)); /* maintenance by hand forgets nothing meanwhile */
    struct row_drop *drop;
    assert_ok(row_drop_create(bytes_of(""), bytes_of(""), &drop));
    row_drop_set_newest_table(drop, UINT64_MAX);
    assert_ok(row_drops_reserve(drops_of(f)));
    row_drops_add(drops_of(f), drop, 1, 1);
    run_passes(f);
    assert_int_equal(count_damage(f), 1);
    row_drops_let_go(drops_of(f));
    run_passes(f);
    assert_int_equal(count_damage(f), 0);
}

/* The range that is dropped is out of service already: it is deleted, and back at once. */
static void a_drop_ends_what_is_known(void **state)
{
    struct cluster_fixture *f = *state;
    struct hit hit;
    fill(f);
    damage_it(f, &hit);
    assert_ok(table_drop_rows(f->table, bytes_of("k")));
    assert_int_equal(count_damage(f), 0);
    assert_int_equal(row_drops_count(drops_of(f)), 0);
    write_some(f);
    assert_some(f);
    end_life(f);
    begin_without_damage(f);
    assert_some(f);
}

static bool deletes_ranges(struct cluster_fixture *f)
{
    bool has;
    assert_ok(keyspace_flush(f->table->spaces[0].keyspace));
    assert_ok(
        keyspace_deletes_ranges(f->table->spaces[0].keyspace, bytes_of(""), bytes_of(""), &has));
    return has;
}

/* Rows beside what is out of service are deleted, too, and nothing heals that would compact them.
 * Garbage collection does in the next rounds, though its interval is an hour. */
static void space_of_deleted_rows_comes_back_at_once(void **state)
{
    struct cluster_fixture *f = *state;
    struct hit hit;
    fill(f);
    set_cell(f, "z", "1");
    damage_it(f, &hit);
    maintenance_run_once(f->cluster->maintenance); /* from now on it is known when one is due */
    assert_ok(table_drop_rows(f->table, bytes_of("z")));
    assert_int_equal(row_drops_count(drops_of(f)), 0);
    assert_true(deletes_ranges(f));
    for (int i = 0; i < 2; i++)
        maintenance_run_once(f->cluster->maintenance);
    assert_false(deletes_ranges(f));
    assert_int_equal(count_damage(f), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(it_ends_with_the_pass, setup, teardown),
        cmocka_unit_test_setup_teardown(a_repair_gives_up_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(what_was_written_since_stays_damaged, setup, teardown),
        cmocka_unit_test_setup_teardown(rows_beside_a_drop_stay_damaged, setup, teardown),
        cmocka_unit_test_setup_teardown(it_stays_while_the_drop_is_held, setup, teardown),
        cmocka_unit_test_setup_teardown(a_drop_ends_what_is_known, setup, teardown),
        cmocka_unit_test_setup_teardown(space_of_deleted_rows_comes_back_at_once, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
