/* See request_room.h. */
#include "wire/request_room.h"

#include "base/limits.h"
#include "os/thread.h"

#include <errno.h>
#include <stdint.h>
#include <time.h>

void request_room_init(struct request_room *room, size_t most)
{
    *room =
        (struct request_room){.most = most, .alone = SIZE_MAX, .part = LIMIT_STREAM_WINDOW_BYTES};
    pthread_mutex_init(&room->lock, NULL); /* a default mutex cannot fail */
    thread_init_steady_wake(&room->emptied);
}

void request_room_bound(struct request_room *room, size_t alone)
{
    room->alone = alone;
}

void request_room_set_part(struct request_room *room, size_t part)
{
    room->part = part;
}

void request_room_share(struct request_room *room, struct request_memory *memory, unsigned times)
{
    room->memory = memory;
    room->times = times;
}

bool request_room_could_hold(const struct request_room *room, size_t size)
{
    return size <= room->alone;
}

void request_room_destroy(struct request_room *room)
{
    pthread_cond_destroy(&room->emptied);
    pthread_mutex_destroy(&room->lock);
}

/* --- under the lock --- */

static size_t quarter(const struct request_room *room)
{
    return room->most / 4;
}

static bool is_within(size_t held, size_t more, size_t most)
{
    return held <= most && more <= most - held;
}

/* Also of a message that is larger than all of the room, when it is alone. */
static bool has_place(const struct request_room *room, size_t size)
{
    const struct request_share *held = &room->held;
    if (held->long_bytes == 0 && held->short_bytes <= quarter(room))
        return true;
    return is_within(held->long_bytes, size, room->most) &&
           is_within(held->long_bytes + held->short_bytes, size, room->most + quarter(room));
}

static bool has_memory(const struct request_room *room, size_t size)
{
    return room->memory == NULL || room->memory->has(room->memory->context, size * room->times);
}

static bool fits_long(const struct request_room *room, size_t size)
{
    return has_place(room, size) && has_memory(room, size);
}

static void hold_long(struct request_room *room, size_t size)
{
    room->held.long_bytes += size;
    atomic_store(&room->claimed, room->held.long_bytes * room->times);
}

static void let_go_of_long(struct request_room *room, size_t size)
{
    room->held.long_bytes -= size;
    atomic_store(&room->claimed, room->held.long_bytes * room->times);
}

static bool fits_short(const struct request_room *room, size_t size)
{
    const struct request_share *held = &room->held;
    if (!list_is_empty(&room->waiting) || room->closings > 0)
        return is_within(held->short_bytes, size, quarter(room));
    return is_within(held->long_bytes + held->short_bytes, size, room->most + quarter(room));
}

/* Takes room for those that wait, as far as there is. They are told when the lock is not held. */
static struct list grant(struct request_room *room)
{
    struct list granted = {0};
    while (!list_is_empty(&room->waiting) && room->closings == 0) {
        struct request_waiter *first = LIST_ENTRY(room->waiting.first, struct request_waiter, link);
        if (!fits_long(room, first->size))
            break;
        list_take(&room->waiting);
        first->is_waiting = false;
        hold_long(room, first->size);
        list_append(&granted, &first->link);
    }
    return granted;
}

static void tell(struct list granted)
{
    struct link *link;
    while ((link = list_take(&granted)) != NULL) {
        struct request_waiter *waiter = LIST_ENTRY(link, struct request_waiter, link);
        waiter->granted(waiter);
    }
}

static void remove_waiter(struct request_room *room, struct request_waiter *waiter)
{
    struct list all = list_take_all(&room->waiting);
    struct link *link;
    while ((link = list_take(&all)) != NULL)
        if (link != &waiter->link)
            list_append(&room->waiting, link);
    waiter->is_waiting = false;
}

/* --- short ones, and parts --- */

bool request_room_take_short(struct request_room *room, size_t size)
{
    pthread_mutex_lock(&room->lock);
    bool fits = fits_short(room, size);
    if (fits)
        room->held.short_bytes += size;
    pthread_mutex_unlock(&room->lock);
    return fits;
}

void request_room_take_anyway(struct request_room *room, struct request_share share)
{
    pthread_mutex_lock(&room->lock);
    hold_long(room, share.long_bytes);
    room->held.short_bytes += share.short_bytes;
    pthread_mutex_unlock(&room->lock);
}

bool request_room_take_part(struct request_room *room)
{
    pthread_mutex_lock(&room->lock);
    bool fits = is_within(room->parts, room->part, quarter(room)) || room->parts == 0;
    if (fits)
        room->parts += room->part;
    pthread_mutex_unlock(&room->lock);
    return fits;
}

void request_room_return_part(struct request_room *room)
{
    pthread_mutex_lock(&room->lock);
    room->parts -= room->part;
    pthread_mutex_unlock(&room->lock);
}

/* --- long ones --- */

bool request_room_take_long(struct request_room *room, size_t size)
{
    pthread_mutex_lock(&room->lock);
    bool fits = fits_long(room, size);
    if (fits)
        hold_long(room, size);
    pthread_mutex_unlock(&room->lock);
    return fits;
}

bool request_room_ask(struct request_room *room, struct request_waiter *waiter)
{
    pthread_mutex_lock(&room->lock);
    bool fits =
        list_is_empty(&room->waiting) && room->closings == 0 && fits_long(room, waiter->size);
    waiter->is_waiting = !fits;
    if (fits)
        hold_long(room, waiter->size);
    else
        list_append(&room->waiting, &waiter->link);
    pthread_mutex_unlock(&room->lock);
    return fits;
}

bool request_room_is_wanted(struct request_room *room)
{
    if (room->memory != NULL && atomic_load(&room->memory->is_wanted))
        return true;
    pthread_mutex_lock(&room->lock);
    bool is_wanted = !list_is_empty(&room->waiting) || room->closings > 0;
    pthread_mutex_unlock(&room->lock);
    return is_wanted;
}

bool request_room_leave(struct request_room *room, struct request_waiter *waiter)
{
    struct list granted = {0};
    pthread_mutex_lock(&room->lock);
    bool was_waiting = waiter->is_waiting;
    if (was_waiting) {
        remove_waiter(room, waiter);
        granted = grant(room); /* it may have been the first */
    }
    pthread_mutex_unlock(&room->lock);
    tell(granted);
    return was_waiting;
}

void request_room_give_back(struct request_room *room, struct request_share share)
{
    pthread_mutex_lock(&room->lock);
    let_go_of_long(room, share.long_bytes);
    room->held.short_bytes -= share.short_bytes;
    if (room->closings > 0 && room->held.long_bytes == 0)
        pthread_cond_broadcast(&room->emptied);
    struct list granted = grant(room);
    pthread_mutex_unlock(&room->lock);
    tell(granted);
}

/* --- memory that is shared --- */

/* Under the lock. */
static bool lacks_only_memory(const struct request_room *room)
{
    if (list_is_empty(&room->waiting) || room->closings > 0)
        return false;
    size_t size = LIST_ENTRY(room->waiting.first, struct request_waiter, link)->size;
    return has_place(room, size); /* it would have been granted */
}

bool request_room_look(struct request_room *room)
{
    pthread_mutex_lock(&room->lock);
    struct list granted = grant(room);
    bool lacks = lacks_only_memory(room);
    pthread_mutex_unlock(&room->lock);
    tell(granted);
    return lacks;
}

size_t request_room_claims(const struct request_room *room)
{
    return atomic_load(&room->claimed);
}

/* --- who needs the memory himself --- */

void request_room_close(struct request_room *room)
{
    pthread_mutex_lock(&room->lock);
    room->closings++;
    pthread_mutex_unlock(&room->lock);
}

void request_room_open(struct request_room *room)
{
    pthread_mutex_lock(&room->lock);
    room->closings--;
    struct list granted = grant(room);
    pthread_mutex_unlock(&room->lock);
    tell(granted);
}

bool request_room_await_empty(struct request_room *room, unsigned seconds)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += seconds;
    int waited = 0;
    pthread_mutex_lock(&room->lock);
    while (room->held.long_bytes > 0 && waited != ETIMEDOUT)
        waited = pthread_cond_timedwait(&room->emptied, &room->lock, &until);
    bool is_empty = room->held.long_bytes == 0;
    pthread_mutex_unlock(&room->lock);
    return is_empty;
}
