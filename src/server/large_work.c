/* See large_work.h. */
#include "server/large_work.h"

#include "base/sizing.h"
#include "os/allocator.h"
#include "os/thread.h"

enum { SECOND_US = 1000000 };

static const struct large_patience PATIENCE = {
    .requests = 3 * SECOND_US,
    .values = 20 * SECOND_US,
    .values_of_writes = 3 * SECOND_US,
    .memory = 20 * SECOND_US,
};

void large_rooms_init(struct large_rooms *rooms, const struct settings *settings)
{
    request_room_init(&rooms->requests, sizing_requests(settings));
    request_room_set_part(&rooms->requests, sizing_unasked(settings));
    request_room_init(&rooms->values, sizing_values(settings));
    request_room_bound(&rooms->values, sizing_values_alone(settings));
    rooms->close = sizing_lacks_large_work(settings);
    rooms->memory = settings->memory;
    rooms->takes = sizing_large_work(settings);
    rooms->flush_takes = sizing_large_flush(settings);
    rooms->resident = allocator_resident;
    rooms->patience = PATIENCE;
    atomic_store(&rooms->wanted, 0);
    atomic_store(&rooms->writes, 0);
}

void large_rooms_destroy(struct large_rooms *rooms)
{
    request_room_destroy(&rooms->requests);
    request_room_destroy(&rooms->values);
}

struct job {
    struct large_rooms *rooms;
    uint64_t takes;
};

static bool has_memory(void *context)
{
    const struct job *job = context;
    return job->rooms->resident() + job->takes <= job->rooms->memory;
}

/* What calls have freed is the allocator's until it is given back. */
static void await_memory(struct large_rooms *rooms, uint64_t takes)
{
    struct job job = {rooms, takes};
    atomic_fetch_add(&rooms->wanted, takes);
    for (int64_t us = 0; us < rooms->patience.memory && !has_memory(&job); us += SECOND_US) {
        allocator_give_back();
        (void)thread_wait_for(has_memory, &job, SECOND_US);
    }
    atomic_fetch_sub(&rooms->wanted, takes);
}

uint64_t large_rooms_want(struct large_rooms *rooms)
{
    return atomic_load(&rooms->wanted);
}

static bool do_writes_wait(const struct large_rooms *rooms)
{
    return atomic_load(&rooms->writes) > 0;
}

/* Requests whose writes wait for what is about to begin, or for what is behind it, do not end. */
static bool are_requests_over(void *context)
{
    struct large_rooms *rooms = context;
    return request_room_await_empty(&rooms->requests, 0) || do_writes_wait(rooms);
}

static bool are_values_over(void *context)
{
    struct large_rooms *rooms = context;
    return request_room_await_empty(&rooms->values, 0);
}

static bool are_values_over_or_writes_wait(void *context)
{
    return are_values_over(context) || do_writes_wait(context);
}

/* Without room for long, there is more than the memory has: what guards it refuses calls then. */
static void await_all(struct large_rooms *rooms, uint64_t takes)
{
    (void)thread_wait_for(are_requests_over, rooms, rooms->patience.requests);
    (void)thread_wait_for(are_values_over_or_writes_wait, rooms, rooms->patience.values);
    if (do_writes_wait(rooms))
        (void)thread_wait_for(are_values_over, rooms, rooms->patience.values_of_writes);
    await_memory(rooms, takes);
}

void large_work_changes(void *context, enum store_large_work what)
{
    struct large_rooms *rooms = context;
    if (!rooms->close)
        return;
    switch (what) {
    case STORE_LARGE_WAITS:
        request_room_close(&rooms->requests);
        request_room_close(&rooms->values);
        break;
    case STORE_LARGE_BEGINS:
        await_all(rooms, rooms->takes);
        break;
    case STORE_LARGE_FLUSH_BEGINS:
        await_all(rooms, rooms->flush_takes);
        break;
    case STORE_LARGE_ENDS:
        request_room_open(&rooms->values);
        request_room_open(&rooms->requests);
        break;
    case STORE_WRITES_WAIT:
        atomic_fetch_add(&rooms->writes, 1);
        break;
    case STORE_WRITES_GO_ON:
        atomic_fetch_sub(&rooms->writes, 1);
        break;
    }
}
