/* What the store's tests share: a directory, options, and a fold that shows what it was given.
 *
 * The fold concatenates: base and operands, oldest first. With rules, which are a letter here, a
 * compaction removes values that contain the letter and makes "tidy" of "untidy". */
#ifndef TRESTLE_STORE_TESTING_TESTING_H
#define TRESTLE_STORE_TESTING_TESTING_H

#include "base/testing/testing.h"
#include "store/store.h"

#include <ftw.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

/* Tests of one program run one after the other. */
static atomic_uint parts_folded;

static void append_all(const struct store_history *history, struct buffer *out)
{
    buffer_append_bytes(out, history->base);
    for (size_t i = 0; i < history->operand_count; i++)
        buffer_append_bytes(out, history->operands[i]);
}

static bool is_poison(bytes b)
{
    return bytes_equal(b, bytes_of("poison"));
}

static bool fold_full(const void *rules, const struct store_history *history, struct buffer *out,
                      bytes *same)
{
    (void)rules;
    if (!history->has_base && history->operand_count == 1) {
        *same = history->operands[0];
        return !is_poison(*same);
    }
    append_all(history, out);
    return true;
}

static bool fold_part(const void *rules, const struct store_history *history, struct buffer *out)
{
    (void)rules;
    atomic_fetch_add(&parts_folded, 1);
    append_all(history, out);
    return true;
}

static enum store_verdict fold_filter(const void *rules, bytes key, bytes value, struct buffer *out)
{
    (void)key;
    if (rules == NULL)
        return STORE_KEEP;
    if (memchr(value.data, *(const char *)rules, value.size) != NULL)
        return STORE_REMOVE;
    if (!bytes_equal(value, bytes_of("untidy")))
        return STORE_KEEP;
    buffer_append_bytes(out, bytes_of("tidy"));
    return STORE_REPLACE;
}

static const struct store_fold test_fold = {
    .whole = fold_full,
    .part = fold_part,
    .tidy = fold_filter,
};

/* Goes nowhere: RocksDB tells of every fault that a test makes. */
static const struct log *test_log(void)
{
    static struct log log = {.fd = -1, .level = LOG_ERROR};
    if (log.clock == NULL) /* a store's thread may be reading it */
        log.clock = clock_system();
    return &log;
}

/* A new directory under the system's for temporary files; the caller frees the name. */
static inline char *make_directory(void)
{
    const char *parent = getenv("TMPDIR");
    char *name = NULL;
    assert_true(asprintf(&name, "%s/trestle-store-XXXXXX", parent != NULL ? parent : "/tmp") > 0);
    assert_non_null(mkdtemp(name));
    return name;
}

static inline int remove_entry(const char *path, const struct stat *st, int type, struct FTW *where)
{
    (void)st, (void)type, (void)where;
    return remove(path);
}

static inline void remove_directory(char *name)
{
    assert_int_equal(nftw(name, remove_entry, 16, FTW_DEPTH | FTW_PHYS), 0);
    free(name);
}

static struct store_options test_options(const char *directory)
{
    return (struct store_options){
        .directory = directory,
        .fold = &test_fold,
        .log = test_log(),
        .cache_bytes = 8 << 20,
        .write_buffer_bytes = 16 << 20,
        .open_files = 200,
        .background_threads = 2,
    };
}

static inline struct keyspace *make_keyspace(struct store *store, uint64_t id)
{
    assert_ok(store_keyspaces_create(store, id, 1));
    struct keyspace *keyspace = store_keyspace_find(store, id);
    assert_non_null(keyspace);
    return keyspace;
}

/* One change, written at once. */
enum change { PUT, MERGE, DELETE };

static inline status write_one(struct store *store, struct keyspace *keyspace, enum change change,
                               const char *key, const char *value, enum store_durability durability)
{
    struct store_batch *batch = store_batch_create();
    assert_non_null(batch);
    if (change == PUT)
        store_batch_put(batch, keyspace, bytes_of(key), bytes_of(value));
    else if (change == MERGE)
        store_batch_merge(batch, keyspace, bytes_of(key), bytes_of(value));
    else
        store_batch_delete(batch, keyspace, bytes_of(key));
    status s = store_write(store, batch, durability);
    store_batch_destroy(batch);
    return s;
}

static inline void put(struct store *store, struct keyspace *keyspace, const char *key,
                       const char *value)
{
    assert_ok(write_one(store, keyspace, PUT, key, value, STORE_SYNCED));
}

static inline void merge(struct store *store, struct keyspace *keyspace, const char *key,
                         const char *value)
{
    assert_ok(write_one(store, keyspace, MERGE, key, value, STORE_SYNCED));
}

/* `expected` NULL: absent. */
static inline void assert_value_at(struct keyspace *keyspace, const struct store_snapshot *snapshot,
                                   const char *key, const char *expected)
{
    struct store_value value;
    enum store_presence presence;
    assert_ok(store_get(keyspace, snapshot, bytes_of(key), STORE_READ_ANY, &value, &presence));
    assert_int_equal(presence, expected != NULL ? STORE_FOUND : STORE_ABSENT);
    if (expected != NULL) {
        assert_int_equal(value.bytes.size, strlen(expected));
        assert_memory_equal(value.bytes.data, expected, value.bytes.size);
    }
    store_value_release(&value);
}

static inline void assert_value(struct keyspace *keyspace, const char *key, const char *expected)
{
    assert_value_at(keyspace, NULL, key, expected);
}

#endif
