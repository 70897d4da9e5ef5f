/* The library on a small program: this one, run as a "victim" that does what its arguments say and
 * is killed. Each test looks at the files after the cut. */
#include "base/testing/testing.h"

#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* --- the victim --- */

static void must(bool ok, const char *what)
{
    if (ok)
        return;
    perror(what);
    exit(1);
}

static void append(const char *name, size_t size)
{
    char *data = malloc(size + 1);
    must(data != NULL, "malloc");
    memset(data, 'x', size);
    int fd = open(name, O_WRONLY | O_CREAT | O_APPEND, 0644);
    must(fd >= 0 && write(fd, data, size) == (ssize_t)size, name);
    close(fd);
    free(data);
}

static void sync_name(const char *name)
{
    int fd = open(name, O_RDONLY);
    must(fd >= 0 && fsync(fd) == 0, name);
    close(fd);
}

static void wait_a_little(void)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t never = PTHREAD_COND_INITIALIZER;
    struct timespec begin, end, until;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 50000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&mutex);
    while (pthread_cond_timedwait(&never, &mutex, &until) == 0)
        continue;
    clock_gettime(CLOCK_MONOTONIC, &end);
    int64_t waited = (end.tv_sec - begin.tv_sec) * 1000 + (end.tv_nsec - begin.tv_nsec) / 1000000;
    must(waited >= 49 && waited < 10000, "timed wait under a shifted clock");
}

/* Steps: "append NAME SIZE", "sync NAME" (a file or "."), "rename FROM TO", "unlink NAME", "mkdir
 * NAME", "rmdir NAME", "kill", "clock" (prints the wall clock's seconds), "wait". */
static int victim(char **step)
{
    const char *directory = getenv("VICTIM_DIRECTORY");
    must(directory != NULL && chdir(directory) == 0, "chdir");
    for (; *step != NULL; step++) {
        char verb[16], name[64], second[64] = "";
        must(sscanf(*step, "%15s %63s %63s", verb, name, second) >= 1, *step);
        if (strcmp(verb, "append") == 0)
            append(name, strtoul(second, NULL, 10));
        else if (strcmp(verb, "sync") == 0)
            sync_name(name);
        else if (strcmp(verb, "rename") == 0)
            must(rename(name, second) == 0, *step);
        else if (strcmp(verb, "unlink") == 0)
            must(unlink(name) == 0, *step);
        else if (strcmp(verb, "mkdir") == 0)
            must(mkdir(name, 0755) == 0, *step);
        else if (strcmp(verb, "rmdir") == 0)
            must(rmdir(name) == 0, *step);
        else if (strcmp(verb, "clock") == 0)
            printf("%jd %jd\n", (intmax_t)time(NULL), (intmax_t)time(NULL));
        else if (strcmp(verb, "wait") == 0)
            wait_a_little();
        else if (strcmp(verb, "kill") == 0)
            kill(getpid(), SIGKILL);
    }
    return 0;
}

/* --- the tests --- */

struct fixture {
    char *parent;
    char data[PATH_MAX]; /* the root that is watched */
    char journal[PATH_MAX];
};

static const char *library;

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    assert_true(asprintf(&f->parent, "/tmp/trestle-powercut-XXXXXX") > 0);
    assert_non_null(mkdtemp(f->parent));
    snprintf(f->data, sizeof f->data, "%s/data", f->parent);
    snprintf(f->journal, sizeof f->journal, "%s/journal", f->parent);
    assert_int_equal(mkdir(f->data, 0755), 0);
    *state = f;
    return 0;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *where)
{
    (void)st, (void)type, (void)where;
    return remove(path);
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(nftw(f->parent, remove_entry, 16, FTW_DEPTH | FTW_PHYS), 0);
    free(f->parent);
    free(f);
    return 0;
}

/* posix_spawn changes none of them, but does not say so. */
static char *const *strings(const char *const *list)
{
    return (char *const *)(uintptr_t)list;
}

/* Runs the victim under the library; the steps end with NULL. Its exit status as of waitpid. */
static int run(const struct fixture *f, const char *mode, unsigned seed, const char *const *steps)
{
    const char *arguments[32] = {"/proc/self/exe", "victim"};
    char variables[8][PATH_MAX + 64];
    const char *environment[9] = {0};
    for (size_t i = 0; steps[i] != NULL; i++) {
        assert_true(i < 28);
        arguments[i + 2] = steps[i];
    }
    snprintf(variables[0], sizeof *variables, "LD_PRELOAD=%s", library);
    snprintf(variables[1], sizeof *variables, "POWERCUT_ROOT=%s", f->data);
    snprintf(variables[2], sizeof *variables, "POWERCUT_JOURNAL=%s", f->journal);
    snprintf(variables[3], sizeof *variables, "POWERCUT_MODE=%s", mode);
    snprintf(variables[4], sizeof *variables, "POWERCUT_SEED=%u", seed);
    snprintf(variables[5], sizeof *variables, "VICTIM_DIRECTORY=%s", f->data);
    snprintf(variables[6], sizeof *variables, "POWERCUT_NO_SYNC=%u", seed % 2);
    snprintf(variables[7], sizeof *variables, "POWERCUT_KILL=%s/kill", f->parent);
    for (size_t i = 0; i < 8; i++)
        environment[i] = variables[i];
    pid_t pid;
    int status;
    assert_int_equal(
        posix_spawn(&pid, arguments[0], NULL, NULL, strings(arguments), strings(environment)), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

#define STEPS(...) ((const char *const[]){__VA_ARGS__ __VA_OPT__(, ) NULL})

/* The victim dies at the end of its steps, and the power is cut. */
#define CRASH(f, mode, seed, ...)                                                                  \
    do {                                                                                           \
        assert_int_equal(WTERMSIG(run(f, "keep", seed, STEPS(__VA_ARGS__, "kill"))), SIGKILL);     \
        assert_int_equal(run(f, mode, seed, STEPS()), 0);                                          \
    } while (0)

/* -1: there is no such file. */
static intmax_t size_of(const struct fixture *f, const char *name)
{
    char path[2 * PATH_MAX];
    struct stat st;
    snprintf(path, sizeof path, "%s/%s", f->data, name);
    return stat(path, &st) == 0 ? (intmax_t)st.st_size : -1;
}

static void nothing_is_lost_without_a_cut(void **state)
{
    struct fixture *f = *state;
    CRASH(f, "keep", 1, "append a 100", "rename a b");
    assert_int_equal(size_of(f, "b"), 100);
    assert_int_equal(size_of(f, "a"), -1);
}

static void unsynced_bytes_are_lost(void **state)
{
    struct fixture *f = *state;
    CRASH(f, "lose", 1, "append a 100", "sync a", "sync .", "append a 50", "append b 10");
    assert_int_equal(size_of(f, "a"), 100);
    assert_int_equal(size_of(f, "b"), -1);
    CRASH(f, "lose", 2, "append a 7"); /* a file from before */
    assert_int_equal(size_of(f, "a"), 100);
    CRASH(f, "lose", 2, "append a 7", "sync a", "append a 5");
    assert_int_equal(size_of(f, "a"), 107);
}

static void a_file_without_a_synced_name_is_lost(void **state)
{
    struct fixture *f = *state;
    CRASH(f, "lose", 1, "append a 100", "sync a");
    assert_int_equal(size_of(f, "a"), -1);
    CRASH(f, "lose", 1, "append a 100", "sync .");
    assert_int_equal(size_of(f, "a"), 0);
}

static void unsynced_names_are_taken_back(void **state)
{
    struct fixture *f = *state;
    CRASH(f, "lose", 1, "append a 1", "sync a", "append b 2", "sync b", "sync .", "append c 3",
          "sync c", "rename c b", "rename b d", "unlink a");
    assert_int_equal(size_of(f, "a"), 1);
    assert_int_equal(size_of(f, "b"), 2);
    assert_int_equal(size_of(f, "c"), -1);
    assert_int_equal(size_of(f, "d"), -1);
    CRASH(f, "lose", 1, "append c 3", "sync c", "rename c b", "unlink a", "sync .");
    assert_int_equal(size_of(f, "a"), -1);
    assert_int_equal(size_of(f, "b"), 3);
}

/* Every seed leaves a prefix, and not all the same. */
static void tears_keep_a_prefix(void **state)
{
    struct fixture *f = *state;
    bool seen[11] = {false};
    unsigned different = 0;
    CRASH(f, "lose", 1, "append a 100", "sync a", "sync .");
    for (unsigned seed = 0; seed < 20; seed++) {
        CRASH(f, "lose", seed, "append a 0"); /* the same beginning each time */
        assert_int_equal(size_of(f, "a"), 100);
        CRASH(f, "tear", seed, "append a 10");
        intmax_t size = size_of(f, "a");
        assert_in_range(size, 100, 110);
        different += !seen[size - 100];
        seen[size - 100] = true;
        char path[2 * PATH_MAX];
        snprintf(path, sizeof path, "%s/a", f->data);
        assert_int_equal(truncate(path, 100), 0);
    }
    assert_true(different > 3);
}

static void holes_are_zeroes_after_what_was_synced(void **state)
{
    struct fixture *f = *state;
    char path[2 * PATH_MAX], data[200000];
    snprintf(path, sizeof path, "%s/a", f->data);
    CRASH(f, "holes", 3, "append a 5000", "sync a", "sync .", "append a 150000");
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t size = fread(data, 1, sizeof data, file);
    fclose(file);
    assert_true(size > 20000);
    size_t zeroes = 0;
    for (size_t i = 0; i < size; i++) {
        assert_true(data[i] == 'x' || (data[i] == 0 && i >= 5000));
        zeroes += data[i] == 0;
    }
    assert_true(zeroes > 0 && zeroes < size - 5000);
}

static void names_survive_in_their_order(void **state)
{
    struct fixture *f = *state;
    for (unsigned seed = 0; seed < 10; seed++) {
        CRASH(f, "tear", seed, "append a 1", "append b 1", "append c 1");
        bool a = size_of(f, "a") >= 0, b = size_of(f, "b") >= 0, c = size_of(f, "c") >= 0;
        assert_true((a || !b) && (b || !c));
        if (a)
            assert_int_equal(run(f, "keep", 0, STEPS("unlink a")), 0);
        if (b)
            assert_int_equal(run(f, "keep", 0, STEPS("unlink b")), 0);
        if (c)
            assert_int_equal(run(f, "keep", 0, STEPS("unlink c")), 0);
    }
}

static void a_cut_happens_once(void **state)
{
    struct fixture *f = *state;
    CRASH(f, "lose", 1, "append a 10", "sync a", "sync .");
    assert_int_equal(WTERMSIG(run(f, "keep", 1, STEPS("append a 5", "kill"))), SIGKILL);
    assert_int_equal(run(f, "keep", 1, STEPS()), 0);
    assert_int_equal(run(f, "lose", 1, STEPS()), 0);
    assert_int_equal(size_of(f, "a"), 15);
}

static void the_wall_clock_moves(void **state)
{
    (void)state;
    char preload[PATH_MAX + 16], line[64];
    snprintf(
        preload, sizeof preload,
        "VICTIM_DIRECTORY=/ POWERCUT_CLOCK=-86400 LD_PRELOAD=%s /proc/%d/exe victim wait clock",
        library, getpid());
    FILE *output = popen(preload, "r");
    assert_non_null(output);
    assert_non_null(fgets(line, sizeof line, output));
    assert_int_equal(pclose(output), 0);
    intmax_t seconds = strtoimax(line, NULL, 10);
    assert_in_range((intmax_t)time(NULL) - seconds, 86400, 86400 + 60);
}

static void a_directory_that_was_removed_comes_back_with_its_files(void **state)
{
    struct fixture *f = *state;
    CRASH(f, "lose", 1, "mkdir d", "append d/a 10", "sync d/a", "sync d", "sync .", "unlink d/a",
          "rmdir d");
    assert_int_equal(size_of(f, "d/a"), 10);
    CRASH(f, "lose", 1, "unlink d/a", "sync d", "rmdir d", "sync .");
    assert_int_equal(size_of(f, "d"), -1);
}

/* Once, a file of the directory that was gone came back over the one that has its name now. Another
 * directory takes the inode that has become free. */
static void what_a_directory_had_is_gone_with_it(void **state)
{
    struct fixture *f = *state;
    CRASH(f, "lose", 1, "mkdir d", "append d/a 10", "sync d/a", "sync d", "sync .");
    CRASH(f, "lose", 1, "unlink d/a", "rmdir d", "mkdir e", "mkdir d", "append d/a 5", "sync d/a",
          "sync d", "sync .");
    assert_int_equal(size_of(f, "d/a"), 5);
}

/* Once, such a name could not be taken back: it was looked for where the directory had been. */
static void names_in_a_directory_that_was_renamed_are_taken_back(void **state)
{
    struct fixture *f = *state;
    CRASH(f, "lose", 1, "mkdir d", "append d/a 10", "append d/b 20", "append d/c 30", "sync d/a",
          "sync d/b", "sync d/c", "sync d", "sync .");
    CRASH(f, "lose", 1, "unlink d/a", "rename d/b d/x", "append d/new 5", "rename d e", "sync .",
          "unlink e/c");
    assert_int_equal(size_of(f, "d"), -1);
    assert_int_equal(size_of(f, "e/a"), 10);
    assert_int_equal(size_of(f, "e/b"), 20);
    assert_int_equal(size_of(f, "e/c"), 30);
    assert_int_equal(size_of(f, "e/x"), -1);
    assert_int_equal(size_of(f, "e/new"), -1);
    CRASH(f, "lose", 1, "unlink e/a", "rename e d", "unlink d/b"); /* that is taken back, too */
    assert_int_equal(size_of(f, "d"), -1);
    assert_int_equal(size_of(f, "e/a"), 10);
    assert_int_equal(size_of(f, "e/b"), 20);
}

/* The making of a file is the first moment here, the next are before and after its sync. */
static void the_process_dies_at_a_moment(void **state)
{
    struct fixture *f = *state;
    for (int moment = 1; moment <= 3; moment++) {
        char name[PATH_MAX];
        snprintf(name, sizeof name, "%s/kill", f->parent);
        FILE *file = fopen(name, "w");
        assert_non_null(file);
        assert_true(fprintf(file, "%d", moment) > 0);
        assert_int_equal(fclose(file), 0);
        const char *const *steps = STEPS("append a 10", "sync a", "append b 10");
        assert_int_equal(WTERMSIG(run(f, "keep", 1, steps)), SIGKILL);
        assert_int_equal(unlink(name), 0);
        assert_int_equal(size_of(f, "a"), moment == 1 ? 0 : 10);
        assert_int_equal(size_of(f, "b"), -1);
        assert_int_equal(run(f, "keep", 1, STEPS("unlink a")), 0);
    }
}

static void settings_are_checked(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(WEXITSTATUS(run(f, "loose", 1, STEPS())), 98);
    strcpy(f->journal, "relative");
    assert_int_equal(WEXITSTATUS(run(f, "lose", 1, STEPS())), 98);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(int count, char **arguments)
{
    if (count > 1 && strcmp(arguments[1], "victim") == 0)
        return victim(arguments + 2);
    assert_int_equal(count, 2);
    library = arguments[1];
    const struct CMUnitTest tests[] = {
        TEST(nothing_is_lost_without_a_cut),
        TEST(unsynced_bytes_are_lost),
        TEST(a_file_without_a_synced_name_is_lost),
        TEST(unsynced_names_are_taken_back),
        TEST(tears_keep_a_prefix),
        TEST(holes_are_zeroes_after_what_was_synced),
        TEST(names_survive_in_their_order),
        TEST(a_cut_happens_once),
        TEST(the_wall_clock_moves),
        TEST(a_directory_that_was_removed_comes_back_with_its_files),
        TEST(what_a_directory_had_is_gone_with_it),
        TEST(names_in_a_directory_that_was_renamed_are_taken_back),
        TEST(the_process_dies_at_a_moment),
        TEST(settings_are_checked),
    };
    return cmocka_run_group_tests_name("powercut", tests, NULL, NULL);
}
