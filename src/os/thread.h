/* Threads with names, so that `top -H` and a core dump say which is which. */
#ifndef TRESTLE_OS_THREAD_H
#define TRESTLE_OS_THREAD_H

#include "base/status.h"

#include <pthread.h>
#include <time.h>

/* Starts `run(argument)` on a new thread, to be joined. Of the name the kernel keeps 15 bytes.
 * Signals blocked in the caller are blocked in the new thread. */
status thread_start(pthread_t *thread, const char *name, void *(*run)(void *), void *argument);

/* A condition whose timed waits go by the steady clock. */
void thread_init_steady_wake(pthread_cond_t *wake);

/* What the steady clock says in so many microseconds (0 or more), as such waits take it. */
struct timespec thread_time_in(int64_t us);

/* Looks every few milliseconds whether `is_so`, and says whether it became so within `most_us`
 * (INT64_MAX: waits without end). For the end of a life, where a notification from every place that
 * may be the last to leave would cost all the life long. */
bool thread_wait_for(bool (*is_so)(void *context), void *context, int64_t most_us);

/* What a thread rests by between two rounds of its work, and what ends it. */
struct thread_stop {
    pthread_mutex_t lock; /* of the rest */
    pthread_cond_t wake;
    bool is_stopping;
};

void thread_stop_init(struct thread_stop *stop);
void thread_stop_destroy(struct thread_stop *stop); /* no thread rests */

/* So long by the steady clock, or until thread_stop_now. Whether to go on. */
bool thread_rest(struct thread_stop *stop, int64_t us);

/* Ends the rest, and those to come. Any thread. */
void thread_stop_now(struct thread_stop *stop);

/* What the steady clock says, nanoseconds: for what takes less than a microsecond. */
int64_t thread_steady_ns(void);

/* Processor time of the calling thread so far, microseconds. */
int64_t thread_cpu_us(void);

/* From now on the calling thread gives way: of a processor that others want, too, it gets about a
 * tenth of what one of them gets, and what is idle it gets whole. Without effect where the system
 * does not let it. */
void thread_give_way(void);

/* Processors this process may run on; at least 1. */
unsigned thread_processors(void);

#endif
