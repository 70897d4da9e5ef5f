/* Checkpoints: the store at one instant, whatever is written, deleted and compacted afterwards. */
#include "store/copied.h"
#include "store/files.h"
#include "store/testing/fault_fs.h"
#include "store/testing/testing.h"

#include <dirent.h>
#include <glob.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KEYSPACE = 7, OTHER = 8 };

struct fixture {
    char *directory;
    char *copy; /* the checkpoint's */
    struct store_options options;
    struct fault_fs *fs;
    struct store *store;
    struct keyspace *keyspace;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->directory = make_directory();
    assert_true(asprintf(&f->copy, "%s/checkpoint", f->directory) > 0);
    f->options = test_options(f->directory);
    f->fs = fault_fs_create();
    assert_ok(fault_fs_open(f->fs, &f->options, &f->store));
    f->keyspace = make_keyspace(f->store, KEYSPACE);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    store_close(f->store);
    fault_fs_destroy(f->fs);
    remove_directory(f->directory);
    free(f->copy);
    free(f);
    return 0;
}

static void delete_range(struct fixture *f, const char *from, const char *to)
{
    struct store_batch *batch = store_batch_create();
    assert_non_null(batch);
    store_batch_delete_range(batch, f->keyspace, bytes_of(from), bytes_of(to));
    assert_ok(store_write(f->store, batch, STORE_SYNCED));
    store_batch_destroy(batch);
}

static status take_checkpoint(struct fixture *f)
{
    struct store_checkpoint *checkpoint;
    TRY(store_checkpoint_begin(f->store, &checkpoint));
    status s = store_checkpoint_write(checkpoint, f->copy);
    store_checkpoint_end(checkpoint);
    return s;
}

/* The checkpoint as a store of its own. */
static struct store *open_copy(const struct fixture *f, struct keyspace **keyspace)
{
    struct store_options options = f->options;
    struct store *store;
    options.directory = f->copy;
    assert_ok(store_open(&options, &store));
    *keyspace = store_keyspace_find(store, KEYSPACE);
    assert_non_null(*keyspace);
    return store;
}

static void compact(struct fixture *f)
{
    assert_ok(keyspace_flush(f->keyspace));
    assert_ok(keyspace_compact(f->keyspace, bytes_of(""), bytes_of("")));
}

/* Tables, deleted ranges over them, operands, and what is in the log alone. */
static void write_history(struct fixture *f)
{
    put(f->store, f->keyspace, "a", "1");
    put(f->store, f->keyspace, "b", "2");
    put(f->store, f->keyspace, "c", "3");
    compact(f);
    delete_range(f, "b", "d");
    assert_ok(keyspace_flush(f->keyspace));
    merge(f->store, f->keyspace, "a", "+");
    put(f->store, f->keyspace, "c", "4");
}

static void assert_history(struct keyspace *keyspace)
{
    assert_value(keyspace, "a", "1+");
    assert_value(keyspace, "b", NULL);
    assert_value(keyspace, "c", "4");
    assert_value(keyspace, "later", NULL);
}

static void overwrite_history(struct fixture *f)
{
    put(f->store, f->keyspace, "a", "later");
    put(f->store, f->keyspace, "b", "later");
    put(f->store, f->keyspace, "later", "1");
    delete_range(f, "c", "d");
    compact(f);
}

/* --- what is in it --- */

static void a_checkpoint_is_the_store_at_its_instant(void **state)
{
    struct fixture *f = *state;
    struct store_checkpoint *checkpoint;
    struct keyspace *keyspace;
    write_history(f);
    assert_ok(store_checkpoint_begin(f->store, &checkpoint));
    overwrite_history(f); /* compacts away what the checkpoint still has to link */
    assert_ok(store_checkpoint_write(checkpoint, f->copy));
    store_checkpoint_end(checkpoint);
    overwrite_history(f);
    struct store *copy = open_copy(f, &keyspace);
    assert_history(keyspace);
    compact(&(struct fixture){.keyspace = keyspace});
    assert_history(keyspace);
    store_close(copy);
    assert_value(f->keyspace, "a", "later");
}

static void a_large_log_is_flushed_and_a_small_one_copied(void **state)
{
    struct fixture *f = *state;
    struct keyspace *keyspace;
    struct store_statistics statistics;
    write_history(f);
    assert_ok(store_checkpoint_prepare(f->store, 1 << 20));
    store_statistics(f->store, &statistics);
    uint64_t flushes = statistics.flushes;
    assert_ok(store_checkpoint_prepare(f->store, 0));
    store_statistics(f->store, &statistics);
    assert_true(statistics.flushes > flushes);
    assert_ok(take_checkpoint(f));
    store_close(open_copy(f, &keyspace));
}

static void later_keyspaces_are_not_in_a_checkpoint(void **state)
{
    struct fixture *f = *state;
    struct store_checkpoint *checkpoint;
    struct keyspace *keyspace;
    write_history(f);
    assert_ok(store_checkpoint_begin(f->store, &checkpoint));
    put(f->store, make_keyspace(f->store, OTHER), "a", "1");
    assert_ok(store_checkpoint_write(checkpoint, f->copy));
    store_checkpoint_end(checkpoint);
    struct store *copy = open_copy(f, &keyspace);
    assert_null(store_keyspace_find(copy, OTHER));
    assert_history(keyspace);
    store_close(copy);
}

/* --- what a start knows of its logs --- */

static char *log_in(const char *directory)
{
    char *pattern, *path;
    glob_t found;
    assert_true(asprintf(&pattern, "%s/*.log", directory) > 0);
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    path = strdup(found.gl_pathv[found.gl_pathc - 1]);
    globfree(&found);
    free(pattern);
    return path;
}

static void flip_in_the_middle(const char *path)
{
    struct stat info;
    FILE *file = fopen(path, "r+be");
    assert_non_null(file);
    assert_int_equal(fstat(fileno(file), &info), 0);
    assert_int_equal(fseek(file, (long)info.st_size / 2, SEEK_SET), 0);
    int c = fgetc(file);
    assert_int_equal(fseek(file, (long)info.st_size / 2, SEEK_SET), 0);
    assert_int_equal(fputc(c ^ 1, file), c ^ 1);
    assert_int_equal(fclose(file), 0);
}

static void cut_a_byte(const char *path)
{
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(truncate(path, info.st_size - 1), 0);
}

static void take_away(const char *path)
{
    assert_int_equal(remove(path), 0);
}

static void (*const damages[])(const char *path) = {flip_in_the_middle, cut_a_byte, take_away};
enum { DAMAGES = sizeof damages / sizeof *damages };

static void clear_copy(struct fixture *f)
{
    char *name = strdup(f->copy);
    remove_directory(name);
}

static void what_a_copy_loses_of_its_log_is_known(void **state)
{
    struct fixture *f = *state;
    struct store_options options = f->options;
    struct store *store;
    options.directory = f->copy;
    write_history(f);
    for (size_t i = 0; i < DAMAGES; i++) {
        assert_ok(take_checkpoint(f));
        char *log = log_in(f->copy);
        damages[i](log);
        assert_status(store_open(&options, &store), STATUS_DATA_LOSS);
        free(log);
        clear_copy(f);
    }
}

/* The memory has what the disk has lost: a copy of the disk would not say so. */
static void a_log_that_was_damaged_makes_no_checkpoint(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; i < DAMAGES; i++) {
        write_history(f);
        char *log = log_in(f->directory);
        damages[i](log);
        assert_status(take_checkpoint(f), STATUS_DATA_LOSS);
        free(log);
        clear_copy(f);
        /* Once it is in tables, the log is not needed. */
        assert_ok(keyspace_flush(f->keyspace));
        assert_ok(take_checkpoint(f));
        clear_copy(f);
    }
    assert_ok(store_health(f->store));
}

/* --- under load --- */

struct writer {
    struct fixture *f;
    pthread_t thread;
    atomic_bool stop;
    atomic_uint written;
};

static void *write_on(void *argument)
{
    struct writer *w = argument;
    char key[16], value[2000];
    memset(value, 'v', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    for (unsigned i = 0; !atomic_load(&w->stop); i++) {
        snprintf(key, sizeof key, "n%08u", i);
        assert_ok(write_one(w->f->store, w->f->keyspace, PUT, key, value, STORE_ASYNC));
        atomic_store(&w->written, i + 1);
    }
    return NULL;
}

static unsigned count_keys(struct keyspace *keyspace)
{
    struct store_cursor_options options = {.read_tier = STORE_READ_ANY};
    struct store_cursor *cursor;
    char expected[16];
    unsigned count = 0;
    assert_ok(store_cursor_create(keyspace, &options, &cursor));
    for (store_cursor_first(cursor); store_cursor_valid(cursor); store_cursor_next(cursor)) {
        snprintf(expected, sizeof expected, "n%08u", count++);
        assert_true(bytes_equal(store_cursor_key(cursor), bytes_of(expected)));
    }
    assert_ok(store_cursor_status(cursor));
    store_cursor_destroy(cursor);
    return count;
}

static void wait_for_writes(const struct writer *w, unsigned count)
{
    while (atomic_load(&w->written) < count)
        sched_yield();
}

static void a_checkpoint_under_load_has_a_prefix_of_what_is_written(void **state)
{
    struct fixture *f = *state;
    struct writer w = {.f = f};
    assert_int_equal(pthread_create(&w.thread, NULL, write_on, &w), 0);
    for (unsigned round = 1; round <= 5; round++) {
        struct store_checkpoint *checkpoint;
        struct keyspace *keyspace;
        wait_for_writes(&w, round * 500);
        unsigned before = atomic_load(&w.written);
        assert_ok(store_checkpoint_begin(f->store, &checkpoint));
        unsigned after = atomic_load(&w.written) + 1; /* one may be on its way */
        wait_for_writes(&w, after + 100);
        assert_ok(store_checkpoint_write(checkpoint, f->copy));
        store_checkpoint_end(checkpoint);
        struct store *copy = open_copy(f, &keyspace);
        unsigned count = count_keys(keyspace);
        assert_in_range(count, before, after);
        store_close(copy);
        char *name = strdup(f->copy);
        remove_directory(name);
    }
    atomic_store(&w.stop, true);
    pthread_join(w.thread, NULL);
}

/* --- when the disk fails --- */

/* --- while the manifest is written to --- */

struct maker {
    struct fixture *f;
    pthread_t thread;
    atomic_bool is_stopping;
};

static void *make_keyspaces(void *context)
{
    struct maker *maker = context;
    for (uint64_t id = KEYSPACE + 1; id < KEYSPACE + 5000 && !maker->is_stopping; id++) {
        assert_ok(store_keyspaces_create(maker->f->store, id, 1));
        struct keyspace *made = store_keyspace_find(maker->f->store, id);
        assert_ok(store_keyspace_drop(maker->f->store, made));
    }
    return NULL;
}

/* The manifest was known to be synced as far as RocksDB did not count yet, and the checkpoint,
 * which has what RocksDB counts, was said to have lost something: a backup of it could not be
 * restored. */
static void a_manifest_that_grows_is_taken_as_listed(void **state)
{
    struct fixture *f = *state;
    struct maker maker = {.f = f};
    struct keyspace *keyspace;
    write_history(f);
    assert_int_equal(pthread_create(&maker.thread, NULL, make_keyspaces, &maker), 0);
    for (int i = 0; i < 60; i++) {
        assert_ok(take_checkpoint(f));
        store_close(open_copy(f, &keyspace));
        remove_directory(strdup(f->copy));
    }
    maker.is_stopping = true;
    pthread_join(maker.thread, NULL);
}

static void a_failed_checkpoint_leaves_the_store_as_it_was(void **state)
{
    struct fixture *f = *state;
    write_history(f);
    fault_fs_fail_here(f->fs, FAULT_APPEND, "MANIFEST", FAULT_NO_SPACE, 0);
    assert_status(take_checkpoint(f), STATUS_RESOURCE_EXHAUSTED);
    fault_fs_heal(f->fs);
    fault_fs_fail_here(f->fs, FAULT_CREATE, ".sst", FAULT_IO, 0);
    char *name = strdup(f->copy);
    remove_directory(name);
    assert_status(take_checkpoint(f), STATUS_UNAVAILABLE);
    fault_fs_heal(f->fs);
    name = strdup(f->copy);
    remove_directory(name);
    assert_ok(store_health(f->store));
    put(f->store, f->keyspace, "b", "5");
    assert_ok(take_checkpoint(f));
}

/* --- fenced --- */

/* In the checkpoint, with a NUL. */
static void find_manifest(const struct fixture *f, char path[512])
{
    char pattern[512];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/MANIFEST-??????", f->copy);
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    assert_int_equal(found.gl_pathc, 1);
    snprintf(path, 512, "%s", found.gl_pathv[0]);
    globfree(&found);
}

/* Where the last record begins: each has a header of seven bytes, with its size in the fifth and
 * the sixth. The file has one block. */
static off_t last_record(const char *path)
{
    uint8_t header[7];
    off_t at = 0, last = 0;
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fseeko(file, at, SEEK_SET) == 0 && fread(header, 1, sizeof header, file) == 7) {
        last = at;
        at += 7 + header[4] + 256 * header[5];
    }
    assert_int_equal(fclose(file), 0);
    return last;
}

/* As checkpoints of former programs were, which recorded more of the manifest than they had.
 * Without a whole record at its end it is damaged. */
static void a_manifest_that_is_whole_and_short_is_put_right(void **state)
{
    struct fixture *f = *state;
    char manifest[512];
    const struct store_options options = test_options(f->copy);
    struct store *copy;
    assert_ok(write_one(f->store, f->keyspace, PUT, "key", "1", STORE_SYNCED));
    assert_ok(keyspace_flush(f->keyspace));
    (void)make_keyspace(f->store, OTHER); /* what the last record has */
    assert_ok(take_checkpoint(f));
    find_manifest(f, manifest);
    off_t end = last_record(manifest);
    assert_int_equal(truncate(manifest, end + 3), 0);
    assert_ok(store_correct_copy(f->copy));
    assert_status(store_open(&options, &copy), STATUS_DATA_LOSS);
    assert_int_equal(truncate(manifest, end), 0);
    assert_status(store_open(&options, &copy), STATUS_DATA_LOSS);
    assert_ok(store_correct_copy(f->copy));
    assert_ok(store_open(&options, &copy));
    assert_value(store_keyspace_find(copy, KEYSPACE), "key", "1");
    assert_null(store_keyspace_find(copy, OTHER));
    store_close(copy);
}

/* By a log that cannot be written or synced, with the disk sound again afterwards. */
static void fence(struct fixture *f, enum fault_operation operation, enum fault_kind kind)
{
    fault_fs_fail(f->fs, operation, ".log", kind, 0);
    assert_status(write_one(f->store, f->keyspace, PUT, "k", "v", STORE_SYNCED),
                  STATUS_UNAVAILABLE);
    fault_fs_heal(f->fs);
    assert_status(store_health(f->store), STATUS_UNAVAILABLE);
}

static void assert_no_checkpoint(struct fixture *f, enum fault_operation operation,
                                 enum fault_kind kind)
{
    struct store_checkpoint *checkpoint;
    put(f->store, f->keyspace, "acked", "1");
    fence(f, operation, kind);
    status s = store_checkpoint_prepare(f->store, 0);
    assert_non_null(strstr(status_message(s), "write-ahead log"));
    assert_status(s, STATUS_UNAVAILABLE);
    assert_status(store_checkpoint_prepare(f->store, 32 << 20), STATUS_UNAVAILABLE);
    assert_status(store_checkpoint_begin(f->store, &checkpoint), STATUS_UNAVAILABLE);
    assert_null(checkpoint);
    assert_value(f->keyspace, "acked", "1"); /* reads go on */
}

/* A whole backup of a fenced server ended it: RocksDB synced the log to list the files, and
 * Debian's build aborts when a log is synced that could not be written. */
static void a_store_whose_log_was_not_written_makes_no_checkpoint(void **state)
{
    assert_no_checkpoint(*state, FAULT_APPEND, FAULT_IO);
}

static void a_store_whose_log_was_not_synced_makes_no_checkpoint(void **state)
{
    assert_no_checkpoint(*state, FAULT_SYNC, FAULT_NO_SPACE);
}

static void a_fence_in_the_middle_ends_a_checkpoint(void **state)
{
    struct fixture *f = *state;
    struct store_checkpoint *checkpoint;
    write_history(f);
    assert_ok(store_checkpoint_prepare(f->store, 32 << 20));
    assert_ok(store_checkpoint_begin(f->store, &checkpoint));
    fence(f, FAULT_APPEND, FAULT_IO);
    assert_status(store_checkpoint_write(checkpoint, f->copy), STATUS_UNAVAILABLE);
    store_checkpoint_end(checkpoint);
    assert_history(f->keyspace);
}

/* Another thread's write may fail at any moment, which is known to RocksDB before it is to us: so
 * there is no moment at which a checkpoint could sync a log. */
static void a_checkpoint_syncs_no_log(void **state)
{
    struct fixture *f = *state;
    write_history(f);
    assert_ok(write_one(f->store, f->keyspace, PUT, "unsynced", "1", STORE_ASYNC));
    fault_fs_fail(f->fs, FAULT_SYNC, ".log", FAULT_IO, 0);
    assert_ok(store_checkpoint_prepare(f->store, 32 << 20));
    assert_ok(take_checkpoint(f));
    fault_fs_heal(f->fs);
    assert_int_equal(fault_fs_failures(f->fs), 0);
    struct keyspace *keyspace;
    struct store *copy = open_copy(f, &keyspace);
    assert_history(keyspace);
    assert_value(keyspace, "unsynced", "1");
    store_close(copy);
    put(f->store, f->keyspace, "later", "1");
}

static unsigned count_tables(const char *directory)
{
    unsigned count = 0;
    DIR *listing = opendir(directory);
    assert_non_null(listing);
    for (struct dirent *entry; (entry = readdir(listing)) != NULL;)
        count += strstr(entry->d_name, ".sst") != NULL;
    closedir(listing);
    return count;
}

static void files_are_deleted_again_after_its_end(void **state)
{
    struct fixture *f = *state;
    struct store_checkpoint *checkpoint;
    write_history(f);
    assert_ok(store_checkpoint_begin(f->store, &checkpoint));
    overwrite_history(f);
    assert_true(count_tables(f->directory) > 1);
    store_checkpoint_end(checkpoint);
    overwrite_history(f);
    assert_int_equal(count_tables(f->directory), 1);
}

/* --- identity --- */

static void a_copy_has_another_identity(void **state)
{
    struct fixture *f = *state;
    char mine[STORE_IDENTITY_SIZE], again[STORE_IDENTITY_SIZE], its[STORE_IDENTITY_SIZE];
    struct keyspace *keyspace;
    assert_ok(store_identity(f->store, mine));
    store_close(f->store);
    assert_ok(fault_fs_open(f->fs, &f->options, &f->store));
    f->keyspace = store_keyspace_find(f->store, KEYSPACE);
    assert_ok(store_identity(f->store, again));
    assert_string_equal(mine, again);
    assert_ok(take_checkpoint(f));
    struct store *copy = open_copy(f, &keyspace);
    assert_ok(store_identity(copy, its));
    assert_string_not_equal(mine, its);
    store_close(copy);
}

static void reopen(struct fixture *f, char identity[STORE_IDENTITY_SIZE])
{
    assert_ok(fault_fs_open(f->fs, &f->options, &f->store));
    f->keyspace = store_keyspace_find(f->store, KEYSPACE);
    assert_ok(store_identity(f->store, identity));
}

/* One flipped byte would make another server of it, without a word. */
static void an_invalid_identity_counts_as_none(void **state)
{
    static const char *const damaged[] = {"",
                                          "\n",
                                          "../../etc/passwd\n",
                                          "5b0b2c3e-1f1c-4f4e-9d55-0a6c0f1f7a1g",
                                          "5b0b2c3e-1f1c-4f4e-9d55-0a6c0f1f7a11\n\n",
                                          "5b0b2c3e-1f1c-4f4e-9d55_0a6c0f1f7a11"};
    static const char sound[] = "5b0b2c3e-1f1c-4f4e-9d55-0a6c0f1f7a11";
    struct fixture *f = *state;
    char path[192], aside[192], mine[STORE_IDENTITY_SIZE], its[STORE_IDENTITY_SIZE];
    assert_ok(store_identity(f->store, mine));
    snprintf(path, sizeof path, "%s/IDENTITY", f->options.directory);
    snprintf(aside, sizeof aside, "%s/IDENTITY.damaged", f->options.directory);
    for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
        struct buffer kept = {0};
        store_close(f->store);
        assert_ok(files_replace(files_of_system(), path, bytes_of(damaged[i])));
        assert_true(files_lack_identity(f->options.directory));
        reopen(f, its);
        assert_int_equal(strlen(its), strlen(sound));
        assert_string_not_equal(its, mine);
        assert_false(files_lack_identity(f->options.directory));
        assert_ok(files_read(files_of_system(), aside, 100, &kept));
        assert_int_equal(kept.size, strlen(damaged[i]));
        buffer_free(&kept);
    }
    store_close(f->store);
    assert_ok(files_replace(files_of_system(), path, bytes_of(sound)));
    reopen(f, its);
    assert_string_equal(its, sound);
    assert_ok(files_remove(files_of_system(), path));
    assert_true(files_lack_identity(f->options.directory));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_checkpoint_is_the_store_at_its_instant, setup, teardown),
        cmocka_unit_test_setup_teardown(a_large_log_is_flushed_and_a_small_one_copied, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(later_keyspaces_are_not_in_a_checkpoint, setup, teardown),
        cmocka_unit_test_setup_teardown(what_a_copy_loses_of_its_log_is_known, setup, teardown),
        cmocka_unit_test_setup_teardown(a_log_that_was_damaged_makes_no_checkpoint, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_checkpoint_under_load_has_a_prefix_of_what_is_written,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_manifest_that_grows_is_taken_as_listed, setup, teardown),
        cmocka_unit_test_setup_teardown(a_failed_checkpoint_leaves_the_store_as_it_was, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_store_whose_log_was_not_written_makes_no_checkpoint,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_manifest_that_is_whole_and_short_is_put_right, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_store_whose_log_was_not_synced_makes_no_checkpoint, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_fence_in_the_middle_ends_a_checkpoint, setup, teardown),
        cmocka_unit_test_setup_teardown(a_checkpoint_syncs_no_log, setup, teardown),
        cmocka_unit_test_setup_teardown(files_are_deleted_again_after_its_end, setup, teardown),
        cmocka_unit_test_setup_teardown(a_copy_has_another_identity, setup, teardown),
        cmocka_unit_test_setup_teardown(an_invalid_identity_counts_as_none, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
