/* A process that makes a directory beside its name is not disturbed by others that begin at the
 * same moment. */
#include "backup/unfinished.h"

#include "os/thread.h"
#include "store/testing/testing.h"

#include <sys/stat.h>

enum { MAKERS = 4, ROUNDS = 60 };

struct fixture {
    char *directory; /* of all that follows */
    char made[128];
    char path[160];
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->directory = make_directory();
    snprintf(f->made, sizeof f->made, "%s/made", f->directory);
    snprintf(f->path, sizeof f->path, "%s.restoring", f->made);
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

static struct unfinished of(const struct fixture *f)
{
    return (struct unfinished){
        .files = files_of_system(), .directory = f->made, .path = f->path, .maker = "a test"};
}

static bool is_there(const char *directory, const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return access(path, F_OK) == 0;
}

static void put_file(const char *directory, const char *name, const char *content)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    assert_ok(files_replace(files_of_system(), path, bytes_of(content)));
}

static void leave(const struct fixture *f)
{
    assert_ok(files_make_directory(files_of_system(), f->path));
    assert_ok(unfinished_mark(files_of_system(), f->path, "a killed one"));
    put_file(f->path, "left", "x");
}

/* --- one after the other --- */

static void a_finished_directory_gets_its_name(void **state)
{
    struct fixture *f = *state;
    struct unfinished one = of(f);
    assert_ok(unfinished_begin(&one));
    put_file(f->path, "file", "x");
    assert_ok(unfinished_end(&one));
    assert_true(is_there(f->made, "file"));
    assert_false(is_there(f->made, "UNFINISHED"));
    assert_false(is_there(f->made, "UNFINISHED.lock"));
    assert_int_not_equal(access(f->path, F_OK), 0);
}

static void a_directory_of_a_killed_process_is_removed(void **state)
{
    struct fixture *f = *state;
    struct unfinished one = of(f);
    leave(f);
    assert_ok(unfinished_begin(&one));
    assert_false(is_there(f->path, "left"));
    assert_true(is_there(f->path, "UNFINISHED"));
    assert_ok(unfinished_abandon(&one));
    assert_int_not_equal(access(f->path, F_OK), 0);
}

/* Killed before its mark, or after it was removed. */
static void a_lock_alone_is_nothing(void **state)
{
    struct fixture *f = *state;
    struct unfinished one = of(f);
    assert_ok(files_make_directory(files_of_system(), f->path));
    put_file(f->path, "UNFINISHED.lock", "");
    assert_ok(unfinished_begin(&one));
    assert_ok(unfinished_abandon(&one));
}

static void a_foreign_directory_is_left_alone(void **state)
{
    struct fixture *f = *state;
    struct unfinished one = of(f);
    assert_ok(files_make_directory(files_of_system(), f->path));
    put_file(f->path, "file", "x");
    assert_status(unfinished_begin(&one), STATUS_FAILED_PRECONDITION);
    assert_true(is_there(f->path, "file"));
    assert_false(is_there(f->path, "UNFINISHED.lock"));
}

/* --- at the same moment --- */

static void a_directory_under_way_is_not_removed(void **state)
{
    struct fixture *f = *state;
    struct unfinished one = of(f), other = of(f);
    assert_ok(unfinished_begin(&one));
    put_file(f->path, "file", "x");
    struct store_options options = test_options(f->path); /* as a restore does, and closes it */
    struct store *store;
    assert_ok(store_open(&options, &store));
    store_close(store);
    assert_status(unfinished_begin(&other), STATUS_FAILED_PRECONDITION);
    assert_true(is_there(f->path, "file"));
    assert_ok(unfinished_end(&one));
    assert_true(is_there(f->made, "file"));
}

static const struct fixture *telling; /* whose path it is; what follows hears of what was left */
static enum status_code second;

/* While what was left is removed: a second one begins. */
static void begin_another(const char *path)
{
    struct unfinished other = of(telling);
    assert_string_equal(path, telling->path);
    status s = unfinished_begin(&other);
    second = s.code;
    if (status_is_ok(s))
        put_file(path, "of-the-second", "x");
    status_free(s);
}

static void a_removal_keeps_others_out(void **state)
{
    struct fixture *f = *state;
    struct unfinished one = of(f);
    telling = f;
    leave(f);
    one.tell = begin_another;
    assert_ok(unfinished_begin(&one));
    assert_int_equal(second, STATUS_FAILED_PRECONDITION);
    assert_ok(unfinished_abandon(&one));
}

struct maker {
    const struct fixture *fixture;
    pthread_t thread;
    char content[32];
    unsigned made;
    unsigned disturbed;
};

static bool has_own_file(const struct maker *maker)
{
    struct buffer content = {0};
    char path[256];
    snprintf(path, sizeof path, "%s/file", maker->fixture->path);
    status s = files_read(files_of_system(), path, 100, &content);
    bool has = status_is_ok(s) && bytes_equal(buffer_bytes(&content), bytes_of(maker->content));
    status_free(s);
    buffer_free(&content);
    return has;
}

static void make_once(struct maker *maker)
{
    struct unfinished one = of(maker->fixture);
    char path[256];
    status s = unfinished_begin(&one);
    bool has_begun = status_is_ok(s);
    status_free(s);
    if (!has_begun)
        return;
    snprintf(path, sizeof path, "%s/file", one.path);
    s = files_replace(one.files, path, bytes_of(maker->content));
    maker->disturbed += !status_is_ok(s) || !has_own_file(maker);
    status_free(s);
    status_ignore(unfinished_abandon(&one));
    maker->made++;
}

static void *make_often(void *argument)
{
    struct maker *maker = argument;
    for (unsigned i = 0; i < ROUNDS; i++)
        make_once(maker);
    return NULL;
}

static void many_at_once_do_not_disturb_each_other(void **state)
{
    struct fixture *f = *state;
    struct maker makers[MAKERS] = {{.fixture = f}};
    unsigned made = 0;
    for (unsigned i = 0; i < MAKERS; i++) {
        makers[i].fixture = f;
        snprintf(makers[i].content, sizeof makers[i].content, "of maker %u", i);
        assert_ok(thread_start(&makers[i].thread, "maker", make_often, &makers[i]));
    }
    for (unsigned i = 0; i < MAKERS; i++) {
        pthread_join(makers[i].thread, NULL);
        assert_int_equal(makers[i].disturbed, 0);
        made += makers[i].made;
    }
    assert_true(made > 0);
}

#define IN_ITS_PLACE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_ITS_PLACE(a_finished_directory_gets_its_name),
        IN_ITS_PLACE(a_directory_of_a_killed_process_is_removed),
        IN_ITS_PLACE(a_lock_alone_is_nothing),
        IN_ITS_PLACE(a_foreign_directory_is_left_alone),
        IN_ITS_PLACE(a_directory_under_way_is_not_removed),
        IN_ITS_PLACE(a_removal_keeps_others_out),
        IN_ITS_PLACE(many_at_once_do_not_disturb_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
