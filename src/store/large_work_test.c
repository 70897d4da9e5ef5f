/* Flushes and compactions of large values come one at a time, and soon, where memory is bounded. */
#include "store/check.h"
#include "store/testing/testing.h"

#include <poll.h>
#include <pthread.h>

enum { SMALL = 1000, ROUNDS = 4, KEYSPACES = 3, LOOKS = 6000, LOOK_MS = 10 };

static struct watch {
    atomic_int waiting; /* begun, and not ended: those that wait for their turn among them */
    atomic_int begun;
    atomic_int ended;
    atomic_bool is_overtaken; /* the first is held up until another has ended */
} watch;

static bool comes_to(atomic_int *count, int least)
{
    for (int looks = 0; looks < LOOKS && atomic_load(count) < least; looks++)
        poll(NULL, 0, LOOK_MS);
    return atomic_load(count) >= least;
}

static void note(void *context, enum store_large_work what)
{
    struct watch *seen = context;
    bool begins = what == STORE_LARGE_WAITS;
    if (!begins && what != STORE_LARGE_ENDS)
        return;
    bool is_first = atomic_fetch_add(begins ? &seen->begun : &seen->ended, 1) == 0;
    atomic_fetch_add(&seen->waiting, begins ? 1 : -1);
    if (begins && is_first && seen->is_overtaken)
        seen->is_overtaken = comes_to(&seen->ended, 1);
}

struct fixture {
    char *directory;
    struct store *store;
    struct keyspace *keyspaces[KEYSPACES];
    struct store_options options;
    uint8_t *value;
};

/* Compactions fold, one value after the other, on the thread that works. */
static atomic_int working, most_working;

static enum store_verdict tidy_slowly(const void *rules, bytes key, bytes value, struct buffer *out)
{
    (void)rules, (void)key, (void)out;
    int count = atomic_fetch_add(&working, 1) + 1;
    if (count > atomic_load(&most_working))
        atomic_store(&most_working, count);
    if (value.size >= STORE_LARGE_VALUE)
        poll(NULL, 0, 10 * LOOK_MS); /* so that others would come */
    atomic_fetch_sub(&working, 1);
    return STORE_KEEP;
}

static const struct store_fold slow_fold = {
    .whole = fold_full,
    .part = fold_part,
    .tidy = tidy_slowly,
};

static void open_store(struct fixture *f)
{
    assert_ok(store_open(&f->options, &f->store));
    for (uint64_t i = 0; i < KEYSPACES; i++) {
        f->keyspaces[i] = store_keyspace_find(f->store, i + 2);
        if (f->keyspaces[i] == NULL)
            f->keyspaces[i] = make_keyspace(f->store, i + 2);
    }
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    watch = (struct watch){0};
    working = most_working = 0;
    f->directory = make_directory();
    f->value = calloc(1, STORE_LARGE_VALUE);
    assert_non_null(f->value);
    f->options = test_options(f->directory);
    f->options.fold = &slow_fold;
    f->options.background_threads = 8;
    f->options.on_large_work = note;
    f->options.large_work_context = &watch;
    open_store(f);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    store_close(f->store);
    assert_int_equal(watch.waiting, 0);
    assert_int_equal(watch.begun, watch.ended);
    remove_directory(f->directory);
    free(f->value);
    free(f);
    return 0;
}

static void write_value(struct fixture *f, struct keyspace *keyspace, const char *key, size_t size)
{
    struct store_batch *batch = store_batch_create();
    assert_non_null(batch);
    if (size >= STORE_LARGE_VALUE)
        keyspace_expect_large(keyspace);
    store_batch_put(batch, keyspace, bytes_of(key), bytes_make(f->value, size));
    assert_ok(store_write(f->store, batch, STORE_ASYNC));
    store_batch_destroy(batch);
}

/* --- */

struct worker {
    struct fixture *f;
    struct keyspace *keyspace;
};

static void *write_and_compact(void *argument)
{
    struct worker *worker = argument;
    for (int round = 0; round < ROUNDS; round++) {
        write_value(worker->f, worker->keyspace, "large", STORE_LARGE_VALUE);
        assert_ok(keyspace_flush(worker->keyspace));
        assert_ok(keyspace_compact(worker->keyspace, bytes_of(""), bytes_of("")));
    }
    return NULL;
}

static void large_work_comes_one_at_a_time(void **state)
{
    struct fixture *f = *state;
    struct worker workers[KEYSPACES];
    pthread_t threads[KEYSPACES];
    for (int i = 0; i < KEYSPACES; i++) {
        workers[i] = (struct worker){.f = f, .keyspace = f->keyspaces[i]};
        assert_int_equal(pthread_create(&threads[i], NULL, write_and_compact, &workers[i]), 0);
    }
    for (int i = 0; i < KEYSPACES; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_in_range(watch.begun, KEYSPACES * ROUNDS, INT32_MAX); /* flushes at least */
    assert_int_equal(most_working, 1);
}

static void a_flush_is_large_work(void **state)
{
    struct fixture *f = *state;
    store_close(f->store);
    f->options.no_compactions = true;
    open_store(f);
    write_value(f, f->keyspaces[1], "small", SMALL);
    assert_ok(keyspace_flush(f->keyspaces[1]));
    assert_int_equal(watch.begun, 0);
    write_value(f, f->keyspaces[0], "large", STORE_LARGE_VALUE);
    assert_ok(keyspace_flush(f->keyspaces[0]));
    assert_int_equal(watch.begun, 1);
}

static void *flush(void *argument)
{
    assert_ok(keyspace_flush(argument));
    return NULL;
}

/* RocksDB lets the thread that flushed what was written first commit both, and tells that thread
 * alone that they are complete: the other's job was then taken for one that still ran, for which
 * all others waited a minute each. */
static void a_flush_that_another_commits_has_ended(void **state)
{
    struct fixture *f = *state;
    pthread_t threads[2];
    watch.is_overtaken = true;
    for (int i = 0; i < 2; i++) {
        write_value(f, f->keyspaces[0], i == 0 ? "first" : "second", STORE_LARGE_VALUE);
        assert_int_equal(pthread_create(&threads[i], NULL, flush, f->keyspaces[0]), 0);
        assert_true(comes_to(&watch.begun, i + 1));
    }
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_true(watch.is_overtaken);
}

/* Small work is also that of many values of half a megabyte: each fills a block, so that by their
 * blocks alone tables of them would pass for such with a large one. */
static void small_work_is_not_told(void **state)
{
    enum { HALF = 1 << 19, HALVES = 20 };
    struct fixture *f = *state;
    for (int round = 0; round < 2; round++) {
        write_value(f, f->keyspaces[0], "small", SMALL);
        for (int i = 0; i < HALVES; i++)
            write_value(f, f->keyspaces[0], (const char[]){'h', (char)('a' + i), 0}, HALF);
        assert_ok(keyspace_flush(f->keyspaces[0]));
        assert_ok(keyspace_compact(f->keyspaces[0], bytes_of(""), bytes_of("")));
    }
    assert_int_equal(watch.begun, 0);
}

/* No write since the start has shown that it has large values; its tables do. */
static void tables_of_a_former_start_are_known(void **state)
{
    struct fixture *f = *state;
    write_value(f, f->keyspaces[0], "large", STORE_LARGE_VALUE);
    write_value(f, f->keyspaces[1], "small", SMALL);
    assert_ok(keyspace_flush(f->keyspaces[0]));
    assert_ok(keyspace_flush(f->keyspaces[1]));
    store_close(f->store);
    watch = (struct watch){0};
    open_store(f);
    assert_ok(keyspace_compact(f->keyspaces[1], bytes_of(""), bytes_of("")));
    assert_int_equal(watch.begun, 0);
    assert_ok(keyspace_compact(f->keyspaces[0], bytes_of(""), bytes_of("")));
    assert_in_range(watch.begun, 1, INT32_MAX);
}

static uint64_t tables_at_level0(struct fixture *f)
{
    struct store_statistics statistics;
    store_statistics(f->store, &statistics);
    return statistics.level_files[0];
}

/* Of a few tables with large values none waits for others at level 0. */
static void large_values_are_compacted_soon(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 2; i++) {
        write_value(f, f->keyspaces[0], "large", STORE_LARGE_VALUE);
        assert_ok(keyspace_flush(f->keyspaces[0]));
    }
    for (int looks = 0; looks < LOOKS && tables_at_level0(f) > 0; looks++)
        poll(NULL, 0, LOOK_MS);
    assert_int_equal(tables_at_level0(f), 0);
}

/* Beside so many small ones that its blocks, by their number and sizes, do not give it away. */
static void a_large_value_among_small_ones_is_known(void **state)
{
    enum { SMALL_ONES = 1000, OF = 16 << 10 };
    struct fixture *f = *state;
    write_value(f, f->keyspaces[0], "large", STORE_LARGE_VALUE);
    for (int i = 0; i < SMALL_ONES; i++) {
        char key[16];
        snprintf(key, sizeof key, "small%04d", i);
        write_value(f, f->keyspaces[0], key, OF);
    }
    assert_ok(keyspace_flush(f->keyspaces[0]));
    assert_ok(keyspace_compact(f->keyspaces[0], bytes_of(""), bytes_of("")));
    store_close(f->store);
    watch = (struct watch){0};
    open_store(f);
    assert_ok(keyspace_compact(f->keyspaces[0], bytes_of(""), bytes_of("")));
    assert_in_range(watch.begun, 1, INT32_MAX);
}

/* Of the keyspace, so many at level 0, as a server without a bound leaves them. */
static void fill_level0(struct fixture *f, int count)
{
    store_close(f->store);
    f->options.on_large_work = NULL;
    f->options.no_compactions = true;
    open_store(f);
    for (int i = 0; i < count; i++) {
        write_value(f, f->keyspaces[0], "large", STORE_LARGE_VALUE);
        assert_ok(keyspace_flush(f->keyspaces[0]));
    }
    assert_int_equal(tables_at_level0(f), count);
    store_close(f->store);
    f->options.on_large_work = note;
    f->options.no_compactions = false;
    f->options.holds_compactions = true;
    open_store(f);
}

/* No reader waits for a table of the start, which RocksDB never tells as listed. */
static void assert_readable(struct keyspace *keyspace)
{
    struct store_cursor_options options = {.read_tier = STORE_READ_ANY};
    struct store_cursor *cursor;
    assert_ok(store_cursor_create(keyspace, &options, &cursor));
    store_cursor_first(cursor);
    assert_true(store_cursor_valid(cursor));
    store_cursor_destroy(cursor);
}

/* All at once they would be one job, which holds one value of each. */
static void tables_at_level0_are_merged_one_by_one(void **state)
{
    enum { TABLES = 5 };
    struct fixture *f = *state;
    fill_level0(f, TABLES);
    assert_ok(store_begin_compactions(f->store));
    assert_int_equal(tables_at_level0(f), 0);
    assert_readable(f->keyspaces[0]);
    assert_in_range(watch.begun, TABLES, 2 * TABLES); /* RocksDB 9 may tell of each, too */
    assert_int_equal(watch.ended, watch.begun);
}

/* Their compaction would take more than there is, now or later. */
static void values_that_are_too_large_are_refused(void **state)
{
    enum { TABLES = 5 };
    struct fixture *f = *state;
    f->options.large_value_bytes = STORE_LARGE_VALUE - 1;
    fill_level0(f, TABLES);
    assert_status(store_begin_compactions(f->store), STATUS_FAILED_PRECONDITION);
    assert_int_equal(tables_at_level0(f), TABLES);
    assert_int_equal(watch.begun, 0);
    store_close(f->store);
    f->options.large_value_bytes = STORE_LARGE_VALUE;
    open_store(f);
    assert_ok(store_begin_compactions(f->store));
    assert_int_equal(tables_at_level0(f), 0);
}

/* Nor is a log replayed that has more in one commit than there is memory for. */
static void commits_that_are_too_large_are_refused(void **state)
{
    enum { SIZE = 64 << 10 };
    struct fixture *f = *state;
    write_value(f, f->keyspaces[0], "a", SIZE);
    store_close(f->store);
    f->options.large_commit_bytes = SIZE;
    assert_status(store_open(&f->options, &f->store), STATUS_FAILED_PRECONDITION);
    f->options.large_commit_bytes = 2 * SIZE;
    open_store(f);
}

static size_t whole_key(bytes key)
{
    return key.size;
}

/* Opened for reading alone, as by a check of what a start would say. */
static void assert_refused_for_large_values(struct fixture *f)
{
    struct store_options options = f->options;
    struct store *store;
    options.read_only = true;
    store_close(f->store);
    assert_ok(store_open(&options, &store));
    assert_ok(store_check_large_values(store, STORE_LARGE_VALUE));
    assert_status(store_check_large_values(store, STORE_LARGE_VALUE - 1),
                  STATUS_FAILED_PRECONDITION);
    store_close(store);
    open_store(f);
}

static void a_look_finds_what_is_too_large(void **state)
{
    struct fixture *f = *state;
    struct store_fold weighed = slow_fold;
    weighed.owner = whole_key;
    f->options.fold = &weighed;
    store_close(f->store);
    open_store(f);
    write_value(f, f->keyspaces[0], "large", STORE_LARGE_VALUE);
    assert_refused_for_large_values(f); /* in the log */
    assert_ok(keyspace_flush(f->keyspaces[0]));
    assert_refused_for_large_values(f); /* in a table */
    f->options.fold = &slow_fold;
    store_close(f->store);
    open_store(f);
}

/* A compaction would have both tables' values. */
static void a_flush_waits_until_level0_is_empty(void **state)
{
    enum { FEW_LOOKS = 30 };
    struct fixture *f = *state;
    pthread_t thread;
    fill_level0(f, 0);
    write_value(f, f->keyspaces[0], "first", STORE_LARGE_VALUE);
    assert_ok(keyspace_flush(f->keyspaces[0]));
    write_value(f, f->keyspaces[0], "second", STORE_LARGE_VALUE);
    assert_int_equal(pthread_create(&thread, NULL, flush, f->keyspaces[0]), 0);
    assert_true(comes_to(&watch.begun, 2));
    for (int looks = 0; looks < FEW_LOOKS; looks++) { /* compactions are held */
        assert_int_equal(tables_at_level0(f), 1);
        poll(NULL, 0, LOOK_MS);
    }
    assert_ok(store_begin_compactions(f->store));
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_in_range(watch.begun, 3, INT32_MAX);
}

/* RocksDB, which tells of no end then, has the next store's jobs done by the same threads. */
static void a_job_ends_with_its_store(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 2; i++) {
        write_value(f, f->keyspaces[0], "large", STORE_LARGE_VALUE);
        assert_ok(keyspace_flush(f->keyspaces[0]));
    }
    /* They are compacted: mostly they still are, but on a busy machine a look may come too late. */
    assert_true(comes_to(&most_working, 1));
    store_close(f->store);
    assert_int_equal(watch.waiting, 0);
    open_store(f);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(large_work_comes_one_at_a_time),
        TEST(a_flush_is_large_work),
        TEST(a_flush_that_another_commits_has_ended),
        TEST(small_work_is_not_told),
        TEST(tables_of_a_former_start_are_known),
        TEST(large_values_are_compacted_soon),
        TEST(a_large_value_among_small_ones_is_known),
        TEST(tables_at_level0_are_merged_one_by_one),
        TEST(values_that_are_too_large_are_refused),
        TEST(commits_that_are_too_large_are_refused),
        TEST(a_look_finds_what_is_too_large),
        TEST(a_flush_waits_until_level0_is_empty),
        TEST(a_job_ends_with_its_store),
    };
    return cmocka_run_group_tests_name("store_large_work", tests, NULL, NULL);
}
