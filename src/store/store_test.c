#include "store/files.h"
#include "store/testing/fault_fs.h"
#include "store/testing/testing.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

struct fixture {
    char *directory;
    struct store_options options;
    struct store *store;
    struct keyspace *keyspace; /* id 7 */
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->directory = make_directory();
    f->options = test_options(f->directory);
    assert_ok(store_open(&f->options, &f->store));
    f->keyspace = make_keyspace(f->store, 7);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    if (f->store != NULL)
        store_close(f->store);
    remove_directory(f->directory);
    free(f);
    return 0;
}

static void reopen(struct fixture *f)
{
    store_close(f->store);
    assert_ok(store_open(&f->options, &f->store));
    f->keyspace = store_keyspace_find(f->store, 7);
    assert_non_null(f->keyspace);
}

static void write_file(const struct fixture *f, const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", f->directory, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* --- folds --- */

static void operands_fold_in_the_order_written(void **state)
{
    struct fixture *f = *state;
    merge(f->store, f->keyspace, "k", "a");
    assert_value(f->keyspace, "k", "a");
    merge(f->store, f->keyspace, "k", "b");
    assert_value(f->keyspace, "k", "ab");
    put(f->store, f->keyspace, "k", "base-");
    assert_value(f->keyspace, "k", "base-");
    merge(f->store, f->keyspace, "k", "c");
    merge(f->store, f->keyspace, "k", "d");
    assert_value(f->keyspace, "k", "base-cd");
    reopen(f);
    assert_value(f->keyspace, "k", "base-cd");
}

/* Operands of one key end up in several tables, with and without the base below them. */
static void folds_survive_flushes_and_compactions(void **state)
{
    struct fixture *f = *state;
    put(f->store, f->keyspace, "k", "0");
    put(f->store, f->keyspace, "z", "z");
    assert_ok(keyspace_compact(f->keyspace, bytes_of(""), bytes_of("")));
    unsigned before = atomic_load(&parts_folded);
    for (const char *operand = "12345678"; *operand != '\0'; operand += 2) {
        merge(f->store, f->keyspace, "k", (char[]){operand[0], '\0'});
        merge(f->store, f->keyspace, "k", (char[]){operand[1], '\0'});
        assert_ok(keyspace_flush(f->keyspace));
    }
    assert_true(atomic_load(&parts_folded) > before);
    assert_value(f->keyspace, "k", "012345678");
    assert_ok(keyspace_compact(f->keyspace, bytes_of(""), bytes_of("")));
    assert_value(f->keyspace, "k", "012345678");
    assert_value(f->keyspace, "z", "z");
}

static void delete_ends_a_history(void **state)
{
    struct fixture *f = *state;
    merge(f->store, f->keyspace, "k", "old");
    assert_ok(write_one(f->store, f->keyspace, DELETE, "k", "", STORE_SYNCED));
    assert_value(f->keyspace, "k", NULL);
    merge(f->store, f->keyspace, "k", "new");
    assert_value(f->keyspace, "k", "new");
}

static void a_fold_that_fails_fails_the_read_only(void **state)
{
    struct fixture *f = *state;
    merge(f->store, f->keyspace, "k", "poison");
    struct store_value value;
    enum store_presence presence;
    assert_status(store_get(f->keyspace, NULL, bytes_of("k"), STORE_READ_ANY, &value, &presence),
                  STATUS_DATA_LOSS);
    store_value_release(&value);
    merge(f->store, f->keyspace, "k", "-cured");
    assert_value(f->keyspace, "k", "poison-cured");
}

static void compactions_tidy_by_the_present_rules(void **state)
{
    struct fixture *f = *state;
    put(f->store, f->keyspace, "doomed", "older");
    put(f->store, f->keyspace, "kept", "value");
    put(f->store, f->keyspace, "replaced", "untidy");
    assert_ok(keyspace_compact(f->keyspace, bytes_of(""), bytes_of("")));
    put(f->store, f->keyspace, "doomed", "x");
    assert_ok(keyspace_compact(f->keyspace, bytes_of(""), bytes_of("")));
    assert_value(f->keyspace, "doomed", "x"); /* no rules yet */

    keyspace_set_rules(f->keyspace, "x");
    put(f->store, f->keyspace, "later", "y");
    assert_ok(keyspace_compact(f->keyspace, bytes_of(""), bytes_of("")));
    assert_value(f->keyspace, "doomed", NULL);
    assert_value(f->keyspace, "kept", "value");
    assert_value(f->keyspace, "replaced", "tidy");
}

/* --- batches --- */

static void a_batch_spans_keyspaces_and_is_reusable(void **state)
{
    struct fixture *f = *state;
    struct keyspace *other = make_keyspace(f->store, 8);
    struct store_batch *batch = store_batch_create();
    assert_non_null(batch);
    store_batch_put(batch, f->keyspace, bytes_of("a"), bytes_of("1"));
    store_batch_merge(batch, other, bytes_of("a"), bytes_of("2"));
    size_t size = store_batch_size(batch);
    assert_true(size > 4);
    assert_ok(store_write(f->store, batch, STORE_SYNCED));
    store_batch_clear(batch);
    assert_true(store_batch_size(batch) < size);
    store_batch_put(batch, other, bytes_of("b"), bytes_of("3"));
    assert_ok(store_write(f->store, batch, STORE_ASYNC));
    store_batch_destroy(batch);

    assert_value(f->keyspace, "a", "1");
    assert_value(f->keyspace, "b", NULL);
    assert_value(other, "a", "2");
    assert_value(other, "b", "3");
}

static void delete_range_takes_its_keys_only(void **state)
{
    struct fixture *f = *state;
    for (const char *key = "abcdef"; *key != '\0'; key++)
        put(f->store, f->keyspace, (char[]){*key, '\0'}, "v");
    struct store_batch *batch = store_batch_create();
    store_batch_delete_range(batch, f->keyspace, bytes_of("b"), bytes_of("d"));
    store_batch_delete_range(batch, f->keyspace, bytes_of("f"), bytes_of("e")); /* empty */
    assert_ok(store_write(f->store, batch, STORE_SYNCED));
    store_batch_destroy(batch);
    assert_value(f->keyspace, "a", "v");
    assert_value(f->keyspace, "b", NULL);
    assert_value(f->keyspace, "c", NULL);
    assert_value(f->keyspace, "d", "v");
    assert_value(f->keyspace, "f", "v");
}

static void keys_and_values_are_any_bytes(void **state)
{
    struct fixture *f = *state;
    enum { SIZE = 9 << 20 }; /* more than the cache has, and many log blocks */
    uint8_t *big = malloc(SIZE);
    assert_non_null(big);
    for (size_t i = 0; i < SIZE; i++)
        big[i] = (uint8_t)(i * 2654435761u >> 13);
    bytes keys[] = {bytes_of(""), bytes_make("\0", 1), bytes_make("\0\xff\0", 3), bytes_of("big")};
    struct store_batch *batch = store_batch_create();
    for (size_t i = 0; i < 4; i++)
        store_batch_put(batch, f->keyspace, keys[i], bytes_make(big, i == 3 ? SIZE : i + 1));
    assert_ok(store_write(f->store, batch, STORE_SYNCED));
    store_batch_destroy(batch);
    reopen(f);
    assert_ok(keyspace_flush(f->keyspace));
    for (size_t i = 0; i < 4; i++) {
        struct store_value value;
        enum store_presence presence;
        assert_ok(store_get(f->keyspace, NULL, keys[i], STORE_READ_ANY, &value, &presence));
        assert_int_equal(presence, STORE_FOUND);
        assert_true(bytes_equal(value.bytes, bytes_make(big, i == 3 ? SIZE : i + 1)));
        store_value_release(&value);
    }
    free(big);
}

/* --- reads --- */

static void views_stand_still(void **state)
{
    struct fixture *f = *state;
    put(f->store, f->keyspace, "k", "1");
    struct store_snapshot *snapshot = store_snapshot_create(f->store);
    assert_non_null(snapshot);
    merge(f->store, f->keyspace, "k", "2");
    put(f->store, f->keyspace, "l", "new");
    assert_ok(keyspace_compact(f->keyspace, bytes_of(""), bytes_of("")));
    assert_value_at(f->keyspace, snapshot, "k", "1");
    assert_value_at(f->keyspace, snapshot, "l", NULL);
    assert_value(f->keyspace, "k", "12");
    store_snapshot_release(snapshot);
}

static void get_many_answers_each_key(void **state)
{
    struct fixture *f = *state;
    enum { COUNT = 100 };
    char names[COUNT][8];
    bytes keys[COUNT];
    struct store_value values[COUNT];
    enum store_presence presences[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        snprintf(names[i], sizeof names[i], "k%02zu", i);
        keys[i] = bytes_of(names[i]);
        if (i % 3 != 0)
            merge(f->store, f->keyspace, names[i], names[i]);
        if (i == COUNT / 2)
            assert_ok(keyspace_flush(f->keyspace));
    }
    assert_ok(store_get_many(f->keyspace, NULL, keys, COUNT, STORE_READ_ANY, values, presences));
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(presences[i], i % 3 != 0 ? STORE_FOUND : STORE_ABSENT);
        assert_true(bytes_equal(values[i].bytes, i % 3 != 0 ? keys[i] : bytes_of("")));
        store_value_release(&values[i]);
    }
}

/* A tiny table cache: most tables are not open, and the store must say that it does not know. */
static void cached_only_reads_miss_instead_of_guessing(void **state)
{
    struct fixture *f = *state;
    enum { TABLES = 60 };
    char key[8];
    for (int i = 0; i < TABLES; i++) {
        snprintf(key, sizeof key, "k%02d", i);
        struct keyspace *keyspace = make_keyspace(f->store, 100 + (uint64_t)i);
        merge(f->store, keyspace, key, "value");
        assert_ok(keyspace_flush(keyspace));
    }
    f->options.open_files = 20;
    reopen(f);

    int missed = 0, hit = 0;
    for (int i = 0; i < TABLES; i++) {
        snprintf(key, sizeof key, "k%02d", i);
        struct keyspace *keyspace = store_keyspace_find(f->store, 100 + (uint64_t)i);
        struct store_value value;
        enum store_presence presence;
        assert_ok(store_get(keyspace, NULL, bytes_of(key), STORE_READ_CACHED, &value, &presence));
        assert_true(presence == STORE_NOT_CACHED || presence == STORE_FOUND);
        missed += presence == STORE_NOT_CACHED;
        store_value_release(&value);

        struct store_cursor *cursor;
        struct store_cursor_options options = {.read_tier = STORE_READ_CACHED};
        assert_ok(store_cursor_create(keyspace, &options, &cursor));
        store_cursor_first(cursor);
        assert_true(store_cursor_valid(cursor) || store_cursor_missed_cache(cursor));
        assert_ok(store_cursor_status(cursor));
        store_cursor_destroy(cursor);

        assert_value(keyspace, key, "value");

        /* What is in memory must not pass for the whole either. */
        merge(f->store, keyspace, key, "+");
        assert_ok(store_get(keyspace, NULL, bytes_of(key), STORE_READ_CACHED, &value, &presence));
        assert_true(presence == STORE_NOT_CACHED || presence == STORE_FOUND);
        if (presence == STORE_FOUND)
            assert_true(bytes_equal(value.bytes, bytes_of("value+")));
        hit += presence == STORE_FOUND;
        store_value_release(&value);
    }
    assert_true(missed > TABLES / 2);
    assert_true(hit > TABLES / 2);
}

enum { LARGE = 3 << 20, SMALL_BOUND = 1 << 20 };

static enum store_presence presence_of(struct fixture *f, const char *key)
{
    struct store_value value;
    enum store_presence presence;
    assert_ok(store_get(f->keyspace, NULL, bytes_of(key), STORE_READ_ANY, &value, &presence));
    store_value_release(&value);
    return presence;
}

/* Whether it comes to its first entry; if not, that is told as what is not in memory. */
static bool cursor_gets(struct fixture *f)
{
    struct store_cursor *cursor;
    struct store_cursor_options options = {.read_tier = STORE_READ_ANY};
    assert_ok(store_cursor_create(f->keyspace, &options, &cursor));
    store_cursor_first(cursor);
    bool is_valid = store_cursor_valid(cursor);
    assert_true(is_valid != store_cursor_missed_cache(cursor));
    assert_ok(store_cursor_status(cursor));
    store_cursor_destroy(cursor);
    return is_valid;
}

/* Also where the table is not open yet, as here. Nothing is damaged by that. */
static void larger_reads_than_the_bound_are_refused(void **state)
{
    struct fixture *f = *state;
    char *large = malloc(LARGE + 1);
    assert_non_null(large);
    uint32_t random = 1; /* what can be compressed is no large block */
    for (int i = 0; i < LARGE; i++)
        large[i] = (char)((random = random * 1664525 + 1013904223) >> 24 | 1);
    large[LARGE] = '\0';
    merge(f->store, f->keyspace, "large", large);
    free(large);
    merge(f->store, f->keyspace, "small", "value");
    assert_ok(keyspace_flush(f->keyspace));
    reopen(f);
    struct store_read_bound bound = {.most = SMALL_BOUND};
    bound = store_bound_reads(bound);
    assert_true(bound.most == SIZE_MAX && bound.refused == 0);
    assert_int_equal(presence_of(f, "large"), STORE_NOT_CACHED);
    assert_false(cursor_gets(f));
    assert_int_equal(presence_of(f, "small"), STORE_FOUND);
    bound = store_bound_reads((struct store_read_bound){.most = LARGE + SMALL_BOUND});
    assert_in_range(bound.refused, LARGE, LARGE + SMALL_BOUND);
    assert_int_equal(presence_of(f, "large"), STORE_FOUND);
    assert_true(cursor_gets(f));
    bound = store_bound_reads((struct store_read_bound){.most = SIZE_MAX});
    assert_int_equal(bound.refused, 0);
}

/* Whether kernel and file system give what is in memory to a read that must not wait. */
static bool has_page_cache(const struct fixture *f)
{
    char path[512], byte;
    struct iovec into = {.iov_base = &byte, .iov_len = 1};
    snprintf(path, sizeof path, "%s/FORMAT", f->directory);
    int file = open(path, O_RDONLY);
    assert_true(file >= 0);
    bool has = pread(file, &byte, 1, 0) == 1 && preadv2(file, &into, 1, 0, RWF_NOWAIT) == 1;
    close(file);
    return has;
}

enum { BLOCKS = 50 };

/* Opens the table by reading the first block, and counts which others are had without waiting. */
static int count_had(struct fixture *f)
{
    char key[8];
    int had = 0;
    f->keyspace = store_keyspace_find(f->store, 7);
    for (int i = 0; i < BLOCKS; i++) {
        struct store_value value;
        enum store_presence presence;
        snprintf(key, sizeof key, "k%02d", i);
        assert_ok(store_get(f->keyspace, NULL, bytes_of(key),
                            i == 0 ? STORE_READ_ANY : STORE_READ_CACHED, &value, &presence));
        assert_true(presence == STORE_FOUND || presence == STORE_NOT_CACHED);
        assert_int_equal(value.bytes.size, presence == STORE_FOUND ? 20000 : 0);
        had += presence == STORE_FOUND;
        store_value_release(&value);
    }
    store_close(f->store);
    f->store = NULL;
    return had;
}

/* What the kernel has in memory is no miss. A file system that is not the system's own may say
 * otherwise about its files, and is not gone round. */
static void cached_only_reads_take_from_the_page_cache(void **state)
{
    struct fixture *f = *state;
    char key[8], text[20001] = {0};
    memset(text, 'x', sizeof text - 1);
    for (int i = 0; i < BLOCKS; i++) {
        snprintf(key, sizeof key, "k%02d", i);
        put(f->store, f->keyspace, key, text);
    }
    assert_ok(keyspace_flush(f->keyspace));
    reopen(f);
    if (has_page_cache(f))
        assert_int_equal(count_had(f), BLOCKS);
    else
        store_close(f->store);

    struct fault_fs *fs = fault_fs_create();
    assert_non_null(fs);
    assert_ok(fault_fs_open(fs, &f->options, &f->store));
    assert_int_equal(count_had(f), 1);
    fault_fs_destroy(fs);
}

/* --- cursors --- */

static void fill_a_to_f(struct fixture *f)
{
    for (const char *key = "abcdef"; *key != '\0'; key++) {
        merge(f->store, f->keyspace, (char[]){*key, '\0'}, (char[]){*key, '\0'});
        if (*key == 'c')
            assert_ok(keyspace_flush(f->keyspace));
        merge(f->store, f->keyspace, (char[]){*key, '\0'}, "!");
    }
}

static struct store_cursor *open_cursor(struct fixture *f, const char *lower, const char *upper)
{
    struct store_cursor_options options = {.lower = bytes_of(lower), .upper = bytes_of(upper)};
    struct store_cursor *cursor;
    options.read_tier = STORE_READ_ANY;
    assert_ok(store_cursor_create(f->keyspace, &options, &cursor));
    return cursor;
}

/* `key` 0: the cursor is at no entry. */
static void assert_at(struct store_cursor *cursor, char key)
{
    assert_int_equal(store_cursor_valid(cursor), key != 0);
    assert_ok(store_cursor_status(cursor));
    if (key == 0)
        return;
    assert_true(bytes_equal(store_cursor_key(cursor), bytes_make(&key, 1)));
    char value[] = {key, '!'};
    assert_true(bytes_equal(store_cursor_value(cursor), bytes_make(value, 2)));
}

static void cursors_tell_what_was_folded(void **state)
{
    struct fixture *f = *state;
    merge(f->store, f->keyspace, "a", "12");
    merge(f->store, f->keyspace, "a", "345");
    put(f->store, f->keyspace, "b", "v");
    put(f->store, f->keyspace, "c", "v");
    merge(f->store, f->keyspace, "c", "1");
    struct store_cursor *cursor = open_cursor(f, "", "");
    const struct store_folded expected[] = {
        {.count = 2, .bytes = 5}, {.count = 0}, {.count = 1, .bytes = 1}};
    store_cursor_first(cursor);
    for (int i = 0; i < 3; i++, store_cursor_next(cursor)) {
        assert_true(store_cursor_valid(cursor));
        assert_int_equal(store_cursor_folded(cursor).count, expected[i].count);
        assert_int_equal(store_cursor_folded(cursor).bytes, expected[i].bytes);
    }
    store_cursor_destroy(cursor);
}

static void cursors_walk_both_ways(void **state)
{
    struct fixture *f = *state;
    fill_a_to_f(f);
    struct store_cursor *cursor = open_cursor(f, "", "");
    store_cursor_first(cursor);
    for (const char *key = "abcdef"; *key != '\0'; key++) {
        assert_at(cursor, *key);
        store_cursor_next(cursor);
    }
    assert_at(cursor, 0);
    store_cursor_last(cursor);
    for (const char *key = "fedcba"; *key != '\0'; key++) {
        assert_at(cursor, *key);
        store_cursor_previous(cursor);
    }
    assert_at(cursor, 0);
    store_cursor_seek(cursor, bytes_of("c"));
    store_cursor_next(cursor);
    store_cursor_previous(cursor);
    store_cursor_previous(cursor);
    assert_at(cursor, 'b');
    store_cursor_destroy(cursor);
}

static void cursors_keep_to_their_bounds(void **state)
{
    struct fixture *f = *state;
    fill_a_to_f(f);
    struct store_cursor *cursor = open_cursor(f, "b", "e");
    store_cursor_first(cursor);
    assert_at(cursor, 'b');
    store_cursor_previous(cursor);
    assert_at(cursor, 0);
    store_cursor_last(cursor);
    assert_at(cursor, 'd');
    store_cursor_next(cursor);
    assert_at(cursor, 0);
    store_cursor_seek(cursor, bytes_of("a"));
    assert_at(cursor, 'b');
    store_cursor_seek(cursor, bytes_of("e"));
    assert_at(cursor, 0);
    store_cursor_seek_before(cursor, bytes_of("zz"));
    assert_at(cursor, 'd');
    store_cursor_destroy(cursor);

    cursor = open_cursor(f, "cc", "d");
    store_cursor_first(cursor);
    assert_at(cursor, 0);
    store_cursor_last(cursor);
    assert_at(cursor, 0);
    store_cursor_destroy(cursor);
}

static void seek_before_is_strict(void **state)
{
    struct fixture *f = *state;
    fill_a_to_f(f);
    struct store_cursor *cursor = open_cursor(f, "", "");
    store_cursor_seek_before(cursor, bytes_of("d"));
    assert_at(cursor, 'c');
    store_cursor_seek_before(cursor, bytes_of("dd"));
    assert_at(cursor, 'd');
    store_cursor_seek_before(cursor, bytes_make("d\0", 2));
    assert_at(cursor, 'd');
    store_cursor_seek_before(cursor, bytes_of("a"));
    assert_at(cursor, 0);
    store_cursor_destroy(cursor);
}

static void cursors_see_their_instant(void **state)
{
    struct fixture *f = *state;
    fill_a_to_f(f);
    struct store_cursor *cursor = open_cursor(f, "", "");
    put(f->store, f->keyspace, "aa", "late");
    store_cursor_seek(cursor, bytes_of("aa"));
    assert_at(cursor, 'b');
    store_cursor_destroy(cursor);

    struct store_snapshot *snapshot = store_snapshot_create(f->store);
    put(f->store, f->keyspace, "b", "late");
    struct store_cursor_options options = {
        .snapshot = snapshot, .read_tier = STORE_READ_ANY, .bypasses_cache = true};
    assert_ok(store_cursor_create(f->keyspace, &options, &cursor));
    store_cursor_seek(cursor, bytes_of("b"));
    assert_at(cursor, 'b');
    store_cursor_destroy(cursor);
    store_snapshot_release(snapshot);
}

/* --- keyspaces --- */

static size_t count_keyspaces(struct store *store)
{
    size_t count = 0;
    while (store_keyspace_at(store, count) != NULL)
        count++;
    return count;
}

static size_t count_descriptors(void)
{
    DIR *directory = opendir("/proc/self/fd");
    assert_non_null(directory);
    size_t count = 0;
    while (readdir(directory) != NULL)
        count++;
    closedir(directory);
    return count;
}

static void a_thousand_keyspaces_come_and_go(void **state)
{
    struct fixture *f = *state;
    size_t descriptors = count_descriptors();
    assert_ok(store_keyspaces_create(f->store, 1000, 1000));
    assert_true(count_descriptors() < descriptors + 5);
    assert_int_equal(count_keyspaces(f->store), 1001);
    put(f->store, store_keyspace_find(f->store, 1000), "k", "first");
    put(f->store, store_keyspace_find(f->store, 1999), "k", "last");
    reopen(f);
    assert_int_equal(count_keyspaces(f->store), 1001);
    assert_value(store_keyspace_find(f->store, 1000), "k", "first");
    assert_value(store_keyspace_find(f->store, 1999), "k", "last");
    assert_int_equal(keyspace_id(store_keyspace_find(f->store, 1500)), 1500);
    for (uint64_t id = 1000; id < 2000; id++)
        assert_ok(store_keyspace_drop(f->store, store_keyspace_find(f->store, id)));
    assert_int_equal(count_keyspaces(f->store), 1);
    assert_null(store_keyspace_find(f->store, 1500));
    reopen(f);
    assert_int_equal(count_keyspaces(f->store), 1);
}

static void keyspaces_are_made_all_or_none(void **state)
{
    struct fixture *f = *state;
    make_keyspace(f->store, 12);
    status s = store_keyspaces_create(f->store, 10, 5); /* 12 exists */
    assert_false(status_is_ok(s));
    status_free(s);
    assert_int_equal(count_keyspaces(f->store), 2);
    reopen(f);
    assert_int_equal(count_keyspaces(f->store), 2);
    assert_ok(store_keyspaces_create(f->store, 10, 2));
}

/* Dropped while a flush and compactions of it may be under way; its log records are skipped. */
static void a_busy_keyspace_can_be_dropped(void **state)
{
    struct fixture *f = *state;
    struct keyspace *busy = make_keyspace(f->store, 8);
    char *rules = malloc(1); /* must not be looked at after the drop */
    assert_non_null(rules);
    *rules = 'x';
    keyspace_set_rules(busy, rules);
    char value[4096];
    memset(value, 'v', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    for (int i = 0; i < 4000; i++) { /* as much as all write buffers together */
        char key[16];
        snprintf(key, sizeof key, "k%05d", i);
        assert_ok(write_one(f->store, busy, MERGE, key, value, STORE_ASYNC));
    }
    put(f->store, f->keyspace, "k", "kept");
    assert_ok(store_keyspace_drop(f->store, busy));
    free(rules);
    assert_null(store_keyspace_find(f->store, 8));
    reopen(f);
    assert_value(f->keyspace, "k", "kept");
}

/* --- the directory --- */

static void a_second_open_is_refused(void **state)
{
    struct fixture *f = *state;
    struct store *second;
    assert_status(store_open(&f->options, &second), STATUS_FAILED_PRECONDITION);
    assert_null(second);
    put(f->store, f->keyspace, "k", "still mine");
    assert_value(f->keyspace, "k", "still mine");
}

/* A process that holds RocksDB's lock until it is killed. */
static pid_t hold_lock(const struct fixture *f)
{
    char path[512];
    int ready[2];
    snprintf(path, sizeof path, "%s/LOCK", f->directory);
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        int fd = open(path, O_RDWR);
        if (fd < 0 || fcntl(fd, F_SETLK, &whole) != 0 || write(ready[1], "", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    char byte;
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return child;
}

static void a_directory_of_another_process_is_refused(void **state)
{
    struct fixture *f = *state;
    store_close(f->store);
    f->store = NULL;
    pid_t child = hold_lock(f);
    for (int read_only = 0; read_only < 2; read_only++) {
        f->options.read_only = read_only != 0;
        status s = store_open(&f->options, &f->store);
        assert_non_null(strstr(status_message(s), "in use by another process"));
        assert_status(s, STATUS_FAILED_PRECONDITION);
    }
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    f->options.read_only = false;
    assert_ok(store_open(&f->options, &f->store));
}

static void format_file_is_held_against_ours(void **state)
{
    static const struct {
        const char *text;
        enum status_code code;
    } cases[] = {
        {"trestle 10\n", STATUS_FAILED_PRECONDITION},
        {"trestle 99999999999999999999999\n", STATUS_DATA_LOSS},
        {"trestle 0\n", STATUS_DATA_LOSS},
        {"trestle\n", STATUS_DATA_LOSS},
        {"trestle 8", STATUS_DATA_LOSS},
        {"", STATUS_DATA_LOSS},
        {"trestle 2\n", STATUS_OK},
        {"trestle 3\n", STATUS_OK},
        {"trestle 4\n", STATUS_OK},
        {"trestle 5\n", STATUS_OK},
        {"trestle 6\n", STATUS_OK},
        {"trestle 7\n", STATUS_OK},
    };
    struct fixture *f = *state;
    store_close(f->store);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_file(f, "FORMAT", cases[i].text);
        assert_status(store_open(&f->options, &f->store), cases[i].code);
        if (cases[i].code == STATUS_OK)
            store_close(f->store);
    }
    assert_ok(store_open(&f->options, &f->store));
}

static const void *_Atomic last_rules; /* of the last fold */

static bool fold_noting_rules(const void *rules, const struct store_history *history,
                              struct buffer *out, bytes *same)
{
    atomic_store(&last_rules, rules);
    return fold_full(rules, history, out, same);
}

/* By which rules the keyspace's value is put together now. */
static const char *rules_of_fold(const struct fixture *f)
{
    assert_value(f->keyspace, "k", "12");
    return atomic_load(&last_rules);
}

/* Of the start that brings them back, too; but not where former programs may go on. */
static void keyspaces_without_rules_fold_by_those_before(void **state)
{
    static const struct store_fold noting = {.whole = fold_noting_rules,
                                             .part = fold_part,
                                             .tidy = fold_filter,
                                             .before = "before",
                                             .before_format = 4};
    struct fixture *f = *state;
    merge(f->store, f->keyspace, "k", "1");
    merge(f->store, f->keyspace, "k", "2");
    f->options.fold = &noting;
    reopen(f);
    assert_string_equal(rules_of_fold(f), "before");
    keyspace_set_rules(f->keyspace, "rules");
    assert_string_equal(rules_of_fold(f), "rules");
    write_file(f, "FORMAT", "trestle 3\n");
    reopen(f);
    assert_null(rules_of_fold(f));
    reopen(f);
    assert_string_equal(rules_of_fold(f), "before");
}

static void remove_copies_of_manifests(const struct fixture *f)
{
    char path[1024];
    DIR *listing = opendir(f->directory);
    assert_non_null(listing);
    for (struct dirent *entry; (entry = readdir(listing)) != NULL;)
        if (strstr(entry->d_name, ".copy") != NULL) {
            snprintf(path, sizeof path, "%s/%s", f->directory, entry->d_name);
            assert_int_equal(unlink(path), 0);
        }
    closedir(listing);
}

static void files_of_others_are_left_alone(void **state)
{
    struct fixture *f = *state;
    char path[512];
    put(f->store, f->keyspace, "k", "v");
    assert_ok(keyspace_flush(f->keyspace));
    store_close(f->store);
    snprintf(path, sizeof path, "%s/FORMAT", f->directory);
    assert_int_equal(unlink(path), 0);
    assert_status(store_open(&f->options, &f->store), STATUS_DATA_LOSS); /* SYNCED knows it */
    snprintf(path, sizeof path, "%s/SYNCED", f->directory);
    assert_int_equal(unlink(path), 0);
    assert_status(store_open(&f->options, &f->store), STATUS_DATA_LOSS); /* we alone make copies */
    remove_copies_of_manifests(f);
    assert_status(store_open(&f->options, &f->store), STATUS_FAILED_PRECONDITION);

    write_file(f, "FORMAT", "trestle 1\n");
    snprintf(path, sizeof path, "%s/CURRENT", f->directory);
    assert_int_equal(unlink(path), 0);
    status s = store_open(&f->options, &f->store);
    assert_false(status_is_ok(s)); /* a store without its CURRENT is not replaced by a new one */
    status_free(s);
}

/* The parent directory is shared: any process may change its time. */
static int is_not_the_parent(const struct dirent *entry)
{
    return strcmp(entry->d_name, "..") != 0;
}

/* Names, sizes and times of the directory and all its files, as one text. */
static char *describe_directory(const struct fixture *f)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    struct dirent **entries;
    int count = scandir(f->directory, &entries, is_not_the_parent, alphasort);
    assert_true(count > 0);
    for (int i = 0; i < count; i++) {
        char path[1024];
        struct stat st;
        snprintf(path, sizeof path, "%s/%s", f->directory, entries[i]->d_name);
        assert_int_equal(stat(path, &st), 0);
        fprintf(out, "%s %jd %jd.%09ld\n", entries[i]->d_name, (intmax_t)st.st_size,
                (intmax_t)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
        free(entries[i]);
    }
    free(entries);
    assert_int_equal(fclose(out), 0);
    return text;
}

static void read_only_changes_nothing(void **state)
{
    struct fixture *f = *state;
    put(f->store, f->keyspace, "table", "1");
    assert_ok(keyspace_flush(f->keyspace));
    merge(f->store, f->keyspace, "log", "2");
    store_close(f->store);
    f->store = NULL;
    char *before = describe_directory(f);

    f->options.read_only = true;
    assert_ok(store_open(&f->options, &f->store));
    f->keyspace = store_keyspace_find(f->store, 7);
    assert_value(f->keyspace, "table", "1");
    assert_value(f->keyspace, "log", "2");
    assert_status(write_one(f->store, f->keyspace, PUT, "k", "v", STORE_SYNCED),
                  STATUS_FAILED_PRECONDITION);
    assert_status(store_keyspaces_create(f->store, 50, 1), STATUS_FAILED_PRECONDITION);
    assert_status(store_keyspace_drop(f->store, f->keyspace), STATUS_FAILED_PRECONDITION);
    store_close(f->store);
    f->store = NULL;
    char *after = describe_directory(f);
    assert_string_equal(before, after);
    free(before);
    free(after);

    f->options.read_only = false;
    assert_ok(store_open(&f->options, &f->store));
}

static void read_only_makes_no_store(void **state)
{
    struct fixture *f = *state;
    struct store *store;
    char path[512];
    snprintf(path, sizeof path, "%s/absent", f->directory);
    struct store_options options = test_options(path);
    options.read_only = true;
    assert_status(store_open(&options, &store), STATUS_NOT_FOUND);
    assert_int_equal(access(path, F_OK), -1);
}

/* --- housekeeping --- */

static void sizes_follow_the_data(void **state)
{
    struct fixture *f = *state;
    char value[1001];
    memset(value, 'v', sizeof value);
    value[1000] = '\0';
    for (int i = 0; i < 2000; i++) {
        char key[16];
        snprintf(key, sizeof key, "%c%04d", i < 1500 ? 'a' : 'b', i);
        for (int j = 0; j < 1000; j++)
            value[j] = (char)('a' + (i * 31 + j * j) % 23); /* does not compress to nothing */
        assert_ok(write_one(f->store, f->keyspace, PUT, key, value, STORE_ASYNC));
    }
    for (int flushed = 0; flushed < 2; flushed++) {
        uint64_t a = keyspace_size(f->keyspace, bytes_of("a"), bytes_of("b"));
        uint64_t b = keyspace_size(f->keyspace, bytes_of("b"), bytes_of(""));
        uint64_t all = keyspace_size(f->keyspace, bytes_make(NULL, 0), bytes_make(NULL, 0));
        assert_in_range(a + b, all * 9 / 10, all * 11 / 10);
        assert_true(flushed ? a > b : all > 2000 * 1000);
        assert_ok(keyspace_flush(f->keyspace));
    }
    struct store_statistics statistics;
    store_statistics(f->store, &statistics);
    assert_true(statistics.table_bytes > 0);
    assert_true(statistics.log_bytes < 10 << 20);
    assert_true(statistics.bytes_written > 2000 * 1000);
    assert_false(statistics.is_stalled);
}

static void syncs_are_counted(void **state)
{
    struct fixture *f = *state;
    struct store_statistics before, after;
    store_statistics(f->store, &before);
    put(f->store, f->keyspace, "k", "v");
    assert_ok(write_one(f->store, f->keyspace, PUT, "k", "w", STORE_ASYNC));
    store_statistics(f->store, &after);
    assert_int_equal(after.syncs, before.syncs + 1);
    assert_ok(store_health(f->store));
}

/* --- files --- */

static status no_name(void *context, const char *name)
{
    (void)context, (void)name;
    return status_ok();
}

/* `trestle backup list` once said that there were no backups in a directory of another user's. */
static void what_may_not_be_read_is_not_missing(void **state)
{
    struct fixture *f = *state;
    char path[512];
    snprintf(path, sizeof path, "%s/absent", f->directory);
    assert_status(files_list(files_of_system(), path, no_name, NULL), STATUS_NOT_FOUND);
    snprintf(path, sizeof path, "%s/CURRENT/in-a-file", f->directory);
    status s = files_list(files_of_system(), path, no_name, NULL);
    assert_non_null(strstr(status_message(s), "Not a directory"));
    status_free(s);
    assert_int_equal(chmod(f->directory, 0), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) { /* root may read anything */
        if (geteuid() == 0 && seteuid(65534) != 0)
            _exit(2);
        s = files_list(files_of_system(), f->directory, no_name, NULL);
        _exit(s.code == STATUS_PERMISSION_DENIED ? 0 : 1);
    }
    int outcome;
    assert_int_equal(waitpid(child, &outcome, 0), child);
    assert_int_equal(chmod(f->directory, S_IRWXU), 0);
    assert_int_equal(outcome, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(operands_fold_in_the_order_written),
        TEST(folds_survive_flushes_and_compactions),
        TEST(delete_ends_a_history),
        TEST(a_fold_that_fails_fails_the_read_only),
        TEST(compactions_tidy_by_the_present_rules),
        TEST(a_batch_spans_keyspaces_and_is_reusable),
        TEST(delete_range_takes_its_keys_only),
        TEST(keys_and_values_are_any_bytes),
        TEST(views_stand_still),
        TEST(get_many_answers_each_key),
        TEST(cached_only_reads_miss_instead_of_guessing),
        TEST(larger_reads_than_the_bound_are_refused),
        TEST(cached_only_reads_take_from_the_page_cache),
        TEST(cursors_tell_what_was_folded),
        TEST(cursors_walk_both_ways),
        TEST(cursors_keep_to_their_bounds),
        TEST(seek_before_is_strict),
        TEST(cursors_see_their_instant),
        TEST(a_thousand_keyspaces_come_and_go),
        TEST(keyspaces_are_made_all_or_none),
        TEST(a_busy_keyspace_can_be_dropped),
        TEST(a_second_open_is_refused),
        TEST(a_directory_of_another_process_is_refused),
        TEST(format_file_is_held_against_ours),
        TEST(keyspaces_without_rules_fold_by_those_before),
        TEST(files_of_others_are_left_alone),
        TEST(read_only_changes_nothing),
        TEST(read_only_makes_no_store),
        TEST(sizes_follow_the_data),
        TEST(syncs_are_counted),
        TEST(what_may_not_be_read_is_not_missing),
    };
    return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
