/* What tests of damaged tables share: a store with keys in tables, what is damaged in them, and
 * what is out of service then. */
#ifndef TRESTLE_STORE_TESTING_DAMAGE_TESTING_H
#define TRESTLE_STORE_TESTING_DAMAGE_TESTING_H

#include "store/testing/fault_fs.h"
#include "store/testing/testing.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <time.h>

enum { KEYS = 4000, MOST_RANGES = 16, VALUE_SIZE = 400 };

struct range {
    uint64_t file;
    uint64_t offset;
    bool is_whole;
    char from[32];
    size_t from_size;
    char to[32]; /* exclusive */
    size_t to_size;
};

struct fixture {
    char *directory;
    struct store_options options;
    struct store *store;
    struct keyspace *keyspace; /* id 7 */
    pthread_mutex_t mutex;     /* of what was told */
    pthread_cond_t changed;
    struct range ranges[MOST_RANGES];
    size_t range_count;
    unsigned fences;
    bool forgets;            /* cannot remember what it is told */
    struct fault_fs *faults; /* NULL: the system's files */
};

static inline void on_trouble(void *context, enum status_code code, const char *what)
{
    struct fixture *f = context;
    (void)what;
    pthread_mutex_lock(&f->mutex);
    f->fences += code == STATUS_UNAVAILABLE;
    pthread_mutex_unlock(&f->mutex);
}

static inline void copy_text(char out[32], bytes key)
{
    assert_true(key.size < 32);
    memset(out, 0, 32);
    memcpy(out, key.data, key.size);
}

static inline bool is_same_range(const struct range *a, const struct range *b)
{
    return a->file == b->file && a->offset == b->offset && a->is_whole == b->is_whole &&
           a->from_size == b->from_size && memcmp(a->from, b->from, a->from_size) == 0 &&
           a->to_size == b->to_size && memcmp(a->to, b->to, a->to_size) == 0;
}

static inline bool is_told_before(const struct fixture *f, const struct range *range)
{
    for (size_t i = 0; i < f->range_count; i++)
        if (is_same_range(&f->ranges[i], range))
            return true;
    return false;
}

static inline bool on_damage(void *context, const struct store_damage *damage)
{
    struct fixture *f = context;
    struct range range;
    memset(&range, 0, sizeof range);
    range.file = damage->file;
    range.is_whole = damage->is_whole;
    range.offset = damage->offset;
    copy_text(range.from, damage->from);
    copy_text(range.to, damage->to);
    range.from_size = damage->from.size; /* both may end with a zero byte */
    range.to_size = damage->to.size;
    pthread_mutex_lock(&f->mutex);
    assert_int_equal(damage->keyspace_id, 7);
    assert_true(f->range_count < MOST_RANGES);
    if (!is_told_before(f, &range))
        f->ranges[f->range_count++] = range;
    pthread_cond_broadcast(&f->changed);
    bool is_remembered = !f->forgets;
    pthread_mutex_unlock(&f->mutex);
    return is_remembered;
}

/* A minute means never. */
static inline void wait_for_ranges(struct fixture *f, size_t count)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 60;
    pthread_mutex_lock(&f->mutex);
    while (f->range_count < count)
        assert_int_equal(pthread_cond_timedwait(&f->changed, &f->mutex, &until), 0);
    pthread_mutex_unlock(&f->mutex);
}

static inline int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->directory = make_directory();
    pthread_mutex_init(&f->mutex, NULL);
    pthread_cond_init(&f->changed, NULL);
    f->options = test_options(f->directory);
    f->options.on_trouble = on_trouble;
    f->options.trouble_context = f;
    f->options.on_damage = on_damage;
    f->options.damage_context = f;
    assert_ok(store_open(&f->options, &f->store));
    f->keyspace = make_keyspace(f->store, 7);
    make_keyspace(f->store, 8);
    *state = f;
    return 0;
}

static inline int teardown(void **state)
{
    struct fixture *f = *state;
    if (f->store != NULL)
        store_close(f->store);
    if (f->faults != NULL)
        fault_fs_destroy(f->faults);
    remove_directory(f->directory);
    pthread_cond_destroy(&f->changed);
    pthread_mutex_destroy(&f->mutex);
    free(f);
    return 0;
}

static inline void reopen(struct fixture *f)
{
    store_close(f->store);
    f->store = NULL;
    f->range_count = 0;
    if (f->faults != NULL)
        assert_ok(fault_fs_open(f->faults, &f->options, &f->store));
    else
        assert_ok(store_open(&f->options, &f->store));
    f->keyspace = store_keyspace_find(f->store, 7);
}

/* --- keys: k00000 to k03999, of values that do not compress --- */

static inline void key_of(char key[16], unsigned i)
{
    snprintf(key, 16, "k%05u", i);
}

static inline void value_of(char value[VALUE_SIZE + 1], unsigned i, unsigned round)
{
    uint64_t state = (uint64_t)i * 1000003 + round * 7919 + 1;
    for (size_t at = 0; at < VALUE_SIZE; at++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        value[at] = (char)('!' + (state >> 33) % 90);
    }
    value[VALUE_SIZE] = '\0';
}

static inline void fill(struct fixture *f, unsigned from, unsigned to, unsigned round)
{
    for (unsigned i = from; i < to; i++) {
        char key[16];
        char value[VALUE_SIZE + 1];
        key_of(key, i);
        value_of(value, i, round);
        assert_ok(write_one(f->store, f->keyspace, PUT, key, value, STORE_ASYNC));
    }
    assert_ok(keyspace_flush(f->keyspace));
}

/* --- damage --- */

static inline bool is_file(const struct fixture *f, uint64_t number, const char *suffix)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%06llu.sst%s", f->directory, (unsigned long long)number,
             suffix);
    return access(path, F_OK) == 0;
}

/* The name of the table with the greatest number. */
static inline void newest_table(const struct fixture *f, char path[512])
{
    unsigned long newest = 0;
    DIR *directory = opendir(f->directory);
    assert_non_null(directory);
    for (const struct dirent *at; (at = readdir(directory)) != NULL;) {
        const char *dot = strstr(at->d_name, ".sst");
        unsigned long number = dot != NULL ? strtoul(at->d_name, NULL, 10) : 0;
        newest = number > newest ? number : newest;
    }
    closedir(directory);
    assert_true(newest > 0);
    snprintf(path, 512, "%s/%06lu.sst", f->directory, newest);
}

static inline long size_of(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    long size = lseek(fd, 0, SEEK_END);
    assert_true(size > 0);
    close(fd);
    return size;
}

/* Eight bytes, from the start or, if `at` is negative, before the end. */
static inline void flip(const char *path, long at)
{
    char old[8];
    long offset = at >= 0 ? at : size_of(path) + at;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, old, sizeof old, offset), sizeof old);
    for (size_t i = 0; i < sizeof old; i++)
        old[i] = (char)~old[i];
    assert_int_equal(pwrite(fd, old, sizeof old, offset), sizeof old);
    close(fd);
}

/* --- what is seen --- */

static inline bytes start_of(const struct range *range)
{
    return bytes_make(range->from, range->from_size);
}

static inline bytes end_of(const struct range *range)
{
    return bytes_make(range->to, range->to_size);
}

static inline bool is_out_of_service(const struct fixture *f, const char *key)
{
    for (size_t i = 0; i < f->range_count; i++)
        if (bytes_compare(bytes_of(key), start_of(&f->ranges[i])) >= 0 &&
            bytes_compare(bytes_of(key), end_of(&f->ranges[i])) < 0)
            return true;
    return false;
}

static inline unsigned count_out_of_service(const struct fixture *f)
{
    unsigned count = 0;
    for (unsigned i = 0; i < KEYS; i++) {
        char key[16];
        key_of(key, i);
        count += is_out_of_service(f, key);
    }
    return count;
}

/* Each key by itself: what is out of service fails, all else is as it was written. */
static inline void assert_gets(struct fixture *f, unsigned round)
{
    for (unsigned i = 0; i < KEYS; i++) {
        char key[16];
        char value[VALUE_SIZE + 1];
        struct store_value got;
        enum store_presence presence;
        key_of(key, i);
        value_of(value, i, round);
        status s = store_get(f->keyspace, NULL, bytes_of(key), STORE_READ_ANY, &got, &presence);
        assert_int_equal(s.code, is_out_of_service(f, key) ? STATUS_DATA_LOSS : STATUS_OK);
        if (status_is_ok(s)) {
            assert_int_equal(presence, STORE_FOUND);
            assert_int_equal(got.bytes.size, VALUE_SIZE);
            assert_memory_equal(got.bytes.data, value, VALUE_SIZE);
        }
        store_value_release(&got);
        status_free(s);
    }
}

static inline struct store_cursor *cursor_over(struct fixture *f, const char *lower,
                                               const char *upper)
{
    struct store_cursor_options options = {
        .lower = bytes_of(lower), .upper = bytes_of(upper), .read_tier = STORE_READ_ANY};
    struct store_cursor *cursor;
    assert_ok(store_cursor_create(f->keyspace, &options, &cursor));
    return cursor;
}

static inline void assert_cursor_ends(struct store_cursor *cursor, enum status_code code)
{
    assert_false(store_cursor_valid(cursor));
    status s = store_cursor_status(cursor);
    assert_int_equal(s.code, code);
    status_free(s);
}

/* Backwards RocksDB looks at the key before the one that it comes to. */
static inline bool may_end_at(const struct fixture *f, int at)
{
    char before[16];
    key_of(before, at > 0 ? (unsigned)at - 1 : 0);
    return at > 0 && is_out_of_service(f, before);
}

/* The keys from `from` on, to the first that is out of service, or the end. */
static inline void assert_scan(struct fixture *f, unsigned from, bool is_forward)
{
    char key[16];
    key_of(key, from);
    struct store_cursor *cursor = cursor_over(f, "", "k99999");
    int at = (int)from;
    if (is_forward)
        store_cursor_seek(cursor, bytes_of(key));
    else
        store_cursor_seek_before(cursor, bytes_of(key));
    at -= is_forward ? 0 : 1;
    for (; at >= 0 && at < KEYS; at += is_forward ? 1 : -1) {
        key_of(key, (unsigned)at);
        if (is_out_of_service(f, key))
            break;
        if (!is_forward && !store_cursor_valid(cursor) && may_end_at(f, at))
            break;
        assert_true(store_cursor_valid(cursor));
        assert_true(bytes_equal(store_cursor_key(cursor), bytes_of(key)));
        if (is_forward)
            store_cursor_next(cursor);
        else
            store_cursor_previous(cursor);
    }
    bool is_at_end = at < 0 || at == KEYS;
    assert_cursor_ends(cursor, is_at_end ? STATUS_OK : STATUS_DATA_LOSS);
    store_cursor_destroy(cursor);
}

static inline void assert_all(struct fixture *f, unsigned round)
{
    assert_gets(f, round);
    for (unsigned from = 0; from < KEYS; from += 97) {
        char key[16];
        key_of(key, from);
        assert_scan(f, from, true);
        if (!is_out_of_service(f, key)) /* else it may fail where it begins */
            assert_scan(f, from, false);
    }
}

static inline void scan_all(struct fixture *f)
{
    struct store_cursor *cursor = cursor_over(f, "", "");
    for (store_cursor_first(cursor); store_cursor_valid(cursor);)
        store_cursor_next(cursor);
    store_cursor_destroy(cursor);
}

/* Writes, another keyspace, its making and its end. */
static inline void assert_goes_on(struct fixture *f)
{
    assert_int_equal(f->fences, 0);
    assert_ok(store_health(f->store));
    put(f->store, f->keyspace, "z", "written");
    assert_value(f->keyspace, "z", "written");
    struct keyspace *other = store_keyspace_find(f->store, 8);
    put(f->store, other, "a", "b");
    assert_ok(keyspace_flush(other));
    assert_ok(keyspace_compact(other, bytes_of(""), bytes_of("")));
    assert_value(other, "a", "b");
}

static inline bool go_on(void *context, uint64_t bytes)
{
    (void)context, (void)bytes;
    return true;
}

/* --- the newest table --- */

static inline void remove_newest(const struct fixture *f)
{
    char path[512];
    newest_table(f, path);
    assert_int_equal(unlink(path), 0);
}

static inline void cut_newest(const struct fixture *f)
{
    char path[512];
    newest_table(f, path);
    assert_int_equal(truncate(path, size_of(path) / 2), 0);
}

/* --- looks --- */

static inline void look(struct fixture *f)
{
    struct store_pacer pacer = {.go_on = go_on};
    assert_ok(store_look_for_damage(f->store, &pacer));
}

#endif
