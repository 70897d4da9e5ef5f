/* See large_work.h. */
#include "cmd/large_work.h"

#include "base/sizing.h"

enum { PATIENCE_SECONDS = 3 };

void large_rooms_init(struct large_rooms *rooms, const struct settings *settings)
{
    request_room_init(&rooms->requests, sizing_requests(settings));
    request_room_init(&rooms->values, sizing_values(settings));
    rooms->close = sizing_lacks_large_work(settings);
}

void large_rooms_destroy(struct large_rooms *rooms)
{
    request_room_destroy(&rooms->requests);
    request_room_destroy(&rooms->values);
}

/* Without room for long, there is more than the memory has: what guards it refuses calls then. */
static void close_both(struct large_rooms *rooms)
{
    request_room_close(&rooms->requests);
    request_room_close(&rooms->values);
    (void)request_room_await_empty(&rooms->requests, PATIENCE_SECONDS);
    (void)request_room_await_empty(&rooms->values, PATIENCE_SECONDS);
}

void large_work_changes(void *context, bool begins)
{
    struct large_rooms *rooms = context;
    if (!rooms->close)
        return;
    if (begins) {
        close_both(rooms);
    } else {
        request_room_open(&rooms->values);
        request_room_open(&rooms->requests);
    }
}
