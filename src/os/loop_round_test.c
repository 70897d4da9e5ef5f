/* A round of loops: each does its part on its own thread, the waiting thread may leave, and what
 * they work on is freed once. */
#include "os/loop_round.h"

#include "base/testing/failmalloc.h"
#include "base/testing/testing.h"

#include <pthread.h>

enum { LOOPS = 3, AMPLE_US = 600 * 1000 * 1000 };

struct fixture {
    struct loop *loops[LOOPS];
    pthread_t threads[LOOPS];
    bool runs[LOOPS];
    atomic_int destroyed; /* times that the object was */
};

/* What the loops work on. */
struct work {
    struct loop_round round;
    struct fixture *f;
    bool was_on_its_loop[LOOPS]; /* each written by that loop's part alone */
};

static void do_part(struct loop_round *round, size_t part)
{
    struct work *work = LIST_ENTRY(round, struct work, round);
    work->was_on_its_loop[part] = loop_is_current(work->f->loops[part]);
}

static void destroy(struct loop_round *round)
{
    struct work *work = LIST_ENTRY(round, struct work, round);
    atomic_fetch_add(&work->f->destroyed, 1);
    free(work);
}

static struct work *new_work(struct fixture *f)
{
    struct work *work = calloc(1, sizeof *work);
    assert_non_null(work);
    work->f = f;
    work->round.run = do_part;
    work->round.destroy = destroy;
    return work;
}

static void *run_loop(void *loop)
{
    loop_run(loop);
    return NULL;
}

static void start(struct fixture *f, size_t loop)
{
    assert_int_equal(pthread_create(&f->threads[loop], NULL, run_loop, f->loops[loop]), 0);
    f->runs[loop] = true;
}

static void stop(struct fixture *f)
{
    for (size_t i = 0; i < LOOPS; i++) {
        if (!f->runs[i])
            continue;
        loop_stop(f->loops[i]);
        pthread_join(f->threads[i], NULL);
        f->runs[i] = false;
    }
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    for (size_t i = 0; i < LOOPS; i++)
        assert_ok(loop_create(clock_system(), &f->loops[i]));
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    stop(f);
    for (size_t i = 0; i < LOOPS; i++)
        loop_destroy(f->loops[i]);
    free(f);
    return 0;
}

static void each_loop_does_its_part(void **state)
{
    struct fixture *f = *state;
    struct work *work = new_work(f);
    for (size_t i = 0; i < LOOPS; i++)
        start(f, i);
    assert_ok(loop_round_begin(&work->round, f->loops, LOOPS));
    assert_int_equal(loop_round_wait(&work->round, AMPLE_US), LOOPS);
    for (size_t i = 0; i < LOOPS; i++) {
        assert_true(loop_round_is_done(&work->round, i));
        assert_true(work->was_on_its_loop[i]);
    }
    loop_round_release(&work->round);
    stop(f); /* a loop lets go after it has answered */
    assert_int_equal(f->destroyed, 1);
}

/* The last loop is stuck: it runs only when the waiting thread has left. */
static void a_waiting_caller_may_leave(void **state)
{
    struct fixture *f = *state;
    struct work *work = new_work(f);
    assert_ok(loop_round_begin(&work->round, f->loops, LOOPS));
    assert_int_equal(loop_round_wait(&work->round, 0), 0);
    for (size_t i = 0; i + 1 < LOOPS; i++)
        start(f, i);
    stop(f);
    assert_int_equal(loop_round_wait(&work->round, 1000), LOOPS - 1);
    assert_true(loop_round_is_done(&work->round, 0));
    assert_false(loop_round_is_done(&work->round, LOOPS - 1));
    loop_round_release(&work->round);
    assert_int_equal(f->destroyed, 0);
    start(f, LOOPS - 1);
    stop(f);
    assert_int_equal(f->destroyed, 1);
}

static void a_round_without_loops_ends_at_once(void **state)
{
    struct fixture *f = *state;
    struct work *work = new_work(f);
    assert_ok(loop_round_begin(&work->round, f->loops, 0));
    assert_int_equal(loop_round_wait(&work->round, AMPLE_US), 0);
    loop_round_release(&work->round);
    assert_int_equal(f->destroyed, 1);
}

static void without_memory_none_is_asked(void **state)
{
    struct fixture *f = *state;
    struct work *work = new_work(f);
    failmalloc_start(0);
    status s = loop_round_begin(&work->round, f->loops, LOOPS);
    assert_true(failmalloc_stop());
    assert_int_equal(s.code, STATUS_RESOURCE_EXHAUSTED);
    status_free(s);
    free(work); /* still ours: a loop that had been asked would run into it */
    for (size_t i = 0; i < LOOPS; i++)
        start(f, i);
    stop(f);
    assert_int_equal(f->destroyed, 0);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_loop_does_its_part),
        TEST(a_waiting_caller_may_leave),
        TEST(a_round_without_loops_ends_at_once),
        TEST(without_memory_none_is_asked),
    };
    return cmocka_run_group_tests_name("os_loop_round", tests, NULL, NULL);
}
