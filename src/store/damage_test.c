/* Damaged tables: what they take out of service, and that nothing else stops. */
#include "store/testing.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <time.h>

enum { KEYS = 4000, MOST_RANGES = 16, VALUE_SIZE = 400 };

struct range {
    uint64_t file;
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
};

static void on_trouble(void *context, enum status_code code, const char *what)
{
    struct fixture *f = context;
    (void)what;
    pthread_mutex_lock(&f->mutex);
    f->fences += code == STATUS_UNAVAILABLE;
    pthread_mutex_unlock(&f->mutex);
}

static void copy_text(char out[32], bytes key)
{
    assert_true(key.size < 32);
    memset(out, 0, 32);
    memcpy(out, key.data, key.size);
}

static void on_damage(void *context, const struct store_damage *damage)
{
    struct fixture *f = context;
    pthread_mutex_lock(&f->mutex);
    assert_true(f->range_count < MOST_RANGES);
    struct range *range = &f->ranges[f->range_count++];
    *range = (struct range){.file = damage->file, .is_whole = damage->is_whole};
    copy_text(range->from, damage->from);
    copy_text(range->to, damage->to);
    range->from_size = damage->from.size; /* both may end with a zero byte */
    range->to_size = damage->to.size;
    assert_int_equal(damage->keyspace_id, 7);
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->mutex);
}

/* A minute means never. */
static void wait_for_ranges(struct fixture *f, size_t count)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 60;
    pthread_mutex_lock(&f->mutex);
    while (f->range_count < count)
        assert_int_equal(pthread_cond_timedwait(&f->changed, &f->mutex, &until), 0);
    pthread_mutex_unlock(&f->mutex);
}

static int setup(void **state)
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

static int teardown(void **state)
{
    struct fixture *f = *state;
    if (f->store != NULL)
        store_close(f->store);
    remove_directory(f->directory);
    pthread_cond_destroy(&f->changed);
    pthread_mutex_destroy(&f->mutex);
    free(f);
    return 0;
}

static void reopen(struct fixture *f)
{
    store_close(f->store);
    f->store = NULL;
    f->range_count = 0;
    assert_ok(store_open(&f->options, &f->store));
    f->keyspace = store_keyspace_find(f->store, 7);
}

/* --- keys: k00000 to k03999, of values that do not compress --- */

static void key_of(char key[16], unsigned i)
{
    snprintf(key, 16, "k%05u", i);
}

static void value_of(char value[VALUE_SIZE + 1], unsigned i, unsigned round)
{
    uint64_t state = (uint64_t)i * 1000003 + round * 7919 + 1;
    for (size_t at = 0; at < VALUE_SIZE; at++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        value[at] = (char)('!' + (state >> 33) % 90);
    }
    value[VALUE_SIZE] = '\0';
}

static void fill(struct fixture *f, unsigned from, unsigned to, unsigned round)
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

/* The name of the table with the greatest number. */
static void newest_table(const struct fixture *f, char path[512])
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

static long size_of(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    long size = lseek(fd, 0, SEEK_END);
    assert_true(size > 0);
    close(fd);
    return size;
}

/* Eight bytes, from the start or, if `at` is negative, before the end. */
static void flip(const char *path, long at)
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

static bytes start_of(const struct range *range)
{
    return bytes_make(range->from, range->from_size);
}

static bytes end_of(const struct range *range)
{
    return bytes_make(range->to, range->to_size);
}

static bool is_out_of_service(const struct fixture *f, const char *key)
{
    for (size_t i = 0; i < f->range_count; i++)
        if (bytes_compare(bytes_of(key), start_of(&f->ranges[i])) >= 0 &&
            bytes_compare(bytes_of(key), end_of(&f->ranges[i])) < 0)
            return true;
    return false;
}

static unsigned count_out_of_service(const struct fixture *f)
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
static void assert_gets(struct fixture *f, unsigned round)
{
    for (unsigned i = 0; i < KEYS; i++) {
        char key[16];
        char value[VALUE_SIZE + 1];
        struct store_value got;
        enum store_presence presence;
        key_of(key, i);
        value_of(value, i, round);
        status s = store_get(f->keyspace, NULL, bytes_of(key), STORE_ANYWHERE, &got, &presence);
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

static struct store_cursor *cursor_over(struct fixture *f, const char *lower, const char *upper)
{
    struct store_cursor_options options = {
        .lower = bytes_of(lower), .upper = bytes_of(upper), .reach = STORE_ANYWHERE};
    struct store_cursor *cursor;
    assert_ok(store_cursor_create(f->keyspace, &options, &cursor));
    return cursor;
}

static void assert_cursor_ends(struct store_cursor *cursor, enum status_code code)
{
    assert_false(store_cursor_valid(cursor));
    status s = store_cursor_status(cursor);
    assert_int_equal(s.code, code);
    status_free(s);
}

/* Backwards RocksDB looks at the key before the one that it comes to. */
static bool may_end_at(const struct fixture *f, int at)
{
    char before[16];
    key_of(before, at > 0 ? (unsigned)at - 1 : 0);
    return at > 0 && is_out_of_service(f, before);
}

/* The keys from `from` on, to the first that is out of service, or the end. */
static void assert_scan(struct fixture *f, unsigned from, bool is_forward)
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

static void assert_all(struct fixture *f, unsigned round)
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

static void scan_all(struct fixture *f)
{
    struct store_cursor *cursor = cursor_over(f, "", "");
    for (store_cursor_first(cursor); store_cursor_valid(cursor);)
        store_cursor_next(cursor);
    store_cursor_destroy(cursor);
}

/* Writes, another keyspace, its making and its end. */
static void assert_goes_on(struct fixture *f)
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

static bool go_on(void *context, uint64_t bytes)
{
    (void)context, (void)bytes;
    return true;
}

/* --- tests --- */

static void a_damaged_block_closes_its_keys_and_no_others(void **state)
{
    struct fixture *f = *state;
    char path[512];
    fill(f, 0, KEYS, 0);
    reopen(f); /* nothing of it is in memory */
    newest_table(f, path);
    flip(path, 300000);
    scan_all(f);
    wait_for_ranges(f, 1);
    assert_false(f->ranges[0].is_whole);
    assert_in_range(count_out_of_service(f), 20, 60); /* 16 KiB of values of 400 bytes */
    assert_true(keyspace_has_damage(f->keyspace));
    assert_all(f, 0);
    assert_goes_on(f);
}

static void the_first_and_the_last_block_close_what_they_hold(void **state)
{
    struct fixture *f = *state;
    char path[512];
    fill(f, 0, KEYS, 0);
    reopen(f);
    newest_table(f, path);
    flip(path, 40);
    scan_all(f);
    wait_for_ranges(f, 1);
    assert_string_equal(f->ranges[0].from, "k00000");
    assert_all(f, 0);
}

static void older_values_do_not_rise_where_newer_ones_are_damaged(void **state)
{
    struct fixture *f = *state;
    char path[512];
    fill(f, 0, KEYS, 0);
    fill(f, 0, KEYS, 1);
    reopen(f);
    newest_table(f, path);
    flip(path, 600000);
    scan_all(f);
    wait_for_ranges(f, 1);
    assert_all(f, 1);
}

static void newer_values_do_not_hide_that_older_ones_are_damaged(void **state)
{
    struct fixture *f = *state;
    char path[512];
    fill(f, 0, KEYS, 0);
    newest_table(f, path);
    flip(path, 600000);
    fill(f, 0, KEYS, 1);
    reopen(f);
    scan_all(f);
    wait_for_ranges(f, 1);
    assert_all(f, 1);
}

static void a_compaction_that_meets_damage_fences_nothing(void **state)
{
    struct fixture *f = *state;
    char path[512];
    fill(f, 0, KEYS, 0);
    newest_table(f, path);
    flip(path, 900000);
    for (unsigned round = 1; round < 6; round++) /* level 0 is compacted from 4 tables on */
        fill(f, 0, KEYS, round);
    wait_for_ranges(f, 1);
    assert_all(f, 5);
    assert_goes_on(f);
    assert_ok(keyspace_compact(f->keyspace, bytes_of(""), bytes_of("")));
    assert_all(f, 5);
}

static void verifying_closes_what_it_finds(void **state)
{
    struct fixture *f = *state;
    char path[512];
    fill(f, 0, KEYS, 0);
    newest_table(f, path);
    flip(path, 100000);
    flip(path, 500000);
    struct store_pacer pacer = {.go_on = go_on};
    status s = keyspace_verify(f->keyspace, &pacer);
    assert_int_equal(s.code, STATUS_DATA_LOSS);
    status_free(s);
    wait_for_ranges(f, 2);
    assert_all(f, 0);
    put(f->store, f->keyspace, "z", "written");
}

static void what_was_closed_is_closed_again(void **state)
{
    struct fixture *f = *state;
    fill(f, 0, KEYS, 0);
    struct store_damage damage = {.keyspace_id = 7,
                                  .file = 9,
                                  .from = bytes_of("k00100"),
                                  .to = bytes_of("k00200"),
                                  .what = "as I remember"};
    assert_ok(keyspace_close_range(f->keyspace, &damage));
    assert_ok(keyspace_check_open(f->keyspace, bytes_of("k00000"), bytes_of("k00100")));
    assert_ok(keyspace_check_open(f->keyspace, bytes_of("k00200"), bytes_of("")));
    status s = keyspace_check_open(f->keyspace, bytes_of("k00000"), bytes_of("k001000"));
    assert_int_equal(s.code, STATUS_DATA_LOSS);
    assert_string_equal(status_message(s), "as I remember");
    status_free(s);
    f->ranges[f->range_count++] =
        (struct range){.file = 9, .from = "k00100", .from_size = 6, .to = "k00200", .to_size = 6};
    assert_all(f, 0);
}

static void a_damaged_index_or_footer_closes_all_of_the_file(void **state)
{
    struct fixture *f = *state;
    char path[512];
    fill(f, 0, 1000, 0);
    newest_table(f, path);
    assert_ok(keyspace_compact(f->keyspace, bytes_of(""), bytes_of("")));
    fill(f, 1000, KEYS, 0);
    newest_table(f, path);
    flip(path, -2000); /* the index, or what stands before it */
    struct store_pacer pacer = {.go_on = go_on};
    assert_ok(store_look_for_damage(f->store, &pacer));
    wait_for_ranges(f, 1);
    assert_true(f->ranges[0].is_whole);
    assert_string_equal(f->ranges[0].from, "k01000");
    assert_int_equal(count_out_of_service(f), KEYS - 1000);
    assert_all(f, 0);
}

/* --- starts --- */

static void remove_newest(const struct fixture *f)
{
    char path[512];
    newest_table(f, path);
    assert_int_equal(unlink(path), 0);
}

static void cut_newest(const struct fixture *f)
{
    char path[512];
    newest_table(f, path);
    assert_int_equal(truncate(path, size_of(path) / 2), 0);
}

static void flip_newest_footer(const struct fixture *f)
{
    char path[512];
    newest_table(f, path);
    flip(path, -12);
}

/* Keys up to 1,000 are in a table of their own, at the bottom. */
static void assert_starts_without(struct fixture *f, void (*damage)(const struct fixture *f),
                                  bool is_level0)
{
    fill(f, 0, 1000, 0);
    assert_ok(keyspace_compact(f->keyspace, bytes_of(""), bytes_of("")));
    fill(f, 1000, KEYS, 0);
    if (!is_level0)
        assert_ok(keyspace_compact(f->keyspace, bytes_of("k01000"), bytes_of("")));
    store_close(f->store);
    f->store = NULL;
    damage(f);
    for (unsigned starts = 0; starts < 2; starts++) {
        f->range_count = 0;
        assert_ok(store_open(&f->options, &f->store));
        f->keyspace = store_keyspace_find(f->store, 7);
        wait_for_ranges(f, 1);
        assert_true(f->ranges[0].is_whole);
        assert_int_equal(count_out_of_service(f), KEYS - 1000);
        assert_all(f, 0);
        assert_goes_on(f);
        store_close(f->store);
        f->store = NULL;
    }
}

static void starts_without_a_table(void **state)
{
    assert_starts_without(*state, remove_newest, true);
}

static void starts_without_a_table_of_a_lower_level(void **state)
{
    assert_starts_without(*state, remove_newest, false);
}

static void starts_with_a_table_that_was_cut(void **state)
{
    assert_starts_without(*state, cut_newest, true);
}

static void starts_with_a_damaged_footer(void **state)
{
    assert_starts_without(*state, flip_newest_footer, true);
}

static void only_reading_says_what_is_missing_too(void **state)
{
    struct fixture *f = *state;
    fill(f, 0, KEYS, 0);
    store_close(f->store);
    f->store = NULL;
    remove_newest(f);
    f->options.read_only = true;
    assert_ok(store_open(&f->options, &f->store));
    f->keyspace = store_keyspace_find(f->store, 7);
    wait_for_ranges(f, 1);
    assert_int_equal(count_out_of_service(f), KEYS);
    assert_all(f, 0);
}

/* --- healing --- */

static void delete_closed(struct fixture *f)
{
    struct store_batch *batch = store_batch_create();
    assert_non_null(batch);
    for (size_t i = 0; i < f->range_count; i++)
        store_batch_delete_range(batch, f->keyspace, start_of(&f->ranges[i]),
                                 end_of(&f->ranges[i]));
    assert_ok(store_write(f->store, batch, STORE_SYNCED));
    store_batch_destroy(batch);
}

static void heal_closed(struct fixture *f)
{
    for (size_t i = 0; i < f->range_count; i++)
        assert_ok(keyspace_heal(f->keyspace, start_of(&f->ranges[i]), end_of(&f->ranges[i])));
}

/* What was out of service is not there, all else is. */
static void assert_healed(struct fixture *f, unsigned round)
{
    assert_false(keyspace_has_damage(f->keyspace));
    struct store_cursor *cursor = cursor_over(f, "", "k99999");
    store_cursor_first(cursor);
    for (unsigned i = 0; i < KEYS; i++) {
        char key[16];
        char value[VALUE_SIZE + 1];
        key_of(key, i);
        value_of(value, i, round);
        assert_value(f->keyspace, key, is_out_of_service(f, key) ? NULL : value);
        if (is_out_of_service(f, key))
            continue;
        assert_true(store_cursor_valid(cursor));
        assert_true(bytes_equal(store_cursor_key(cursor), bytes_of(key)));
        store_cursor_next(cursor);
    }
    assert_cursor_ends(cursor, STATUS_OK);
    store_cursor_destroy(cursor);
}

static void assert_heals(struct fixture *f, unsigned round)
{
    delete_closed(f);
    heal_closed(f);
    assert_healed(f, round);
    struct store_pacer pacer = {.go_on = go_on};
    assert_ok(keyspace_verify(f->keyspace, &pacer));
    size_t count = f->range_count;
    reopen(f);
    assert_int_equal(f->range_count, 0);
    f->range_count = count; /* what was lost */
    assert_healed(f, round);
}

static void damaged_blocks_heal(void **state)
{
    struct fixture *f = *state;
    char path[512];
    fill(f, 0, KEYS, 0);
    fill(f, 0, KEYS, 1);
    newest_table(f, path);
    flip(path, 200000);
    flip(path, 700000);
    fill(f, 0, 10, 1);
    reopen(f);
    struct store_pacer pacer = {.go_on = go_on};
    status_ignore(keyspace_verify(f->keyspace, &pacer));
    wait_for_ranges(f, 2);
    assert_all(f, 1);
    assert_heals(f, 1);
}

static void a_missing_table_heals(void **state)
{
    struct fixture *f = *state;
    fill(f, 0, 2000, 0);
    fill(f, 1000, KEYS, 0);
    store_close(f->store);
    remove_newest(f);
    f->store = NULL;
    assert_ok(store_open(&f->options, &f->store));
    f->keyspace = store_keyspace_find(f->store, 7);
    wait_for_ranges(f, 1);
    assert_all(f, 0);
    assert_heals(f, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_damaged_block_closes_its_keys_and_no_others),
        TEST(the_first_and_the_last_block_close_what_they_hold),
        TEST(older_values_do_not_rise_where_newer_ones_are_damaged),
        TEST(newer_values_do_not_hide_that_older_ones_are_damaged),
        TEST(a_compaction_that_meets_damage_fences_nothing),
        TEST(verifying_closes_what_it_finds),
        TEST(what_was_closed_is_closed_again),
        TEST(a_damaged_index_or_footer_closes_all_of_the_file),
        TEST(starts_without_a_table),
        TEST(starts_without_a_table_of_a_lower_level),
        TEST(starts_with_a_table_that_was_cut),
        TEST(starts_with_a_damaged_footer),
        TEST(only_reading_says_what_is_missing_too),
        TEST(damaged_blocks_heal),
        TEST(a_missing_table_heals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
