/* Tests of the thread pool: everything runs once, the queue is bounded, the end waits. */
#include "os/pool.h"

#include "base/check.h"
#include "base/testing/failmalloc.h"
#include "base/testing/testing.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

struct counted {
    struct task task;
    atomic_size_t *ran;
};

static void count(struct task *task)
{
    atomic_fetch_add(LIST_ENTRY(task, struct counted, task)->ran, 1);
}

static void every_task_runs_once(void **state)
{
    (void)state;
    enum { TASKS = 20000 };
    struct counted *tasks = calloc(TASKS, sizeof *tasks);
    struct pool *pool;
    atomic_size_t ran = 0;
    assert_non_null(tasks);
    assert_ok(pool_create(4, TASKS, "test", &pool));
    for (size_t i = 0; i < TASKS; i++) {
        tasks[i] = (struct counted){.task.run = count, .ran = &ran};
        assert_true(pool_submit(pool, &tasks[i].task));
    }
    pool_destroy(pool); /* runs what is queued first */
    assert_int_equal(ran, TASKS);
    free(tasks);
}

/* A door that keeps the pool's only thread inside its first task. */
struct door {
    struct task task;
    pthread_barrier_t entered;
    pthread_barrier_t leave;
};

static void wait_at_door(struct task *task)
{
    struct door *door = LIST_ENTRY(task, struct door, task);
    pthread_barrier_wait(&door->entered);
    pthread_barrier_wait(&door->leave);
}

static void a_full_queue_refuses(void **state)
{
    (void)state;
    enum { LIMIT = 3 };
    struct door door = {.task.run = wait_at_door};
    struct counted tasks[LIMIT + 1];
    struct pool *pool;
    atomic_size_t ran = 0;
    pthread_barrier_init(&door.entered, NULL, 2);
    pthread_barrier_init(&door.leave, NULL, 2);
    assert_ok(pool_create(1, LIMIT, "test", &pool));
    assert_true(pool_submit(pool, &door.task));
    pthread_barrier_wait(&door.entered);
    for (size_t i = 0; i <= LIMIT; i++) {
        tasks[i] = (struct counted){.task.run = count, .ran = &ran};
        assert_int_equal(pool_submit(pool, &tasks[i].task), i < LIMIT);
    }
    assert_int_equal(pool_load(pool), LIMIT + 1);
    pthread_barrier_wait(&door.leave);
    pool_destroy(pool);
    assert_int_equal(ran, LIMIT);
    pthread_barrier_destroy(&door.entered);
    pthread_barrier_destroy(&door.leave);
}

static struct metrics *measured(struct pool *pool)
{
    struct metrics *metrics;
    assert_ok(metrics_create(&metrics));
    pool_measure(pool, metrics, POOL_GAUGES(queries));
    return metrics;
}

static void waiting_is_measured(void **state)
{
    (void)state;
    struct door door = {.task.run = wait_at_door};
    struct pool *pool;
    atomic_size_t ran = 0;
    struct counted task = {.task.run = count, .ran = &ran};
    pthread_barrier_init(&door.entered, NULL, 2);
    pthread_barrier_init(&door.leave, NULL, 2);
    assert_ok(pool_create(1, 3, "test", &pool));
    assert_true(pool_submit(pool, &door.task));
    pthread_barrier_wait(&door.entered);
    assert_true(pool_submit(pool, &task.task));
    usleep(2000);
    struct metrics *metrics = measured(pool);
    assert_int_equal(metrics_value(metrics, METRIC_pool_queued_queries), 1);
    assert_int_equal(metrics_value(metrics, METRIC_pool_running_queries), 1);
    assert_int_equal(metrics_value(metrics, METRIC_pool_tasks_total_queries), 1);
    assert_true(metrics_value(metrics, METRIC_pool_wait_seconds_total_queries) >= 2000);
    metrics_destroy(metrics);
    pthread_barrier_wait(&door.leave);
    pool_destroy(pool);
    pool_measure(NULL, NULL, POOL_GAUGES(queries));
    pthread_barrier_destroy(&door.entered);
    pthread_barrier_destroy(&door.leave);
}

/* A task that meets the others: each ends when all of them run. */
struct meeting {
    struct task task;
    pthread_barrier_t *met;
};

static void meet(struct task *task)
{
    pthread_barrier_wait(LIST_ENTRY(task, struct meeting, task)->met);
}

static void as_many_run_as_there_are_threads(void **state)
{
    (void)state;
    enum { THREADS = 5, ROUNDS = 300 };
    struct meeting meetings[THREADS - 1];
    pthread_barrier_t met;
    struct pool *pool;
    pthread_barrier_init(&met, NULL, THREADS);
    assert_ok(pool_create(THREADS - 1, THREADS, "test", &pool));
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < THREADS - 1; i++) {
            meetings[i] = (struct meeting){.task.run = meet, .met = &met};
            assert_true(pool_submit(pool, &meetings[i].task));
        }
        pthread_barrier_wait(&met);
        while (pool_load(pool) > 0)
            sched_yield();
    }
    pool_destroy(pool);
    pthread_barrier_destroy(&met);
}

/* What the pool is for: work goes to the pool and its result comes back to the loop. */
struct round_trip {
    struct task work;
    struct task answer;
    struct loop *loop;
    size_t *left;
    bool worked;
};

static void do_work(struct task *task)
{
    struct round_trip *trip = LIST_ENTRY(task, struct round_trip, work);
    CHECK(!loop_is_current(trip->loop));
    trip->worked = true;
    loop_post(trip->loop, &trip->answer);
}

static void take_answer(struct task *task)
{
    struct round_trip *trip = LIST_ENTRY(task, struct round_trip, answer);
    CHECK(loop_is_current(trip->loop) && trip->worked);
    if (--*trip->left == 0)
        loop_stop(trip->loop);
}

static void results_come_back_to_the_loop(void **state)
{
    (void)state;
    enum { TRIPS = 5000 };
    struct round_trip *trips = calloc(TRIPS, sizeof *trips);
    struct loop *loop;
    struct pool *pool;
    size_t left = TRIPS;
    assert_non_null(trips);
    assert_ok(loop_create(clock_system(), &loop));
    assert_ok(pool_create(2, TRIPS, "test", &pool));
    for (size_t i = 0; i < TRIPS; i++) {
        trips[i] = (struct round_trip){
            .work.run = do_work, .answer.run = take_answer, .loop = loop, .left = &left};
        assert_true(pool_submit(pool, &trips[i].work));
    }
    loop_run(loop);
    assert_int_equal(left, 0);
    pool_destroy(pool);
    loop_destroy(loop);
    free(trips);
}

static void create_in_need(void *context)
{
    (void)context;
    struct pool *pool;
    status s = pool_create(2, 1, "test", &pool);
    assert_int_equal(status_is_ok(s), pool != NULL);
    status_free(s);
    pool_destroy(pool);
}

static void memory_runs_out_anywhere(void **state)
{
    (void)state;
    failmalloc_each(create_in_need, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_task_runs_once),
        cmocka_unit_test(a_full_queue_refuses),
        cmocka_unit_test(waiting_is_measured),
        cmocka_unit_test(as_many_run_as_there_are_threads),
        cmocka_unit_test(results_come_back_to_the_loop),
        cmocka_unit_test(memory_runs_out_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
