/* See thread.h. */
#include "os/thread.h"

#include <sched.h>
#include <stdio.h>

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

unsigned thread_processors(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1;
    int count = CPU_COUNT(&set);
    return count < 1 ? 1 : (unsigned)count;
}
