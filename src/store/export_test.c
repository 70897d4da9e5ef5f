/* Tables written outside of the store and taken into it; the files beside them. */
#include "store/files.h"
#include "store/testing/fault_fs.h"
#include "store/testing/testing.h"

enum { KEYSPACE = 7, IMPORTED = 8 };

struct fixture {
    char *directory;
    struct fault_fs *faults;
    struct store *store;
    struct keyspace *keyspace;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->directory = make_directory();
    f->faults = fault_fs_create();
    struct store_options options = test_options(f->directory);
    assert_ok(fault_fs_open(f->faults, &options, &f->store));
    f->keyspace = make_keyspace(f->store, KEYSPACE);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    store_close(f->store);
    fault_fs_destroy(f->faults);
    remove_directory(f->directory);
    free(f);
    return 0;
}

static char *path_in(const struct fixture *f, const char *name)
{
    char *path;
    assert_true(asprintf(&path, "%s/%s", f->directory, name) > 0);
    return path;
}

static bool go_on(void *context, uint64_t bytes)
{
    *(uint64_t *)context += bytes;
    return true;
}

static bool stop(void *context, uint64_t bytes)
{
    (void)context, (void)bytes;
    return false;
}

/* All that the cursor has, in one table. */
static status write_table(struct fixture *f, struct store_cursor *cursor, const char *path)
{
    struct table_writer *writer;
    TRY(table_writer_create(f->store, path, &writer));
    status s = status_ok();
    for (store_cursor_first(cursor); status_is_ok(s) && store_cursor_valid(cursor);
         store_cursor_next(cursor))
        s = table_writer_add(writer, store_cursor_key(cursor), store_cursor_value(cursor));
    assert_ok(store_cursor_status(cursor));
    if (status_is_ok(s))
        s = table_writer_finish(writer);
    table_writer_destroy(writer);
    return s;
}

static struct store_cursor *cursor_over(struct fixture *f, const void *rules)
{
    struct store_cursor_options options = {
        .read_tier = STORE_READ_ANY, .bypasses_cache = true, .rules = rules};
    struct store_cursor *cursor;
    assert_ok(store_cursor_create(f->keyspace, &options, &cursor));
    return cursor;
}

static void delete_range(struct fixture *f, const char *from, const char *to)
{
    struct store_batch *batch = store_batch_create();
    assert_non_null(batch);
    store_batch_delete_range(batch, f->keyspace, bytes_of(from), bytes_of(to));
    assert_ok(store_write(f->store, batch, STORE_SYNCED));
    store_batch_destroy(batch);
}

/* What made the export of RocksDB's own files unfit: keys that a range delete hides, in a table
 * with few keys of its own, come back when that table is imported. */
static void test_what_was_dropped_stays_dropped(void **state)
{
    struct fixture *f = *state;
    char key[2] = "a";
    for (; key[0] <= 'z'; key[0]++)
        put(f->store, f->keyspace, key, "old");
    assert_ok(keyspace_compact(f->keyspace, bytes_of(""), bytes_of("")));
    delete_range(f, "b", "y");
    put(f->store, f->keyspace, "m", "new");
    merge(f->store, f->keyspace, "m", "er");
    assert_ok(keyspace_flush(f->keyspace));

    char *path = path_in(f, "export-1");
    struct store_cursor *cursor = cursor_over(f, NULL);
    put(f->store, f->keyspace, "n", "too late");
    assert_ok(write_table(f, cursor, path));
    store_cursor_destroy(cursor);

    struct keyspace *imported;
    const char *paths[] = {path};
    assert_ok(store_keyspace_import(f->store, IMPORTED, paths, 1, &imported));
    assert_ok(files_remove(files_of_store(f->store), path));
    assert_value(imported, "a", "old");
    assert_value(imported, "b", NULL);
    assert_value(imported, "m", "newer");
    assert_value(imported, "n", NULL);
    assert_value(imported, "y", "old");
    merge(f->store, imported, "y", "er");
    assert_value(imported, "y", "older");
    free(path);
}

/* --- rules --- */

static const void *seen_rules;

static bool fold_and_remember(const void *rules, const struct store_history *history,
                              struct buffer *out, bytes *same)
{
    seen_rules = rules;
    return fold_full(NULL, history, out, same);
}

static void test_a_cursor_may_bring_rules_of_its_own(void **state)
{
    static const struct store_fold fold = {
        .whole = fold_and_remember, .part = fold_part, .tidy = fold_filter};
    (void)state;
    struct fixture f = {.directory = make_directory()};
    struct store_options options = test_options(f.directory);
    options.fold = &fold;
    assert_ok(store_open(&options, &f.store));
    f.keyspace = make_keyspace(f.store, KEYSPACE);
    keyspace_set_rules(f.keyspace, "z");
    merge(f.store, f.keyspace, "a", "1");
    merge(f.store, f.keyspace, "a", "2");
    const char *own = "own";
    struct store_cursor *cursor = cursor_over(&f, own);
    store_cursor_first(cursor);
    assert_ptr_equal(seen_rules, own);
    assert_value(f.keyspace, "a", "12");
    assert_ptr_not_equal(seen_rules, own);
    store_cursor_destroy(cursor);
    store_close(f.store);
    remove_directory(f.directory);
}

/* --- faults --- */

static void test_each_fault_of_writing_a_table_is_told(void **state)
{
    struct fixture *f = *state;
    static const enum fault_operation operations[] = {FAULT_CREATE, FAULT_APPEND, FAULT_SYNC,
                                                      FAULT_SYNC_DIRECTORY, FAULT_READ};
    unsigned failed = 0;
    put(f->store, f->keyspace, "a", "1");
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        char *path = path_in(f, "export-1");
        struct store_cursor *cursor = cursor_over(f, NULL);
        fault_fs_fail(f->faults, operations[i], "export-", FAULT_NO_SPACE, 0);
        status s = write_table(f, cursor, path);
        failed += !status_is_ok(s);
        status_free(s);
        fault_fs_heal(f->faults);
        assert_ok(write_table(f, cursor, path));
        store_cursor_destroy(cursor);
        const char *paths[] = {path};
        struct keyspace *imported;
        assert_ok(store_keyspace_import(f->store, IMPORTED + i, paths, 1, &imported));
        assert_value(imported, "a", "1");
        assert_ok(store_keyspace_drop(f->store, imported));
        free(path);
    }
    assert_int_equal(failed, 3); /* it syncs no directory, and does not read */
}

/* The power goes at once after an import: the manifest names nothing that is not there. */
static void test_an_import_survives_a_power_cut(void **state)
{
    struct fixture *f = *state;
    put(f->store, f->keyspace, "a", "1");
    char *path = path_in(f, "export-1");
    struct store_cursor *cursor = cursor_over(f, NULL);
    assert_ok(write_table(f, cursor, path));
    store_cursor_destroy(cursor);
    const char *paths[] = {path};
    struct keyspace *imported;
    assert_ok(store_keyspace_import(f->store, IMPORTED, paths, 1, &imported));
    free(path);

    char *copy = make_directory();
    fault_fs_cut_power(f->faults, f->directory, copy, 0);
    struct store_options options = test_options(copy);
    struct store *store;
    assert_ok(store_open(&options, &store));
    imported = store_keyspace_find(store, IMPORTED);
    assert_non_null(imported);
    assert_value(imported, "a", "1");
    store_close(store);
    remove_directory(copy);
}

/* --- damage --- */

static void flip_byte(const char *path, long at)
{
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    int byte = fgetc(file);
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    assert_int_equal(fputc(byte ^ 1, file), byte ^ 1);
    assert_int_equal(fclose(file), 0);
}

static status remember_table(void *context, const char *name)
{
    size_t length = strlen(name);
    if (length > 4 && strcmp(name + length - 4, ".sst") == 0)
        snprintf(context, 32, "%s", name);
    return status_ok();
}

static void test_verify_finds_a_flipped_byte(void **state)
{
    struct fixture *f = *state;
    uint64_t done = 0;
    struct store_pacer pacer = {.go_on = go_on, .context = &done};
    char name[32] = "";
    put(f->store, f->keyspace, "a", "a value to look for");
    assert_ok(keyspace_flush(f->keyspace));
    assert_ok(keyspace_verify(f->keyspace, &pacer));
    assert_ok(files_list(files_of_store(f->store), f->directory, remember_table, name));
    char *path = path_in(f, name);
    flip_byte(path, 10);
    status s = keyspace_verify(f->keyspace, &pacer);
    assert_null(strstr(status_message(s), "Corruption")); /* in our words, not in RocksDB's */
    assert_non_null(strstr(status_message(s), "is damaged at byte 0"));
    assert_status(s, STATUS_DATA_LOSS);
    free(path);
    pacer.go_on = stop;
    flip_byte(path = path_in(f, name), 10);
    assert_status(keyspace_verify(f->keyspace, &pacer), STATUS_CANCELLED);
    free(path);
}

/* --- files --- */

static void test_a_replaced_file_is_the_old_or_the_new(void **state)
{
    struct fixture *f = *state;
    struct files *files = files_of_store(f->store);
    static const enum fault_operation operations[] = {FAULT_CREATE, FAULT_APPEND, FAULT_SYNC};
    char *path = path_in(f, "x");
    struct buffer content = {0};
    assert_status(files_read(files, path, 100, &content), STATUS_NOT_FOUND);
    assert_ok(files_replace(files, path, bytes_of("old")));
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        fault_fs_fail(f->faults, operations[i], "x", FAULT_NO_SPACE, 0);
        assert_status(files_replace(files, path, bytes_of("new")), STATUS_RESOURCE_EXHAUSTED);
        fault_fs_heal(f->faults);
        buffer_clear(&content);
        assert_ok(files_read(files, path, 100, &content));
        assert_true(bytes_equal(buffer_bytes(&content), bytes_of("old")));
    }
    assert_ok(files_replace(files, path, bytes_of("newer")));
    buffer_clear(&content);
    assert_ok(files_read(files, path, 5, &content));
    assert_true(bytes_equal(buffer_bytes(&content), bytes_of("newer")));
    assert_status(files_read(files, path, 4, &content), STATUS_DATA_LOSS);
    buffer_free(&content);
    free(path);
}

static void test_copies_are_summed(void **state)
{
    struct fixture *f = *state;
    struct files *files = files_of_store(f->store);
    uint64_t done = 0;
    struct store_pacer pacer = {.go_on = go_on, .context = &done};
    struct file_sum sum = {0};
    struct running_sum *running;
    char *from = path_in(f, "from");
    char *to = path_in(f, "to");
    assert_ok(files_replace(files, from, bytes_of("123456789")));
    assert_ok(files_copy(files, from, to, &pacer, &sum));
    assert_int_equal(sum.size, 9);
    assert_int_equal(sum.crc32c, 0xe3069283); /* the check value of CRC-32C */
    assert_int_equal(done, 9);
    assert_ok(running_sum_create(&running));
    running_sum_add(running, bytes_of("1234"));
    running_sum_add(running, bytes_of("56789"));
    running_sum_finish(running, &sum);
    assert_int_equal(sum.size, 9);
    assert_int_equal(sum.crc32c, 0xe3069283);
    sum = (struct file_sum){0};
    assert_ok(files_sum(files, to, &pacer, &sum));
    assert_int_equal(sum.crc32c, 0xe3069283);
    pacer.go_on = stop;
    assert_status(files_copy(files, from, to, &pacer, &sum), STATUS_CANCELLED);
    assert_ok(files_remove(files, to));
    assert_ok(files_remove(files, to));
    assert_status(files_sum(files, to, &pacer, &sum), STATUS_NOT_FOUND);
    free(from);
    free(to);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_was_dropped_stays_dropped, set_up, tear_down),
        cmocka_unit_test(test_a_cursor_may_bring_rules_of_its_own),
        cmocka_unit_test_setup_teardown(test_each_fault_of_writing_a_table_is_told, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_an_import_survives_a_power_cut, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_verify_finds_a_flipped_byte, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_replaced_file_is_the_old_or_the_new, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_copies_are_summed, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
