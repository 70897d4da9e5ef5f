/* The archive and restores from it, with each operation of the place, each allocation and each
 * write failing in turn, or the process killed there: nothing is lost, nothing is wrong, and it
 * goes on. */
#include "base/testing/failmalloc.h"
#include "cluster/testing/archive_testing.h"
#include "store/testing/fault_fs.h"

#include <sys/wait.h>

enum {
    MOST_OPERATIONS = 100,
    ALL_OF_THE_FIRST = 40, /* then fewer and fewer of the rest */
    MOST_FAULTS = 100000,
};

static unsigned next_fault(unsigned fault)
{
    assert_true(fault < MOST_FAULTS);
    return fault < ALL_OF_THE_FIRST ? fault + 1 : fault + fault / 8;
}

/* The last moments, and the first. */
static void assert_history(struct fixture *t, const char *base)
{
    size_t count = t->history->count;
    assert_restores(&t->f, base, &t->place->place, &t->history->moments[count - 1]);
    assert_restores(&t->f, base, &t->place->place, &t->history->moments[count / 2]);
}

/* --- the archiver --- */

/* A start, pieces, and a look at what expires; one step of them may fail. */
static void start_and_archive(struct fixture *t)
{
    open_server(t);
    write_some(t, 1);
    status_ignore(step(t));
    write_some(t, 1);
    status_ignore(step(t));
    assert_ok(step(t));
    close_server(t);
}

static void each_operation_of_the_place_may_fail(void **state)
{
    struct fixture *t = *state;
    char base[] = "/tmp/trestle-base-XXXXXX";
    begin(t, base);
    uint64_t stream = state_of_log(t).stream;
    close_server(t);
    t->f.options.archive.retention_us = INT64_C(86400) * 1000000;
    for (int after = 1;; after++) {
        assert_true(after < MOST_OPERATIONS);
        atomic_store(&t->place->fails_after, after);
        start_and_archive(t);
        if (!flaky_has_struck(t->place))
            break;
    }
    atomic_store(&t->place->fails_after, 0);
    open_server(t);
    assert_int_equal(state_of_log(t).stream, stream);
    finish(t);
    assert_history(t, base);
    remove_test_directory(base);
}

static void archive_once(void *context)
{
    status_ignore(step(context));
}

static void each_allocation_of_the_archiver_may_fail(void **state)
{
    struct fixture *t = *state;
    char base[] = "/tmp/trestle-base-XXXXXX";
    begin(t, base);
    close_server(t);
    t->f.options.archive.retention_us = INT64_C(86400) * 1000000;
    open_server(t); /* nothing is checked yet */
    write_some(t, 3);
    failmalloc_each(archive_once, t);
    assert_int_equal(state_of_log(t).taken, change_log_newest(t->f.cluster->home->log));
    finish(t);
    assert_history(t, base);
    remove_test_directory(base);
}

/* --- kills --- */

static void serve(struct fixture *t, int after)
{
    open_server(t);
    write_some(t, 2);
    t->place->kills = true;
    atomic_store(&t->place->fails_after, after);
    assert_ok(step(t));
    kill(getpid(), flaky_has_struck(t->place) ? SIGABRT : SIGTERM); /* all went well */
}

/* Whether it was killed by the place. */
static bool serve_and_be_killed(struct fixture *t, int after)
{
    int outcome;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGTERM, SIG_DFL);
        serve(t, after);
        _exit(1);
    }
    assert_int_equal(waitpid(child, &outcome, 0), child);
    assert_true(WIFSIGNALED(outcome));
    assert_true(WTERMSIG(outcome) == SIGKILL || WTERMSIG(outcome) == SIGTERM);
    t->last_value += 1000; /* what the child has given is not known here */
    next_random(&t->random);
    return WTERMSIG(outcome) == SIGKILL;
}

static void a_server_that_is_killed_at_each_operation_goes_on(void **state)
{
    struct fixture *t = *state;
    char base[] = "/tmp/trestle-base-XXXXXX";
    begin(t, base);
    uint64_t stream = state_of_log(t).stream;
    close_server(t);
    for (int after = 1; serve_and_be_killed(t, after); after++)
        assert_true(after < MOST_OPERATIONS);
    open_server(t);
    assert_int_equal(state_of_log(t).stream, stream);
    finish(t);
    for (size_t i = 3; i < t->history->count; i += 4)
        assert_restores(&t->f, base, &t->place->place, &t->history->moments[i]);
    remove_test_directory(base);
}

/* --- restores --- */

/* An archive with files in it, and a copy of before. */
static void make_history(struct fixture *t, char *base)
{
    char directory[128];
    struct backups *backups;
    begin(t, base);
    snprintf(directory, sizeof directory, "%s/backups", t->f.directory);
    struct backups_options options = {
        .cluster = t->f.cluster, .directory = directory, .log = &t->f.log};
    assert_ok(backups_open(&options, &backups));
    back_up_and_restore(t, backups);
    backups_close(backups);
    assert_ok(step(t));
    write_some(t, 4);
    finish(t);
}

enum what_fails { FAIL_PLACE, FAIL_MEMORY, FAIL_APPEND, FAIL_SYNC, FAIL_CREATE };

struct attempt {
    struct fixture *t;
    enum what_fails what;
    unsigned fault; /* from 1 */
    bool has_failed;
};

static void begin_fault(struct attempt *attempt, struct fault_fs *fs)
{
    static const enum fault_operation operations[] = {
        [FAIL_APPEND] = FAULT_APPEND, [FAIL_SYNC] = FAULT_SYNC, [FAIL_CREATE] = FAULT_CREATE};
    if (attempt->what == FAIL_PLACE)
        atomic_store(&attempt->t->place->fails_after, (int)attempt->fault);
    else if (attempt->what == FAIL_MEMORY)
        failmalloc_start(attempt->fault - 1);
    else
        fault_fs_fail_here(fs, operations[attempt->what], "", FAULT_IO, attempt->fault - 1);
}

static void end_fault(struct attempt *attempt, struct fault_fs *fs, unsigned failures)
{
    if (attempt->what == FAIL_PLACE)
        attempt->has_failed = flaky_has_struck(attempt->t->place);
    else if (attempt->what == FAIL_MEMORY)
        attempt->has_failed = failmalloc_stop();
    else
        attempt->has_failed = fault_fs_failures(fs) > failures;
    atomic_store(&attempt->t->place->fails_after, 0);
    fault_fs_heal(fs);
}

static status restore_with_fault(struct attempt *attempt, const char *copy)
{
    struct fixture *t = attempt->t;
    struct store_options options = restore_store_options(copy, &t->f.log);
    struct fault_fs *fs = fault_fs_create();
    char scratch[128];
    struct store *store;
    struct archive_restored restored;
    snprintf(scratch, sizeof scratch, "%s/archive", copy);
    assert_ok(fault_fs_open(fs, &options, &store));
    struct archive_restore restore = {.what = "the backup",
                                      .store = store,
                                      .catalog = store_keyspace_find(store, CATALOG_KEYSPACE_ID),
                                      .scratch = scratch,
                                      .place = &t->place->place,
                                      .clock = clock_system(),
                                      .log = &t->f.log,
                                      .until = ARCHIVE_END};
    unsigned failures = fault_fs_failures(fs);
    begin_fault(attempt, fs);
    status s = archive_restore(&restore, &restored);
    end_fault(attempt, fs, failures);
    store_close(store);
    fault_fs_destroy(fs);
    return s;
}

/* False: nothing has failed any more. What fails is said, or does no harm. */
static bool attempt_restore(struct attempt *attempt, const char *base)
{
    char copy[] = "/tmp/trestle-restored-XXXXXX";
    struct model model;
    assert_non_null(mkdtemp(copy));
    copy_directory(base, copy);
    status s = restore_with_fault(attempt, copy);
    if (status_is_ok(s)) {
        read_directory(&attempt->t->f, copy, &model);
        assert_same_model(&model, &attempt->t->now);
    }
    assert_true(attempt->has_failed || status_is_ok(s));
    status_free(s);
    remove_test_directory(copy);
    return attempt->has_failed;
}

static void fail_restores(struct fixture *t, enum what_fails what)
{
    char base[] = "/tmp/trestle-base-XXXXXX";
    struct attempt attempt = {.t = t, .what = what, .fault = 1};
    make_history(t, base);
    while (attempt_restore(&attempt, base))
        attempt.fault = next_fault(attempt.fault);
    assert_true(attempt.fault > 1);
    remove_test_directory(base);
}

static void each_operation_of_the_place_may_fail_a_restore(void **state)
{
    fail_restores(*state, FAIL_PLACE);
}

static void each_allocation_of_a_restore_may_fail(void **state)
{
    fail_restores(*state, FAIL_MEMORY);
}

static void each_write_of_a_restore_may_fail(void **state)
{
    fail_restores(*state, FAIL_APPEND);
}

static void each_sync_of_a_restore_may_fail(void **state)
{
    fail_restores(*state, FAIL_SYNC);
}

static void each_file_of_a_restore_may_fail(void **state)
{
    fail_restores(*state, FAIL_CREATE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_operation_of_the_place_may_fail, set_up, tear_down),
        cmocka_unit_test_setup_teardown(each_allocation_of_the_archiver_may_fail, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_server_that_is_killed_at_each_operation_goes_on, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(each_operation_of_the_place_may_fail_a_restore, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(each_allocation_of_a_restore_may_fail, set_up, tear_down),
        cmocka_unit_test_setup_teardown(each_write_of_a_restore_may_fail, set_up, tear_down),
        cmocka_unit_test_setup_teardown(each_sync_of_a_restore_may_fail, set_up, tear_down),
        cmocka_unit_test_setup_teardown(each_file_of_a_restore_may_fail, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
