/* Tests of entities' locks: one thread has them at a time, all or none, and none waits for ever. */
#include "base/testing/testing.h"
#include "datastore/commit/entity_locks.h"

#include <pthread.h>

enum { OWNERS = 6, ROUNDS = 300, KEYS = 5 };

static const char *const names[KEYS] = {"a", "b", "c", "d", "e"};

static int setup(void **state)
{
    struct ds_locks *locks;
    assert_ok(ds_locks_create(&locks));
    *state = locks;
    return 0;
}

static int teardown(void **state)
{
    ds_locks_destroy(*state);
    return 0;
}

static void a_wait_past_its_deadline_is_told(void **state)
{
    struct ds_lock held = {.key = bytes_of("b")};
    struct ds_lock wanted[] = {{.key = bytes_of("a")}, {.key = bytes_of("b")}};
    struct ds_lock a = {.key = bytes_of("a")};
    assert_ok(ds_locks_take(*state, &held, 1, 0));
    status s = ds_locks_take(*state, wanted, 2, 1000);
    assert_int_equal(s.code, STATUS_ABORTED);
    status_free(s);
    assert_ok(ds_locks_take(*state, &a, 1, 0)); /* what it had was given back */
    ds_locks_release(*state, &a, 1);
    ds_locks_release(*state, &held, 1);
    assert_ok(ds_locks_take(*state, wanted, 2, 0));
    ds_locks_release(*state, wanted, 2);
}

struct shared {
    struct ds_locks *locks;
    int counters[KEYS]; /* each under its lock */
};

static void *count_often(void *argument)
{
    struct shared *shared = argument;
    for (int i = 0; i < ROUNDS; i++) {
        struct ds_lock taken[2] = {{.key = bytes_of(names[i % (KEYS - 1)])},
                                   {.key = bytes_of(names[KEYS - 1])}};
        size_t count = i % 3 == 0 ? 2 : 1;
        assert_ok(ds_locks_take(shared->locks, taken, count, INT64_C(60) * 1000000));
        shared->counters[i % (KEYS - 1)]++;
        if (count == 2)
            shared->counters[KEYS - 1]++;
        ds_locks_release(shared->locks, taken, count);
    }
    return NULL;
}

static void one_thread_has_an_entity_at_a_time(void **state)
{
    struct shared shared = {.locks = *state};
    pthread_t threads[OWNERS];
    int sum = 0;
    for (int i = 0; i < OWNERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count_often, &shared), 0);
    for (int i = 0; i < OWNERS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < KEYS; i++)
        sum += shared.counters[i];
    assert_int_equal(sum, OWNERS * (ROUNDS + ROUNDS / 3));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_wait_past_its_deadline_is_told),
        TEST(one_thread_has_an_entity_at_a_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
