/* Checks of our own invariants. They stay on in release builds and end the process with evidence:
 * a wrong answer is worse than none. Never for what a client, a disk or the system may do. */
#ifndef TRESTLE_BASE_CHECK_H
#define TRESTLE_BASE_CHECK_H

#include <stdint.h>

__attribute__((noreturn, cold)) void check_failed(const char *file, int line, const char *what);

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (__builtin_expect(!(condition), 0))                                                     \
            check_failed(__FILE__, __LINE__, #condition);                                          \
    } while (0)

/* Every long-lived heap object begins with a magic number that says what it is, cleared when it is
 * freed: a stale or wrong pointer is caught at the next call. */
#define CHECK_MAGIC(object, expected) CHECK((object) != NULL && (object)->magic == (expected))

#endif
