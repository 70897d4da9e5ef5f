#include "base/check.h"
#include "base/testing/testing.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* The signal that ends a child which does this; 0: none does. */
static int signal_of(void (*does)(void))
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        close(STDERR_FILENO);
        does();
        _exit(0);
    }
    int how;
    assert_int_equal(waitpid(child, &how, 0), child);
    return WIFSIGNALED(how) ? WTERMSIG(how) : 0;
}

static void check_what_holds(void)
{
    CHECK(1 + 1 == 2);
    DCHECK(1 + 1 == 2);
}

static void check_what_does_not(void)
{
    CHECK(1 + 1 == 3);
}

static void debug_check_what_does_not(void)
{
    DCHECK(1 + 1 == 3);
}

static void check_that_does_not_hold_ends_the_process(void **state)
{
    (void)state;
    assert_int_equal(signal_of(check_what_holds), 0);
    assert_int_equal(signal_of(check_what_does_not), SIGABRT);
}

static void debug_check_is_evaluated_in_builds_with_a_sanitizer(void **state)
{
    (void)state;
    assert_int_equal(signal_of(debug_check_what_does_not), CHECKS_ITSELF ? SIGABRT : 0);
#if defined(__SANITIZE_ADDRESS__) || (defined(__has_feature) && __has_feature(address_sanitizer))
    assert_int_equal(CHECKS_ITSELF, 1);
#endif
}

static void *holds_it(void *mutex)
{
    assert_true(check_is_locked(mutex));
    return check_is_held(mutex) ? mutex : NULL;
}

static void held_mutex_is_locked_and_its_holder_is_known(void **state)
{
    (void)state;
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_t other;
    void *held;
    assert_false(check_is_locked(&mutex));
    assert_false(check_is_held(&mutex));
    pthread_mutex_lock(&mutex);
    assert_true(check_is_locked(&mutex));
    assert_true(check_is_held(&mutex));
    assert_int_equal(pthread_create(&other, NULL, holds_it, &mutex), 0);
    assert_int_equal(pthread_join(other, &held), 0);
    assert_null(held);
    pthread_mutex_unlock(&mutex);
    assert_false(check_is_locked(&mutex));
    assert_false(check_is_held(&mutex));
    pthread_mutex_destroy(&mutex);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_that_does_not_hold_ends_the_process),
        cmocka_unit_test(debug_check_is_evaluated_in_builds_with_a_sanitizer),
        cmocka_unit_test(held_mutex_is_locked_and_its_holder_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
