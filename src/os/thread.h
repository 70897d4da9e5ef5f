/* Threads with names, so that `top -H` and a core dump say which is which. */
#ifndef TRESTLE_OS_THREAD_H
#define TRESTLE_OS_THREAD_H

#include "base/status.h"

#include <pthread.h>

/* Starts `run(argument)` on a new thread, to be joined. Of the name the kernel keeps 15 bytes.
 * Signals blocked in the caller are blocked in the new thread. */
status thread_start(pthread_t *thread, const char *name, void *(*run)(void *), void *argument);

/* Processors this process may run on; at least 1. */
unsigned thread_processors(void);

#endif
