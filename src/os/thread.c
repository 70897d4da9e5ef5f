/* See thread.h. */
#include "os/thread.h"

#include "base/clock.h"

#include <sched.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

enum { KERNEL_NAME_SIZE = 16 };

status thread_start(pthread_t *thread, const char *name, void *(*run)(void *), void *argument)
{
    int error = pthread_create(thread, NULL, run, argument);
    if (error != 0)
        return status_from_errno(error, "cannot start thread %s", name);
    char cut[KERNEL_NAME_SIZE];
    snprintf(cut, sizeof cut, "%s", name);
    pthread_setname_np(*thread, cut); /* for people only: a failure changes nothing */
    return status_ok();
}

void thread_init_steady_wake(pthread_cond_t *wake)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(wake, &attributes);
    pthread_condattr_destroy(&attributes);
}

bool thread_wait_for(bool (*is_so)(void *context), void *context, int64_t most_us)
{
    const struct timespec pause = {.tv_nsec = 2 * 1000 * 1000};
    int64_t began = clock_steady_us(clock_system());
    while (!is_so(context)) {
        if (clock_steady_us(clock_system()) - began >= most_us)
            return false;
        nanosleep(&pause, NULL);
    }
    return true;
}

struct timespec thread_time_in(int64_t us)
{
    enum { SECOND_US = 1000 * 1000, SECOND_NS = 1000 * 1000 * 1000 };
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    int64_t ns = now.tv_nsec + us % SECOND_US * 1000;
    return (struct timespec){.tv_sec = now.tv_sec + us / SECOND_US + ns / SECOND_NS,
                             .tv_nsec = ns % SECOND_NS};
}

void thread_stop_init(struct thread_stop *stop)
{
    pthread_mutex_init(&stop->lock, NULL);
    pthread_cond_init(&stop->wake, NULL);
    stop->is_stopping = false;
}

void thread_stop_destroy(struct thread_stop *stop)
{
    pthread_cond_destroy(&stop->wake);
    pthread_mutex_destroy(&stop->lock);
}

bool thread_rest(struct thread_stop *stop, int64_t us)
{
    const struct timespec until = thread_time_in(us);
    pthread_mutex_lock(&stop->lock);
    int waited = 0;
    while (!stop->is_stopping && waited == 0)
        waited = pthread_cond_clockwait(&stop->wake, &stop->lock, CLOCK_MONOTONIC, &until);
    bool goes_on = !stop->is_stopping;
    pthread_mutex_unlock(&stop->lock);
    return goes_on;
}

void thread_stop_now(struct thread_stop *stop)
{
    pthread_mutex_lock(&stop->lock);
    stop->is_stopping = true;
    pthread_cond_signal(&stop->wake);
    pthread_mutex_unlock(&stop->lock);
}

/* Linux has a niceness for each thread: ten steps are a tenth of the weight (sched(7)). */
void thread_give_way(void)
{
    enum { NICENESS = 10 };
    (void)setpriority(PRIO_PROCESS, 0, NICENESS);
}

int64_t thread_steady_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t thread_cpu_us(void)
{
    struct timespec used = {0};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used); /* cannot fail for one's own thread */
    return (int64_t)used.tv_sec * 1000000 + used.tv_nsec / 1000;
}

unsigned thread_processors(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1;
    int count = CPU_COUNT(&set);
    return count < 1 ? 1 : (unsigned)count;
}
