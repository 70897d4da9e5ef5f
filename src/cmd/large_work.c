/* See large_work.h. */
#include "cmd/large_work.h"

#include "base/sizing.h"
#include "os/allocator.h"
#include "os/thread.h"

/* Requests may themselves wait for a flush, because too many write buffers are full: no longer. */
enum { REQUESTS_SECONDS = 3, PATIENCE_SECONDS = 20 };

void large_rooms_init(struct large_rooms *rooms, const struct settings *settings)
{
    request_room_init(&rooms->requests, sizing_requests(settings));
    request_room_init(&rooms->values, sizing_values(settings));
    request_room_bound(&rooms->values, sizing_values_alone(settings));
    rooms->close = sizing_lacks_large_work(settings);
    rooms->memory = settings->memory;
    rooms->takes = sizing_large_work(settings);
    rooms->resident = allocator_resident;
    atomic_store(&rooms->waiting, 0);
}

void large_rooms_destroy(struct large_rooms *rooms)
{
    request_room_destroy(&rooms->requests);
    request_room_destroy(&rooms->values);
}

static bool has_memory(void *context)
{
    const struct large_rooms *rooms = context;
    return rooms->resident() + rooms->takes <= rooms->memory;
}

/* What calls have freed is the allocator's until it is given back. */
static void await_memory(struct large_rooms *rooms)
{
    atomic_fetch_add(&rooms->waiting, 1);
    for (int i = 0; i < PATIENCE_SECONDS && !has_memory(rooms); i++) {
        allocator_give_back();
        (void)thread_wait_for(has_memory, rooms, 1000000);
    }
    atomic_fetch_sub(&rooms->waiting, 1);
}

uint64_t large_rooms_want(struct large_rooms *rooms)
{
    return atomic_load(&rooms->waiting) > 0 ? rooms->takes : 0;
}

/* Without room for long, there is more than the memory has: what guards it refuses calls then. */
static void await_all(struct large_rooms *rooms)
{
    (void)request_room_await_empty(&rooms->requests, REQUESTS_SECONDS);
    (void)request_room_await_empty(&rooms->values, PATIENCE_SECONDS);
    await_memory(rooms);
}

void large_work_changes(void *context, enum store_large_work what)
{
    struct large_rooms *rooms = context;
    if (!rooms->close)
        return;
    if (what == STORE_LARGE_WAITS) {
        request_room_close(&rooms->requests);
        request_room_close(&rooms->values);
    } else if (what == STORE_LARGE_BEGINS) {
        await_all(rooms);
    } else {
        request_room_open(&rooms->values);
        request_room_open(&rooms->requests);
    }
}
