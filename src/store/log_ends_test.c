/* What a start makes of the logs' ends: log_ends.h. */
#include "store/files.h"
#include "store/testing/log_ends_testing.h"

/* --- an orderly end --- */

static void after_an_orderly_end_there_is_nothing_to_lose(void **state)
{
    struct fixture *f = *state;
    put(f->store, f->keyspace, "a", "1");
    assert_ok(write_one(f->store, f->keyspace, PUT, "b", "2", STORE_ASYNC));
    stop(f);
    cut_power(f, 0);
    expect(f, STORE_LOG_WHOLE);
    assert_value(of_copy(f), "a", "1");
    assert_value(of_copy(f), "b", "2");
}

static void what_is_flipped_after_an_orderly_end_is_a_loss(void **state)
{
    struct fixture *f = *state;
    put(f->store, f->keyspace, "a", "1");
    put(f->store, f->keyspace, "b", "2");
    stop(f);
    for (int from_end = 1; from_end <= 30; from_end += 7) {
        cut_power(f, 0);
        flip(newest_log(f), -from_end, 1);
        expect_loss(f, ".log is damaged at byte ");
    }
}

static void what_is_cut_after_an_orderly_end_is_a_loss(void **state)
{
    struct fixture *f = *state;
    put(f->store, f->keyspace, "a", "1");
    stop(f);
    cut_power(f, 0);
    char *log = newest_log(f);
    off_t size = size_of(log);
    free(log);
    for (off_t bytes = 1; bytes <= size; bytes++) {
        cut_power(f, 0);
        cut(newest_log(f), bytes);
        expect_loss(f, ", but was synced up to byte ");
    }
}

static void a_log_that_is_gone_is_a_loss(void **state)
{
    struct fixture *f = *state;
    put(f->store, f->keyspace, "a", "1");
    stop(f);
    cut_power(f, 0);
    take_away(newest_log(f));
    expect_loss(f, ".log is gone, of which ");
    expect_loss(f, "; written at that time: the table");
    expect_loss(f, "the last synced commit was at 20");
}

static _Atomic int64_t set_us; /* what the clock shows */

static int64_t show_set(struct clock *clock)
{
    (void)clock;
    return set_us;
}

/* A restore to the last moment begins with this time: it was once that of the stop. */
static void the_last_commit_was_before_the_stop(void **state)
{
    struct fixture *f = *state;
    struct clock clock = {.wall_us = show_set, .steady_us = show_set};
    struct log log = *f->options.log;
    log.clock = &clock;
    f->options.log = &log;
    stop(f);
    set_us = INT64_C(1600000000000000); /* 2020-09-13T12:26:40Z */
    open_store(f);
    put(f->store, f->keyspace, "a", "1");
    make_keyspace(f->store, 8); /* it is recorded now */
    set_us += INT64_C(3600000000);
    stop(f);
    cut_power(f, 0);
    take_away(newest_log(f));
    expect_loss(f, "the last synced commit was at 2020-09-13T12:26:40");
}

/* A checkpoint has a copy of the live log by that log's name. Removed, it once took the log off the
 * record: after each backup of a whole server what was then cut off the log, or all of it, was no
 * loss. */
static void a_checkpoint_that_goes_forgets_no_log(void **state)
{
    struct fixture *f = *state;
    struct store_checkpoint *checkpoint;
    char directory[PATH_MAX];
    snprintf(directory, sizeof directory, "%s/checkpoint", f->directory);
    put(f->store, f->keyspace, "a", "1");
    assert_ok(store_checkpoint_begin(f->store, &checkpoint));
    assert_ok(store_checkpoint_write(checkpoint, directory));
    store_checkpoint_end(checkpoint);
    assert_ok(files_remove_flat_directory(files_of_store(f->store), directory));
    put(f->store, f->keyspace, "b", "2");
    stop(f);
    cut_power(f, 0);
    cut(newest_log(f), 1);
    expect_loss(f, ", but was synced up to byte ");
    cut_power(f, 0);
    take_away(newest_log(f));
    expect_loss(f, ".log is gone, of which ");
}

/* --- a kill --- */

static void the_thread_records_within_a_while(void **state)
{
    struct fixture *f = *state;
    put(f->store, f->keyspace, "a", "1");
    bool is_recorded = false;
    for (int i = 0; i < WAITS && !is_recorded; i++) {
        poll(NULL, 0, 10);
        cut_power(f, ALL);
        take_away(newest_log(f));
        status s = open_copy(f);
        is_recorded = s.code == STATUS_DATA_LOSS;
        if (f->other != NULL)
            close_copy(f);
        status_free(s);
    }
    assert_true(is_recorded);
}

static void a_torn_write_is_told_once(void **state)
{
    struct fixture *f = *state;
    put(f->store, f->keyspace, "a", "1");
    stop_recording(f);
    put(f->store, f->keyspace, "b", "2");
    cut_power(f, ALL);
    cut(newest_log(f), 3);
    f->of_copy.read_only = true;
    for (int i = 0; i < 3; i++) { /* a store that is only read leaves it as it is */
        expect(f, STORE_LOG_TORN);
        assert_non_null(strstr(store_log_end(f->other).words,
                               "up to 100 ms of acknowledged writes before the stop may be "
                               "missing: of 0"));
        assert_non_null(strstr(store_log_end(f->other).words, "the log ends at byte "));
        assert_value(of_copy(f), "a", "1");
        assert_value(of_copy(f), "b", NULL);
        close_copy(f);
        f->of_copy.read_only = i == 0;
    }
    for (int i = 0; i < 3; i++) {
        expect(f, STORE_LOG_WHOLE);
        put(f->other, of_copy(f), "c", "3");
        assert_value(of_copy(f), "a", "1");
        close_copy(f);
    }
}

static void a_torn_end_of_what_asked_for_no_sync_has_its_own_words(void **state)
{
    struct fixture *f = *state;
    assert_ok(write_one(f->store, f->keyspace, PUT, "a", "1", STORE_ASYNC));
    assert_ok(write_one(f->store, f->keyspace, PUT, "b", "2", STORE_ASYNC));
    cut_power(f, ALL);
    cut(newest_log(f), 1);
    expect(f, STORE_LOG_TORN);
    assert_non_null(strstr(store_log_end(f->other).words, "before they were synced"));
}

/* Also bytes that a power cut has left as zeroes: the file had grown, they had not come. */
static void zeroes_at_the_end_are_a_torn_write(void **state)
{
    struct fixture *f = *state;
    put(f->store, f->keyspace, "a", "1");
    stop(f);
    for (off_t bytes = 1; bytes < 100000; bytes = 3 * bytes + 1) {
        cut_power(f, 0);
        cut(newest_log(f), -bytes);
        expect(f, STORE_LOG_TORN);
        assert_value(of_copy(f), "a", "1");
        close_copy(f);
    }
}

/* A kill takes nothing from what the system has; what then is served is on the disk. */
static void what_a_start_serves_is_synced(void **state)
{
    struct fixture *f = *state;
    assert_ok(write_one(f->store, f->keyspace, PUT, "a", "async", STORE_ASYNC));
    cut_power(f, ALL);
    struct fault_fs *fs = fault_fs_create();
    fault_fs_fail(fs, FAULT_SYNC, ".log", FAULT_IO, 0);
    assert_status(fault_fs_open(fs, &f->of_copy, &f->other), STATUS_UNAVAILABLE);
    fault_fs_heal(fs);
    assert_ok(fault_fs_open(fs, &f->of_copy, &f->other));
    assert_value(of_copy(f), "a", "async");
    close_copy(f);
    fault_fs_destroy(fs);
}

/* --- logs of former runs, and their end --- */

static void a_log_of_a_former_run_is_missed(void **state)
{
    struct fixture *f = *state;
    put(f->store, f->keyspace, "a", "1");
    cut_power(f, ALL);
    char *first = newest_log(f);
    expect(f, STORE_LOG_WHOLE);
    put(f->other, of_copy(f), "b", "2");
    close_copy(f);
    char *second = newest_log(f);
    assert_string_not_equal(first, second);
    free(second);
    expect(f, STORE_LOG_WHOLE);
    assert_value(of_copy(f), "a", "1");
    close_copy(f);
    cut(strdup(first), 1);
    expect_loss(f, " ends at byte ");
    take_away(first);
    expect_loss(f, " is gone");
}

/* Its torn end is no news, though RocksDB meets it each time: others have written since. */
static void a_torn_log_of_a_former_run_stops_no_start(void **state)
{
    struct fixture *f = *state;
    make_keyspace(f->store, 8);
    put(f->store, f->keyspace, "a", "1");
    stop(f);
    cut_power(f, 0);
    cut(newest_log(f), -10);
    expect(f, STORE_LOG_TORN);
    struct keyspace *other = store_keyspace_find(f->other, 8);
    put(f->other, other, "b", "2");
    assert_ok(keyspace_flush(other)); /* with that log: only the torn one is wanted any more */
    close_copy(f);
    for (int i = 0; i < 3; i++) {
        expect(f, STORE_LOG_WHOLE);
        assert_value(of_copy(f), "a", "1");
        assert_value(store_keyspace_find(f->other, 8), "b", "2");
        close_copy(f);
    }
    f->of_copy.read_only = true;
    expect(f, STORE_LOG_WHOLE);
}

/* RocksDB removes a log when all of it is in tables. */
static void a_log_that_is_not_needed_goes_without_a_word(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 5; i++) {
        put(f->store, f->keyspace, "a", "1");
        assert_ok(keyspace_flush(f->keyspace));
        cut_power(f, ALL);
        expect(f, STORE_LOG_WHOLE);
        assert_value(of_copy(f), "a", "1");
        close_copy(f);
    }
}

/* Or a start would miss it. */
static void a_log_that_cannot_be_taken_off_the_record_stays(void **state)
{
    struct fixture *f = *state;
    put(f->store, f->keyspace, "a", "1");
    stop(f);
    open_store(f);
    fault_fs_fail(f->fs, FAULT_SYNC, "SYNCED", FAULT_IO, 0);
    put(f->store, f->keyspace, "b", "2");
    assert_ok(keyspace_flush(f->keyspace));
    stop(f);
    fault_fs_heal(f->fs);
    cut_power(f, ALL);
    expect(f, STORE_LOG_WHOLE);
    assert_value(of_copy(f), "b", "2");
}

/* --- the file itself --- */

static void without_the_record_a_loss_is_possible(void **state)
{
    struct fixture *f = *state;
    put(f->store, f->keyspace, "a", "1");
    stop(f);
    cut_power(f, 0);
    take_away(path_in_copy(f, "SYNCED"));
    expect_loss(f, "the file SYNCED is missing, so that nobody can say");
    write_text(path_in_copy(f, "SYNCED"), "");
    expect_loss(f, "the file SYNCED is damaged");
    write_text(path_in_copy(f, "SYNCED"), "trestleStrestleStrestleStrestleStrestleS");
    expect_loss(f, "the file SYNCED is damaged");
}

/* Every byte of the one is flipped, while the other is whole. */
static void one_slot_is_enough(void **state)
{
    struct fixture *f = *state;
    put(f->store, f->keyspace, "a", "1");
    stop(f);
    open_store(f); /* by now both slots have been written */
    stop(f);
    cut_power(f, 0);
    char *path = path_in_copy(f, "SYNCED");
    long half = (long)size_of(path) / 2;
    for (int slot = 0; slot < 2; slot++) {
        for (long at = 0; at < 120; at += 13) {
            cut_power(f, 0);
            flip(path_in_copy(f, "SYNCED"), slot * half + at, 1);
            status s = open_copy(f);
            assert_ok(s);
            assert_value(of_copy(f), "a", "1");
            close_copy(f);
        }
    }
    flip(path_in_copy(f, "SYNCED"), 20, 1);
    flip(path_in_copy(f, "SYNCED"), half + 20, 1);
    expect_loss(f, "the file SYNCED is damaged");
    free(path);
}

/* The one that is being written when the power goes may be half of the old and half of the new. */
static void a_write_that_is_torn_leaves_the_other_slot(void **state)
{
    struct fixture *f = *state;
    put(f->store, f->keyspace, "a", "1");
    stop(f);
    open_store(f);
    fault_fs_fail(f->fs, FAULT_APPEND, "SYNCED", FAULT_IO, 0);
    put(f->store, f->keyspace, "b", "2");
    stop(f);
    fault_fs_heal(f->fs);
    open_store(f);
    assert_int_equal(store_log_end(f->store).verdict, STORE_LOG_WHOLE);
    assert_value(f->keyspace, "b", "2");
}

/* More logs and tables than a slot has room for. */
static void the_file_grows(void **state)
{
    struct fixture *f = *state;
    struct keyspace *idle = make_keyspace(f->store, 8);
    put(f->store, idle, "stays in the log", "1");
    for (int i = 0; i < 500; i++) {
        put(f->store, f->keyspace, "a", "1");
        assert_ok(keyspace_flush(f->keyspace));
    }
    stop(f);
    cut_power(f, 0);
    char *path = path_in_copy(f, "SYNCED");
    assert_true(size_of(path) > 16 << 10);
    free(path);
    expect(f, STORE_LOG_WHOLE);
    assert_value(store_keyspace_find(f->other, 8), "stays in the log", "1");
}

/* --- failures --- */

/* No write fails because of it. */
static void a_record_that_fails_stops_no_writes(void **state)
{
    struct fixture *f = *state;
    static const enum fault_operation operations[] = {FAULT_APPEND, FAULT_SYNC};
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        unsigned before = fault_fs_failures(f->fs);
        fault_fs_fail(f->fs, operations[i], "SYNCED", FAULT_NO_SPACE, 0);
        put(f->store, f->keyspace, "a", "1");
        for (int j = 0; j < WAITS && fault_fs_failures(f->fs) == before; j++)
            poll(NULL, 0, 10);
        assert_true(fault_fs_failures(f->fs) > before);
        put(f->store, f->keyspace, "a", "2");
        assert_ok(store_health(f->store));
        fault_fs_heal(f->fs);
    }
    stop(f);
    cut_power(f, 0);
    expect(f, STORE_LOG_WHOLE);
    assert_value(of_copy(f), "a", "2");
}

/* Found by CI: a disk whose sync failed fenced the store, which then also complained of its record,
 * for good, if the thread that records had just met the same disk. */
static void a_fenced_store_has_nothing_to_record(void **state)
{
    struct fixture *f = *state;
    stop_recording(f);
    put(f->store, f->keyspace, "a", "1");
    for (int i = 0; i < WAITS && store_records_log_end(f->store); i++)
        poll(NULL, 0, 10);
    assert_false(store_records_log_end(f->store));
    store_fence(f->store, "the disk is gone");
    assert_true(store_records_log_end(f->store));
}

/* Each operation on each file fails, one after the other, and from then on. Each time on a copy: a
 * start leaves a log behind, and the next one reads one file more. */
static void a_start_that_fails_changes_nothing(void **state)
{
    struct fixture *f = *state;
    static const enum fault_operation operations[] = {FAULT_CREATE, FAULT_APPEND, FAULT_SYNC,
                                                      FAULT_SYNC_DIRECTORY, FAULT_READ};
    put(f->store, f->keyspace, "a", "1");
    stop(f);
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        bool has_failed = true;
        for (unsigned pass = 0; has_failed; pass++) {
            assert_in_range(pass, 0, 60);
            cut_power(f, 0);
            struct fault_fs *fs = fault_fs_create();
            fault_fs_fail(fs, operations[i], "", FAULT_IO, pass);
            status s = fault_fs_open(fs, &f->of_copy, &f->other);
            if (status_is_ok(s))
                close_copy(f);
            status_free(s);
            has_failed = fault_fs_failures(fs) > 0;
            fault_fs_destroy(fs);
            expect(f, STORE_LOG_WHOLE);
            assert_value(of_copy(f), "a", "1");
            close_copy(f);
        }
    }
}

/* --- salvage --- */

static void a_salvage_brings_back_all_but_what_is_damaged(void **state)
{
    struct fixture *f = *state;
    char value[40001], key[8];
    memset(value, 'v', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    for (int i = 0; i < 10; i++) {
        snprintf(key, sizeof key, "k%d", i);
        put(f->store, f->keyspace, key, value);
    }
    stop(f);
    cut_power(f, 0);
    flip(newest_log(f), 100000, 1); /* in the third record */
    expect_loss(f, "; 7 whole commits are behind the damage; not to be read: bytes 80");
    f->of_copy.salvage = true;
    for (int read_only = 1; read_only >= 0; read_only--) {
        f->of_copy.read_only = read_only != 0;
        expect(f, STORE_LOG_LOST);
        for (int i = 0; i < 10; i++) {
            snprintf(key, sizeof key, "k%d", i);
            assert_value(of_copy(f), key, i == 2 ? NULL : value);
        }
        if (read_only)
            close_copy(f);
    }
    assert_ok(store_accept_loss(f->other));
    put(f->other, of_copy(f), "k2", "again");
    close_copy(f);
    f->of_copy.salvage = false;
    expect(f, STORE_LOG_WHOLE); /* what was lost is settled */
    assert_value(of_copy(f), "k1", value);
    assert_value(of_copy(f), "k2", "again");
}

static void a_salvage_goes_on_without_a_log_that_is_gone(void **state)
{
    struct fixture *f = *state;
    put(f->store, f->keyspace, "in a table", "1");
    assert_ok(keyspace_flush(f->keyspace));
    put(f->store, f->keyspace, "in the log", "2");
    put(f->store, make_keyspace(f->store, 8), "in the log", "2");
    assert_ok(keyspace_flush(f->keyspace)); /* that log is not the latest, and still needed */
    put(f->store, f->keyspace, "in the next", "3");
    stop(f);
    cut_power(f, 0);
    char *path = path_in_copy(f, "*.log");
    glob_t logs;
    assert_int_equal(glob(path, 0, NULL, &logs), 0);
    assert_true(logs.gl_pathc > 1);
    take_away(strdup(logs.gl_pathv[0]));
    globfree(&logs);
    free(path);
    expect_loss(f, " is gone");
    f->of_copy.salvage = true;
    expect(f, STORE_LOG_LOST);
    assert_value(of_copy(f), "in a table", "1");
    assert_value(of_copy(f), "in the next", "3");
    assert_value(store_keyspace_find(f->other, 8), "in the log", NULL);
    assert_ok(store_accept_loss(f->other));
    close_copy(f);
    f->of_copy.salvage = false;
    expect(f, STORE_LOG_WHOLE);
}

/* One that was killed before its loss was accepted, as often as that happens. */
static void a_salvage_that_is_not_finished_begins_again(void **state)
{
    struct fixture *f = *state;
    put(f->store, f->keyspace, "a", "1");
    put(f->store, f->keyspace, "b", "2");
    assert_ok(keyspace_flush(f->keyspace));
    put(f->store, f->keyspace, "c", "3");
    put(f->store, f->keyspace, "d", "4");
    stop(f);
    cut_power(f, 0);
    flip(newest_log(f), -10, 1);
    f->of_copy.salvage = true;
    for (int i = 0; i < 3; i++) {
        expect(f, STORE_LOG_LOST);
        assert_non_null(strstr(store_log_end(f->other).words, " is damaged at byte "));
        assert_value(of_copy(f), "b", "2");
        assert_value(of_copy(f), "c", "3");
        assert_value(of_copy(f), "d", NULL);
        put(f->other, of_copy(f), "e", "5");
        assert_ok(keyspace_flush(of_copy(f))); /* the damaged log is not needed any more */
        close_copy(f);
    }
    f->of_copy.salvage = false;
    expect_loss(f, " is damaged at byte ");
    f->of_copy.salvage = true;
    expect(f, STORE_LOG_LOST);
    assert_ok(store_accept_loss(f->other));
    close_copy(f);
    f->of_copy.salvage = false;
    expect(f, STORE_LOG_WHOLE);
    assert_value(of_copy(f), "c", "3");
    assert_value(of_copy(f), "e", "5");
}

/* RocksDB takes nothing of the logs behind a damaged one, deletes them, and does not open if a
 * table has more than that. */
static void a_salvage_goes_on_behind_a_damaged_log(void **state)
{
    struct fixture *f = *state;
    struct keyspace *other = make_keyspace(f->store, 8);
    put(f->store, f->keyspace, "before", "1");
    put(f->store, f->keyspace, "damaged", "2");
    put(f->store, other, "in a table", "3");
    assert_ok(keyspace_flush(other));
    put(f->store, f->keyspace, "in the next log", "4");
    stop(f);
    cut_power(f, 0);
    char *pattern = path_in_copy(f, "*.log");
    glob_t logs;
    assert_int_equal(glob(pattern, 0, NULL, &logs), 0);
    assert_int_equal(logs.gl_pathc, 2);
    flip(strdup(logs.gl_pathv[0]), size_of(logs.gl_pathv[0]) / 2, 1);
    globfree(&logs);
    free(pattern);
    expect_loss(f, " is damaged at byte ");
    f->of_copy.salvage = true;
    for (int read_only = 1; read_only >= 0; read_only--) {
        f->of_copy.read_only = read_only != 0;
        expect(f, STORE_LOG_LOST);
        assert_value(of_copy(f), "before", "1");
        assert_value(of_copy(f), "damaged", NULL);
        assert_value(store_keyspace_find(f->other, 8), "in a table", "3");
        assert_value(of_copy(f), "in the next log", "4");
        if (read_only)
            close_copy(f);
    }
}

static void a_salvage_makes_the_record_again(void **state)
{
    struct fixture *f = *state;
    put(f->store, f->keyspace, "a", "1");
    stop(f);
    cut_power(f, 0);
    take_away(path_in_copy(f, "SYNCED"));
    f->of_copy.salvage = true;
    expect(f, STORE_LOG_LOST);
    assert_value(of_copy(f), "a", "1");
    assert_ok(store_accept_loss(f->other));
    close_copy(f);
    f->of_copy.salvage = false;
    expect(f, STORE_LOG_WHOLE);
    assert_value(of_copy(f), "a", "1");
}

/* --- commits that are there twice --- */

/* Found by the breaker of issue 20: a log appended to itself, and a copy of the live log under a
 * later number, had commits twice. RocksDB ended the process with an assertion, in the doctor and
 * in every start, with --salvage as well. */

static void append_to(const char *path, const char *from)
{
    char *bytes = NULL;
    off_t size = size_of(from);
    FILE *file = fopen(from, "r");
    assert_non_null(file);
    bytes = malloc((size_t)size);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, (size_t)size, file), size);
    assert_int_equal(fclose(file), 0);
    file = fopen(path, "a");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, (size_t)size, file), size);
    assert_int_equal(fclose(file), 0);
    free(bytes);
}

/* The copy is of a store that has stopped, with one log. */
static void stop_with_a_log(struct fixture *f)
{
    put(f->store, f->keyspace, "a", "1");
    put(f->store, f->keyspace, "b", "2");
    assert_ok(write_one(f->store, f->keyspace, DELETE, "b", NULL, STORE_SYNCED));
    stop(f);
    cut_power(f, 0);
}

/* A start refuses with these words; an opening for reading sees each commit once, and so does a
 * salvage, after which nothing is wrong. */
static void expect_twice(struct fixture *f, const char *words)
{
    expect_loss(f, words);
    f->of_copy.salvage = true;
    for (int read_only = 1; read_only >= 0; read_only--) {
        f->of_copy.read_only = read_only != 0;
        expect(f, STORE_LOG_LOST);
        assert_non_null(strstr(store_log_end(f->other).words, words));
        assert_null(strstr(store_log_end(f->other).words, "last synced commit"));
        assert_value(of_copy(f), "a", "1");
        assert_value(of_copy(f), "b", NULL);
        if (read_only)
            close_copy(f);
    }
    assert_ok(store_accept_loss(f->other));
    put(f->other, of_copy(f), "c", "3");
    close_copy(f);
    f->of_copy.salvage = false;
    expect(f, STORE_LOG_WHOLE);
    assert_value(of_copy(f), "a", "1");
    assert_value(of_copy(f), "c", "3");
    close_copy(f);
}

/* The name of the file that is left beside the logs begins so. */
static void assert_kept(struct fixture *f, const char *name)
{
    char *path = path_in_copy(f, name);
    assert_true(size_of(path) > 0);
    free(path);
}

static void a_log_appended_to_itself_is_told(void **state)
{
    struct fixture *f = *state;
    char words[128], kept[64];
    stop_with_a_log(f);
    char *log = newest_log(f);
    snprintf(words, sizeof words, "write-ahead log %s has commits again from byte %lld on",
             strrchr(log, '/') + 1, (long long)size_of(log));
    snprintf(kept, sizeof kept, "%s.damaged", strrchr(log, '/') + 1);
    append_to(log, log);
    free(log);
    expect_twice(f, words);
    assert_kept(f, kept);
}

static void a_copy_of_a_log_is_told(void **state)
{
    struct fixture *f = *state;
    static const char *const names[] = {"900000.log", "000001.log"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char words[128], kept[64];
        if (f->store == NULL)
            open_store(f);
        stop_with_a_log(f);
        char *log = newest_log(f);
        char *copy = path_in_copy(f, names[i]);
        append_to(copy, log);
        free(copy);
        free(log);
        snprintf(words, sizeof words, "write-ahead log %s has commits again from byte 0 on",
                 names[i]);
        snprintf(kept, sizeof kept, "%s.damaged", names[i]);
        expect_twice(f, words);
        assert_kept(f, kept);
    }
}

/* Each has commits above those of the one before, whatever was written between them. */
static void logs_one_after_the_other_are_whole(void **state)
{
    struct fixture *f = *state;
    struct keyspace *idle = make_keyspace(f->store, 8);
    put(f->store, idle, "stays in the log", "1");
    for (int i = 0; i < 4; i++) {
        put(f->store, f->keyspace, "a", "1");
        assert_ok(write_one(f->store, f->keyspace, DELETE, "a", NULL, STORE_SYNCED));
        assert_ok(keyspace_flush(f->keyspace));
        cut_power(f, ALL);
        expect(f, STORE_LOG_WHOLE);
        put(f->other, of_copy(f), "b", "2");
        close_copy(f);
        expect(f, STORE_LOG_WHOLE);
        close_copy(f);
    }
}

/* --- a directory of the format before --- */

static void a_former_format_becomes_the_present_one(void **state)
{
    struct fixture *f = *state;
    put(f->store, f->keyspace, "a", "1");
    cut_power(f, ALL);
    write_text(path_in_copy(f, "FORMAT"), "trestle 1\n");
    take_away(path_in_copy(f, "SYNCED"));
    f->of_copy.read_only = true;
    expect(f, STORE_LOG_WHOLE);
    close_copy(f);
    assert_format(f, "trestle 1\n"); /* a store that is only read changes nothing */
    f->of_copy.read_only = false;
    expect(f, STORE_LOG_WHOLE);
    assert_value(of_copy(f), "a", "1");
    assert_format(f, "trestle 9\n");
    put(f->other, of_copy(f), "b", "2");
    close_copy(f);
    take_away(newest_log(f));
    expect_loss(f, " is gone");
}

/* An upgrade that was killed before its last step, after which a former program went on. */
static void a_record_of_a_former_format_says_nothing(void **state)
{
    struct fixture *f = *state;
    put(f->store, f->keyspace, "a", "1");
    stop(f);
    cut_power(f, 0);
    write_text(path_in_copy(f, "FORMAT"), "trestle 1\n");
    take_away(newest_log(f));
    expect(f, STORE_LOG_WHOLE);
}

static void is_upgraded(struct fixture *f)
{
    f->of_copy.directory = f->copy;
    expect(f, STORE_LOG_WHOLE);
    assert_value(of_copy(f), "a", "1");
    assert_format(f, "trestle 9\n");
    close_copy(f);
}

/* An upgrade in which an operation fails, and all of that kind after it. The directory that a kill
 * leaves is taken up again, as are those that a power cut leaves, with all and with nothing of what
 * was not synced. */
static bool upgrade_is_cut(struct fixture *f, enum fault_operation operation, unsigned pass)
{
    struct fault_fs *fs = fault_fs_create();
    fault_fs_fail(fs, operation, "", FAULT_IO, pass);
    status s = fault_fs_open(fs, &f->of_copy, &f->other);
    if (status_is_ok(s))
        close_copy(f);
    status_free(s);
    bool has_failed = fault_fs_failures(fs) > 0;
    char *killed = f->copy;
    for (int i = 0; i < 2; i++) {
        f->copy = make_directory();
        fault_fs_cut_power(fs, killed, f->copy, i == 0 ? 0 : ALL);
        is_upgraded(f);
        remove_directory(f->copy);
    }
    f->copy = killed;
    fault_fs_destroy(fs);
    is_upgraded(f);
    return has_failed;
}

static void an_upgrade_is_taken_up_again(void **state)
{
    struct fixture *f = *state;
    static const enum fault_operation operations[] = {FAULT_CREATE, FAULT_APPEND, FAULT_SYNC,
                                                      FAULT_SYNC_DIRECTORY};
    put(f->store, f->keyspace, "a", "1");
    stop(f);
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        bool has_failed = true;
        for (unsigned pass = 0; has_failed; pass++) {
            assert_in_range(pass, 0, 60);
            cut_power(f, 0);
            write_text(path_in_copy(f, "FORMAT"), "trestle 1\n");
            take_away(path_in_copy(f, "SYNCED"));
            has_failed = upgrade_is_cut(f, operations[i], pass);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(after_an_orderly_end_there_is_nothing_to_lose),
        TEST(what_is_flipped_after_an_orderly_end_is_a_loss),
        TEST(what_is_cut_after_an_orderly_end_is_a_loss),
        TEST(a_log_that_is_gone_is_a_loss),
        TEST(the_last_commit_was_before_the_stop),
        TEST(a_checkpoint_that_goes_forgets_no_log),
        TEST(the_thread_records_within_a_while),
        TEST(a_torn_write_is_told_once),
        TEST(a_torn_end_of_what_asked_for_no_sync_has_its_own_words),
        TEST(zeroes_at_the_end_are_a_torn_write),
        TEST(what_a_start_serves_is_synced),
        TEST(a_log_of_a_former_run_is_missed),
        TEST(a_torn_log_of_a_former_run_stops_no_start),
        TEST(a_log_that_is_not_needed_goes_without_a_word),
        TEST(a_log_that_cannot_be_taken_off_the_record_stays),
        TEST(without_the_record_a_loss_is_possible),
        TEST(one_slot_is_enough),
        TEST(a_write_that_is_torn_leaves_the_other_slot),
        TEST(the_file_grows),
        TEST(a_record_that_fails_stops_no_writes),
        TEST(a_fenced_store_has_nothing_to_record),
        TEST(a_start_that_fails_changes_nothing),
        TEST(a_salvage_brings_back_all_but_what_is_damaged),
        TEST(a_salvage_goes_on_without_a_log_that_is_gone),
        TEST(a_salvage_that_is_not_finished_begins_again),
        TEST(a_salvage_goes_on_behind_a_damaged_log),
        TEST(a_salvage_makes_the_record_again),
        TEST(a_log_appended_to_itself_is_told),
        TEST(a_copy_of_a_log_is_told),
        TEST(logs_one_after_the_other_are_whole),
        TEST(a_former_format_becomes_the_present_one),
        TEST(a_record_of_a_former_format_says_nothing),
        TEST(an_upgrade_is_taken_up_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
