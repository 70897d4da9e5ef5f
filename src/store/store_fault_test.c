/* What the store does when the disk fails: store.h, invariants 1 and 2. */
#include "store/testing/fault_fs.h"
#include "store/testing/fault_memory.h"
#include "store/testing/testing.h"

#include <glob.h>
#include <limits.h>
#include <pthread.h>
#include <time.h>

struct fixture {
    char *directory;
    char *copy; /* where a power cut's leavings go */
    struct store_options options;
    struct fault_fs *fs;
    struct store *store;
    struct keyspace *keyspace; /* id 7 */
    pthread_mutex_t mutex;     /* of the two below */
    pthread_cond_t changed;
    enum status_code trouble; /* what the store told last */
    unsigned fences;          /* how often it told of one */
};

static void on_trouble(void *context, enum status_code code, const char *what)
{
    struct fixture *f = context;
    assert_non_null(what);
    pthread_mutex_lock(&f->mutex);
    f->trouble = code;
    f->fences += code == STATUS_UNAVAILABLE;
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->mutex);
}

/* RocksDB looks for space every five seconds; half a minute means never. */
static void wait_for_trouble(struct fixture *f, enum status_code code)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 30;
    pthread_mutex_lock(&f->mutex);
    while (f->trouble != code)
        assert_int_equal(pthread_cond_timedwait(&f->changed, &f->mutex, &until), 0);
    pthread_mutex_unlock(&f->mutex);
}

static void open_store(struct fixture *f)
{
    assert_ok(fault_fs_open(f->fs, &f->options, &f->store));
    f->keyspace = store_keyspace_find(f->store, 7);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->directory = make_directory();
    f->copy = make_directory();
    f->fs = fault_fs_create();
    pthread_mutex_init(&f->mutex, NULL);
    pthread_cond_init(&f->changed, NULL);
    f->options = test_options(f->directory);
    f->options.on_trouble = on_trouble;
    f->options.trouble_context = f;
    open_store(f);
    f->keyspace = make_keyspace(f->store, 7);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    if (f->store != NULL)
        store_close(f->store);
    fault_fs_destroy(f->fs);
    remove_directory(f->directory);
    remove_directory(f->copy);
    pthread_cond_destroy(&f->changed);
    pthread_mutex_destroy(&f->mutex);
    free(f);
    return 0;
}

static void reopen(struct fixture *f)
{
    store_close(f->store);
    fault_fs_heal(f->fs);
    open_store(f);
}

/* Goes on with what a power cut now would leave. */
static void cut_power(struct fixture *f, size_t torn)
{
    fault_fs_cut_power(f->fs, f->directory, f->copy, torn);
    store_close(f->store);
    struct store_options options = f->options;
    options.directory = f->copy;
    assert_ok(store_open(&options, &f->store));
    f->keyspace = store_keyspace_find(f->store, 7);
}

static status try_put(struct fixture *f, const char *key, const char *value)
{
    return write_one(f->store, f->keyspace, PUT, key, value, STORE_SYNCED);
}

static void fill(struct fixture *f, const char *prefix, unsigned count)
{
    char value[4001];
    memset(value, 'v', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    for (unsigned i = 0; i < count; i++) {
        char key[16];
        snprintf(key, sizeof key, "%s%05u", prefix, i);
        assert_ok(write_one(f->store, f->keyspace, PUT, key, value, STORE_ASYNC));
    }
}

/* --- fences --- */

/* After the fault of the moment: fenced for good, and everything acknowledged is there, also after
 * the next start. */
static void assert_fenced(struct fixture *f)
{
    assert_status(try_put(f, "k", "2"), STATUS_UNAVAILABLE);
    fault_fs_heal(f->fs);
    assert_status(try_put(f, "k", "3"), STATUS_UNAVAILABLE);
    assert_status(write_one(f->store, f->keyspace, PUT, "k", "4", STORE_ASYNC), STATUS_UNAVAILABLE);
    assert_status(store_keyspaces_create(f->store, 50, 1), STATUS_UNAVAILABLE);
    assert_status(store_health(f->store), STATUS_UNAVAILABLE);
    assert_int_equal(f->fences, 1);
    assert_value(f->keyspace, "acked", "1"); /* reads go on */
    reopen(f);
    assert_ok(store_health(f->store));
    assert_value(f->keyspace, "acked", "1");
    put(f->store, f->keyspace, "k", "5");
    assert_value(f->keyspace, "k", "5");
}

static void a_failed_sync_fences(void **state)
{
    struct fixture *f = *state;
    put(f->store, f->keyspace, "acked", "1");
    fault_fs_fail(f->fs, FAULT_SYNC, ".log", FAULT_IO, 0);
    assert_fenced(f);
}

static void a_sync_without_space_fences_too(void **state)
{
    struct fixture *f = *state;
    put(f->store, f->keyspace, "acked", "1");
    fault_fs_fail(f->fs, FAULT_SYNC, ".log", FAULT_NO_SPACE, 0);
    assert_fenced(f);
}

static void a_failed_append_fences(void **state)
{
    struct fixture *f = *state;
    put(f->store, f->keyspace, "acked", "1");
    fault_fs_fail(f->fs, FAULT_APPEND, ".log", FAULT_IO, 0);
    assert_fenced(f);
}

/* Where room cannot be taken beforehand, a full disk shows in the append. */
static void a_full_disk_without_fallocate_fences(void **state)
{
    struct fixture *f = *state;
    reopen(f); /* nothing in any write buffer */
    fault_fs_fail(f->fs, FAULT_ALLOCATE, ".log", FAULT_UNSUPPORTED, 0);
    put(f->store, f->keyspace, "acked", "1");
    fault_fs_fail(f->fs, FAULT_APPEND, ".log", FAULT_NO_SPACE, 0);
    assert_fenced(f);
}

static void a_failed_directory_sync_fences(void **state)
{
    struct fixture *f = *state;
    put(f->store, f->keyspace, "acked", "1");
    assert_ok(keyspace_flush(f->keyspace)); /* a new log: its name is synced with the next write */
    fault_fs_fail(f->fs, FAULT_SYNC_DIRECTORY, "", FAULT_IO, 0);
    assert_fenced(f);
}

static void a_table_that_cannot_be_written_fences(void **state)
{
    struct fixture *f = *state;
    put(f->store, f->keyspace, "acked", "1");
    fault_fs_fail(f->fs, FAULT_SYNC, ".sst", FAULT_IO, 0);
    status s = keyspace_flush(f->keyspace);
    assert_false(status_is_ok(s));
    status_free(s);
    assert_fenced(f);
}

static void a_flush_that_cannot_be_noted_down_fences(void **state)
{
    struct fixture *f = *state;
    put(f->store, f->keyspace, "acked", "1");
    fault_fs_fail(f->fs, FAULT_SYNC, "MANIFEST", FAULT_IO, 0);
    status s = keyspace_flush(f->keyspace);
    assert_false(status_is_ok(s));
    status_free(s);
    assert_fenced(f);
}

/* Waits until the failed flush was tried again: RocksDB does so each second. */
static void flush_at_last(struct fixture *f)
{
    const struct timespec pause = {.tv_nsec = 20 * 1000 * 1000};
    status s = keyspace_flush(f->keyspace);
    for (int i = 0; i < 3000 && !status_is_ok(s); i++) {
        status_free(s);
        nanosleep(&pause, NULL);
        s = keyspace_flush(f->keyspace);
    }
    assert_ok(s);
}

/* One EIO for the first look at a table that a flush had written once fenced the server until it
 * was restarted, as if a write had failed. */
static void a_new_table_that_is_not_read_fences_nothing(void **state)
{
    struct fixture *f = *state;
    put(f->store, f->keyspace, "acked", "1");
    fault_fs_fail(f->fs, FAULT_READ, ".sst", FAULT_IO, 0);
    status s = keyspace_flush(f->keyspace);
    assert_false(status_is_ok(s));
    status_free(s);
    assert_true(fault_fs_failures(f->fs) > 0);
    assert_ok(store_health(f->store));
    put(f->store, f->keyspace, "meanwhile", "2");
    assert_value(f->keyspace, "acked", "1");
    fault_fs_heal(f->fs);
    flush_at_last(f);
    assert_int_equal(f->fences, 0);
    put(f->store, f->keyspace, "later", "3");
    reopen(f);
    assert_value(f->keyspace, "acked", "1");
    assert_value(f->keyspace, "meanwhile", "2");
    assert_value(f->keyspace, "later", "3");
}

/* Until the write buffers are full, and what is not taken then is not fenced, either. */
static void new_tables_that_are_never_read_refuse_writes_at_last(void **state)
{
    struct fixture *f = *state;
    char value[100001] = {0};
    memset(value, 'v', sizeof value - 1);
    put(f->store, f->keyspace, "acked", "1");
    fault_fs_fail(f->fs, FAULT_READ, ".sst", FAULT_IO, 0);
    status s = status_ok();
    for (int i = 0; i < 2000 && status_is_ok(s); i++)
        s = write_one(f->store, f->keyspace, PUT, "filler", value, STORE_ASYNC);
    assert_status(s, STATUS_UNAVAILABLE);
    assert_ok(store_health(f->store));
    assert_value(f->keyspace, "acked", "1");
    fault_fs_heal(f->fs);
    flush_at_last(f);
    assert_int_equal(f->fences, 0);
    put(f->store, f->keyspace, "later", "3");
    reopen(f);
    assert_value(f->keyspace, "acked", "1");
    assert_value(f->keyspace, "later", "3");
}

/* Damage that is found then is out of service, and that is all: RocksDB would note down in its
 * manifest that the keyspace is not to be compacted. */
static void a_fenced_store_writes_to_no_manifest(void **state)
{
    struct fixture *f = *state;
    struct store_damage damage = {.keyspace_id = 7,
                                  .file = 1,
                                  .is_whole = true,
                                  .from = bytes_of("b"),
                                  .to = bytes_of("c"),
                                  .what = "broken"};
    put(f->store, f->keyspace, "acked", "1");
    fault_fs_fail(f->fs, FAULT_APPEND, ".log", FAULT_IO, 0);
    assert_status(try_put(f, "k", "2"), STATUS_UNAVAILABLE);
    unsigned failures = fault_fs_failures(f->fs);
    fault_fs_fail(f->fs, FAULT_APPEND, "MANIFEST", FAULT_IO, 0);
    assert_ok(keyspace_close_range(f->keyspace, &damage));
    assert_int_equal(fault_fs_failures(f->fs), failures);
    assert_value(f->keyspace, "acked", "1");
}

/* --- keyspaces that cannot be made --- */

static size_t count_keyspaces(struct store *store)
{
    size_t count = 0;
    while (store_keyspace_at(store, count) != NULL)
        count++;
    return count;
}

/* RocksDB goes on in a new manifest; the log is not touched. */
static void assert_creation_fails(struct fixture *f, enum status_code code)
{
    assert_status(store_keyspaces_create(f->store, 8, 3), code);
    assert_null(store_keyspace_find(f->store, 8));
    put(f->store, f->keyspace, "meanwhile", "2");
    fault_fs_heal(f->fs);
    assert_ok(store_keyspaces_create(f->store, 8, 3));
    put(f->store, store_keyspace_find(f->store, 10), "k", "v");
    reopen(f);
    assert_int_equal(count_keyspaces(f->store), 4);
    assert_value(f->keyspace, "meanwhile", "2");
    assert_value(store_keyspace_find(f->store, 10), "k", "v");
}

static void a_keyspace_that_cannot_be_synced_is_not_made(void **state)
{
    fault_fs_fail(((struct fixture *)*state)->fs, FAULT_SYNC, "MANIFEST", FAULT_IO, 0);
    assert_creation_fails(*state, STATUS_UNAVAILABLE);
}

static void a_keyspace_without_room_is_not_made(void **state)
{
    fault_fs_fail(((struct fixture *)*state)->fs, FAULT_APPEND, "MANIFEST", FAULT_NO_SPACE, 1);
    assert_creation_fails(*state, STATUS_RESOURCE_EXHAUSTED);
}

/* --- a full disk --- */

static void assert_refused_then_taken(struct fixture *f)
{
    assert_status(try_put(f, "refused", "1"), STATUS_RESOURCE_EXHAUSTED);
    assert_status(try_put(f, "refused", "2"), STATUS_RESOURCE_EXHAUSTED);
    assert_status(store_health(f->store), STATUS_RESOURCE_EXHAUSTED);
    assert_value(f->keyspace, "acked", "1");
    fault_fs_heal(f->fs);
}

static void assert_recovered(struct fixture *f)
{
    assert_ok(store_health(f->store));
    assert_int_equal(f->fences, 0);
    put(f->store, f->keyspace, "later", "3");
    reopen(f);
    assert_value(f->keyspace, "acked", "1");
    assert_value(f->keyspace, "refused", NULL);
    assert_value(f->keyspace, "later", "3");
}

/* The log grows past what was taken for it. */
static void no_room_in_the_log(void **state)
{
    struct fixture *f = *state;
    put(f->store, f->keyspace, "acked", "1");
    fault_fs_fail(f->fs, FAULT_ALLOCATE, ".log", FAULT_NO_SPACE, 0);
    unsigned written = 0;
    while (fault_fs_failures(f->fs) == 0 && written < 10000) {
        char value[4001] = {0};
        memset(value, 'v', sizeof value - 1);
        status s = write_one(f->store, f->keyspace, PUT, "filler", value, STORE_ASYNC);
        assert_true(status_is_ok(s) || s.code == STATUS_RESOURCE_EXHAUSTED);
        status_free(s);
        written++;
    }
    assert_true(written > 100 && written < 10000);
    /* A small batch may still fit into what is left, which ends nothing: fill it up. */
    status s = status_ok();
    for (int i = 0; i < 1000 && status_is_ok(s); i++) {
        s = try_put(f, "filler", "small");
        assert_status(store_health(f->store), STATUS_RESOURCE_EXHAUSTED);
    }
    assert_status(s, STATUS_RESOURCE_EXHAUSTED);
    store_look_for_room(f->store);
    assert_refused_then_taken(f);
    store_look_for_room(f->store); /* no write is needed for it */
    assert_ok(store_health(f->store));
    wait_for_trouble(f, STATUS_OK);
    put(f->store, f->keyspace, "first again", "x");
    assert_recovered(f);
}

static void no_room_for_a_large_batch_leaves_small_ones_alone(void **state)
{
    struct fixture *f = *state;
    enum { LARGE = 6 << 20 };
    put(f->store, f->keyspace, "acked", "1");
    fault_fs_fail(f->fs, FAULT_ALLOCATE, ".log", FAULT_NO_SPACE, 0);
    char *value = calloc(1, LARGE + 1);
    assert_non_null(value);
    memset(value, 'v', LARGE);
    assert_status(try_put(f, "refused", value), STATUS_RESOURCE_EXHAUSTED);
    free(value);
    put(f->store, f->keyspace, "small", "fits");
    assert_ok(store_health(f->store));
    fault_fs_heal(f->fs);
    assert_recovered(f);
}

static void delete_range(struct fixture *f, const char *from, const char *to)
{
    struct store_batch *batch = store_batch_create();
    assert_non_null(batch);
    store_batch_delete_range(batch, f->keyspace, bytes_of(from), bytes_of(to));
    assert_ok(store_write(f->store, batch, STORE_SYNCED));
    store_batch_destroy(batch);
}

/* A new log is made all the same, and then nothing is written to it. It once was not made; a write
 * buffer with deleted ranges cannot be sealed twice, and the second flush was the server's end. */
static void no_room_for_a_new_log(void **state)
{
    struct fixture *f = *state;
    put(f->store, f->keyspace, "acked", "1");
    delete_range(f, "x", "y");
    fault_fs_fail(f->fs, FAULT_ALLOCATE, ".log", FAULT_NO_SPACE, 0);
    assert_ok(keyspace_flush(f->keyspace));
    assert_refused_then_taken(f);
    put(f->store, f->keyspace, "first again", "x");
    assert_ok(keyspace_flush(f->keyspace));
    assert_recovered(f);
}

static void a_log_that_cannot_be_made_fences(void **state)
{
    struct fixture *f = *state;
    put(f->store, f->keyspace, "acked", "1");
    delete_range(f, "x", "y");
    fault_fs_fail(f->fs, FAULT_CREATE, ".log", FAULT_NO_SPACE, 0);
    assert_status(keyspace_flush(f->keyspace), STATUS_RESOURCE_EXHAUSTED);
    fault_fs_heal(f->fs);
    assert_status(keyspace_flush(f->keyspace), STATUS_UNAVAILABLE);
    assert_status(keyspace_compact(f->keyspace, bytes_of(""), bytes_of("")), STATUS_UNAVAILABLE);
    assert_fenced(f);
}

static void no_room_for_a_table(void **state)
{
    struct fixture *f = *state;
    put(f->store, f->keyspace, "acked", "1");
    fault_fs_fail(f->fs, FAULT_APPEND, ".sst", FAULT_NO_SPACE, 0);
    assert_status(keyspace_flush(f->keyspace), STATUS_RESOURCE_EXHAUSTED);
    assert_refused_then_taken(f);
    wait_for_trouble(f, STATUS_OK);
    assert_recovered(f);
}

static void no_room_to_note_down_a_flush(void **state)
{
    struct fixture *f = *state;
    put(f->store, f->keyspace, "acked", "1");
    fault_fs_fail(f->fs, FAULT_APPEND, "MANIFEST", FAULT_NO_SPACE, 0);
    assert_status(keyspace_flush(f->keyspace), STATUS_RESOURCE_EXHAUSTED);
    assert_refused_then_taken(f);
    wait_for_trouble(f, STATUS_OK);
    assert_recovered(f);
}

/* A compaction without room waits; writes go on. */
static void no_room_for_a_compaction(void **state)
{
    struct fixture *f = *state;
    put(f->store, f->keyspace, "acked", "1");
    for (int i = 0; i < 2; i++) {
        fill(f, "c", 200);
        assert_ok(keyspace_flush(f->keyspace));
    }
    fault_fs_fail(f->fs, FAULT_APPEND, ".sst", FAULT_NO_SPACE, 0);
    assert_status(keyspace_compact(f->keyspace, bytes_of(""), bytes_of("")),
                  STATUS_RESOURCE_EXHAUSTED);
    put(f->store, f->keyspace, "still", "writable");
    fault_fs_heal(f->fs);
    assert_recovered(f);
    assert_ok(keyspace_compact(f->keyspace, bytes_of(""), bytes_of("")));
    assert_value(f->keyspace, "still", "writable");
}

/* --- damage --- */

static void a_table_that_cannot_be_read_fails_the_read(void **state)
{
    struct fixture *f = *state;
    put(f->store, f->keyspace, "acked", "1");
    assert_ok(keyspace_flush(f->keyspace));
    reopen(f);
    fault_fs_fail(f->fs, FAULT_READ, ".sst", FAULT_IO, 0);
    struct store_value value;
    enum store_presence presence;
    assert_status(
        store_get(f->keyspace, NULL, bytes_of("acked"), STORE_READ_ANY, &value, &presence),
        STATUS_UNAVAILABLE);
    store_value_release(&value);
    struct store_cursor *cursor;
    struct store_cursor_options options = {.read_tier = STORE_READ_ANY};
    assert_ok(store_cursor_create(f->keyspace, &options, &cursor));
    store_cursor_first(cursor);
    assert_false(store_cursor_valid(cursor));
    assert_status(store_cursor_status(cursor), STATUS_UNAVAILABLE);
    store_cursor_destroy(cursor);
    fault_fs_heal(f->fs);
    assert_value(f->keyspace, "acked", "1");
}

/* --- power cuts --- */

static void write_pair(struct fixture *f, struct keyspace *other, const char *value,
                       enum store_durability durability)
{
    struct store_batch *batch = store_batch_create();
    assert_non_null(batch);
    store_batch_put(batch, f->keyspace, bytes_of("pair"), bytes_of(value));
    store_batch_put(batch, other, bytes_of("pair"), bytes_of(value));
    assert_ok(store_write(f->store, batch, durability));
    store_batch_destroy(batch);
}

static void synced_batches_survive_a_power_cut(void **state)
{
    struct fixture *f = *state;
    struct keyspace *other = make_keyspace(f->store, 8);
    write_pair(f, other, "async, before", STORE_ASYNC);
    write_pair(f, other, "synced", STORE_SYNCED);
    write_pair(f, other, "async, after", STORE_ASYNC);
    cut_power(f, 0);
    assert_value(f->keyspace, "pair", "synced");
    assert_value(store_keyspace_find(f->store, 8), "pair", "synced");
}

/* Whatever part of the last, unsynced record is left: all of its batch is there, or nothing. */
static void a_torn_end_is_all_or_nothing(void **state)
{
    struct fixture *f = *state;
    struct keyspace *other = make_keyspace(f->store, 8);
    write_pair(f, other, "old", STORE_SYNCED);
    write_pair(f, other, "new", STORE_ASYNC);
    size_t unsynced = fault_fs_unsynced(f->fs, ".log");
    assert_in_range(unsynced, 20, 100);
    struct store_options options = f->options;
    options.directory = f->copy;
    for (size_t torn = 0; torn <= unsynced; torn++) {
        fault_fs_cut_power(f->fs, f->directory, f->copy, torn);
        struct store *store;
        assert_ok(store_open(&options, &store));
        const char *expected = torn == unsynced ? "new" : "old";
        assert_value(store_keyspace_find(store, 7), "pair", expected);
        assert_value(store_keyspace_find(store, 8), "pair", expected);
        /* The torn end stays in its log, below what is written from now on. */
        put(store, store_keyspace_find(store, 7), "next", "1");
        store_close(store);
        assert_ok(store_open(&options, &store));
        assert_value(store_keyspace_find(store, 7), "next", "1");
        assert_value(store_keyspace_find(store, 7), "pair", expected);
        store_close(store);
        remove_directory(f->copy);
        f->copy = make_directory();
        options.directory = f->copy;
    }
}

static void flushed_and_unflushed_data_survive_a_power_cut(void **state)
{
    struct fixture *f = *state;
    put(f->store, f->keyspace, "in a table", "1");
    assert_ok(keyspace_flush(f->keyspace));
    merge(f->store, f->keyspace, "in a table", "2");
    struct keyspace *young = make_keyspace(f->store, 9);
    put(f->store, young, "in the log", "3");
    cut_power(f, 0);
    assert_value(f->keyspace, "in a table", "12");
    assert_value(store_keyspace_find(f->store, 9), "in the log", "3");
}

/* Breaks `size` bytes of the store's only log, from `offset`; beyond its end: from its end. */
static void damage_log(const char *directory, long offset, size_t size)
{
    char pattern[PATH_MAX];
    glob_t logs;
    snprintf(pattern, sizeof pattern, "%s/*.log", directory);
    assert_int_equal(glob(pattern, 0, NULL, &logs), 0);
    assert_int_equal(logs.gl_pathc, 1);
    FILE *file = fopen(logs.gl_pathv[0], "r+");
    assert_non_null(file);
    assert_int_equal(fseek(file, offset, offset < 0 ? SEEK_END : SEEK_SET), 0);
    for (size_t i = 0; i < size; i++)
        assert_int_equal(fputc(0, file), 0);
    assert_int_equal(fclose(file), 0);
    globfree(&logs);
}

/* A log with ten records of a block or two each, the last `async` of them not synced. The copy has
 * it as a kill leaves it, which says of nothing that it was synced. */
static void write_large_records(struct fixture *f, int async)
{
    fault_fs_fail(f->fs, FAULT_SYNC, "SYNCED", FAULT_IO, 0);
    char value[40001], key[8];
    memset(value, 'v', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    for (int i = 0; i < 10; i++) {
        snprintf(key, sizeof key, "k%d", i);
        assert_ok(write_one(f->store, f->keyspace, PUT, key, value,
                            i < 10 - async ? STORE_SYNCED : STORE_ASYNC));
    }
    fault_fs_cut_power(f->fs, f->directory, f->copy, SIZE_MAX / 2);
    store_close(f->store);
    f->store = NULL;
    fault_fs_heal(f->fs);
    f->options.directory = f->copy;
}

static void damage_before_synced_writes_is_reported(void **state)
{
    struct fixture *f = *state;
    write_large_records(f, 0);
    damage_log(f->copy, 100000, 10); /* in the third record */
    for (int read_only = 0; read_only < 2; read_only++) {
        f->options.read_only = read_only != 0;
        status s = store_open(&f->options, &f->store);
        assert_non_null(strstr(status_message(s), ".log is damaged at byte "));
        assert_status(s, STATUS_DATA_LOSS);
    }
}

static void holes_in_what_was_not_synced_are_a_power_cut(void **state)
{
    struct fixture *f = *state;
    write_large_records(f, 8);
    damage_log(f->copy, 3L * 32768, 4096); /* a page, in the third record */
    open_store(f);
    assert_int_equal(store_log_end(f->store).verdict, STORE_LOG_TORN);
    struct store_value value;
    enum store_presence presence;
    assert_ok(store_get(f->keyspace, NULL, bytes_of("k1"), STORE_READ_ANY, &value, &presence));
    assert_int_equal(presence, STORE_FOUND);
    store_value_release(&value);
    assert_value(f->keyspace, "k3", NULL);
    assert_value(f->keyspace, "k9", NULL); /* nothing from behind the hole */
}

static void a_broken_last_record_is_a_power_cut(void **state)
{
    struct fixture *f = *state;
    write_large_records(f, 0);
    damage_log(f->copy, -1000, 10);
    open_store(f);
    assert_int_equal(store_log_end(f->store).verdict, STORE_LOG_TORN);
    assert_value(f->keyspace, "k9", NULL);
}

static void an_orderly_end_syncs(void **state)
{
    struct fixture *f = *state;
    assert_ok(write_one(f->store, f->keyspace, PUT, "k", "async", STORE_ASYNC));
    assert_true(fault_fs_unsynced(f->fs, ".log") > 0);
    store_close(f->store);
    assert_int_equal(fault_fs_unsynced(f->fs, ".log"), 0);
    open_store(f);
    assert_value(f->keyspace, "k", "async");
}

/* --- memory --- */

/* Only allocations of the store's own fail here: RocksDB does not survive its own. */

static void a_batch_without_memory_is_refused(void **state)
{
    struct fixture *f = *state;
    fault_memory_fail(1);
    assert_null(store_batch_create());
    struct store_batch *batch = store_batch_create();
    assert_non_null(batch);
    char *value = calloc(1, 10001);
    assert_non_null(value);
    store_batch_put(batch, f->keyspace, bytes_of("a"), bytes_of("1"));
    fault_memory_fail(1);
    store_batch_put(batch, f->keyspace, bytes_of("b"), bytes_make(value, 10000));
    fault_memory_fail(0);
    assert_status(store_write(f->store, batch, STORE_SYNCED), STATUS_RESOURCE_EXHAUSTED);
    assert_value(f->keyspace, "a", NULL);

    store_batch_clear(batch);
    store_batch_put(batch, f->keyspace, bytes_of("a"), bytes_of("2"));
    assert_ok(store_write(f->store, batch, STORE_SYNCED));
    assert_value(f->keyspace, "a", "2");
    assert_ok(store_health(f->store));
    store_batch_destroy(batch);
    free(value);
}

static void reads_without_memory_are_refused(void **state)
{
    struct fixture *f = *state;
    put(f->store, f->keyspace, "a", "1");
    struct store_value value;
    enum store_presence presence;
    fault_memory_fail(1);
    assert_status(store_get(f->keyspace, NULL, bytes_of("a"), STORE_READ_ANY, &value, &presence),
                  STATUS_RESOURCE_EXHAUSTED);
    store_value_release(&value);
    fault_memory_fail(1);
    assert_null(store_snapshot_create(f->store));
    struct store_cursor *cursor;
    const struct store_cursor_options options = {.read_tier = STORE_READ_ANY};
    fault_memory_fail(1);
    assert_status(store_cursor_create(f->keyspace, &options, &cursor), STATUS_RESOURCE_EXHAUSTED);
    assert_null(cursor);
    assert_value(f->keyspace, "a", "1");
}

/* What comes before RocksDB is asked; its own constructors leak when they fail. */
static void making_without_memory_leaves_nothing(void **state)
{
    struct fixture *f = *state;
    for (unsigned n = 1; n <= 4; n++) {
        fault_memory_fail(n);
        assert_status(store_keyspaces_create(f->store, 8, 1), STATUS_RESOURCE_EXHAUSTED);
        assert_null(store_keyspace_find(f->store, 8));
    }
    make_keyspace(f->store, 8);
    store_close(f->store);
    f->store = NULL;
    for (unsigned n = 1; n <= 3; n++) {
        fault_memory_fail(n);
        struct store *store;
        assert_status(store_open(&f->options, &store), STATUS_RESOURCE_EXHAUSTED);
        assert_null(store);
    }
    fault_memory_fail(0);
    open_store(f);
}

/* RocksDB 7.8 loses the memory of a write buffer whose flush it could not note down. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:rocksdb::DBImpl::SwitchMemtable\n";
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_failed_sync_fences),
        TEST(a_sync_without_space_fences_too),
        TEST(a_failed_append_fences),
        TEST(a_full_disk_without_fallocate_fences),
        TEST(a_failed_directory_sync_fences),
        TEST(a_table_that_cannot_be_written_fences),
        TEST(a_new_table_that_is_not_read_fences_nothing),
        TEST(new_tables_that_are_never_read_refuse_writes_at_last),
        TEST(a_fenced_store_writes_to_no_manifest),
        TEST(a_flush_that_cannot_be_noted_down_fences),
        TEST(a_keyspace_that_cannot_be_synced_is_not_made),
        TEST(a_keyspace_without_room_is_not_made),
        TEST(no_room_in_the_log),
        TEST(no_room_for_a_large_batch_leaves_small_ones_alone),
        TEST(no_room_for_a_new_log),
        TEST(a_log_that_cannot_be_made_fences),
        TEST(no_room_for_a_table),
        TEST(no_room_to_note_down_a_flush),
        TEST(no_room_for_a_compaction),
        TEST(a_table_that_cannot_be_read_fails_the_read),
        TEST(synced_batches_survive_a_power_cut),
        TEST(a_torn_end_is_all_or_nothing),
        TEST(flushed_and_unflushed_data_survive_a_power_cut),
        TEST(damage_before_synced_writes_is_reported),
        TEST(holes_in_what_was_not_synced_are_a_power_cut),
        TEST(a_broken_last_record_is_a_power_cut),
        TEST(an_orderly_end_syncs),
        TEST(a_batch_without_memory_is_refused),
        TEST(reads_without_memory_are_refused),
        TEST(making_without_memory_leaves_nothing),
    };
    return cmocka_run_group_tests_name("store_fault", tests, NULL, NULL);
}
