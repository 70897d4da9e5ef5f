/* Tests of garbage collection without traffic, of rows that are neither read nor written. */
#include "cluster/gc_pass.h"

#include "base/testing/testing_clock.h"
#include "cluster/testing/testing.h"
#include "tablet/key_bounds.h"

#include <stdatomic.h>

static struct set_clock test_clock = {.clock = SET_CLOCK};

enum { LIFE_US = 1800 * 1000000 };

static const struct gc_rule half_an_hour = {.kind = GC_MAX_AGE, .max_age_us = LIFE_US};
static const struct gc_rule one_version = {.kind = GC_MAX_VERSIONS, .max_versions = 1};
static const struct gc_rule age_or_count[] = {
    {.kind = GC_MAX_AGE, .max_age_us = LIFE_US},
    {.kind = GC_MAX_VERSIONS, .max_versions = 1},
};
static const struct gc_rule either = {.kind = GC_UNION, .children = age_or_count, .child_count = 2};
static const struct gc_rule both = {
    .kind = GC_INTERSECTION, .children = age_or_count, .child_count = 2};

/* `*state` is the rule of f; the pass comes as often as maintenance wakes. */
static int setup(void **state)
{
    struct cluster_fixture *f = cluster_fixture_create(*state);
    atomic_store(&test_clock.wall_us, INT64_C(1700000000) * 1000000);
    assert_ok(metrics_create(&f->options.metrics));
    f->options.clock = &test_clock.clock;
    f->options.gc_interval_us = 1;
    reopen_test_cluster(f);
    *state = f;
    return 0;
}

/* Waits until so many whole passes have been made from now on. */
static void await_passes(struct cluster_fixture *f, int64_t passes)
{
    struct metrics *metrics = f->options.metrics;
    int64_t until = metrics_value(metrics, METRIC_gc_passes_total) + passes + 1;
    while (metrics_value(metrics, METRIC_gc_passes_total) < until)
        maintenance_run_once(f->cluster->maintenance);
}

static size_t record_count(struct cluster_fixture *f, const char *from, const char *to)
{
    struct tablet *tablet = table_route(f->table, bytes_of(""));
    struct store_cursor_options options = {
        .lower = bytes_of(from), .upper = bytes_of(to), .read_tier = STORE_READ_ANY};
    struct store_cursor *cursor;
    size_t count = 0;
    assert_ok(store_cursor_create(tablet->keyspace, &options, &cursor));
    for (store_cursor_first(cursor); store_cursor_valid(cursor); store_cursor_next(cursor))
        count++;
    assert_ok(store_cursor_status(cursor));
    store_cursor_destroy(cursor);
    tablet_release(tablet);
    return count;
}

/* Cells in a row's record. */
static size_t cells_in_record(struct cluster_fixture *f, const char *record_key)
{
    struct tablet *tablet = table_route(f->table, bytes_of(""));
    struct store_value value;
    enum store_presence presence;
    struct fragment_reader reader;
    struct entry entry;
    size_t count = 0;
    assert_ok(
        store_get(tablet->keyspace, NULL, bytes_of(record_key), STORE_READ_ANY, &value, &presence));
    assert_true(fragment_reader_start(&reader, value.bytes));
    while (fragment_reader_next(&reader, &entry))
        count += entry_is_cell(entry.kind);
    store_value_release(&value);
    tablet_release(tablet);
    return count;
}

/* Three looks of maintenance make a pass over a small table, whatever the last one was at. */
static void let_it_pass(struct cluster_fixture *f)
{
    for (int i = 0; i < 3; i++)
        maintenance_run_once(f->cluster->maintenance);
}

static status take_rule(void *context, const struct table_info *now, struct arena *arena,
                        struct table_change *next)
{
    struct family *families = arena_alloc(arena, now->schema->family_count * sizeof *families);
    assert_non_null(families);
    memcpy(families, now->schema->families, now->schema->family_count * sizeof *families);
    families[0].gc = context;
    *next = (struct table_change){.families = families, .family_count = now->schema->family_count};
    return status_ok();
}

/* Gives f another rule. */
static void change_rule(struct cluster_fixture *f, const struct gc_rule *rule)
{
    struct gc_rule copy = *rule;
    assert_ok(table_change_schema(f->table, f->arena, take_rule, &copy));
}

static void write_at(struct cluster_fixture *f, const char *row_key, const char *qualifier,
                     int64_t wall_us, const char *value)
{
    assert_ok(try_write(f, row_key, setting(f, FAMILY_F, qualifier, wall_us, value)));
}

/* Its history is operands alone, never a put: compactions see no value to tidy. */
static void a_key_that_was_only_merged_goes_when_its_cells_expire(void **state)
{
    struct cluster_fixture *f = *state;
    int64_t now = atomic_load(&test_clock.wall_us);
    write_at(f, "a", "1", now, "x");
    write_at(f, "a", "2", now, "y");
    write_at(f, "stays", "1", now + INT64_C(2) * LIFE_US, "z");
    assert_int_equal(record_count(f, "R", "S"), 2);
    atomic_store(&test_clock.wall_us, now + INT64_C(2) * LIFE_US);
    await_passes(f, 3);
    assert_scan(f, "", "", false, "stays=z");
    assert_int_equal(record_count(f, "R", "S"), 1);
}

/* One of those that get records of their own. */
static const char *large_value(void)
{
    static char large[1000];
    memset(large, 'v', sizeof large - 1);
    return large;
}

static void overflow_cells_expire_too(void **state)
{
    struct cluster_fixture *f = *state;
    int64_t now = atomic_load(&test_clock.wall_us);
    write_at(f, "a", "1", now, large_value());
    write_at(f, "a", "2", now + INT64_C(2) * LIFE_US, large_value());
    assert_int_equal(record_count(f, "S", "T"), 2);
    atomic_store(&test_clock.wall_us, now + INT64_C(2) * LIFE_US);
    await_passes(f, 3);
    assert_int_equal(record_count(f, "S", "T"), 1);
}

/* No fold sees how many versions there are, and no request reads or writes the rows. */
static void overflow_versions_go_when_the_rule_changes(void **state)
{
    struct cluster_fixture *f = *state;
    for (int64_t t = 1; t <= 5; t++) {
        write_at(f, "packed", "q", t, "x");
        write_at(f, "overflow", "q", t, large_value());
        write_at(f, "mixed", "q", t, large_value());
        write_at(f, "mixed", "q", t + 5, "small");
    }
    let_it_pass(f);
    assert_int_equal(record_count(f, "S", "T"), 10);
    change_rule(f, &one_version);
    let_it_pass(f);
    assert_int_equal(cells_in_record(f, "Rpacked"), 1);
    assert_int_equal(cells_in_record(f, "Rmixed"), 1);
    assert_int_equal(record_count(f, "S", "T"), 1);
}

/* Condemned are versions that are both old and too many. */
static void overflow_versions_go_when_they_are_old_as_well(void **state)
{
    struct cluster_fixture *f = *state;
    int64_t now = atomic_load(&test_clock.wall_us);
    for (int64_t t = 0; t < 5; t++)
        write_at(f, "a", "q", now + t, large_value());
    write_at(f, "a", "alone", now, large_value());
    await_passes(f, 2);
    assert_int_equal(record_count(f, "S", "T"), 6);
    atomic_store(&test_clock.wall_us, now + INT64_C(2) * LIFE_US);
    await_passes(f, 2);
    assert_int_equal(record_count(f, "S", "T"), 2);
}

/* A compaction took the last overflow cell, and left the mark that keeps folds from counting. */
static void a_row_whose_overflow_cells_have_all_expired_is_packed_again(void **state)
{
    struct cluster_fixture *f = *state;
    const bytes everything = bytes_of("");
    int64_t now = atomic_load(&test_clock.wall_us);
    write_at(f, "a", "q", now, large_value());
    write_at(f, "a", "q", now + INT64_C(2) * LIFE_US, "old");
    write_at(f, "a", "q", now + INT64_C(2) * LIFE_US + 1, "new");
    atomic_store(&test_clock.wall_us, now + INT64_C(2) * LIFE_US);
    struct tablet *tablet = table_route(f->table, bytes_of(""));
    assert_ok(keyspace_compact(tablet->keyspace, everything, everything));
    tablet_release(tablet);
    await_passes(f, 2);
    assert_int_equal(record_count(f, "S", "T"), 0);
    assert_int_equal(cells_in_record(f, "Ra"), 1);
    assert_scan(f, "", "", false, "a=new");
}

/* Also in a table without rules. */
static void overflow_cells_that_were_deleted_go(void **state)
{
    struct cluster_fixture *f = *state;
    write_at(f, "a", "q", 1, large_value());
    write_at(f, "b", "q", 1, large_value());
    write_at(f, "b", "r", 1, large_value());
    let_it_pass(f);
    struct row_change *change = row_change_create(f->arena);
    row_change_delete_row(change);
    assert_ok(try_write(f, "b", change));
    assert_int_equal(record_count(f, "S", "T"), 3);
    let_it_pass(f);
    assert_int_equal(record_count(f, "S", "T"), 1);
}

static bool has_deleted_ranges(struct keyspace *keyspace)
{
    bool has;
    assert_ok(keyspace_deletes_ranges(keyspace, bytes_of(""), bytes_of(""), &has));
    return has;
}

static void delete_rows(struct cluster_fixture *f, const char *from, const char *to)
{
    struct key_bounds records, overflow;
    assert_true(record_bounds(bytes_of(from), bytes_of(to), &records));
    assert_true(overflow_bounds(bytes_of(from), bytes_of(to), &overflow));
    assert_ok(shard_delete_keys(f->cluster->home, f->table, f->table->spaces[0].keyspace, &records,
                                &overflow));
    key_bounds_free(&records);
    key_bounds_free(&overflow);
}

/* As former programs left them, and repairs do: also in a table without rules. */
static void ranges_that_are_deleted_go(void **state)
{
    struct cluster_fixture *f = *state;
    f->options.maintenance_by_hand = true;
    reopen_test_cluster(f);
    struct keyspace *keyspace = f->table->spaces[0].keyspace;
    write_at(f, "a", "q", 1, "x");
    write_at(f, "b", "q", 1, large_value());
    assert_ok(keyspace_flush(keyspace));
    let_it_pass(f);
    assert_false(has_deleted_ranges(keyspace));
    delete_rows(f, "b", "c");
    assert_ok(keyspace_flush(keyspace));
    assert_true(has_deleted_ranges(keyspace));
    assert_scan(f, "", "", false, "a=x");
    let_it_pass(f);
    assert_false(has_deleted_ranges(keyspace));
    assert_scan(f, "", "", false, "a=x");
}

/* A table of which there is nothing to collect, for a long time. */
static struct keyspace *begin_hour(struct cluster_fixture *f)
{
    f->options.gc_interval_us = INT64_C(2) * LIFE_US;
    f->options.maintenance_by_hand = true;
    reopen_test_cluster(f);
    write_at(f, "a", "q", 1, "x");
    write_at(f, "b", "q", 1, large_value());
    assert_ok(keyspace_flush(f->table->spaces[0].keyspace));
    let_it_pass(f);
    return f->table->spaces[0].keyspace;
}

/* What was deleted just now is in no file yet, and in none that anybody looks at. */
static void who_hurries_does_not_wait_for_a_flush(void **state)
{
    struct cluster_fixture *f = *state;
    struct keyspace *keyspace = begin_hour(f);
    delete_rows(f, "b", "c");
    gc_pass_hurry(f->table);
    let_it_pass(f);
    assert_ok(keyspace_flush(keyspace));
    assert_false(has_deleted_ranges(keyspace));
    assert_scan(f, "", "", false, "a=x");
}

static bool is_behind_a(const struct cluster_fixture *f)
{
    const struct table_gc *gc = &f->table->gc;
    return gc->is_under_way && bytes_compare(bytes_of("b"), buffer_bytes(&gc->next)) <= 0;
}

/* The pass that is under way does not come back to what it has been over. */
static void who_hurries_in_a_pass_gets_another(void **state)
{
    enum { MOST_PIECES = 200 };
    struct cluster_fixture *f = *state;
    struct keyspace *keyspace = begin_hour(f);
    change_rule(f, &half_an_hour);
    f->cluster->options.piece_bytes = 1;
    gc_pass_hurry(f->table);
    for (int i = 0; i < MOST_PIECES && !is_behind_a(f); i++)
        maintenance_run_once(f->cluster->maintenance);
    assert_true(is_behind_a(f));
    delete_rows(f, "a", "b");
    gc_pass_hurry(f->table);
    f->cluster->options.piece_bytes = 1 << 30;
    let_it_pass(f);
    assert_ok(keyspace_flush(keyspace));
    assert_false(has_deleted_ranges(keyspace));
}

#define A_TEST(name, rule)                                                                         \
    cmocka_unit_test_prestate_setup_teardown(name, setup, cluster_fixture_teardown,                \
                                             (void *)(uintptr_t)(rule))

int main(void)
{
    const struct CMUnitTest tests[] = {
        A_TEST(a_key_that_was_only_merged_goes_when_its_cells_expire, &half_an_hour),
        A_TEST(overflow_cells_expire_too, &half_an_hour),
        A_TEST(overflow_versions_go_when_the_rule_changes, NULL),
        A_TEST(overflow_versions_go_when_they_are_old_as_well, &both),
        A_TEST(a_row_whose_overflow_cells_have_all_expired_is_packed_again, &either),
        A_TEST(overflow_cells_that_were_deleted_go, NULL),
        A_TEST(ranges_that_are_deleted_go, NULL),
        A_TEST(who_hurries_does_not_wait_for_a_flush, NULL),
        A_TEST(who_hurries_in_a_pass_gets_another, NULL),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
