/* Damaged tables: compactions around them, their end, and reads that began before. */
#include "store/testing/damage_testing.h"

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
    for (size_t i = 0; i < f->range_count; i++)
        keyspace_open_range(f->keyspace, 0, start_of(&f->ranges[i]), end_of(&f->ranges[i]));
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

static uint64_t take_number(const uint8_t **at)
{
    uint64_t number = 0;
    for (unsigned shift = 0;; shift += 7) {
        number |= (uint64_t)(**at & 0x7f) << shift;
        if ((*(*at)++ & 0x80) == 0)
            return number;
    }
}

/* Where the index of a table begins, by its footer: behind the filter, which follows the data. */
static long index_at(const char *path)
{
    enum { FOOTER = 53 };
    uint8_t footer[FOOTER];
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fseek(file, -FOOTER, SEEK_END), 0);
    assert_int_equal(fread(footer, 1, FOOTER, file), FOOTER);
    assert_int_equal(fclose(file), 0);
    const uint8_t *at = footer + 1;
    take_number(&at);
    take_number(&at);
    return (long)take_number(&at);
}

/* RocksDB opens such a table, and comes to the block when it compacts that away. */
static void a_damaged_filter_and_a_block_of_data_heal(void **state)
{
    struct fixture *f = *state;
    char path[512];
    fill(f, 0, KEYS, 0);
    newest_table(f, path);
    long index = index_at(path);
    store_close(f->store);
    flip(path, (off_t)index - 8);
    flip(path, 700000);
    f->store = NULL;
    assert_ok(store_open(&f->options, &f->store));
    f->keyspace = store_keyspace_find(f->store, 7);
    look(f);
    wait_for_ranges(f, 1);
    assert_all(f, 0);
    assert_heals(f, 0);
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

/* --- compactions --- */

/* More rounds than RocksDB lets level 0 have tables. */
enum { LONG = 45, MOST_OF_LEVEL0 = 40 };

static void fill_for_long(struct fixture *f)
{
    for (unsigned round = 1; round <= LONG; round++)
        fill(f, 0, KEYS, round);
}

static void a_table_with_damage_is_compacted_around_it(void **state)
{
    struct fixture *f = *state;
    char path[512];
    fill(f, 0, KEYS, 0);
    newest_table(f, path);
    flip(path, 900000);
    look(f);
    wait_for_ranges(f, 1);
    uint64_t damaged = f->ranges[0].file;
    fill_for_long(f);
    struct store_statistics statistics;
    store_statistics(f->store, &statistics);
    assert_in_range(statistics.level_files[0], 0, MOST_OF_LEVEL0);
    assert_false(is_file(f, damaged, "")); /* compacted away */
    assert_true(is_file(f, damaged, ".damaged"));
    assert_in_range(count_out_of_service(f), 20, 60);
    assert_all(f, LONG); /* what was written since is closed, too: it was on top of what is lost */
    assert_goes_on(f);
    assert_heals(f, LONG);
}

static void what_is_not_remembered_is_not_compacted_away(void **state)
{
    struct fixture *f = *state;
    char path[512];
    fill(f, 0, KEYS, 0);
    newest_table(f, path);
    flip(path, 900000);
    f->forgets = true;
    look(f);
    wait_for_ranges(f, 1);
    uint64_t damaged = f->ranges[0].file;
    for (unsigned round = 1; round < 8; round++)
        fill(f, 0, KEYS, round);
    assert_ok(keyspace_compact(f->keyspace, bytes_of(""), bytes_of("")));
    assert_true(is_file(f, damaged, ""));
    assert_all(f, 7);
    f->forgets = false; /* it is told again, with the next look */
    look(f);
    assert_int_equal(f->range_count, 1);
    assert_ok(keyspace_compact(f->keyspace, bytes_of(""), bytes_of("")));
    assert_false(is_file(f, damaged, ""));
    assert_all(f, 7);
}

/* As where a backup is restored: damage without an owner that remembers it was compacted away, and
 * the keys were missing without a word. */
static void without_an_owner_no_damage_is_compacted_away(void **state)
{
    struct fixture *f = *state;
    char path[512];
    fill(f, 0, KEYS, 0);
    newest_table(f, path);
    f->options.on_damage = NULL;
    reopen(f);
    flip(path, 900000);
    look(f);
    for (unsigned round = 1; round < 8; round++)
        fill(f, 0, KEYS, round);
    assert_ok(keyspace_compact(f->keyspace, bytes_of(""), bytes_of("")));
    f->options.on_damage = on_damage;
    reopen(f);
    look(f);
    wait_for_ranges(f, 1);
    assert_in_range(count_out_of_service(f), 20, 60);
    assert_all(f, 7);
}

/* RocksDB goes on with what it remembers of the table's index: then it must not try for ever. */
static void a_table_that_is_cut_under_way_holds_up_no_writes(void **state)
{
    struct fixture *f = *state;
    char value[VALUE_SIZE + 1];
    fill(f, 0, KEYS, 0);
    reopen(f); /* nothing of it is in memory */
    value_of(value, 0, 0);
    assert_value(f->keyspace, "k00000", value); /* it is open */
    cut_newest(f);
    fill_for_long(f);
    wait_for_ranges(f, 1);
    assert_true(f->ranges[0].is_whole);
    assert_goes_on(f);
    assert_all(f, LONG);
}

/* --- a table of another's --- */

static void copy_over(const char *from, const char *to)
{
    char piece[4096];
    int source = open(from, O_RDONLY | O_CLOEXEC);
    int target = open(to, O_WRONLY | O_CLOEXEC);
    assert_true(source >= 0 && target >= 0);
    for (ssize_t got; (got = read(source, piece, sizeof piece)) != 0;)
        assert_int_equal(write(target, piece, (size_t)got), got);
    close(source);
    close(target);
}

/* Of the same size, so that a start does not see it. */
static void a_table_in_anothers_place_is_found(void **state)
{
    struct fixture *f = *state;
    char former[512], newest[512];
    fill(f, 0, KEYS, 0);
    newest_table(f, former);
    fill(f, 0, KEYS, 1);
    newest_table(f, newest);
    assert_int_equal(size_of(former), size_of(newest));
    store_close(f->store);
    f->store = NULL;
    copy_over(former, newest);
    assert_ok(store_open(&f->options, &f->store));
    f->keyspace = store_keyspace_find(f->store, 7);
    look(f);
    wait_for_ranges(f, 1);
    assert_true(f->ranges[0].is_whole);
    assert_int_equal(count_out_of_service(f), KEYS);
    assert_all(f, 1);
    assert_heals(f, 1);
}

/* --- disks that do not read --- */

/* A sector of the newest table, from `at` on. */
static uint64_t make_unreadable(struct fixture *f, long at)
{
    char path[512];
    f->faults = fault_fs_create();
    newest_table(f, path);
    fault_fs_break_bytes(f->faults, strrchr(path, '/') + 1, (uint64_t)at, 4096);
    reopen(f);
    look(f);
    wait_for_ranges(f, 1);
    return f->ranges[0].file;
}

static struct store_damage as_damage(const struct range *range)
{
    return (struct store_damage){.keyspace_id = 7,
                                 .file = range->file,
                                 .offset = range->offset,
                                 .is_whole = range->is_whole,
                                 .from = start_of(range),
                                 .to = end_of(range),
                                 .what = "as I remember",
                                 .is_remembered = true};
}

static void assert_sound(struct fixture *f, const struct range *range, enum status_code code)
{
    struct store_damage damage = as_damage(range);
    bool is_sound;
    status s = keyspace_find_sound(f->keyspace, &damage, &is_sound);
    assert_int_equal(s.code, code);
    assert_true(is_sound);
    status_free(s);
}

/* More tables than level 0 takes, and a compaction of all. */
static void fill_and_compact(struct fixture *f)
{
    for (unsigned i = 0; i < 8; i++)
        fill(f, 0, KEYS, 0);
    assert_ok(keyspace_compact(f->keyspace, bytes_of(""), bytes_of("")));
}

/* The file is compacted no more; after a restart, too. */
static void assert_kept(struct fixture *f, const struct range *range)
{
    fill_and_compact(f);
    assert_true(is_file(f, range->file, ""));
    status s = keyspace_heal(f->keyspace, bytes_of("k00000"), bytes_of("k00001"));
    assert_int_equal(s.code, STATUS_UNAVAILABLE); /* it would take that table, too */
    status_free(s);
}

static void open_again(struct fixture *f, const struct range *range)
{
    assert_sound(f, range, STATUS_OK);
    keyspace_open_range(f->keyspace, range->file, start_of(range), end_of(range));
    f->range_count = 0;
    assert_all(f, 0);
}

static void what_is_not_read_for_a_while_is_not_lost(void **state)
{
    struct fixture *f = *state;
    fill(f, 0, KEYS, 0);
    make_unreadable(f, 300000);
    struct range range = f->ranges[0];
    assert_false(range.is_whole);
    assert_in_range(count_out_of_service(f), 20, 80);
    assert_gets(f, 0);
    assert_kept(f, &range);
    fault_fs_heal(f->faults);
    assert_gets(f, 0);
    open_again(f, &range);
}

static void what_is_not_read_at_a_start_is_not_lost(void **state)
{
    struct fixture *f = *state;
    char path[512];
    fill(f, 0, KEYS, 0);
    newest_table(f, path);
    make_unreadable(f, size_of(path) - 4096);
    struct range range = f->ranges[0];
    assert_true(range.is_whole);
    assert_kept(f, &range);
    fault_fs_heal(f->faults);
    assert_sound(f, &range, STATUS_FAILED_PRECONDITION);
    assert_gets(f, 0);
    f->options.holds_compactions = true; /* level 0 is full: one would begin before we remember */
    reopen(f);
    struct store_damage damage = as_damage(&range);
    assert_ok(keyspace_close_range(f->keyspace, &damage));
    assert_ok(store_begin_compactions(f->store));
    fill_and_compact(f);
    assert_true(is_file(f, range.file, ""));
    open_again(f, &range);
}

static void what_is_never_read_is_given_up(void **state)
{
    struct fixture *f = *state;
    f->options.damage_patience_us = 50000;
    fill(f, 0, KEYS, 0);
    uint64_t number = make_unreadable(f, 300000);
    for (unsigned tries = 0; is_file(f, number, ""); tries++) {
        assert_true(tries < 1000);
        assert_ok(keyspace_compact(f->keyspace, bytes_of(""), bytes_of("")));
        assert_gets(f, 0);
    }
    assert_true(is_file(f, number, ".damaged"));
    assert_all(f, 0);
    assert_goes_on(f);
}

/* What was the file's as a whole may be a block's the next time: the others are not given up. */
static void a_range_becomes_smaller_when_less_is_damaged(void **state)
{
    struct fixture *f = *state;
    char path[512];
    fill(f, 0, KEYS, 0);
    reopen(f);
    newest_table(f, path);
    struct range whole = {.file = strtoull(strrchr(path, '/') + 1, NULL, 10),
                          .is_whole = true,
                          .from = "k00000",
                          .from_size = 6,
                          .to = "k03999",
                          .to_size = 7};
    struct store_damage damage = as_damage(&whole);
    assert_ok(keyspace_close_range(f->keyspace, &damage));
    flip(path, 300000);
    assert_sound(f, &whole, STATUS_OK);
    keyspace_open_range(f->keyspace, whole.file, damage.from, damage.to);
    assert_int_equal(f->range_count, 1);
    assert_in_range(count_out_of_service(f), 20, 60);
    assert_all(f, 0);
    assert_heals(f, 0);
}

/* --- readers that began before --- */

static void an_earlier_reader_is_told_to_ask_again(void **state)
{
    struct fixture *f = *state;
    char path[512], key[32];
    struct store_value got;
    enum store_presence presence;
    fill(f, 0, KEYS, 0);
    fill(f, 0, KEYS, 1);
    reopen(f);
    newest_table(f, path);
    flip(path, 600000);
    look(f);
    wait_for_ranges(f, 1);
    struct store_snapshot *snapshot = store_snapshot_create(f->store);
    assert_non_null(snapshot);
    struct store_cursor *cursor = cursor_over(f, "", "k99999");
    store_cursor_first(cursor);
    delete_closed(f);
    heal_closed(f);

    /* Older values are below what was damaged, and newer than the deletion is neither reader. */
    while (store_cursor_valid(cursor)) {
        copy_text(key, store_cursor_key(cursor));
        assert_false(is_out_of_service(f, key));
        store_cursor_next(cursor);
    }
    assert_cursor_ends(cursor, STATUS_UNAVAILABLE);
    store_cursor_destroy(cursor);
    status s =
        store_get(f->keyspace, snapshot, start_of(&f->ranges[0]), STORE_READ_ANY, &got, &presence);
    assert_int_equal(s.code, STATUS_UNAVAILABLE);
    status_free(s);
    store_value_release(&got);
    store_snapshot_release(snapshot);
    assert_healed(f, 1);
}

/* --- checkpoints --- */

/* Of a table that is missing a checkpoint has nothing, and finds that out as a start does. */
static void a_checkpoint_goes_on_without_a_missing_table(void **state)
{
    struct fixture *f = *state;
    struct store_checkpoint *checkpoint;
    char copy[512];
    snprintf(copy, sizeof copy, "%s-copy", f->directory);
    fill(f, 0, 1000, 0);
    assert_ok(keyspace_compact(f->keyspace, bytes_of(""), bytes_of("")));
    fill(f, 1000, KEYS, 0);
    store_close(f->store);
    f->store = NULL;
    remove_newest(f);
    assert_ok(store_open(&f->options, &f->store));
    assert_ok(store_checkpoint_begin(f->store, &checkpoint));
    assert_ok(store_checkpoint_write(checkpoint, copy));
    store_checkpoint_end(checkpoint);
    store_close(f->store);
    f->store = NULL;

    struct store_options options = f->options;
    options.directory = copy;
    f->range_count = 0;
    assert_ok(store_open(&options, &f->store));
    f->keyspace = store_keyspace_find(f->store, 7);
    wait_for_ranges(f, 1);
    assert_int_equal(count_out_of_service(f), KEYS - 1000);
    assert_all(f, 0);
    store_close(f->store);
    f->store = NULL;
    remove_directory(strdup(copy)); /* frees it */
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(damaged_blocks_heal),
        TEST(a_damaged_filter_and_a_block_of_data_heal),
        TEST(a_missing_table_heals),
        TEST(a_table_with_damage_is_compacted_around_it),
        TEST(what_is_not_remembered_is_not_compacted_away),
        TEST(without_an_owner_no_damage_is_compacted_away),
        TEST(a_table_that_is_cut_under_way_holds_up_no_writes),
        TEST(a_table_in_anothers_place_is_found),
        TEST(what_is_not_read_for_a_while_is_not_lost),
        TEST(what_is_not_read_at_a_start_is_not_lost),
        TEST(what_is_never_read_is_given_up),
        TEST(a_range_becomes_smaller_when_less_is_damaged),
        TEST(an_earlier_reader_is_told_to_ask_again),
        TEST(a_checkpoint_goes_on_without_a_missing_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
