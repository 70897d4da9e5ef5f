/* See check.h. */
#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void check_failed(const char *file, int line, const char *what)
{
    fprintf(stderr, "trestle: %s:%d: this is a bug in trestle: %s does not hold\n", file, line,
            what);
    abort();
}

/* A mutex of glibc's knows the thread that holds it; 0: none does. */
bool check_is_held(const pthread_mutex_t *mutex)
{
    return __atomic_load_n(&mutex->__data.__owner, __ATOMIC_RELAXED) == gettid();
}

bool check_is_locked(pthread_mutex_t *mutex)
{
    if (pthread_mutex_trylock(mutex) != 0)
        return true;
    pthread_mutex_unlock(mutex);
    return false;
}
