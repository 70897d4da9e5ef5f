/* Tests of what becomes of tables that somebody removes while the store has them open. */
#include "store/testing/damage_testing.h"

static void assert_missing(struct fixture *f, const char *path)
{
    struct store_missing_files found;
    store_look_for_files(f->store, &found);
    assert_true(found.any);
    assert_false(found.logs || found.only_format);
    assert_string_equal(found.names, strrchr(path, '/') + 1);
}

static void assert_none_is_missing(struct fixture *f)
{
    for (int i = 0; i < 4; i++) { /* the first ones look, those after them know */
        struct store_missing_files found;
        store_look_for_files(f->store, &found);
        assert_false(found.any);
    }
}

static void remove_open(struct fixture *f, char path[512])
{
    newest_table(f, path);
    assert_int_equal(unlink(path), 0);
}

/* It is as it was, also for a start. */
static void assert_is_back(struct fixture *f, const char *path)
{
    assert_int_equal(access(path, F_OK), 0);
    assert_none_is_missing(f);
    assert_all(f, 0);
    reopen(f);
    look(f);
    assert_all(f, 0);
    assert_int_equal(count_out_of_service(f), 0);
}

static void one_that_is_removed_is_made_anew(void **state)
{
    struct fixture *f = *state;
    char path[512];
    fill(f, 0, 2000, 0);
    fill(f, 2000, KEYS, 0);
    assert_none_is_missing(f);
    remove_open(f, path);
    assert_missing(f, path);
    assert_all(f, 0);
    assert_missing(f, path);
    assert_ok(store_restore_files(f->store));
    assert_is_back(f, path);
}

/* Before anybody has looked whether it is there. */
static void who_looks_for_damage_finds_none(void **state)
{
    struct fixture *f = *state;
    char path[512];
    fill(f, 0, KEYS, 0);
    remove_open(f, path);
    look(f);
    assert_is_back(f, path);
    remove_open(f, path);
    assert_ok(keyspace_look_for_damage(f->keyspace));
    assert_is_back(f, path);
}

static void a_checkpoint_has_it(void **state)
{
    struct fixture *f = *state;
    struct store_checkpoint *checkpoint;
    char path[512], copy[512];
    snprintf(copy, sizeof copy, "%s-copy", f->directory);
    fill(f, 0, KEYS, 0);
    remove_open(f, path);
    assert_ok(store_checkpoint_begin(f->store, &checkpoint));
    assert_ok(store_checkpoint_write(checkpoint, copy));
    store_checkpoint_end(checkpoint);
    assert_is_back(f, path);
    store_close(f->store);

    struct store_options options = f->options;
    options.directory = copy;
    assert_ok(store_open(&options, &f->store));
    f->keyspace = store_keyspace_find(f->store, 7);
    look(f);
    assert_all(f, 0);
    assert_int_equal(count_out_of_service(f), 0);
    store_close(f->store);
    f->store = NULL;
    remove_directory(strdup(copy)); /* frees it */
}

/* Compacted away, and read on by who began before, for whom RocksDB keeps it. */
static void one_that_the_store_has_no_more_is_not_missing(void **state)
{
    struct fixture *f = *state;
    char path[512];
    fill(f, 0, KEYS, 1);
    fill(f, 0, KEYS, 0);
    newest_table(f, path);
    struct store_cursor *cursor = cursor_over(f, "", "k99999");
    store_cursor_first(cursor);
    assert_ok(keyspace_compact(f->keyspace, bytes_of(""), bytes_of("")));
    assert_int_equal(unlink(path), 0);
    assert_none_is_missing(f);
    assert_ok(store_restore_files(f->store));
    assert_int_equal(access(path, F_OK), -1);
    assert_true(store_cursor_valid(cursor));
    store_cursor_destroy(cursor);
    assert_none_is_missing(f);
    assert_all(f, 0);
}

/* Nobody has it open: then it is damage, as ever. */
static void one_that_is_not_open_is_missing(void **state)
{
    struct fixture *f = *state;
    fill(f, 0, 2000, 0);
    fill(f, 2000, KEYS, 0);
    store_close(f->store);
    f->store = NULL;
    remove_newest(f);
    assert_ok(store_open(&f->options, &f->store));
    f->keyspace = store_keyspace_find(f->store, 7);
    wait_for_ranges(f, 1);
    assert_none_is_missing(f);
    assert_ok(store_restore_files(f->store));
    assert_int_equal(count_out_of_service(f), KEYS - 2000);
    assert_all(f, 0);
}

static int setup_faults(void **state)
{
    setup(state);
    struct fixture *f = *state;
    f->faults = fault_fs_create();
    reopen(f);
    return 0;
}

static void what_cannot_be_copied_is_tried_again(void **state)
{
    struct fixture *f = *state;
    static const enum fault_operation operations[] = {FAULT_CREATE, FAULT_APPEND, FAULT_SYNC,
                                                      FAULT_RENAME, FAULT_SYNC_DIRECTORY};
    char path[512], copy[520];
    fill(f, 0, KEYS, 0);
    newest_table(f, path);
    snprintf(copy, sizeof copy, "%s.new", path);
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        assert_int_equal(unlink(path), 0);
        fault_fs_fail_here(f->faults, operations[i], "", FAULT_IO, 0);
        status s = store_restore_files(f->store);
        fault_fs_heal(f->faults);
        assert_int_equal(s.code, STATUS_UNAVAILABLE);
        status_free(s);
        assert_int_equal(access(copy, F_OK), -1);
        assert_int_equal(access(path, F_OK), -1);
        assert_all(f, 0);
        assert_ok(store_restore_files(f->store));
        assert_int_equal(access(path, F_OK), 0);
    }
    assert_is_back(f, path);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(one_that_is_removed_is_made_anew),
        TEST(who_looks_for_damage_finds_none),
        TEST(a_checkpoint_has_it),
        TEST(one_that_the_store_has_no_more_is_not_missing),
        TEST(one_that_is_not_open_is_missing),
        cmocka_unit_test_setup_teardown(what_cannot_be_copied_is_tried_again, setup_faults,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
