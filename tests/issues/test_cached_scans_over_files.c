/* Scans that read from the cache first lost cells for a moment, with status OK.
 *
 * Found by tests/crash: a writer that was alone on its row read, right after its acknowledged
 * write, a row without some of its spilled cells; half a second later the same read was right.
 * RocksDB's merging iterator forgets that a level could not go on for want of a cached block when
 * it steps over the end of a file (src/store/read.cc, "cursors"). So a cursor with
 * STORE_CACHED_ONLY that crossed from one file to the next could pass over the rest of a level.
 *
 * Here: keys over several files on two levels, a cold cache, some blocks warmed, and a scan as the
 * tablets do it, cached first and on a miss from the disk. It must see every key, always. */
#include "store/testing.h"

enum { KEYS = 30000, FILES = 12, VALUE_SIZE = 200, ROUNDS = 40 };

struct fixture {
    char *directory;
    struct store_options options;
    struct store *store;
    struct keyspace *keyspace;
};

static void open_cold(struct fixture *f)
{
    assert_ok(store_open(&f->options, &f->store));
    f->keyspace = store_keyspace_find(f->store, 7);
}

static void make_key(char key[16], unsigned number)
{
    snprintf(key, 16, "key%06u", number);
}

static void put_keys(struct fixture *f, unsigned first, unsigned end, unsigned step)
{
    struct store_batch *batch = store_batch_create();
    char key[16];
    uint8_t value[VALUE_SIZE];
    for (unsigned i = 0; i < sizeof value; i++)
        value[i] = (uint8_t)(i * 31 + first); /* not compressed to nothing */
    for (unsigned i = first; i < end; i += step) {
        make_key(key, i);
        store_batch_put(batch, f->keyspace, bytes_of(key), bytes_make(value, sizeof value));
    }
    assert_ok(store_write(f->store, batch, STORE_ASYNC));
    store_batch_destroy(batch);
    assert_ok(keyspace_flush(f->keyspace));
}

/* The bottom level: even keys, in files side by side. Above it: odd keys, in files that overlap. */
static void write_files(struct fixture *f)
{
    const unsigned part = KEYS / FILES;
    for (unsigned i = 0; i < FILES; i++) {
        char from[16], to[16];
        make_key(from, i * part);
        make_key(to, (i + 1) * part - 1);
        put_keys(f, i * part, (i + 1) * part, 2);
        assert_ok(keyspace_compact(f->keyspace, bytes_of(from), bytes_of(to)));
    }
    put_keys(f, 1, KEYS, 4);
    put_keys(f, 3, KEYS, 4);
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->directory = make_directory();
    f->options = test_options(f->directory);
    assert_ok(store_open(&f->options, &f->store));
    f->keyspace = make_keyspace(f->store, 7);
    write_files(f);
    store_close(f->store);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    remove_directory(f->directory);
    free(f);
    return 0;
}

/* Goes on from the key after `last`, or from the start; returns how many keys it saw. */
static unsigned scan_some(struct fixture *f, enum store_reach reach, char last[16], bool *missed)
{
    struct store_cursor_options options = {.reach = reach};
    struct store_cursor *cursor;
    unsigned seen = 0;
    assert_ok(store_cursor_create(f->keyspace, &options, &cursor));
    store_cursor_seek(cursor, bytes_make(last, strlen(last) + (last[0] != 0)));
    for (; store_cursor_valid(cursor); store_cursor_next(cursor)) {
        bytes key = store_cursor_key(cursor);
        assert_true(key.size < 16);
        memcpy(last, key.data, key.size);
        last[key.size] = 0;
        seen++;
        if (reach == STORE_ANYWHERE && seen == 50) /* enough from the disk: back to the cache */
            break;
    }
    *missed = store_cursor_missed_cache(cursor) || store_cursor_valid(cursor);
    assert_ok(store_cursor_status(cursor));
    store_cursor_destroy(cursor);
    return seen;
}

static unsigned scan_all(struct fixture *f)
{
    char last[16] = "";
    unsigned seen = 0;
    bool missed = true;
    while (missed) {
        seen += scan_some(f, STORE_CACHED_ONLY, last, &missed);
        if (missed)
            seen += scan_some(f, STORE_ANYWHERE, last, &missed);
    }
    return seen;
}

static void warm_some_blocks(struct fixture *f, unsigned round)
{
    for (unsigned i = round % 7; i < KEYS; i += 101 + 13 * round) {
        char key[16];
        struct store_value value;
        enum store_presence presence;
        make_key(key, i);
        assert_ok(store_get(f->keyspace, NULL, bytes_of(key), STORE_ANYWHERE, &value, &presence));
        assert_int_not_equal(presence, STORE_NOT_CACHED);
        store_value_release(&value);
    }
}

static void test_cached_scans_see_every_key(void **state)
{
    struct fixture *f = *state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        open_cold(f);
        warm_some_blocks(f, round);
        assert_int_equal(scan_all(f), KEYS);
        store_close(f->store);
    }
}

static void delete_range(struct fixture *f, unsigned from, unsigned to)
{
    char first[16], end[16];
    make_key(first, from);
    make_key(end, to);
    struct store_batch *batch = store_batch_create();
    store_batch_delete_range(batch, f->keyspace, bytes_of(first), bytes_of(end));
    assert_ok(store_write(f->store, batch, STORE_SYNCED));
    store_batch_destroy(batch);
}

/* The same where keys are passed over because their range was deleted: in a table, and in memory.
 */
static void test_cached_scans_over_deleted_ranges(void **state)
{
    struct fixture *f = *state;
    open_cold(f);
    delete_range(f, 1000, 1500);
    delete_range(f, 9000, 15000);
    assert_ok(keyspace_flush(f->keyspace));
    delete_range(f, 20000, 20250);
    store_close(f->store);
    for (unsigned round = 0; round < ROUNDS; round++) {
        open_cold(f);
        warm_some_blocks(f, round);
        assert_int_equal(scan_all(f), KEYS - 500 - 6000 - 250);
        store_close(f->store);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_cached_scans_see_every_key, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_cached_scans_over_deleted_ranges, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
