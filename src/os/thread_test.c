/* Tests of what ends the rest of a thread (thread.h). */
#include "os/thread.h"

#include "base/testing/testing.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rest_that_is_over_lets_the_thread_go_on),
        cmocka_unit_test(a_stop_ends_the_rest_and_those_to_come),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
