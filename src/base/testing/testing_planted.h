/* For tests: faults that are planted, each in a process of its own, and the self check (check.h)
 * that must end it. Before the first of them no thread may have been started. */
#ifndef TRESTLE_BASE_TESTING_TESTING_PLANTED_H
#define TRESTLE_BASE_TESTING_TESTING_PLANTED_H

#include "base/check.h"
#include "base/testing/testing.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct planted {
    const char *name;
    void (*plant)(void); /* must not return */
    const char *check;   /* how the condition begins that does not hold */
    bool is_always;      /* CHECK, not DCHECK */
};

#define PLANTED(function, condition, is_always)                                                    \
    {                                                                                              \
#function, function, condition, is_always                                                  \
    }

/* In the child: what it says goes into the pipe. */
static inline void plant(const struct planted *fault, const int said[2])
{
    signal(SIGABRT, SIG_DFL);
    dup2(said[1], STDERR_FILENO);
    close(said[0]);
    close(said[1]);
    fault->plant();
    _exit(0);
}

/* Reads the process's output, up to `size` - 1 bytes, as a string. */
static inline void read_said(int from, char *text, size_t size)
{
    size_t at = 0;
    ssize_t got = 0;
    char rest[256];
    while (at < size - 1 && (got = read(from, text + at, size - 1 - at)) > 0)
        at += (size_t)got;
    text[at] = 0;
    while (got > 0)
        got = read(from, rest, sizeof rest);
    close(from);
}

static inline void assert_caught(const struct planted *fault)
{
    enum { MOST = 4096 };
    char text[MOST], expected[256];
    int said[2], how;
    if (!fault->is_always && !CHECKS_ITSELF)
        return;
    assert_int_equal(pipe(said), 0);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        plant(fault, said);
    close(said[1]);
    read_said(said[0], text, sizeof text);
    assert_int_equal(waitpid(child, &how, 0), child);
    snprintf(expected, sizeof expected, "this is a bug in trestle: %s", fault->check);
    if (!WIFSIGNALED(how) || WTERMSIG(how) != SIGABRT || strstr(text, expected) == NULL)
        fail_msg("%s is not caught by %s, but: %s", fault->name, fault->check, text);
}

#endif
