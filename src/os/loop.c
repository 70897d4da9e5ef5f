/* An event loop over epoll: see loop.h.
 *
 * One turn: wait, then events, due timers, posted tasks, deferred tasks, in this order.
 *
 * Invariants
 *  1. `posted`, `asleep` and `stopping` are guarded by `mutex`; the rest belongs to the loop's
 *     thread.
 *  2. The loop goes to sleep only with `asleep` set and `posted` empty, both looked at under the
 *     mutex. The first thread that posts clears `asleep` and writes the eventfd: one system call a
 *     sleep, however much is posted meanwhile, and none while the loop is awake.
 *  3. The eventfd is watched edge-triggered and never read: each write wakes once.
 *  4. heap[1] is the timer due first; heap[i] is due no earlier than heap[i / 2]; a timer's
 *     heap_slot is its index, and 0 is no slot. */
#include "os/loop.h"

#include "base/check.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum {
    /* Output is written at the end of a turn: what so many connections need for that is then still
     * in the processor's cache, and a wait for that many costs each of them little. */
    EVENTS_A_TURN = 32,
    FIRST_HEAP_CAPACITY = 64,
};

struct loop {
    uint32_t magic;
    struct clock *clock;
    int epoll_fd;
    int wake_fd;

    pthread_mutex_t mutex;
    struct list posted;
    bool asleep;
    bool stopping;

    struct list deferred;
    struct list running; /* of what was deferred: what has not had its turn */
    struct timer **heap; /* from 1 to timer_count */
    size_t timer_count;
    size_t heap_capacity;
    struct epoll_event events[EVENTS_A_TURN]; /* those of this turn; unwatched ones are nulled */
    int event_count;
    atomic_uint_fast64_t slow_turns; /* written by the loop's thread alone, as is the next */
    atomic_int_fast64_t longest_us;
};

#define LOOP_MAGIC 0x4c4f4f50u

/* The loop that the calling thread runs: what loop_is_current compares with. */
static _Thread_local const struct loop *running;

static status open_wake_up(struct loop *loop)
{
    loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (loop->epoll_fd < 0)
        return status_from_errno(errno, "cannot make an epoll instance");
    loop->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (loop->wake_fd < 0)
        return status_from_errno(errno, "cannot make an eventfd");
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.ptr = NULL};
    if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, loop->wake_fd, &event) != 0)
        return status_from_errno(errno, "cannot watch an eventfd");
    return status_ok();
}

status loop_create(struct clock *clock, struct loop **out)
{
    *out = NULL;
    struct loop *loop = malloc(sizeof *loop);
    if (loop == NULL)
        return status_out_of_memory();
    *loop = (struct loop){.magic = LOOP_MAGIC, .clock = clock, .epoll_fd = -1, .wake_fd = -1};
    pthread_mutex_init(&loop->mutex, NULL);
    status s = open_wake_up(loop);
    if (!status_is_ok(s)) {
        loop_destroy(loop);
        return s;
    }
    *out = loop;
    return status_ok();
}

void loop_destroy(struct loop *loop)
{
    if (loop == NULL)
        return;
    CHECK_MAGIC(loop, LOOP_MAGIC);
    if (loop->wake_fd >= 0)
        close(loop->wake_fd);
    if (loop->epoll_fd >= 0)
        close(loop->epoll_fd);
    pthread_mutex_destroy(&loop->mutex);
    free(loop->heap);
    loop->magic = 0;
    free(loop);
}

bool loop_is_current(const struct loop *loop)
{
    return running == loop;
}

struct clock *loop_clock(const struct loop *loop)
{
    return loop->clock;
}

/* --- tasks --- */

/* Called with the mutex held, which it releases. */
static void unlock_and_wake(struct loop *loop)
{
    bool wake = loop->asleep;
    loop->asleep = false;
    pthread_mutex_unlock(&loop->mutex);
    if (!wake)
        return;
    uint64_t one = 1;
    ssize_t written = write(loop->wake_fd, &one, sizeof one);
    /* EAGAIN would take 2^64 - 2 wake-ups. */
    CHECK(written == sizeof one);
}

void loop_post(struct loop *loop, struct task *task)
{
    CHECK_MAGIC(loop, LOOP_MAGIC);
    pthread_mutex_lock(&loop->mutex);
    list_append(&loop->posted, &task->link);
    unlock_and_wake(loop);
}

void loop_post_list(struct loop *loop, struct list *tasks)
{
    CHECK_MAGIC(loop, LOOP_MAGIC);
    if (list_is_empty(tasks))
        return;
    pthread_mutex_lock(&loop->mutex);
    list_append_all(&loop->posted, tasks);
    unlock_and_wake(loop);
}

void loop_defer(struct loop *loop, struct task *task)
{
    list_append(&loop->deferred, &task->link);
}

void loop_stop(struct loop *loop)
{
    CHECK_MAGIC(loop, LOOP_MAGIC);
    pthread_mutex_lock(&loop->mutex);
    loop->stopping = true;
    unlock_and_wake(loop);
}

static void run_tasks(struct list *tasks)
{
    struct link *link;
    while ((link = list_take(tasks)) != NULL) {
        struct task *task = LIST_ENTRY(link, struct task, link);
        task->run(task);
    }
}

/* Runs what was deferred up to now. As with what is posted: a task that comes back waits for the
 * next turn, so that it cannot starve the sockets. */
static void run_deferred(struct loop *loop)
{
    loop->running = list_take_all(&loop->deferred);
    run_tasks(&loop->running);
}

void loop_forget(struct loop *loop, struct task *task)
{
    if (!list_remove(&loop->deferred, &task->link))
        list_remove(&loop->running, &task->link);
}

/* Runs what was posted up to now. Returns whether to go on. */
static bool run_posted(struct loop *loop)
{
    pthread_mutex_lock(&loop->mutex);
    loop->asleep = false;
    struct list tasks = list_take_all(&loop->posted);
    bool stopping = loop->stopping;
    loop->stopping = false;
    pthread_mutex_unlock(&loop->mutex);
    run_tasks(&tasks);
    return !stopping;
}

/* --- timers --- */

static void heap_put(struct loop *loop, size_t slot, struct timer *timer)
{
    loop->heap[slot] = timer;
    timer->heap_slot = slot;
}

static void sift_up(struct loop *loop, size_t slot, struct timer *timer)
{
    for (; slot > 1 && timer->due_us < loop->heap[slot / 2]->due_us; slot /= 2)
        heap_put(loop, slot, loop->heap[slot / 2]);
    heap_put(loop, slot, timer);
}

static void sift_down(struct loop *loop, size_t slot, struct timer *timer)
{
    for (;;) {
        size_t child = slot * 2;
        if (child < loop->timer_count && loop->heap[child + 1]->due_us < loop->heap[child]->due_us)
            child++;
        if (child > loop->timer_count || timer->due_us <= loop->heap[child]->due_us)
            break;
        heap_put(loop, slot, loop->heap[child]);
        slot = child;
    }
    heap_put(loop, slot, timer);
}

static void sift(struct loop *loop, size_t slot, struct timer *timer)
{
    if (slot > 1 && timer->due_us < loop->heap[slot / 2]->due_us)
        sift_up(loop, slot, timer);
    else
        sift_down(loop, slot, timer);
}

static bool heap_has_room(struct loop *loop)
{
    if (loop->timer_count + 1 < loop->heap_capacity)
        return true;
    size_t capacity = loop->heap_capacity == 0 ? FIRST_HEAP_CAPACITY : loop->heap_capacity * 2;
    struct timer **heap = realloc(loop->heap, capacity * sizeof(struct timer *));
    if (heap == NULL)
        return false;
    loop->heap = heap;
    loop->heap_capacity = capacity;
    return true;
}

status loop_timer_set(struct loop *loop, struct timer *timer, int64_t due_us)
{
    if (timer->heap_slot == 0) {
        if (!heap_has_room(loop))
            return status_out_of_memory();
        timer->heap_slot = ++loop->timer_count;
    }
    timer->due_us = due_us;
    sift(loop, timer->heap_slot, timer);
    return status_ok();
}

void loop_timer_clear(struct loop *loop, struct timer *timer)
{
    size_t slot = timer->heap_slot;
    if (slot == 0)
        return;
    timer->heap_slot = 0;
    struct timer *last = loop->heap[loop->timer_count--];
    if (last != timer)
        sift(loop, slot, last);
}

/* Runs at most as many timers as there were: one that sets itself for "now" waits a turn. */
static void run_due_timers(struct loop *loop)
{
    if (loop->timer_count == 0)
        return;
    int64_t now = clock_steady_us(loop->clock);
    for (size_t most = loop->timer_count; most > 0 && loop->timer_count > 0; most--) {
        struct timer *timer = loop->heap[1];
        if (timer->due_us > now)
            return;
        loop_timer_clear(loop, timer);
        timer->run(timer);
    }
}

/* --- file descriptors --- */

static status control(struct loop *loop, int operation, struct watch *watch, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = watch};
    if (epoll_ctl(loop->epoll_fd, operation, watch->fd, &event) == 0)
        return status_ok();
    return status_from_errno(errno, "cannot watch file descriptor %d", watch->fd);
}

status loop_watch(struct loop *loop, struct watch *watch, uint32_t events)
{
    return control(loop, EPOLL_CTL_ADD, watch, events);
}

status loop_watch_change(struct loop *loop, struct watch *watch, uint32_t events)
{
    return control(loop, EPOLL_CTL_MOD, watch, events);
}

void loop_unwatch(struct loop *loop, struct watch *watch)
{
    for (int i = 0; i < loop->event_count; i++)
        if (loop->events[i].data.ptr == watch)
            loop->events[i].data.ptr = NULL;
    /* Fails only if the descriptor is not watched, or was closed too early: our bug. */
    CHECK(epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, watch->fd, NULL) == 0);
}

static void run_events(struct loop *loop)
{
    for (int i = 0; i < loop->event_count; i++) {
        struct watch *watch = loop->events[i].data.ptr;
        if (watch != NULL) /* NULL: the wake-up, or unwatched during this turn */
            watch->ready(watch, loop->events[i].events);
    }
    loop->event_count = 0;
}

/* --- the turn --- */

/* Milliseconds until the first timer, rounded up so that it is due on waking; -1: none. */
static int timer_timeout_ms(struct loop *loop)
{
    if (loop->timer_count == 0)
        return -1;
    int64_t now = clock_steady_us(loop->clock);
    int64_t due = loop->heap[1]->due_us;
    if (due <= now)
        return 0;
    if (due - now > (int64_t)INT_MAX * 1000) /* the steady clock is never negative */
        return INT_MAX;
    return (int)((due - now + 999) / 1000);
}

static void wait_for_events(struct loop *loop)
{
    int timeout = list_is_empty(&loop->deferred) ? timer_timeout_ms(loop) : 0;
    pthread_mutex_lock(&loop->mutex);
    if (!list_is_empty(&loop->posted) || loop->stopping)
        timeout = 0;
    loop->asleep = timeout != 0;
    pthread_mutex_unlock(&loop->mutex);
    int count = epoll_wait(loop->epoll_fd, loop->events, EVENTS_A_TURN, timeout);
    CHECK(count >= 0 || errno == EINTR);
    loop->event_count = count < 0 ? 0 : count;
}

/* A clock that costs next to nothing, since each turn looks at it twice. */
static int64_t coarse_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void note_turn(struct loop *loop, int64_t us)
{
    if (us < LOOP_SLOW_US)
        return;
    atomic_fetch_add(&loop->slow_turns, 1);
    if (us > atomic_load(&loop->longest_us))
        atomic_store(&loop->longest_us, us);
}

struct loop_slowness loop_slowness(const struct loop *loop)
{
    return (struct loop_slowness){.turns = atomic_load(&loop->slow_turns),
                                  .longest_us = atomic_load(&loop->longest_us)};
}

void loop_run(struct loop *loop)
{
    CHECK_MAGIC(loop, LOOP_MAGIC);
    CHECK(running == NULL);
    running = loop;
    bool go_on = true;
    while (go_on) {
        wait_for_events(loop);
        int64_t began_us = coarse_us();
        run_events(loop);
        run_due_timers(loop);
        go_on = run_posted(loop);
        run_deferred(loop);
        note_turn(loop, coarse_us() - began_us);
    }
    running = NULL;
}
