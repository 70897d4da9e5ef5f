/* See query_room.h. */
#include "bigtable/query_room.h"

#include "base/check.h"
#include "base/limits.h"
#include "os/thread.h"

#include <time.h>

enum { WAIT_SECONDS = 20, LOOK_US = 100 * 1000, RETRY_MS = 200 };

static struct query_memory *of_budget(struct budget *budget)
{
    return LIST_ENTRY(budget, struct query_memory, budget);
}

/* --- waiting, with the lock held --- */

static bool is_past(struct timespec moment)
{
    struct timespec now = thread_time_in(0);
    return now.tv_sec > moment.tv_sec ||
           (now.tv_sec == moment.tv_sec && now.tv_nsec >= moment.tv_nsec);
}

/* Until something may have changed. Whether it is worth to wait on. */
static bool wait_a_little(const struct query_memory *memory, struct timespec end)
{
    struct query_room *room = memory->room;
    if (is_past(end) || (memory->is_given_up != NULL && memory->is_given_up(memory->context)))
        return false;
    struct timespec until = thread_time_in(LOOK_US);
    pthread_cond_timedwait(&room->changed, &room->lock, &until);
    return true;
}

/* --- becoming the large one --- */

/* Waits only while a thread is left for the large query, which may have given its own away for its
 * turn. */
static bool wait_for_the_large_one(struct query_memory *memory, struct timespec end)
{
    struct query_room *room = memory->room;
    bool may_wait = room->waiting + 1 < room->threads;
    room->waiting++;
    while (room->large != NULL && may_wait)
        may_wait = wait_a_little(memory, end);
    room->waiting--;
    if (room->large != NULL)
        return false;
    room->large = memory;
    return true;
}

/* On the thread that gave room back. */
static void granted(struct request_waiter *waiter)
{
    struct query_memory *memory = LIST_ENTRY(waiter, struct query_memory, waiter);
    struct query_room *room = memory->room;
    pthread_mutex_lock(&room->lock);
    memory->is_granted = true;
    pthread_cond_broadcast(&room->changed);
    pthread_mutex_unlock(&room->lock);
}

/* Without the lock. Room that is being granted when the patience ends is waited for: nothing keeps
 * it up. */
static bool ask_values(struct query_memory *memory, struct timespec end)
{
    struct query_room *room = memory->room;
    bool goes_on = true;
    memory->is_granted = false;
    memory->waiter = (struct request_waiter){.size = room->large_most, .granted = granted};
    if (request_room_ask(room->values, &memory->waiter))
        return true;
    pthread_mutex_lock(&room->lock);
    while (!memory->is_granted && goes_on)
        goes_on = wait_a_little(memory, end);
    bool has = memory->is_granted;
    pthread_mutex_unlock(&room->lock);
    if (has || request_room_leave(room->values, &memory->waiter))
        return has;
    pthread_mutex_lock(&room->lock);
    while (!memory->is_granted)
        pthread_cond_wait(&room->changed, &room->lock);
    pthread_mutex_unlock(&room->lock);
    return true;
}

static bool become_large(struct query_memory *memory)
{
    struct query_room *room = memory->room;
    struct timespec end = thread_time_in(WAIT_SECONDS * INT64_C(1000000));
    pthread_mutex_lock(&room->lock);
    bool is_next = wait_for_the_large_one(memory, end);
    pthread_mutex_unlock(&room->lock);
    if (!is_next)
        return false;
    bool has = ask_values(memory, end);
    pthread_mutex_lock(&room->lock);
    memory->is_large = has;
    if (has)
        room->held -= memory->held;
    else
        room->large = NULL;
    pthread_cond_broadcast(&room->changed);
    pthread_mutex_unlock(&room->lock);
    return has;
}

/* --- the budget --- */

static bool fits(size_t held, size_t size, size_t most)
{
    return held <= most && size <= most - held;
}

static bool take_at_once(struct query_memory *memory, size_t size)
{
    struct query_room *room = memory->room;
    pthread_mutex_lock(&room->lock);
    bool has = memory->is_large ? fits(memory->held, size, room->large_most)
                                : fits(room->held, size, room->most);
    if (has && !memory->is_large)
        room->held += size;
    if (has)
        memory->held += size;
    pthread_mutex_unlock(&room->lock);
    return has;
}

static bool take(struct budget *budget, size_t size)
{
    struct query_memory *memory = of_budget(budget);
    if (take_at_once(memory, size))
        return true;
    memory->refusal = QUERY_TOO_LARGE;
    if (memory->is_large || !fits(memory->held, size, memory->room->large_most))
        return false;
    memory->refusal = QUERY_NO_ROOM;
    return become_large(memory) && take_at_once(memory, size);
}

/* Gives room back; the large room as soon as the query fits among the others again. */
static void give_back(struct budget *budget, size_t size)
{
    struct query_memory *memory = of_budget(budget);
    struct query_room *room = memory->room;
    pthread_mutex_lock(&room->lock);
    CHECK(memory->held >= size);
    memory->held -= size;
    if (!memory->is_large)
        room->held -= size;
    bool ends = memory->is_large && fits(room->held, memory->held, room->most);
    if (ends) {
        memory->is_large = false;
        room->held += memory->held;
        room->large = NULL;
        pthread_cond_broadcast(&room->changed);
    }
    pthread_mutex_unlock(&room->lock);
    if (ends)
        request_room_give_back(room->values,
                               (struct request_share){.long_bytes = room->large_most});
}

struct budget *query_memory_init(struct query_memory *memory, struct query_room *room,
                                 bool (*is_given_up)(const void *context), const void *context)
{
    *memory = (struct query_memory){.budget = {.take = take, .give_back = give_back},
                                    .room = room,
                                    .is_given_up = is_given_up,
                                    .context = context};
    return room == NULL ? NULL : &memory->budget;
}

status query_memory_tell(const struct query_memory *memory, status s)
{
    if (s.code != STATUS_RESOURCE_EXHAUSTED || memory->refusal == QUERY_NOT_REFUSED)
        return s;
    status_free(s);
    if (memory->refusal == QUERY_TOO_LARGE)
        return status_make(STATUS_RESOURCE_EXHAUSTED,
                           "The query needs more memory than the %zu MB that one may have with the "
                           "server's --memory",
                           memory->room->large_most >> 20);
    s = status_make(STATUS_RESOURCE_EXHAUSTED,
                    "Other queries of large values have all the memory that there is for them");
    status_add_retry_info(&s, RETRY_MS);
    return s;
}

/* --- the room --- */

void query_room_init(struct query_room *room, const struct query_room_options *options)
{
    size_t cells = 3 * (size_t)LIMIT_CELL_BYTES, messages = 3 * options->max_message;
    *room = (struct query_room){.most = options->threads * options->query_memory,
                                .large_most =
                                    options->query_memory + (cells < messages ? cells : messages),
                                .threads = options->threads,
                                .values = options->values};
    pthread_mutex_init(&room->lock, NULL);
    thread_init_steady_wake(&room->changed);
}

void query_room_destroy(struct query_room *room)
{
    CHECK(room->held == 0 && room->large == NULL);
    pthread_cond_destroy(&room->changed);
    pthread_mutex_destroy(&room->lock);
}
