/* Stacks and profiles of this very process: threads that spin, sleep, do not answer. How often a
 * spinning thread is met depends on the machine, that it is met does not: so it is looked for until
 * it is found. */
#include "os/stacks.h"

#include "base/testing/failmalloc.h"
#include "base/testing/testing.h"
#include "os/symbols.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>

enum { TRIES = 600, PROFILE_US = 100 * 1000, OFTEN = 1000 };

struct fixture {
    struct stacks *stacks;
    struct buffer text;
    pthread_t thread;
    bool has_thread;
    atomic_bool is_over;
    sem_t is_there;
    sem_t may_go;
};

/* ThreadSanitizer keeps a signal until the thread calls something that it knows, and hands it on
 * from there: a thread that spins gets none, and no thread is seen where it was interrupted. */
static void skip_with_tsan(void)
{
#if __has_feature(thread_sanitizer)
    skip();
#endif
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    assert_int_equal(sem_init(&f->is_there, 0, 0), 0);
    assert_int_equal(sem_init(&f->may_go, 0, 0), 0);
    assert_ok(stacks_open(&f->stacks));
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    atomic_store(&f->is_over, true);
    sem_post(&f->may_go);
    if (f->has_thread)
        pthread_join(f->thread, NULL);
    stacks_close(f->stacks);
    buffer_free(&f->text);
    sem_destroy(&f->is_there);
    sem_destroy(&f->may_go);
    free(f);
    return 0;
}

static bool has(struct fixture *f, const char *words)
{
    struct buffer text = {0};
    buffer_append_bytes(&text, buffer_bytes(&f->text));
    buffer_append_byte(&text, '\0');
    bool found = strstr((const char *)text.data, words) != NULL;
    buffer_free(&text);
    return found;
}

static void start(struct fixture *f, void *(*run)(void *))
{
    assert_int_equal(pthread_create(&f->thread, NULL, run, f), 0);
    f->has_thread = true;
    while (sem_wait(&f->is_there) != 0) { /* a signal came */
    }
}

static __attribute__((noinline)) void spin_around(struct fixture *f)
{
    while (!atomic_load(&f->is_over)) {
    }
}

static void *spin(void *context)
{
    struct fixture *f = context;
    prctl(PR_SET_NAME, "spin ner;");
    sem_post(&f->is_there);
    spin_around(f);
    return NULL;
}

static __attribute__((noinline)) void lie_in_wait(struct fixture *f)
{
    sem_post(&f->is_there);
    while (sem_wait(&f->may_go) != 0) {
    }
}

static void *lie(void *context)
{
    prctl(PR_SET_NAME, "sleeper");
    lie_in_wait(context);
    return NULL;
}

/* A thread that takes no signals. */
static void *be_deaf(void *context)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    prctl(PR_SET_NAME, "deaf");
    lie_in_wait(context);
    return NULL;
}

/* --- stacks --- */

static void where_a_thread_waits(void **state)
{
    skip_with_tsan();
    struct fixture *f = *state;
    start(f, lie);
    assert_ok(stacks_write(f->stacks, &f->text));
    assert_true(has(f, "sleeper ("));
    assert_true(has(f, "    lie_in_wait\n    lie\n"));
    assert_true(has(f, "    where_a_thread_waits\n")); /* the asking thread is one of them */
    assert_false(has(f, "does not answer"));
}

static void a_thread_that_does_not_answer_is_told(void **state)
{
    struct fixture *f = *state;
    start(f, be_deaf);
    assert_ok(stacks_write(f->stacks, &f->text));
    assert_true(has(f, "deaf ("));
    assert_true(has(f, "s of CPU, does not answer\n"));
}

static void stacks_without_memory(void *context)
{
    struct fixture *f = context;
    buffer_free(&f->text);
    status s = stacks_write(f->stacks, &f->text);
    assert_true(status_is_ok(s) || s.code == STATUS_RESOURCE_EXHAUSTED);
    status_free(s);
}

static void memory_may_run_out(void **state)
{
    skip_with_tsan();
    struct fixture *f = *state;
    failmalloc_each(stacks_without_memory, f);
    assert_true(has(f, "memory_may_run_out"));
}

/* --- profiles --- */

static status take_profile(struct fixture *f, struct stacks_counts *counts)
{
    const struct stacks_profile wanted = {.duration_us = PROFILE_US, .per_second = OFTEN};
    return stacks_profile(f->stacks, &wanted, &f->text, counts);
}

static void where_the_time_goes(void **state)
{
    skip_with_tsan();
    struct fixture *f = *state;
    struct stacks_counts counts;
    uint64_t samples = 0;
    start(f, spin);
    for (int i = 0; i < TRIES && !has(f, ";spin;spin_around "); i++) {
        assert_ok(take_profile(f, &counts));
        samples += counts.samples;
    }
    assert_true(has(f, "spin_ner_;"));
    assert_true(has(f, ";spin;spin_around "));
    assert_true(samples > 0);
}

static bool ask_meanwhile(void *context)
{
    struct fixture *f = context;
    struct stacks_counts counts;
    struct buffer text = {0};
    status s = stacks_write(f->stacks, &text);
    assert_int_equal(s.code, STATUS_FAILED_PRECONDITION);
    status_free(s);
    s = take_profile(f, &counts);
    assert_int_equal(s.code, STATUS_FAILED_PRECONDITION);
    status_free(s);
    assert_int_equal(text.size, 0);
    return false; /* and that is the end of it, an hour early */
}

static void one_at_a_time(void **state)
{
    struct fixture *f = *state;
    struct stacks_counts counts;
    const struct stacks_profile wanted = {.duration_us = INT64_C(3600) * 1000 * 1000,
                                          .per_second = OFTEN,
                                          .goes_on = ask_meanwhile,
                                          .context = f};
    assert_ok(stacks_profile(f->stacks, &wanted, &f->text, &counts));
    assert_ok(stacks_write(f->stacks, &f->text));
}

/* From elsewhere, with whatever is in it. */
static void foreign_signals_are_ignored(void **state)
{
    struct fixture *f = *state;
    (void)f;
    raise(SIGPROF);
    const union sigval none = {.sival_ptr = NULL};
    assert_int_equal(sigqueue(getpid(), SIGPROF, none), 0);
}

/* --- names --- */

static void names_of_functions(void **state)
{
    struct fixture *f = *state;
    struct symbols *symbols;
    assert_ok(symbols_open(&symbols));
    symbols_name(symbols, (const char *)(uintptr_t)names_of_functions + 1, &f->text);
    buffer_append_byte(&f->text, ' ');
    symbols_name(symbols, (const void *)(uintptr_t)sem_post, &f->text);
    buffer_append_byte(&f->text, ' ');
    symbols_name(symbols, (const void *)(uintptr_t)1, &f->text);
    symbols_close(symbols);
    assert_true(has(f, "names_of_functions "));
    assert_true(has(f, "sem_post"));
    assert_true(has(f, " 0x1"));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(where_a_thread_waits), TEST(a_thread_that_does_not_answer_is_told),
        TEST(memory_may_run_out),   TEST(where_the_time_goes),
        TEST(one_at_a_time),        TEST(foreign_signals_are_ignored),
        TEST(names_of_functions),
    };
    return cmocka_run_group_tests_name("os_stacks", tests, NULL, NULL);
}
