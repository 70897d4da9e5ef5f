/* Tests of counting what clients do: little is counted call by call, much is estimated, and threads
 * that count and that collect do not lose each other's events. */
#include "datastore/usage.h"

#include "base/testing/testing.h"
#include "os/thread.h"

#include <stdatomic.h>

struct fixture {
    struct ds_usage *usage;
    struct ds_usage_database *database;
    struct arena *arena;
    atomic_bool is_over;
};

static int setup(void **state)
{
    struct fixture *f = *state = calloc(1, sizeof *f);
    assert_non_null(f);
    assert_ok(ds_usage_create(clock_system(), &f->usage));
    f->database = ds_usage_database_create(f->usage);
    f->arena = arena_create(64 << 20);
    assert_non_null(f->database);
    assert_non_null(f->arena);
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    ds_usage_destroy(f->usage);
    ds_usage_database_destroy(f->database);
    arena_destroy(f->arena);
    free(f);
    return 0;
}

/* Returns whether it was counted. */
static bool query(struct fixture *f)
{
    int64_t now_us = clock_steady_us(clock_system());
    struct ds_usage_event event = {.database = f->database,
                                   .call = DS_USAGE_QUERY,
                                   .weight = ds_usage_choose(f->usage),
                                   .begun_us = now_us,
                                   .ended_us = now_us};
    if (event.weight == 0)
        return false;
    ds_usage_set_name(&event.kind, bytes_of("Kind"));
    ds_usage_add(f->usage, &event);
    return true;
}

static uint64_t queries(struct fixture *f)
{
    struct ds_usage_view view;
    assert_ok(ds_usage_look(f->usage, f->database, 0, f->arena, &view));
    return view.kind_count == 0 ? 0 : view.kinds[0].numbers[DS_QUERIES];
}

static void little_is_counted_call_by_call(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(queries(f), 0);
    for (size_t i = 0; i < 300; i++)
        assert_true(query(f));
    assert_int_equal(queries(f), 300);
    ds_usage_collect(f->usage);
    for (size_t i = 0; i < 300; i++) /* emptied, it counts all again */
        assert_true(query(f));
    assert_int_equal(queries(f), 600);
}

static void much_is_estimated(void **state)
{
    enum { CALLS = 20000 };
    struct fixture *f = *state;
    size_t counted = 0;
    for (size_t i = 0; i < CALLS; i++)
        counted += query(f);
    assert_true(counted < CALLS / 4);
    assert_in_range(queries(f), CALLS * 8 / 10, CALLS * 12 / 10);
}

static void *count_on(void *context)
{
    struct fixture *f = context;
    enum { CALLS = 400 };
    for (size_t i = 0; i < CALLS; i++)
        query(f);
    return NULL;
}

static void *collect_on(void *context)
{
    struct fixture *f = context;
    while (!atomic_load(&f->is_over))
        ds_usage_collect(f->usage);
    return NULL;
}

/* How many are missed, since all rings were taken, depends on how the threads run. */
static void threads_count_beside_a_collector(void **state)
{
    struct fixture *f = *state;
    pthread_t threads[4], collector;
    assert_ok(thread_start(&collector, "collector", collect_on, f));
    for (size_t i = 0; i < 4; i++)
        assert_ok(thread_start(&threads[i], "counter", count_on, f));
    for (size_t i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    atomic_store(&f->is_over, true);
    pthread_join(collector, NULL);
    assert_in_range(queries(f), 1, 2400);
}

static void without_counting_there_is_no_database(void **state)
{
    (void)state;
    assert_null(ds_usage_database_create(NULL));
    ds_usage_database_destroy(NULL);
    ds_usage_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(little_is_counted_call_by_call, setup, teardown),
        cmocka_unit_test_setup_teardown(much_is_estimated, setup, teardown),
        cmocka_unit_test_setup_teardown(threads_count_beside_a_collector, setup, teardown),
        cmocka_unit_test(without_counting_there_is_no_database),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
