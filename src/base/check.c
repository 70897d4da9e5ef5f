/* See check.h. */
#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>

void check_failed(const char *file, int line, const char *what)
{
    fprintf(stderr, "trestle: %s:%d: this is a bug in trestle: %s does not hold\n", file, line,
            what);
    abort();
}

bool check_is_locked(pthread_mutex_t *mutex)
{
    if (pthread_mutex_trylock(mutex) != 0)
        return true;
    pthread_mutex_unlock(mutex);
    return false;
}
