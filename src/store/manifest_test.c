/* What a start makes of a manifest, a CURRENT and a FORMAT that are gone, cut or damaged. */
#include "store/check.h"
#include "store/testing/log_ends_testing.h"

static void is_refused(struct fixture *f, const char *words)
{
    expect_loss(f, words);
    expect_loss(f, "With --salvage the server");
}

static void check_says(struct fixture *f, const char *words)
{
    status s = store_check_log_end(&f->of_copy);
    assert_non_null(strstr(status_message(s), words));
    assert_status(s, STATUS_DATA_LOSS);
}

static void is_brought_back(struct fixture *f)
{
    f->of_copy.salvage = true;
    for (int i = 0; i < 2; i++) {
        expect(f, STORE_LOG_WHOLE);
        assert_value(of_copy(f), "in a table", "1");
        assert_value(of_copy(f), "in the log", "2");
        close_copy(f);
        f->of_copy.salvage = false; /* once is enough */
    }
}

/* A store with a table that only the end of its manifest names. */
static void stop_with_a_table(struct fixture *f)
{
    put(f->store, f->keyspace, "in a table", "1");
    assert_ok(keyspace_flush(f->keyspace));
    put(f->store, f->keyspace, "in the log", "2");
    stop(f);
}

/* The path of what CURRENT names, and what comes behind it; the caller frees it. */
static char *manifest_of(struct fixture *f, const char *suffix)
{
    char text[64] = "";
    char name[96];
    char *current = path_in_copy(f, "CURRENT");
    FILE *file = fopen(current, "r");
    assert_non_null(file);
    assert_non_null(fgets(text, sizeof text, file));
    assert_int_equal(fclose(file), 0);
    free(current);
    text[strcspn(text, "\n")] = '\0';
    snprintf(name, sizeof name, "%s%s", text, suffix);
    return path_in_copy(f, name);
}

/* RocksDB would take that for its end, and delete the table. */
static void a_manifest_that_is_cut_is_brought_back(void **state)
{
    struct fixture *f = *state;
    stop_with_a_table(f);
    for (int bytes = 1; bytes < 200; bytes = 2 * bytes + 1) {
        cut_power(f, 0);
        cut(manifest_of(f, ""), bytes);
        is_refused(f, "is damaged, or ends, at byte");
        is_brought_back(f);
    }
}

static void a_manifest_that_is_flipped_is_brought_back(void **state)
{
    struct fixture *f = *state;
    stop_with_a_table(f);
    for (int at = 0; at < 200; at = 2 * at + 7) {
        cut_power(f, 0);
        flip(manifest_of(f, ""), at, 1);
        is_refused(f, "MANIFEST-0000");
        is_brought_back(f);
    }
}

static void a_manifest_that_is_gone_is_brought_back(void **state)
{
    struct fixture *f = *state;
    stop_with_a_table(f);
    cut_power(f, 0);
    take_away(manifest_of(f, ""));
    is_refused(f, "is missing, or damaged from its beginning");
    is_brought_back(f);
}

static void without_a_copy_a_manifest_is_not_brought_back(void **state)
{
    struct fixture *f = *state;
    stop_with_a_table(f);
    f->of_copy.salvage = true;
    cut_power(f, 0);
    flip(manifest_of(f, ".copy"), 30, 1);
    expect(f, STORE_LOG_WHOLE); /* it is not needed */
    close_copy(f);
    cut_power(f, 0);
    flip(manifest_of(f, ".copy"), 30, 1);
    take_away(manifest_of(f, ""));
    f->of_copy.salvage = false; /* old_data_test.c has what a salvage makes of it */
    expect_loss(f, "and so is its copy");
}

static void a_current_that_is_gone_or_wrong_is_made_again(void **state)
{
    struct fixture *f = *state;
    static const char *const contents[] = {"", "garbage\n", "MANIFEST-000001\n", "MANIFEST-00000"};
    stop_with_a_table(f);
    for (size_t i = 0; i <= sizeof contents / sizeof *contents; i++) {
        cut_power(f, 0);
        if (i == 0)
            take_away(path_in_copy(f, "CURRENT"));
        else
            write_text(path_in_copy(f, "CURRENT"), contents[i - 1]);
        is_refused(f, "the file CURRENT ");
        is_brought_back(f);
    }
}

static void a_format_that_is_gone_or_wrong_is_made_again(void **state)
{
    struct fixture *f = *state;
    static const char *const contents[] = {"", "garbage\n", "trestle \n", "trestle 3"};
    stop_with_a_table(f);
    for (size_t i = 0; i <= sizeof contents / sizeof *contents; i++) {
        cut_power(f, 0);
        if (i == 0)
            take_away(path_in_copy(f, "FORMAT"));
        else
            write_text(path_in_copy(f, "FORMAT"), contents[i - 1]);
        is_refused(f, "the file FORMAT is ");
        is_brought_back(f);
        assert_format(f, "trestle 9\n");
    }
    cut_power(f, 0);
    write_text(path_in_copy(f, "FORMAT"), "trestle 10\n");
    f->of_copy.salvage = true;
    assert_status(open_copy(f), STATUS_FAILED_PRECONDITION);
}

/* The manifest's copy says whose directory it is; what else is lost SYNCED would have said. */
static void a_format_and_synced_that_are_gone_are_made_again(void **state)
{
    struct fixture *f = *state;
    stop_with_a_table(f);
    cut_power(f, 0);
    take_away(path_in_copy(f, "FORMAT"));
    take_away(path_in_copy(f, "SYNCED"));
    is_refused(f, "the file FORMAT is missing");
    f->of_copy.salvage = true;
    expect(f, STORE_LOG_LOST);
    assert_value(of_copy(f), "in a table", "1");
    assert_value(of_copy(f), "in the log", "2");
    assert_ok(store_accept_loss(f->other));
    close_copy(f);
    f->of_copy.salvage = false;
    expect(f, STORE_LOG_WHOLE);
    close_copy(f);
    assert_format(f, "trestle 9\n");
}

/* RocksDB would take what is left of it for all of it, and delete the table. Where the copy has
 * more it counts. */
static void a_manifest_without_synced_comes_back_from_its_copy(void **state)
{
    struct fixture *f = *state;
    stop_with_a_table(f);
    for (int bytes = 0; bytes < 300; bytes = 2 * bytes + 1) {
        cut_power(f, 0);
        take_away(path_in_copy(f, "SYNCED"));
        if (bytes == 0)
            take_away(manifest_of(f, ""));
        else
            cut(manifest_of(f, ""), bytes);
        expect_loss(f, "With --salvage the server");
        f->of_copy.salvage = true;
        expect(f, STORE_LOG_LOST);
        assert_value(of_copy(f), "in a table", "1");
        assert_value(of_copy(f), "in the log", "2");
        assert_ok(store_accept_loss(f->other));
        close_copy(f);
        f->of_copy.salvage = false;
    }
}

/* A copy that cannot be written is none, and harms nothing. */
static void a_copy_that_fails_stops_no_writes(void **state)
{
    struct fixture *f = *state;
    static const enum fault_operation operations[] = {FAULT_CREATE, FAULT_APPEND, FAULT_SYNC};
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        stop(f);
        fault_fs_fail(f->fs, operations[i], ".copy", FAULT_NO_SPACE, 0);
        open_store(f);
        put(f->store, f->keyspace, "a", "1");
        assert_ok(keyspace_flush(f->keyspace));
        stop(f);
        fault_fs_heal(f->fs);
        cut_power(f, 0);
        expect(f, STORE_LOG_WHOLE);
        assert_value(of_copy(f), "a", "1");
        close_copy(f);
        open_store(f);
    }
}

/* Each operation fails, and all of that kind after it. */
static void a_manifest_is_brought_back_in_several_attempts(void **state)
{
    struct fixture *f = *state;
    static const enum fault_operation operations[] = {FAULT_CREATE, FAULT_APPEND, FAULT_SYNC,
                                                      FAULT_SYNC_DIRECTORY};
    stop_with_a_table(f);
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        bool has_failed = true;
        for (unsigned pass = 0; has_failed; pass++) {
            assert_in_range(pass, 0, 60);
            cut_power(f, 0);
            flip(manifest_of(f, ""), 30, 1);
            f->of_copy.salvage = true;
            struct fault_fs *fs = fault_fs_create();
            fault_fs_fail(fs, operations[i], "", FAULT_IO, pass);
            status s = fault_fs_open(fs, &f->of_copy, &f->other);
            if (status_is_ok(s))
                close_copy(f);
            status_free(s);
            has_failed = fault_fs_failures(fs) > 0;
            fault_fs_destroy(fs);
            is_brought_back(f);
        }
    }
}

/* A store that is closed looks whether its manifest is as long as it left it, and makes another one
 * if it is not; RocksDB 9.10 also if it is gone. The directory had been emptied below a server, or
 * was another disk's. */
/* Who is told to start with --salvage is told of all that this would go on without. */
static void what_the_log_has_lost_is_told_beside_it(void **state)
{
    struct fixture *f = *state;
    static const char *const files[] = {"MANIFEST", "CURRENT", "FORMAT"};
    stop_with_a_table(f);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        cut_power(f, 0);
        take_away(i == 0 ? manifest_of(f, "") : path_in_copy(f, files[i]));
        is_refused(f, files[i]);
        is_refused(f, "nothing is lost by that");
        cut(newest_log(f), 1);
        is_refused(f, files[i]);
        is_refused(f, "It also starts without this: write-ahead log ");
        check_says(f, "It also starts without this: write-ahead log ");
        f->of_copy.salvage = true;
        expect(f, STORE_LOG_LOST);
        close_copy(f);
        f->of_copy.salvage = false;
    }
}

static void an_abandoned_directory_gets_no_manifest(void **state)
{
    struct fixture *f = *state;
    stop_with_a_table(f);
    for (int is_cut = 0; is_cut < 2; is_cut++) {
        cut_power(f, 0);
        expect(f, STORE_LOG_WHOLE);
        char *before = manifest_of(f, "");
        store_fence(f->other, "the directory is gone");
        if (is_cut)
            cut(manifest_of(f, ""), 1);
        else
            take_away(manifest_of(f, ""));
        close_copy(f);
        char *after = manifest_of(f, "");
        assert_string_equal(after, before);
        free(before);
        free(after);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_manifest_that_is_cut_is_brought_back),
        TEST(a_manifest_that_is_flipped_is_brought_back),
        TEST(a_manifest_that_is_gone_is_brought_back),
        TEST(without_a_copy_a_manifest_is_not_brought_back),
        TEST(a_current_that_is_gone_or_wrong_is_made_again),
        TEST(a_format_that_is_gone_or_wrong_is_made_again),
        TEST(a_format_and_synced_that_are_gone_are_made_again),
        TEST(a_manifest_without_synced_comes_back_from_its_copy),
        TEST(a_copy_that_fails_stops_no_writes),
        TEST(a_manifest_is_brought_back_in_several_attempts),
        TEST(what_the_log_has_lost_is_told_beside_it),
        TEST(an_abandoned_directory_gets_no_manifest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
