/* An event loop: one thread, one epoll instance, timers, and tasks posted from other threads.
 *
 * Invariant: callbacks and tasks run on the loop's thread, one at a time, and must not block. */
#ifndef TRESTLE_OS_LOOP_H
#define TRESTLE_OS_LOOP_H

#include "base/clock.h"
#include "base/list.h"
#include "base/status.h"

struct loop;

/* A piece of work that carries its own link: a member of the object that it works on. It may be
 * posted again as soon as `run` has been entered, not before. */
struct task {
    struct link link;
    void (*run)(struct task *task);
};

status loop_create(struct clock *clock, struct loop **out);

/* After loop_run has returned, or without it; NULL is fine. Tasks that did not run are forgotten:
 * they are their owners'. */
void loop_destroy(struct loop *loop);

/* Runs until loop_stop; on the calling thread, which becomes the loop's. Until then the thread that
 * made the loop counts as the loop's. Every task posted before loop_stop is run; a stop that comes
 * before the run ends it at its first turn. */
void loop_run(struct loop *loop);
void loop_stop(struct loop *loop); /* any thread */

/* Runs the task soon, after those posted before it. Any thread; cannot fail. A batch posts a whole
 * list for the price of one wake-up; the list is empty afterwards. */
void loop_post(struct loop *loop, struct task *task);
void loop_post_list(struct loop *loop, struct list *tasks);

/* Turns of LOOP_SLOW_US or more since the start, and the longest of them: all that the loop serves
 * waited for so long. By a clock that ticks every few milliseconds. Any thread. */
enum { LOOP_SLOW_US = 50 * 1000 };
struct loop_slowness {
    uint64_t turns;
    int64_t longest_us; /* 0: there was none */
};
struct loop_slowness loop_slowness(const struct loop *loop);

bool loop_is_current(const struct loop *loop); /* whether the calling thread is the loop's */
struct clock *loop_clock(const struct loop *loop);

/* --- the rest is for the loop's thread only --- */

/* Runs the task when all that was ready in this turn has been handled: the place where the output
 * of many causes becomes one write. */
void loop_defer(struct loop *loop, struct task *task);

/* Takes back a task that was deferred: it does not run, and may be freed. Fine if it is not. */
void loop_forget(struct loop *loop, struct task *task);

/* A file descriptor that is watched. The object is the caller's; `ready` gets EPOLLIN, EPOLLOUT,
 * EPOLLHUP, EPOLLERR. Level-triggered, unless EPOLLET is among the events that are asked for:
 * then loop_watch_change to the same events tells again what still holds. */
struct watch {
    int fd;
    void (*ready)(struct watch *watch, uint32_t events);
};

status loop_watch(struct loop *loop, struct watch *watch, uint32_t events);
status loop_watch_change(struct loop *loop, struct watch *watch, uint32_t events);
/* After this `ready` is not called again, even for events that were already fetched. Before the
 * descriptor is closed. */
void loop_unwatch(struct loop *loop, struct watch *watch);

/* Timers are in a binary heap: setting and clearing cost O(log n). */
struct timer {
    int64_t due_us;   /* clock_steady_us */
    size_t heap_slot; /* 0: not set; the loop's */
    void (*run)(struct timer *timer);
};

/* Sets, or moves, a timer; it runs once, on the first turn after it is due. RESOURCE_EXHAUSTED if
 * there is no memory for it; moving one that is set cannot fail. */
status loop_timer_set(struct loop *loop, struct timer *timer, int64_t due_us);
void loop_timer_clear(struct loop *loop, struct timer *timer); /* fine if not set */

#endif
