/* Tests of data_directory.h: what is said and done when files of the store's own are removed below
 * it. What the store does is its own test's matter. */
#include "base/condition.h"
#include "cluster/cluster_private.h"
#include "cluster/testing/testing.h"
#include "store/testing/lock_testing.h"

#include <glob.h>
#include <poll.h>

enum { WAITS = 6000 /* of 10 ms: a minute means never */ };

static int setup(void **state)
{
    *state = cluster_fixture_create(NULL);
    return 0;
}

static int teardown(void **state)
{
    cluster_fixture_destroy(*state);
    return 0;
}

/* --- what is done to the directory from outside --- */

static glob_t files_like(struct cluster_fixture *f, const char *pattern)
{
    char path[128];
    glob_t found;
    snprintf(path, sizeof path, "%s/%s", f->directory, pattern);
    if (glob(path, 0, NULL, &found) != 0)
        found.gl_pathc = 0;
    return found;
}

static bool is_there(struct cluster_fixture *f, const char *pattern)
{
    glob_t found = files_like(f, pattern);
    bool is_so = found.gl_pathc > 0;
    globfree(&found);
    return is_so;
}

static void remove_files(struct cluster_fixture *f, const char *pattern)
{
    glob_t found = files_like(f, pattern);
    assert_true(found.gl_pathc > 0);
    for (size_t i = 0; i < found.gl_pathc; i++)
        assert_int_equal(unlink(found.gl_pathv[i]), 0);
    globfree(&found);
}

/* Sets whether the file of that name can be made again. */
static void block(struct cluster_fixture *f, const char *name, bool is_blocked)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s.new", f->directory, name);
    assert_int_equal(is_blocked ? mkdir(path, 0700) : rmdir(path), 0);
}

/* --- looking, without the thread: a test says when --- */

/* A data_directory of our own, of a cluster without writes meanwhile. */
static struct data_directory *by_hand(struct cluster_fixture *f)
{
    struct data_directory *place = &f->cluster->home->place;
    data_directory_stop(place);
    return place;
}

static void look(struct data_directory *place)
{
    atomic_store(&place->asked_us, 0);
    data_directory_look(place);
}

static void admit(struct data_directory *place, enum status_code code)
{
    atomic_store(&place->asked_us, 0);
    assert_status(data_directory_admit(place), code);
}

static void assert_health(const struct cluster_fixture *f, enum health_level level,
                          const char *reason, const char *text)
{
    struct condition_view view;
    condition_look(f->cluster->condition, &view);
    assert_int_equal(view.level, level);
    assert_int_equal(view.count, reason != NULL);
    if (reason == NULL)
        return;
    assert_string_equal(view.reasons[0].name, reason);
    assert_non_null(strstr(view.reasons[0].text, text));
}

/* Then the store is fenced, too. */
static void assert_gone(const struct cluster_fixture *f, const char *text)
{
    struct condition_view view;
    condition_look(f->cluster->condition, &view);
    assert_int_equal(view.level, HEALTH_NO_WRITES);
    assert_true(view.count > 0);
    assert_string_equal(view.reasons[0].name, "data_gone");
    assert_non_null(strstr(view.reasons[0].text, text));
}

/* For the end of a test that went without the thread. */
static void start_again(struct data_directory *place)
{
    place->is_stopping = false;
    assert_ok(data_directory_start(place));
}

/* --- tests --- */

/* From the first look on nothing is written, from the second on it is told. */
static void without_a_log_nothing_is_admitted(void **state)
{
    struct cluster_fixture *f = *state;
    set_cell(f, "a", "1");
    struct data_directory *place = by_hand(f);
    admit(place, STATUS_OK);
    remove_files(f, "*.log");
    admit(place, STATUS_UNAVAILABLE);
    assert_health(f, HEALTH_OK, NULL, NULL);
    admit(place, STATUS_UNAVAILABLE);
    assert_health(f, HEALTH_NO_WRITES, "log_gone", ".log; writes are refused until");
    start_again(place);
    assert_ok(data_directory_await_files(place));
    admit(place, STATUS_OK);
    assert_health(f, HEALTH_OK, NULL, NULL);
    set_cell(f, "b", "2");
    reopen_test_cluster(f);
    assert_scan(f, "", "", false, "a=1 b=2");
}

static void writes_go_on_without_files_other_than_logs(void **state)
{
    struct cluster_fixture *f = *state;
    struct data_directory *place = by_hand(f);
    remove_files(f, "SYNCED");
    remove_files(f, "IDENTITY");
    admit(place, STATUS_OK);
    assert_health(f, HEALTH_OK, NULL, NULL);
    admit(place, STATUS_OK);
    assert_health(f, HEALTH_DEGRADED, "files_gone", "SYNCED, IDENTITY; they are being made");
    remove_files(f, "*.log");
    look(place);
    assert_health(f, HEALTH_NO_WRITES, "log_gone", ".log, SYNCED, IDENTITY; writes are");
    start_again(place);
    assert_ok(data_directory_await_files(place));
    look(place);
    assert_health(f, HEALTH_OK, NULL, NULL);
}

/* Once is no news, as of the directory itself. */
static void a_file_that_is_there_again_was_never_gone(void **state)
{
    struct cluster_fixture *f = *state;
    char path[128], other[128];
    struct data_directory *place = by_hand(f);
    snprintf(path, sizeof path, "%s/SYNCED", f->directory);
    snprintf(other, sizeof other, "%s/elsewhere", f->directory);
    assert_int_equal(rename(path, other), 0);
    look(place);
    assert_int_equal(rename(other, path), 0);
    look(place);
    assert_int_equal(atomic_load(&place->lacking_looks), 0);
    assert_health(f, HEALTH_OK, NULL, NULL);
    start_again(place);
}

static void a_file_that_cannot_be_made_again_is_named(void **state)
{
    struct cluster_fixture *f = *state;
    block(f, "IDENTITY", true);
    remove_files(f, "IDENTITY");
    assert_status(data_directory_await_files(&f->cluster->home->place), STATUS_UNAVAILABLE);
    assert_false(is_there(f, "IDENTITY"));
    block(f, "IDENTITY", false);
    assert_ok(data_directory_await_files(&f->cluster->home->place));
    assert_true(is_there(f, "IDENTITY"));
}

/* FORMAT tells another directory, but not when it alone is gone. */
static void format_alone_is_made_anew(void **state)
{
    struct cluster_fixture *f = *state;
    struct data_directory *place = by_hand(f);
    for (int i = 0; i < 2; i++) {
        remove_files(f, "FORMAT");
        admit(place, STATUS_OK);
        admit(place, STATUS_OK);
        assert_health(f, HEALTH_DEGRADED, "files_gone", "FORMAT; they are being made");
        start_again(place);
        assert_ok(data_directory_await_files(place));
        data_directory_stop(place);
        assert_true(is_there(f, "FORMAT"));
        admit(place, STATUS_OK);
        assert_health(f, HEALTH_OK, NULL, NULL);
    }
    remove_files(f, "FORMAT");
    remove_files(f, "IDENTITY");
    admit(place, STATUS_UNAVAILABLE);
    admit(place, STATUS_UNAVAILABLE);
    assert_gone(f, "has lost its file FORMAT and others");
    assert_false(is_there(f, "IDENTITY"));
}

/* As long as FORMAT cannot be made anew it is known what it was. */
static void format_that_cannot_be_made_anew(void **state)
{
    struct cluster_fixture *f = *state;
    block(f, "FORMAT", true);
    remove_files(f, "FORMAT");
    assert_status(data_directory_await_files(&f->cluster->home->place), STATUS_UNAVAILABLE);
    struct data_directory *place = by_hand(f);
    assert_int_not_equal(atomic_load(&place->format_inode), 0);
    start_again(place);
    block(f, "FORMAT", false);
    assert_ok(data_directory_await_files(place));
    assert_true(is_there(f, "FORMAT"));
}

/* Two that write to one directory harm it: the first to be there yields. */
static void another_process_is_in_the_directory(void **state)
{
    struct cluster_fixture *f = *state;
    struct another another;
    set_cell(f, "a", "1");
    struct data_directory *place = by_hand(f);
    remove_files(f, "LOCK");
    admit(place, STATUS_OK);
    assert_true(start_another(f->directory, &another));
    remove_files(f, "SYNCED");
    admit(place, STATUS_UNAVAILABLE);
    assert_health(f, HEALTH_OK, NULL, NULL);
    admit(place, STATUS_UNAVAILABLE);
    assert_gone(f, "is in use by another process");
    end_another(&another);
    admit(place, STATUS_UNAVAILABLE); /* for good */
    assert_false(is_there(f, "SYNCED"));
}

static void the_thread_makes_them_anew(void **state)
{
    static const char *const names[] = {"SYNCED", "CURRENT", "IDENTITY", "FORMAT", "LOCK"};
    struct cluster_fixture *f = *state;
    set_cell(f, "a", "1");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        remove_files(f, names[i]);
        for (int j = 0; j < WAITS && !is_there(f, names[i]); j++) {
            (void)cluster_condition(f->cluster);
            poll(NULL, 0, 10);
        }
        assert_true(is_there(f, names[i]));
    }
    reopen_test_cluster(f);
    assert_scan(f, "", "", false, "a=1");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(without_a_log_nothing_is_admitted),
        TEST(writes_go_on_without_files_other_than_logs),
        TEST(a_file_that_is_there_again_was_never_gone),
        TEST(a_file_that_cannot_be_made_again_is_named),
        TEST(format_alone_is_made_anew),
        TEST(format_that_cannot_be_made_anew),
        TEST(another_process_is_in_the_directory),
        TEST(the_thread_makes_them_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
