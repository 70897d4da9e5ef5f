/* Tests of what ends the rest of a thread, and of how it gives way (thread.h). */
#include "os/thread.h"

#include "base/testing/testing.h"

#include <sys/resource.h>

enum { LONG_US = 1000 * 1000 * 1000 };

static void a_rest_that_is_over_lets_the_thread_go_on(void **state)
{
    (void)state;
    struct thread_stop stop;
    thread_stop_init(&stop);
    assert_true(thread_rest(&stop, 0));
    assert_true(thread_rest(&stop, 1));
    thread_stop_destroy(&stop);
}

static void *rest_for_long(void *stop)
{
    return thread_rest(stop, LONG_US) ? stop : NULL;
}

static void a_stop_ends_the_rest_and_those_to_come(void **state)
{
    (void)state;
    struct thread_stop stop;
    pthread_t thread;
    void *went_on;
    thread_stop_init(&stop);
    assert_ok(thread_start(&thread, "rests", rest_for_long, &stop));
    thread_stop_now(&stop);
    pthread_join(thread, &went_on);
    assert_null(went_on);
    assert_false(thread_rest(&stop, LONG_US));
    thread_stop_destroy(&stop);
}

static void *give_way(void *niceness)
{
    thread_give_way();
    *(int *)niceness = getpriority(PRIO_PROCESS, 0);
    return NULL;
}

static void a_thread_gives_way_alone(void **state)
{
    (void)state;
    pthread_t thread;
    int before = getpriority(PRIO_PROCESS, 0), niceness = 0;
    assert_ok(thread_start(&thread, "gives way", give_way, &niceness));
    pthread_join(thread, NULL);
    assert_true(niceness >= 10);
    assert_int_equal(getpriority(PRIO_PROCESS, 0), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rest_that_is_over_lets_the_thread_go_on),
        cmocka_unit_test(a_stop_ends_the_rest_and_those_to_come),
        cmocka_unit_test(a_thread_gives_way_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
