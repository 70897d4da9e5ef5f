/* See large_work.h. */
#include "server/large_work.h"

#include "base/sizing.h"
#include "os/allocator.h"
#include "os/thread.h"

enum {
    SECOND_US = 1000000,
    PATIENT_LOOKS = 20, /* twenty a second */
    ALONE_LOOKS = 400,  /* then others have their turn for as long */
    COPIES = 3,         /* of a request: as it came, packed, and in the store's batch */
};

static const struct large_patience PATIENCE = {
    .requests = 3 * SECOND_US,
    .values = 20 * SECOND_US,
    .values_of_writes = 3 * SECOND_US,
    .memory = 30 * SECOND_US,
};

/* --- memory that the rooms share --- */

static bool fits(const struct large_rooms *rooms, uint64_t bytes)
{
    return rooms->resident() + bytes <= rooms->memory - rooms->spare;
}

static bool has_beside_claims(const void *context, size_t bytes)
{
    const struct large_rooms *rooms = context;
    return fits(rooms, bytes + atomic_load(&rooms->growth) + request_room_claims(&rooms->requests) +
                           request_room_claims(&rooms->values));
}

static void share_memory(struct large_rooms *rooms)
{
    rooms->shared = (struct request_memory){.has = has_beside_claims, .context = rooms};
    request_room_share(&rooms->requests, &rooms->shared, COPIES);
    request_room_share(&rooms->values, &rooms->shared, 1); /* asked for with their copies */
}

static void take_turn(struct room_turn *turn, bool lacks, struct request_room *other)
{
    turn->looks = lacks ? turn->looks + 1 : 0;
    bool is_alone = turn->looks > PATIENT_LOOKS && turn->looks / ALONE_LOOKS % 2 == 0;
    if (is_alone == turn->is_alone)
        return;
    turn->is_alone = is_alone;
    if (is_alone)
        request_room_close(other);
    else
        request_room_open(other);
}

/* What is wanted in one may be held in the other. A room that is closed lacks more than memory, so
 * one at most is closed for the other. */
static bool look_for_memory(struct large_rooms *rooms)
{
    bool lack_values = request_room_look(&rooms->values);
    take_turn(&rooms->values_turn, lack_values, &rooms->requests);
    bool lack_requests = request_room_look(&rooms->requests);
    take_turn(&rooms->requests_turn, lack_requests, &rooms->values);
    bool is_wanted = lack_values || lack_requests;
    atomic_store(&rooms->shared.is_wanted, is_wanted);
    return is_wanted;
}

/* --- their beginning and their end --- */

void large_rooms_init(struct large_rooms *rooms, const struct settings *settings)
{
    request_room_init(&rooms->requests, sizing_requests(settings));
    request_room_set_part(&rooms->requests, sizing_unasked(settings));
    request_room_init(&rooms->values, sizing_values(settings));
    request_room_bound(&rooms->values, sizing_values_alone(settings));
    rooms->close = sizing_lacks_large_work(settings);
    rooms->memory = settings->memory;
    rooms->spare = sizing_spare(settings);
    rooms->takes = sizing_large_work(settings);
    rooms->flush_takes = sizing_large_flush(settings);
    rooms->resident = allocator_resident;
    rooms->patience = PATIENCE;
    atomic_store(&rooms->wanted, 0);
    atomic_store(&rooms->writes, 0);
    atomic_store(&rooms->jobs, 0);
    atomic_store(&rooms->growth, 0);
    rooms->requests_turn = rooms->values_turn = (struct room_turn){0};
    if (rooms->close)
        share_memory(rooms);
}

void large_rooms_destroy(struct large_rooms *rooms)
{
    request_room_destroy(&rooms->requests);
    request_room_destroy(&rooms->values);
}

/* --- the store's work --- */

struct job {
    struct large_rooms *rooms;
    uint64_t takes;
};

static bool do_writes_wait(const struct large_rooms *rooms)
{
    return atomic_load(&rooms->writes) > 0;
}

static bool has_memory(void *context)
{
    const struct job *job = context;
    uint64_t growth = do_writes_wait(job->rooms) ? 0 : atomic_load(&job->rooms->growth);
    return fits(job->rooms, job->takes + growth);
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

struct memory_wishes large_rooms_look(struct large_rooms *rooms, uint64_t growth)
{
    atomic_store(&rooms->growth, growth);
    return (struct memory_wishes){.wanted = atomic_load(&rooms->wanted),
                                  .growth = growth,
                                  .is_wanted = look_for_memory(rooms),
                                  .is_busy = atomic_load(&rooms->jobs) > 0};
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
        atomic_fetch_add(&rooms->jobs, 1);
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
        atomic_fetch_sub(&rooms->jobs, 1);
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
