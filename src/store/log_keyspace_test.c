/* Keyspaces of kind KEYSPACE_LOG: known as such wherever they are opened, never compacted, and
 * nobody waits for them. */
#include "store/testing/damage_testing.h"

enum { LOG = 7, TABLES = 50 };

/* --- the fixture: keyspace 7 is a log --- */

static int setup_log(void **state)
{
    setup(state);
    struct fixture *f = *state;
    assert_ok(store_keyspace_drop(f->store, f->keyspace));
    assert_ok(store_log_keyspace_create(f->store, LOG));
    f->keyspace = store_keyspace_find(f->store, LOG);
    return 0;
}

static uint64_t tables_at_level_0(const struct fixture *f)
{
    struct store_statistics statistics;
    store_statistics(f->store, &statistics);
    return statistics.level_files[0];
}

static void fill_tables(struct fixture *f)
{
    for (unsigned i = 0; i < TABLES; i++) {
        char key[16];
        key_of(key, i % 10); /* RocksDB moves tables down that overlap nothing */
        put(f->store, f->keyspace, key, "1");
        key_of(key, i);
        put(f->store, f->keyspace, key, "1");
        assert_ok(keyspace_flush(f->keyspace));
    }
}

static void assert_all_there(struct keyspace *keyspace)
{
    for (unsigned i = 0; i < TABLES; i++) {
        char key[16];
        key_of(key, i);
        assert_value(keyspace, key, "1");
    }
}

/* --- tests --- */

static void the_kind_is_known_at_each_opening(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(keyspace_kind(f->keyspace), KEYSPACE_LOG);
    assert_int_equal(keyspace_kind(store_keyspace_find(f->store, 8)), KEYSPACE_ROWS);
    put(f->store, f->keyspace, "k", "v");
    for (int i = 0; i < 2; i++) {
        reopen(f);
        assert_non_null(f->keyspace);
        assert_int_equal(keyspace_id(f->keyspace), LOG);
        assert_int_equal(keyspace_kind(f->keyspace), KEYSPACE_LOG);
        assert_int_equal(keyspace_kind(store_keyspace_find(f->store, 8)), KEYSPACE_ROWS);
        assert_value(f->keyspace, "k", "v");
        f->options.read_only = true;
    }
}

/* RocksDB knows the two by other names; ours is one number, which is given once. */
static void an_id_is_of_one_kind(void **state)
{
    struct fixture *f = *state;
    assert_ok(store_keyspace_drop(f->store, f->keyspace));
    assert_null(store_keyspace_find(f->store, LOG));
    reopen(f);
    assert_null(f->keyspace);
    f->keyspace = make_keyspace(f->store, LOG);
    reopen(f);
    assert_int_equal(keyspace_kind(f->keyspace), KEYSPACE_ROWS);
}

/* With 20 tables at level 0 RocksDB holds writes back, with 36 it lets none pass. */
static void its_tables_stay_and_nobody_waits(void **state)
{
    struct fixture *f = *state;
    struct store_statistics statistics;
    fill_tables(f);
    assert_ok(keyspace_compact(f->keyspace, bytes_of(""), bytes_of("")));
    store_statistics(f->store, &statistics);
    assert_int_equal(statistics.level_files[0], TABLES);
    assert_int_equal(statistics.slowdowns + statistics.stops, 0);
    assert_int_equal(statistics.compactions, 0);
    assert_int_equal(statistics.compaction_pending_bytes, 0);
    assert_all_there(f->keyspace);
    reopen(f);
    assert_int_equal(tables_at_level_0(f), TABLES);
    assert_all_there(f->keyspace);
}

/* The layers above give folds for rows, which would take a log's values for theirs. */
static void nothing_of_it_is_tidied(void **state)
{
    struct fixture *f = *state;
    keyspace_set_rules(f->keyspace, "u");
    put(f->store, f->keyspace, "k", "untidy");
    assert_ok(keyspace_flush(f->keyspace));
    assert_ok(keyspace_compact(f->keyspace, bytes_of(""), bytes_of("")));
    assert_value(f->keyspace, "k", "untidy");
}

static void a_checkpoint_knows_it(void **state)
{
    struct fixture *f = *state;
    char copy[512];
    struct store_checkpoint *checkpoint;
    struct store_options options = f->options;
    struct store *other;
    fill_tables(f);
    put(f->store, f->keyspace, "in the log", "1");
    snprintf(copy, sizeof copy, "%s/copy", f->directory);
    assert_ok(store_checkpoint_begin(f->store, &checkpoint));
    assert_ok(store_checkpoint_write(checkpoint, copy));
    store_checkpoint_end(checkpoint);
    options.directory = copy;
    assert_ok(store_open(&options, &other));
    struct keyspace *keyspace = store_keyspace_find(other, LOG);
    assert_int_equal(keyspace_kind(keyspace), KEYSPACE_LOG);
    assert_all_there(keyspace);
    assert_value(keyspace, "in the log", "1");
    store_close(other);
}

/* --- damage --- */

/* A keyspace of rows would be compacted, without what is damaged; here it stays as it is. */
static void a_damaged_block_fails_its_readers_and_nothing_else(void **state)
{
    struct fixture *f = *state;
    char path[512];
    fill(f, 0, KEYS, 0);
    reopen(f);
    newest_table(f, path);
    flip(path, 300000);
    scan_all(f);
    wait_for_ranges(f, 1);
    assert_false(f->ranges[0].is_whole);
    assert_in_range(count_out_of_service(f), 20, 60);
    assert_all(f, 0);
    assert_goes_on(f);
    uint64_t tables = tables_at_level_0(f);
    fill(f, 0, 1, 0);
    assert_int_equal(tables_at_level_0(f), tables + 1);
    reopen(f);
    scan_all(f);
    wait_for_ranges(f, 1);
    assert_all(f, 0);
    assert_ok(store_keyspace_drop(f->store, f->keyspace));
}

static void a_table_that_is_gone_fails_its_readers_and_nothing_else(void **state)
{
    struct fixture *f = *state;
    fill(f, 0, KEYS / 2, 0);
    fill(f, KEYS / 2, KEYS, 0);
    store_close(f->store);
    f->store = NULL;
    remove_newest(f);
    f->range_count = 0;
    assert_ok(store_open(&f->options, &f->store));
    f->keyspace = store_keyspace_find(f->store, LOG);
    assert_int_equal(keyspace_kind(f->keyspace), KEYSPACE_LOG);
    wait_for_ranges(f, 1);
    assert_true(f->ranges[0].is_whole);
    assert_in_range(count_out_of_service(f), KEYS / 2, KEYS / 2 + 1);
    assert_all(f, 0);
    assert_goes_on(f);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_log, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_kind_is_known_at_each_opening),
        TEST(an_id_is_of_one_kind),
        TEST(its_tables_stay_and_nobody_waits),
        TEST(nothing_of_it_is_tidied),
        TEST(a_checkpoint_knows_it),
        TEST(a_damaged_block_fails_its_readers_and_nothing_else),
        TEST(a_table_that_is_gone_fails_its_readers_and_nothing_else),
    };
    return cmocka_run_group_tests_name("log_keyspace", tests, NULL, NULL);
}
