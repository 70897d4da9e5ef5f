/* Scans that read from the cache first lost cells for a moment, with status OK.
 *
 * Found by tests/crash: a writer that was alone on its row read, right after its acknowledged
 * write, a row without some of its overflow cells; half a second later the same read was right.
 * RocksDB's merging iterator forgets that a level could not go on for want of a cached block when
 * it steps over the end of a file (src/store/read.cc, "cursors"). So a cursor with
 * STORE_READ_CACHED that crossed from one file to the next could pass over the rest of a level.
 *
 * Here: keys over several files on two levels, a cold cache, some blocks warmed, and a scan as the
 * tablets do it, cached first and on a miss from the disk. It must see every key, always.
 *
 * For the same reason a scan could pass over a block whose checksum is wrong, and the rest of its
 * level, and say OK. It must fail with DATA_LOSS. */
#include "store/testing/fault_fs.h"
#include "store/testing/testing.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

enum { KEYS = 30000, FILES = 12, VALUE_SIZE = 200, ROUNDS = 40 };

struct fixture {
    char *directory;
    struct store_options options;
    struct fault_fs *files; /* it keeps the kernel's page cache out of this */
    struct store *store;
    struct keyspace *keyspace;
};

static void open_cold(struct fixture *f)
{
    assert_ok(fault_fs_open(f->files, &f->options, &f->store));
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
    f->files = fault_fs_create();
    assert_non_null(f->files);
    assert_ok(fault_fs_open(f->files, &f->options, &f->store));
    f->keyspace = make_keyspace(f->store, 7);
    write_files(f);
    store_close(f->store);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    fault_fs_destroy(f->files);
    remove_directory(f->directory);
    free(f);
    return 0;
}

/* Goes on from the key after `last`, or from the start; returns how many keys it saw. */
static unsigned scan_some(struct fixture *f, enum store_read_tier read_tier, char last[16],
                          bool *missed)
{
    struct store_cursor_options options = {.read_tier = read_tier};
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
        if (read_tier == STORE_READ_ANY && seen == 50) /* enough from the disk: back to the cache */
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
        seen += scan_some(f, STORE_READ_CACHED, last, &missed);
        if (missed)
            seen += scan_some(f, STORE_READ_ANY, last, &missed);
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
        assert_ok(store_get(f->keyspace, NULL, bytes_of(key), STORE_READ_ANY, &value, &presence));
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

/* Flips a bit of the file. */
static void damage(int file, off_t offset)
{
    uint8_t byte;
    assert_int_equal(pread(file, &byte, 1, offset), 1);
    byte ^= 1;
    assert_int_equal(pwrite(file, &byte, 1, offset), 1);
}

static status scan_from_disk(struct fixture *f, bool backwards, unsigned *seen)
{
    struct store_cursor_options options = {.read_tier = STORE_READ_ANY};
    struct store_cursor *cursor;
    *seen = 0;
    assert_ok(store_cursor_create(f->keyspace, &options, &cursor));
    backwards ? store_cursor_last(cursor) : store_cursor_first(cursor);
    for (; store_cursor_valid(cursor); ++*seen)
        backwards ? store_cursor_previous(cursor) : store_cursor_next(cursor);
    status s = store_cursor_status(cursor);
    store_cursor_destroy(cursor);
    return s;
}

static void scan_damaged(struct fixture *f, int file, off_t offset)
{
    damage(file, offset);
    for (int backwards = 0; backwards < 2; backwards++) {
        unsigned seen;
        open_cold(f);
        status s = scan_from_disk(f, backwards, &seen);
        if (s.code != STATUS_DATA_LOSS)
            print_message("offset %lld, backwards %d: %u keys\n", (long long)offset, backwards,
                          seen);
        assert_status(s, STATUS_DATA_LOSS);
        assert_true(seen < KEYS);
        store_close(f->store);
    }
    damage(file, offset);
}

/* The first data block of each table, and one behind it. */
static void test_scans_over_damaged_blocks(void **state)
{
    struct fixture *f = *state;
    struct dirent *entry;
    unsigned tables = 0;
    DIR *directory = opendir(f->directory);
    assert_non_null(directory);
    while ((entry = readdir(directory)) != NULL) {
        const char *suffix = strrchr(entry->d_name, '.');
        if (suffix == NULL || strcmp(suffix, ".sst") != 0)
            continue;
        int file = openat(dirfd(directory), entry->d_name, O_RDWR);
        assert_true(file >= 0);
        scan_damaged(f, file, 100);
        scan_damaged(f, file, lseek(file, 0, SEEK_END) / 3);
        close(file);
        tables++;
    }
    closedir(directory);
    assert_true(tables >= FILES);
    unsigned seen;
    open_cold(f);
    assert_ok(scan_from_disk(f, false, &seen));
    assert_int_equal(seen, KEYS);
    store_close(f->store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_cached_scans_see_every_key, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_cached_scans_over_deleted_ranges, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_scans_over_damaged_blocks, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
