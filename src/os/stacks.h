/* Where this process's threads stand, and where they spend their time, without a debugger or perf.
 *
 * A thread is asked by SIGPROF, and notes the functions that it is in, by itself: the asking thread
 * waits for that, and a thread that cannot answer (it waits for a disk that does not) is told as
 * one. For a profile each thread has a timer of its own CPU time. Nothing runs between requests.
 *
 * Invariants
 *  1. The handler finds its object by the signal's value, which this process alone may send. It
 *     allocates nothing, takes no lock, and leaves errno.
 *  2. What the handler writes to is there as long as the object: samples are freed when no handler
 *     is in it and none can come in. Once the object has gone the signal is ignored.
 *
 * There is one such object in a process at a time. All functions from any thread; they block. */
#ifndef TRESTLE_OS_STACKS_H
#define TRESTLE_OS_STACKS_H

#include "base/status.h"

struct stacks;

status stacks_open(struct stacks **out);
void stacks_close(struct stacks *stacks); /* NULL is fine; no request may be under way */

/* Appends each thread: its name, state, CPU time, and the functions that it is in, the innermost
 * first. FAILED_PRECONDITION if another request is under way; RESOURCE_EXHAUSTED. */
status stacks_write(struct stacks *stacks, struct buffer *out);

/* A profile as it is asked for. */
struct stacks_profile {
    int64_t duration_us;
    unsigned per_second; /* samples of each second of a thread's CPU time */
    /* Asked several times a second: false ends it early. NULL: it is not ended early. */
    bool (*goes_on)(void *context);
    void *context;
};

/* The counts of a profile that was taken. */
struct stacks_counts {
    uint64_t samples;
    uint64_t lost; /* beyond the room for them, or without a stack */
};

/* Appends a line for each stack that was met: functions from the outermost to the innermost between
 * semicolons, the thread's name first, and how often. Threads that begin meanwhile are found within
 * a second. Errors as above. */
status stacks_profile(struct stacks *stacks, const struct stacks_profile *wanted,
                      struct buffer *out, struct stacks_counts *counts);

#endif
