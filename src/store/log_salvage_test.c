/* Tests of what a salvage takes of a log that is broken in the middle: log_salvage.cc. */
#include "store/testing/log_ends_testing.h"

enum { KEYS = 200, HEADER = 7, BLOCK = 32 << 10, FIRST_OF_SEVERAL = 2 };

/* --- logs --- */

static void key_of(int i, char out[8])
{
    snprintf(out, 8, "k%03d", i);
}

/* A commit for each. */
static void put_keys(struct fixture *f)
{
    char key[8];
    for (int i = 0; i < KEYS; i++) {
        key_of(i, key);
        put(f->store, f->keyspace, key, key);
    }
}

static uint8_t *read_log(struct fixture *f, size_t *size)
{
    char *path = newest_log(f);
    FILE *file = fopen(path, "r");
    *size = (size_t)size_of(path);
    uint8_t *log = malloc(*size);
    assert_non_null(file);
    assert_non_null(log);
    assert_int_equal(fread(log, 1, *size, file), *size);
    assert_int_equal(fclose(file), 0);
    free(path);
    return log;
}

/* Where each record begins, and, behind the last, the end. */
static size_t find_records(struct fixture *f, long *out, size_t most)
{
    size_t size, count = 0, at = 0;
    uint8_t *log = read_log(f, &size);
    while (at + HEADER <= size) {
        if (BLOCK - at % BLOCK < HEADER) {
            at += BLOCK - at % BLOCK;
            continue;
        }
        if (log[at + 6] <= FIRST_OF_SEVERAL) {
            assert_true(count < most);
            out[count++] = (long)at;
        }
        at += HEADER + (log[at + 4] | (size_t)log[at + 5] << 8);
    }
    out[count] = (long)size;
    free(log);
    return count;
}

/* --- what is left --- */

static bool is_among(int key, const int *lost, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (lost[i] == key)
            return true;
    return false;
}

static void assert_keys(struct fixture *f, const int *lost, size_t count)
{
    char key[8];
    for (int i = 0; i < KEYS; i++) {
        key_of(i, key);
        assert_value(of_copy(f), key, is_among(i, lost, count) ? NULL : key);
    }
}

/* A start refuses with these words; one that salvages, or only looks, has all keys but those, and
 * afterwards nothing is wrong. */
static void expect_all_but(struct fixture *f, const char *words, const int *lost, size_t count)
{
    expect_loss(f, words);
    f->of_copy.salvage = true;
    for (int read_only = 1; read_only >= 0; read_only--) {
        f->of_copy.read_only = read_only != 0;
        expect(f, STORE_LOG_LOST);
        assert_non_null(strstr(store_log_end(f->other).words, words));
        assert_keys(f, lost, count);
        if (read_only)
            close_copy(f);
    }
    assert_ok(store_accept_loss(f->other));
    close_copy(f);
    f->of_copy.salvage = false;
    expect(f, STORE_LOG_WHOLE);
    assert_keys(f, lost, count);
    close_copy(f);
}

/* --- one byte --- */

static void a_byte_costs_the_commit_that_it_is_in(void **state)
{
    struct fixture *f = *state;
    static const int hit[] = {0, 1, 100, KEYS - 2, KEYS - 1};
    long records[KEYS + 1];
    put_keys(f);
    stop(f);
    cut_power(f, 0);
    assert_int_equal(find_records(f, records, KEYS), KEYS);
    for (size_t i = 0; i < sizeof hit / sizeof *hit; i++) {
        char words[200];
        bool knows = hit[i] > 0 && hit[i] < KEYS - 1;
        snprintf(words, sizeof words,
                 "is damaged at byte %ld, and was synced up to byte %ld; %d whole commits are "
                 "behind the damage; not to be read: bytes %ld to %ld%s; ",
                 records[hit[i]], records[KEYS], KEYS - 1 - hit[i], records[hit[i]],
                 records[hit[i] + 1] - 1, knows ? ", 1 change" : "");
        cut_power(f, 0);
        flip(newest_log(f), records[hit[i]] + HEADER + 14, 1);
        expect_all_but(f, words, &hit[i], 1);
    }
}

/* Checksum, size, type. */
static void a_header_byte_costs_the_commit_that_it_is_in(void **state)
{
    struct fixture *f = *state;
    static const int hit[] = {0, 77};
    long records[KEYS + 1];
    put_keys(f);
    stop(f);
    cut_power(f, 0);
    find_records(f, records, KEYS);
    for (size_t i = 0; i < sizeof hit / sizeof *hit; i++) {
        char words[60];
        snprintf(words, sizeof words, "; %d whole commits are behind the damage",
                 KEYS - 1 - hit[i]);
        for (int byte = 0; byte < HEADER; byte++) {
            cut_power(f, 0);
            flip(newest_log(f), records[hit[i]] + byte, 1);
            expect_all_but(f, words, &hit[i], 1);
        }
    }
}

/* --- several --- */

static void two_places_are_told_and_left_out(void **state)
{
    struct fixture *f = *state;
    static const int apart[] = {20, 120}, together[] = {50, 51};
    long records[KEYS + 1];
    char words[100];
    put_keys(f);
    stop(f);
    cut_power(f, 0);
    find_records(f, records, KEYS);
    for (size_t i = 0; i < 2; i++)
        flip(newest_log(f), records[apart[i]] + HEADER + 14, 1);
    snprintf(words, sizeof words, "bytes %ld to %ld, 1 change, bytes %ld to %ld, 1 change; ",
             records[20], records[21] - 1, records[120], records[121] - 1);
    expect_all_but(f, words, apart, 2);
    cut_power(f, 0);
    for (size_t i = 0; i < 2; i++)
        flip(newest_log(f), records[together[i]] + HEADER + 14, 1);
    snprintf(words, sizeof words, "bytes %ld to %ld, 2 changes; ", records[50], records[52] - 1);
    expect_all_but(f, words, together, 2);
}

/* Half of a sector that a disk gives back as zeroes, and a part of what is behind it. */
static void a_stretch_costs_what_it_is_in(void **state)
{
    struct fixture *f = *state;
    static const int hit[] = {30, 31, 32, 33};
    long records[KEYS + 1];
    put_keys(f);
    stop(f);
    cut_power(f, 0);
    find_records(f, records, KEYS);
    flip(newest_log(f), records[30] + 3, (size_t)(records[33] + 10 - records[30]));
    expect_all_but(f, ", 4 changes; ", hit, 4);
}

/* --- records of several pieces --- */

/* k000 … k009 are large. */
static void a_record_over_blocks_is_left_out_as_a_whole(void **state)
{
    enum { LARGE = 10, SIZE = 80000, HIT = 4 };
    struct fixture *f = *state;
    char key[8], *value = malloc(SIZE + 1);
    long records[LARGE + 1];
    assert_non_null(value);
    memset(value, 'v', SIZE);
    value[SIZE] = '\0';
    for (int i = 0; i < LARGE; i++) {
        key_of(i, key);
        put(f->store, f->keyspace, key, value);
    }
    stop(f);
    cut_power(f, 0);
    assert_int_equal(find_records(f, records, LARGE), LARGE);
    const long places[] = {0, 4, 6, 100, BLOCK, BLOCK + 5, 2 * BLOCK, SIZE};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        cut_power(f, 0);
        flip(newest_log(f), records[HIT] + places[i], 1);
        expect_loss(f, "; 5 whole commits are behind the damage");
        f->of_copy.salvage = true;
        expect(f, STORE_LOG_LOST);
        for (int j = 0; j < LARGE; j++) {
            key_of(j, key);
            assert_value(of_copy(f), key, j == HIT ? NULL : value);
        }
        close_copy(f);
        f->of_copy.salvage = false;
    }
    free(value);
}

/* Whose header leads nowhere, so that it is looked for the next commit: it has all former ones in
 * its value, with the numbers that they had. */
static void a_value_that_looks_like_a_log_is_none(void **state)
{
    struct fixture *f = *state;
    size_t size;
    long records[KEYS + 3];
    put_keys(f);
    cut_power(f, ALL);
    uint8_t *log = read_log(f, &size);
    struct store_batch *batch = store_batch_create();
    store_batch_put(batch, f->keyspace, bytes_of("value"), bytes_make(log, size));
    assert_ok(store_write(f->store, batch, STORE_SYNCED));
    store_batch_destroy(batch);
    free(log);
    assert_ok(write_one(f->store, f->keyspace, DELETE, "k007", NULL, STORE_SYNCED));
    stop(f);
    cut_power(f, 0);
    assert_int_equal(find_records(f, records, KEYS + 2), KEYS + 2);
    flip(newest_log(f), records[KEYS] + 5, 1);
    static const int deleted = 7;
    expect_all_but(f, "; 1 whole commits are behind the damage", &deleted, 1);
}

/* --- what former starts have dropped --- */

/* A log with first, a, b, c of which b is torn: c is behind it, whole, and a start, which leaves
 * the store open, has dropped both. Returns where a is: damage there is behind a commit, whose
 * number says which one c is. */
static long drop_some(struct fixture *f)
{
    long records[5];
    put(f->store, f->keyspace, "first", "0");
    put(f->store, f->keyspace, "a", "1");
    make_keyspace(f->store, 8); /* a is recorded now */
    stop_recording(f);
    put(f->store, f->keyspace, "b", "2");
    put(f->store, f->keyspace, "c", "3");
    cut_power(f, ALL);
    assert_int_equal(find_records(f, records, 4), 4);
    flip(newest_log(f), records[2] + HEADER + 14, 1);
    expect(f, STORE_LOG_TORN);
    assert_value(of_copy(f), "c", NULL);
    return records[1];
}

/* What is written afterwards has their numbers. */
static long drop_a_commit(struct fixture *f)
{
    long at = drop_some(f);
    put(f->other, of_copy(f), "d", "4");
    put(f->other, of_copy(f), "e", "5");
    put(f->other, of_copy(f), "f", "6");
    close_copy(f);
    return at;
}

static void expect_dropped(struct fixture *f, const char *a)
{
    f->of_copy.salvage = true;
    expect(f, STORE_LOG_LOST);
    assert_value(of_copy(f), "first", "0");
    assert_value(of_copy(f), "a", a);
    assert_value(of_copy(f), "b", NULL);
    assert_value(of_copy(f), "c", NULL);
    assert_value(of_copy(f), "d", "4");
    assert_value(of_copy(f), "f", "6");
    close_copy(f);
    f->of_copy.salvage = false;
}

/* In the log that has b and c, too. */
static void damage_a(struct fixture *f, long at)
{
    char *pattern = path_in_copy(f, "*.log");
    glob_t logs;
    assert_int_equal(glob(pattern, 0, NULL, &logs), 0);
    assert_int_equal(logs.gl_pathc, 2);
    flip(strdup(logs.gl_pathv[0]), at + HEADER + 14, 1);
    globfree(&logs);
    free(pattern);
}

static void what_a_start_has_dropped_stays_dropped(void **state)
{
    struct fixture *f = *state;
    damage_a(f, drop_a_commit(f));
    expect_dropped(f, NULL);
}

/* Then no later log has their numbers: where the start found the log's end tells. */
static void dropped_commits_stay_so_if_nothing_was_written_since(void **state)
{
    struct fixture *f = *state;
    long at = drop_some(f);
    close_copy(f);
    damage_a(f, at);
    f->of_copy.salvage = true;
    expect(f, STORE_LOG_LOST);
    assert_value(of_copy(f), "a", NULL);
    assert_value(of_copy(f), "c", NULL);
}

/* Then nothing but the numbers says so. */
static void a_dropped_commit_stays_so_without_synced(void **state)
{
    struct fixture *f = *state;
    (void)drop_a_commit(f);
    take_away(path_in_copy(f, "SYNCED"));
    expect_dropped(f, "1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_byte_costs_the_commit_that_it_is_in),
        TEST(a_header_byte_costs_the_commit_that_it_is_in),
        TEST(two_places_are_told_and_left_out),
        TEST(a_stretch_costs_what_it_is_in),
        TEST(a_record_over_blocks_is_left_out_as_a_whole),
        TEST(a_value_that_looks_like_a_log_is_none),
        TEST(what_a_start_has_dropped_stays_dropped),
        TEST(dropped_commits_stay_so_if_nothing_was_written_since),
        TEST(a_dropped_commit_stays_so_without_synced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
