/* Damaged tables: what they take out of service, and that nothing else stops. */
#include "store/testing/damage_testing.h"

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

static void assert_names_the_block(status s)
{
    assert_int_equal(s.code, STATUS_DATA_LOSS);
    assert_non_null(strstr(status_message(s), ".sst is damaged: the block at byte "));
    status_free(s);
}

/* The first read once said which file, and only the next one which keys. */
static void the_first_read_is_told_what_is_closed(void **state)
{
    struct fixture *f = *state;
    char path[512], inside[32];
    struct store_value got;
    enum store_presence presence;
    fill(f, 0, KEYS, 0);
    newest_table(f, path);
    flip(path, 300000);
    reopen(f);
    struct store_cursor *cursor = cursor_over(f, "", "k99999");
    store_cursor_first(cursor);
    while (store_cursor_valid(cursor))
        store_cursor_next(cursor);
    assert_names_the_block(store_cursor_status(cursor));
    store_cursor_destroy(cursor);
    snprintf(inside, sizeof inside, "%s", f->ranges[0].to);
    inside[strcspn(inside, "\1")] = '\0';
    key_of(inside, (unsigned)strtoul(inside + 1, NULL, 10) - 2);

    reopen(f); /* forgets it */
    assert_false(keyspace_has_damage(f->keyspace));
    status s = store_get(f->keyspace, NULL, bytes_of(inside), STORE_READ_CACHED, &got, &presence);
    if (status_is_ok(s)) {
        assert_int_equal(presence, STORE_NOT_CACHED);
        s = store_get(f->keyspace, NULL, bytes_of(inside), STORE_READ_ANY, &got, &presence);
    }
    assert_names_the_block(s);
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
                                  .what = "as I remember",
                                  .is_remembered = true};
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

/* --- sections: keys by their first byte --- */

enum { LARGE_PIECES = 700, SMALL_KEY = 500, IN_SMALL = 20, IN_LARGE = 100000 };

static void put_large(struct fixture *f, const char *key)
{
    char *value = calloc(LARGE_PIECES, VALUE_SIZE + 1);
    assert_non_null(value);
    for (unsigned i = 0; i < LARGE_PIECES; i++)
        value_of(value + (size_t)i * VALUE_SIZE, i, 0);
    put(f->store, f->keyspace, key, value);
    free(value);
}

static void assert_around(struct fixture *f)
{
    assert_gets(f, 0);
    assert_value(f->keyspace, "l", "below");
    assert_value(f->keyspace, "n", "above");
}

/* The newest table has k00500 and "m", the one below all keys from k00000 to "n", but "m". */
static void assert_only_one_is_hit(struct fixture *f, long at, const char *key)
{
    char path[512];
    put(f->store, f->keyspace, "l", "below");
    put(f->store, f->keyspace, "n", "above");
    fill(f, 0, KEYS, 0);
    put_large(f, "m");
    fill(f, SMALL_KEY, SMALL_KEY + 1, 0);
    reopen(f);
    newest_table(f, path);
    flip(path, at);
    look(f);
    wait_for_ranges(f, 1);
    assert_string_equal(f->ranges[0].from, key);
    assert_string_equal(f->ranges[0].to, key);
    assert_int_equal(f->ranges[0].to_size, strlen(key) + 1);
    assert_around(f);
    assert_ok(keyspace_compact(f->keyspace, bytes_of(""), bytes_of("")));
    assert_around(f);
    assert_int_equal(is_out_of_service(f, "m"), *key == 'm');
    assert_goes_on(f);
}

static void a_large_value_closes_nothing_of_another_section(void **state)
{
    assert_only_one_is_hit(*state, IN_LARGE, "m");
}

static void the_last_key_of_a_section_closes_nothing_behind_it(void **state)
{
    assert_only_one_is_hit(*state, IN_SMALL, "k00500");
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

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_damaged_block_closes_its_keys_and_no_others),
        TEST(the_first_read_is_told_what_is_closed),
        TEST(the_first_and_the_last_block_close_what_they_hold),
        TEST(older_values_do_not_rise_where_newer_ones_are_damaged),
        TEST(newer_values_do_not_hide_that_older_ones_are_damaged),
        TEST(a_compaction_that_meets_damage_fences_nothing),
        TEST(verifying_closes_what_it_finds),
        TEST(what_was_closed_is_closed_again),
        TEST(a_large_value_closes_nothing_of_another_section),
        TEST(the_last_key_of_a_section_closes_nothing_behind_it),
        TEST(a_damaged_index_or_footer_closes_all_of_the_file),
        TEST(starts_without_a_table),
        TEST(starts_without_a_table_of_a_lower_level),
        TEST(starts_with_a_table_that_was_cut),
        TEST(starts_with_a_damaged_footer),
        TEST(only_reading_says_what_is_missing_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
