/* Checks of our own invariants. They stay on in release builds and end the process with evidence:
 * a wrong answer is worse than none. Never for what a client, a disk or the system may do. */
#ifndef TRESTLE_BASE_CHECK_H
#define TRESTLE_BASE_CHECK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

__attribute__((noreturn, cold)) void check_failed(const char *file, int line, const char *what);

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (__builtin_expect(!(condition), 0))                                                     \
            check_failed(__FILE__, __LINE__, #condition);                                          \
    } while (0)

/* A DCHECK is too dear, or too plain, to be asked each time by a server: only builds with a
 * sanitizer ask, which are those of tests and fuzzers, and such with -Dself_checks=true. Elsewhere
 * the condition is compiled, and not evaluated: it must have no effects. */
#if defined(TRESTLE_SELF_CHECKS)
#define CHECKS_ITSELF 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define CHECKS_ITSELF 1
#endif
#endif
#ifndef CHECKS_ITSELF
#define CHECKS_ITSELF 0
#endif

#define DCHECK(condition)                                                                          \
    do {                                                                                           \
        if (CHECKS_ITSELF)                                                                         \
            CHECK(condition);                                                                      \
    } while (0)

/* Whether this thread holds the mutex: for DCHECKs in functions that are to be called with it held.
 */
bool check_is_held(const pthread_mutex_t *mutex);

/* Whether some thread does: where it is another that waits for what this one does. */
bool check_is_locked(pthread_mutex_t *mutex);

/* Every long-lived heap object begins with a magic number that says what it is, cleared when it is
 * freed: a stale or wrong pointer is caught at the next call. */
#define CHECK_MAGIC(object, expected) CHECK((object) != NULL && (object)->magic == (expected))

#endif
