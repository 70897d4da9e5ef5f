/* Iterators over level 0 with range tombstones, when a table of it is not to be had.
 *
 * The story: `cluster_backup` died once under ASan of a double free of a TruncatedRangeDelIterator
 * in ~MergingIterator. A table of level 0 could not be opened, since a loop's thread may not wait
 * for the disk, and RocksDB 7.8 took the range tombstones of the table before it for its own, too.
 */
#include "store/testing/fault_fs.h"
#include "store/testing/testing.h"

#include <glob.h>
#include <pthread.h>

enum { PLAIN_ID = 1, DROPPED_ID = 2, SCANS = 10000, KEYS = 40 };

struct fixture {
    char *directory;
    struct store_options options;
    struct fault_fs *fs;
    struct store *store;
    struct keyspace *dropped; /* DROPPED_ID */
};

static void open_store(struct fixture *f)
{
    assert_ok(fault_fs_open(f->fs, &f->options, &f->store));
    f->dropped = store_keyspace_find(f->store, DROPPED_ID);
}

/* Few tables stay open: what is not asked for is not. */
static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->directory = make_directory();
    f->fs = fault_fs_create();
    f->options = test_options(f->directory);
    f->options.open_files = 20;
    open_store(f);
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
    free(f);
    return 0;
}

static void reopen(struct fixture *f)
{
    store_close(f->store);
    f->store = NULL;
    open_store(f);
}

static void drop_range(struct store *store, struct keyspace *keyspace, const char *from,
                       const char *to)
{
    struct store_batch *batch = store_batch_create();
    assert_non_null(batch);
    store_batch_delete_range(batch, keyspace, bytes_of(from), bytes_of(to));
    assert_ok(store_write(store, batch, STORE_ASYNC));
    store_batch_destroy(batch);
}

/* The file that the last flush made, without its folder. */
static char *newest_table(const struct fixture *f)
{
    char pattern[4096];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/*.sst", f->directory);
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    char *name = strdup(strrchr(found.gl_pathv[found.gl_pathc - 1], '/') + 1);
    assert_non_null(name);
    globfree(&found);
    return name;
}

/* Two tables at level 0, neither of them open: "a" to "m" written, and above it "b" to "d" dropped.
 * Returns the older one. A start opens two tables by itself: those of the other keyspace. */
static char *make_two_tables(struct fixture *f)
{
    struct keyspace *plain = make_keyspace(f->store, PLAIN_ID);
    f->dropped = make_keyspace(f->store, DROPPED_ID);
    for (int i = 0; i < 2; i++) {
        put(f->store, plain, "key", "value");
        assert_ok(keyspace_flush(plain));
    }
    put(f->store, f->dropped, "a", "1");
    put(f->store, f->dropped, "c", "2");
    put(f->store, f->dropped, "m", "3");
    assert_ok(keyspace_flush(f->dropped));
    char *older = newest_table(f);
    drop_range(f->store, f->dropped, "b", "d");
    assert_ok(keyspace_flush(f->dropped));
    reopen(f);
    return older;
}

static struct store_cursor *make_cursor(struct keyspace *keyspace, enum store_read_tier read_tier)
{
    struct store_cursor *cursor;
    struct store_cursor_options options = {.read_tier = read_tier};
    assert_ok(store_cursor_create(keyspace, &options, &cursor));
    store_cursor_first(cursor);
    return cursor;
}

/* What ended it. */
static enum status_code end_of(const struct store_cursor *cursor)
{
    status s = store_cursor_status(cursor);
    enum status_code code = s.code;
    status_free(s);
    return code;
}

static void assert_two_keys(struct keyspace *keyspace, enum store_read_tier read_tier)
{
    struct store_cursor *cursor = make_cursor(keyspace, read_tier);
    assert_true(store_cursor_valid(cursor));
    assert_true(bytes_equal(store_cursor_key(cursor), bytes_of("a")));
    store_cursor_next(cursor);
    assert_true(bytes_equal(store_cursor_key(cursor), bytes_of("m")));
    store_cursor_next(cursor);
    assert_false(store_cursor_valid(cursor));
    assert_ok(store_cursor_status(cursor));
    store_cursor_destroy(cursor);
}

/* --- each time, before level0.cc: a double free --- */

static void a_loop_meets_a_table_that_is_not_open(void **state)
{
    struct fixture *f = *state;
    free(make_two_tables(f));
    assert_value(f->dropped, "c", NULL); /* opens the newer table alone, which has dropped it */

    struct store_cursor *cursor = make_cursor(f->dropped, STORE_READ_CACHED);
    assert_false(store_cursor_valid(cursor));
    assert_true(store_cursor_missed_cache(cursor));
    assert_ok(store_cursor_status(cursor));
    store_cursor_destroy(cursor);

    assert_two_keys(f->dropped, STORE_READ_ANY);
    assert_two_keys(f->dropped, STORE_READ_CACHED);
}

static void a_table_cannot_be_read(void **state)
{
    struct fixture *f = *state;
    char *older = make_two_tables(f);
    fault_fs_fail(f->fs, FAULT_READ, older, FAULT_IO, 0);
    for (int i = 0; i < 2; i++) {
        struct store_cursor *cursor = make_cursor(f->dropped, STORE_READ_ANY);
        assert_false(store_cursor_valid(cursor));
        assert_int_equal(end_of(cursor), STATUS_UNAVAILABLE);
        store_cursor_destroy(cursor);
    }
    assert_true(fault_fs_failures(f->fs) > 0);
    assert_int_equal(fault_fs_failures_while_merging(f->fs), 0);
    fault_fs_heal(f->fs);
    assert_two_keys(f->dropped, STORE_READ_ANY);
    free(older);
}

/* --- at random --- */

/* What is in a keyspace: a row is there or not. */
struct model {
    bool has[KEYS];
};

static const char *key_of(unsigned i, char out[8])
{
    snprintf(out, 8, "k%02u", i);
    return out;
}

static unsigned dice(unsigned *seed, unsigned sides)
{
    return (unsigned)rand_r(seed) % sides;
}

static void change_something(struct fixture *f, struct keyspace *keyspace, struct model *model,
                             unsigned *seed)
{
    char key[8], to[8];
    unsigned first = dice(seed, KEYS);
    if (dice(seed, 4) != 0) {
        assert_ok(write_one(f->store, keyspace, PUT, key_of(first, key), "value", STORE_ASYNC));
        model->has[first] = true;
        return;
    }
    unsigned end = first + dice(seed, KEYS / 4);
    drop_range(f->store, keyspace, key_of(first, key), key_of(end, to));
    for (unsigned i = first; i < end && i < KEYS; i++)
        model->has[i] = false;
}

static unsigned next_row(const struct model *model, unsigned i)
{
    while (i < KEYS && !model->has[i])
        i++;
    return i;
}

/* Every row, or a word of why not. Returns whether it was every row. */
static bool scan(struct keyspace *keyspace, const struct model *model,
                 enum store_read_tier read_tier)
{
    char key[8];
    struct store_cursor *cursor = make_cursor(keyspace, read_tier);
    unsigned row = next_row(model, 0);
    for (; store_cursor_valid(cursor); row = next_row(model, row + 1)) {
        assert_true(row < KEYS);
        assert_true(bytes_equal(store_cursor_key(cursor), bytes_of(key_of(row, key))));
        store_cursor_next(cursor);
    }
    bool is_whole = !store_cursor_missed_cache(cursor) && end_of(cursor) == STATUS_OK;
    assert_true(!is_whole || row == KEYS);
    store_cursor_destroy(cursor);
    return is_whole;
}

enum { KEYSPACES = 6 };

struct random_run {
    struct fixture *f;
    struct keyspace *keyspaces[KEYSPACES];
    struct model models[KEYSPACES];
    unsigned whole;
    unsigned seed;
};

static void find_keyspaces(struct random_run *run)
{
    for (unsigned i = 0; i < KEYSPACES; i++)
        run->keyspaces[i] = store_keyspace_find(run->f->store, 1 + i);
}

/* A change while the disk is well; now and then a flush, or a restart, which closes tables. */
static void disturb(struct random_run *run, unsigned step)
{
    unsigned i = dice(&run->seed, KEYSPACES);
    change_something(run->f, run->keyspaces[i], &run->models[i], &run->seed);
    if (step % 5 == 0)
        assert_ok(keyspace_flush(run->keyspaces[i]));
    if (step % 400 == 399) {
        reopen(run->f);
        find_keyspaces(run);
    }
}

/* What fails, fails while a reader is at it: a compaction that met it would fence the store. */
static void scan_with_faults(struct random_run *run)
{
    unsigned i = dice(&run->seed, KEYSPACES);
    fault_fs_fail_here(run->f->fs, FAULT_READ, ".sst", FAULT_IO, dice(&run->seed, 12));
    enum store_read_tier read_tier = dice(&run->seed, 2) == 0 ? STORE_READ_CACHED : STORE_READ_ANY;
    run->whole += scan(run->keyspaces[i], &run->models[i], read_tier);
    fault_fs_heal(run->f->fs);
}

static void ten_thousand_scans_with_faults(void **state)
{
    struct fixture *f = *state;
    struct random_run run = {.f = f, .seed = 19};
    for (unsigned i = 0; i < KEYSPACES; i++)
        make_keyspace(f->store, 1 + i);
    find_keyspaces(&run);
    for (unsigned step = 0; step < SCANS / 4; step++) {
        disturb(&run, step);
        for (unsigned i = 0; i < 4; i++)
            scan_with_faults(&run);
    }
    /* Both came about, and the one thing that must not did not. */
    assert_true(run.whole > SCANS / 10);
    assert_true(fault_fs_failures(f->fs) > SCANS / 20);
    assert_int_equal(fault_fs_failures_while_merging(f->fs), 0);
}

/* --- beside flushes and compactions --- */

enum { STEADY = 5, BESIDE_SCANS = 2000, BESIDE_ROUNDS = 120 };

struct reader {
    pthread_t thread;
    struct fixture *f;
    unsigned seed;
    unsigned whole;
    bool has_lost; /* a row that was not dropped */
};

/* Rows of "s" are never dropped, those of "k" come and go. */
static bool scan_steady(struct reader *reader)
{
    enum store_read_tier read_tier =
        dice(&reader->seed, 2) == 0 ? STORE_READ_CACHED : STORE_READ_ANY;
    struct store_cursor *cursor;
    struct store_cursor_options options = {.lower = bytes_of("s"), .read_tier = read_tier};
    unsigned rows = 0;
    status s = store_cursor_create(reader->f->dropped, &options, &cursor);
    if (!status_is_ok(s)) {
        status_ignore(s);
        return false;
    }
    for (store_cursor_first(cursor); store_cursor_valid(cursor); store_cursor_next(cursor))
        rows++;
    bool is_whole = !store_cursor_missed_cache(cursor) && end_of(cursor) == STATUS_OK;
    reader->has_lost |= is_whole && rows != STEADY;
    store_cursor_destroy(cursor);
    return is_whole;
}

static void *read_on(void *context)
{
    struct reader *reader = context;
    for (unsigned i = 0; i < BESIDE_SCANS; i++)
        reader->whole += scan_steady(reader);
    return NULL;
}

static void flush_and_compact(struct fixture *f, unsigned round, unsigned *seed)
{
    struct model model = {0};
    for (unsigned i = 0; i < 4; i++)
        change_something(f, f->dropped, &model, seed);
    assert_ok(keyspace_flush(f->dropped));
    if (round % 20 == 19)
        assert_ok(keyspace_compact(f->dropped, bytes_of(""), bytes_of("")));
}

static void readers_beside_flushes_and_compactions(void **state)
{
    struct fixture *f = *state;
    struct reader readers[2] = {{.f = f, .seed = 1}, {.f = f, .seed = 2}};
    char key[] = "s0";
    unsigned seed = 3;
    f->dropped = make_keyspace(f->store, DROPPED_ID);
    for (; key[1] < '0' + STEADY; key[1]++)
        put(f->store, f->dropped, key, "value");
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&readers[i].thread, NULL, read_on, &readers[i]), 0);
    for (unsigned round = 0; round < BESIDE_ROUNDS; round++)
        flush_and_compact(f, round, &seed);
    for (unsigned i = 0; i < 2; i++) {
        pthread_join(readers[i].thread, NULL);
        assert_false(readers[i].has_lost);
        assert_true(readers[i].whole > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_loop_meets_a_table_that_is_not_open, setup, teardown),
        cmocka_unit_test_setup_teardown(a_table_cannot_be_read, setup, teardown),
        cmocka_unit_test_setup_teardown(ten_thousand_scans_with_faults, setup, teardown),
        cmocka_unit_test_setup_teardown(readers_beside_flushes_and_compactions, setup, teardown),
    };
    return cmocka_run_group_tests_name("level0", tests, NULL, NULL);
}
