/* Tests of a copy that is taken on in its place: whole or as it was, with a disk that fails, after
 * kills, and beside directories that are not ours. store_open goes to files that fail. */
#include "backup/replay.h"

#include "backup/unfinished.h"
#include "store/testing/testing.h"
#include "store/testing/wrapped_open_testing.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { KEYSPACE = 7, ALL_OF_THE_FIRST = 30, MOST_FAULTS = 10000 };

struct fixture {
    char *directory; /* of all that follows */
    char data[128];
    char replaying[160];
    char former[160];
    char identity[STORE_IDENTITY_SIZE];
    struct fault_fs *fs;
    struct store *other; /* whose files fail */
    status outcome;      /* of what is done to the store */
    bool is_killed;      /* instead */
};

static unsigned told; /* of what was left */

static void note_left(const char *path)
{
    assert_non_null(path);
    told++;
}

/* --- the copy --- */

static void write_file(const char *path, const char *content)
{
    assert_ok(files_replace(files_of_system(), path, bytes_of(content)));
}

static void make_directories(const char *path)
{
    assert_ok(files_make_directory(files_of_system(), path));
}

static void make_backup(struct fixture *f)
{
    char path[192];
    snprintf(path, sizeof path, "%s/backups", f->data);
    make_directories(path);
    snprintf(path, sizeof path, "%s/backups/b", f->data);
    make_directories(path);
    snprintf(path, sizeof path, "%s/backups/b/file", f->data);
    write_file(path, "kept");
}

/* A row in a table, one in the log. */
static void make_copy(struct fixture *f)
{
    struct store_options options = test_options(f->data);
    struct store *store;
    assert_ok(store_open(&options, &store));
    make_keyspace(store, 1); /* the catalog's */
    struct keyspace *keyspace = make_keyspace(store, KEYSPACE);
    put(store, keyspace, "a", "in a table");
    assert_ok(keyspace_flush(keyspace));
    put(store, keyspace, "b", "in the log");
    assert_ok(store_identity(store, f->identity));
    store_close(store);
    make_backup(f);
}

static void look_at_copy(struct fixture *f, bool *is_taken_on)
{
    struct store_options options = test_options(f->data);
    char identity[STORE_IDENTITY_SIZE], path[192];
    struct store_value value;
    enum store_presence presence;
    struct store *store;
    struct stat look;
    assert_ok(store_open(&options, &store));
    struct keyspace *keyspace = store_keyspace_find(store, KEYSPACE);
    assert_non_null(keyspace);
    assert_value(keyspace, "a", "in a table");
    assert_value(keyspace, "b", "in the log");
    assert_ok(store_get(keyspace, NULL, bytes_of("c"), STORE_READ_ANY, &value, &presence));
    store_value_release(&value);
    assert_ok(store_identity(store, identity));
    store_close(store);
    *is_taken_on = presence == STORE_FOUND;
    assert_int_equal(strcmp(identity, f->identity) != 0, *is_taken_on);
    snprintf(path, sizeof path, "%s/backups/b/file", f->data);
    assert_int_equal(stat(path, &look), 0);
    assert_int_equal(look.st_size, strlen("kept"));
}

static bool is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

static void assert_copy(struct fixture *f, bool is_taken_on)
{
    bool is;
    assert_false(is_there(f->replaying));
    assert_false(is_there(f->former));
    look_at_copy(f, &is);
    assert_int_equal(is, is_taken_on);
}

/* Where no sync waits for a disk, if there is such a place. */
static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    if (access("/dev/shm", W_OK) == 0)
        assert_int_equal(setenv("TMPDIR", "/dev/shm", 1), 0);
    f->directory = make_directory();
    snprintf(f->data, sizeof f->data, "%s/data", f->directory);
    snprintf(f->replaying, sizeof f->replaying, "%s.replaying", f->data);
    snprintf(f->former, sizeof f->former, "%s.former", f->data);
    make_copy(f);
    told = 0;
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    remove_directory(f->directory);
    free(f);
    return 0;
}

/* --- taking it on --- */

static status take_on(void *context, struct store *store, const char *directory)
{
    struct fixture *f = context;
    assert_string_equal(directory, f->replaying);
    struct keyspace *keyspace = store_keyspace_find(store, KEYSPACE);
    assert_non_null(keyspace);
    TRY(write_one(store, keyspace, PUT, "c", "taken on", STORE_SYNCED));
    if (f->is_killed) /* RocksDB's own threads, which would flush, are not in a child */
        kill(getpid(), SIGKILL);
    TRY(keyspace_flush(keyspace));
    status s = f->outcome;
    f->outcome = status_ok();
    return s;
}

static status replay_on(struct fixture *f, struct files *files)
{
    const struct directory_replay order = {.files = files,
                                           .directory = f->data,
                                           .log = test_log(),
                                           .take_on = take_on,
                                           .context = f,
                                           .tell = note_left};
    return directory_replay(&order);
}

static status replay(struct fixture *f)
{
    return replay_on(f, files_of_system());
}

static void a_copy_is_taken_on_in_its_place(void **state)
{
    struct fixture *f = *state;
    char path[192];
    struct stat about;
    assert_int_equal(chmod(f->data, 0710), 0);
    assert_ok(replay(f));
    assert_int_equal(stat(f->data, &about), 0);
    assert_int_equal(about.st_mode & 07777, 0710);
    assert_copy(f, true);
    assert_int_equal(told, 0);
    snprintf(path, sizeof path, "%s/UNFINISHED", f->data);
    assert_false(is_there(path));
}

static void a_failed_replay_leaves_the_copy_as_it_was(void **state)
{
    struct fixture *f = *state;
    f->outcome = status_make(STATUS_DATA_LOSS, "a piece is damaged");
    assert_status(replay(f), STATUS_DATA_LOSS);
    assert_copy(f, false);
    assert_ok(replay(f));
    assert_copy(f, true);
}

/* Files of which it would write to the very same. */
static void changes_for_the_archive_are_left_out(void **state)
{
    struct fixture *f = *state;
    char path[192];
    snprintf(path, sizeof path, "%s/archive", f->data);
    make_directories(path);
    snprintf(path, sizeof path, "%s/archive/9-0", f->data);
    write_file(path, "kept");
    assert_ok(replay(f));
    assert_false(is_there(path));
}

/* --- others --- */

static void a_directory_in_the_way_is_left_alone(void **state)
{
    struct fixture *f = *state;
    char path[192];
    const char *const places[] = {f->replaying, f->former};
    for (size_t i = 0; i < 2; i++) {
        make_directories(places[i]);
        snprintf(path, sizeof path, "%s/file", places[i]);
        write_file(path, "somebody's");
        assert_status(replay(f), STATUS_FAILED_PRECONDITION);
        assert_true(is_there(path));
        assert_int_equal(unlink(path), 0);
    }
    assert_ok(replay(f)); /* they are empty */
    assert_copy(f, true);
    assert_int_equal(told, 0);
}

static void a_directory_in_use_is_refused(void **state)
{
    struct fixture *f = *state;
    struct store_options options = test_options(f->data);
    struct store *store;
    assert_ok(store_open(&options, &store));
    assert_status(replay(f), STATUS_FAILED_PRECONDITION);
    store_close(store);
    assert_copy(f, false);
}

static void another_replay_under_way_is_not_removed(void **state)
{
    struct fixture *f = *state;
    struct files_lock *lock;
    make_directories(f->replaying);
    assert_ok(unfinished_mark(files_of_system(), f->replaying, "another"));
    assert_ok(files_lock_directory(files_of_system(), f->replaying, &lock));
    assert_status(replay(f), STATUS_FAILED_PRECONDITION);
    files_unlock_directory(files_of_system(), lock);
    assert_true(is_there(f->replaying));
    assert_ok(replay(f));
    assert_copy(f, true);
}

static void a_missing_one_is_not_made(void **state)
{
    struct fixture *f = *state;
    const struct directory_replay order = {.files = files_of_system(),
                                           .directory = f->former,
                                           .log = test_log(),
                                           .take_on = take_on,
                                           .context = f};
    assert_status(directory_replay(&order), STATUS_NOT_FOUND);
    assert_false(is_there(f->former));
}

/* --- kills --- */

static void a_killed_replay_is_removed(void **state)
{
    struct fixture *f = *state;
    int outcome;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        f->is_killed = true;
        status_ignore(replay(f));
        _exit(1);
    }
    assert_int_equal(waitpid(child, &outcome, 0), child);
    assert_true(WIFSIGNALED(outcome) && WTERMSIG(outcome) == SIGKILL);
    assert_true(is_there(f->replaying));
    assert_ok(replay(f));
    assert_int_equal(told, 1);
    assert_copy(f, true);
}

static void a_replay_killed_between_renames_is_undone(void **state)
{
    struct fixture *f = *state;
    assert_ok(unfinished_mark(files_of_system(), f->data, "the former"));
    assert_int_equal(rename(f->data, f->former), 0);
    f->outcome = status_make(STATUS_DATA_LOSS, "a piece is damaged");
    assert_status(replay(f), STATUS_DATA_LOSS);
    assert_copy(f, false);
}

static void a_removal_cut_short_is_finished(void **state)
{
    struct fixture *f = *state;
    make_directories(f->former);
    assert_ok(unfinished_mark(files_of_system(), f->former, "the former"));
    assert_ok(replay(f));
    assert_int_equal(told, 1);
    assert_copy(f, true);
}

/* --- a disk that fails --- */

static void begin_faults(struct fixture *f)
{
    char path[160];
    snprintf(path, sizeof path, "%s/other", f->directory);
    struct store_options options = test_options(path);
    faults = f->fs = fault_fs_create();
    assert_ok(store_open(&options, &f->other));
}

static void end_other(struct fixture *f)
{
    store_close(f->other);
    end_faults();
}

/* Whole or as it was, and the next one needs no help. */
static void check_outcome(struct fixture *f, bool has_worked)
{
    bool is_taken_on = false;
    struct fault_fs *fs = faults;
    faults = NULL;
    if (is_there(f->data))
        look_at_copy(f, &is_taken_on);
    else
        assert_false(has_worked);
    assert_true(is_taken_on || !has_worked);
    assert_ok(replay(f));
    assert_copy(f, true);
    assert_ok(unfinished_remove(files_of_system(), f->data));
    make_copy(f);
    faults = fs;
}

static bool fail_at(struct fixture *f, enum fault_operation operation, unsigned pass)
{
    unsigned before = fault_fs_failures(f->fs);
    fault_fs_fail_here(f->fs, operation, "", FAULT_IO, pass);
    status s = replay_on(f, files_of_store(f->other));
    fault_fs_heal(f->fs);
    bool has_failed = fault_fs_failures(f->fs) > before;
    assert_true(has_failed || status_is_ok(s));
    check_outcome(f, status_is_ok(s));
    status_free(s);
    return has_failed;
}

static void each_operation_may_fail(void **state)
{
    struct fixture *f = *state;
    static const enum fault_operation operations[] = {
        FAULT_CREATE,         FAULT_APPEND, FAULT_SYNC,  FAULT_READ,
        FAULT_SYNC_DIRECTORY, FAULT_RENAME, FAULT_REMOVE};
    begin_faults(f);
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        unsigned pass = 0;
        while (fail_at(f, operations[i], pass)) {
            assert_true(pass < MOST_FAULTS);
            pass = pass < ALL_OF_THE_FIRST ? pass + 1 : pass + pass / 8;
        }
        assert_true(pass > 1);
    }
    end_other(f);
}

#define IN_ITS_PLACE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_ITS_PLACE(a_copy_is_taken_on_in_its_place),
        IN_ITS_PLACE(a_failed_replay_leaves_the_copy_as_it_was),
        IN_ITS_PLACE(changes_for_the_archive_are_left_out),
        IN_ITS_PLACE(a_directory_in_the_way_is_left_alone),
        IN_ITS_PLACE(a_directory_in_use_is_refused),
        IN_ITS_PLACE(another_replay_under_way_is_not_removed),
        IN_ITS_PLACE(a_missing_one_is_not_made),
        IN_ITS_PLACE(a_killed_replay_is_removed),
        IN_ITS_PLACE(a_replay_killed_between_renames_is_undone),
        IN_ITS_PLACE(a_removal_cut_short_is_finished),
        IN_ITS_PLACE(each_operation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
