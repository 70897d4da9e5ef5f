/* The memory that large values take, with the setting `memory`: requests that have some, values
 * that are sent or looked at, and the store's flushes and compactions.
 *
 * The first two have rooms (wire/request_room.h). The last take several times a value, for which a
 * small memory has no share of its own (sizing_lacks_large_work): so while such work runs, or waits
 * for other such work, both rooms are closed. Before it begins it waits for those that have room,
 * three seconds for requests, which may come from a client that is slow, and twenty for values:
 * with three, calls were still at work when compactions began, on a busy machine. But while a write
 * waits for flushes, requests are waited for no longer, nor are values for more than three seconds:
 * one of them may be that write's.
 *
 * Then it waits, twenty seconds at most, until there is as much memory as it takes. Calls for data
 * are refused meanwhile (server/memory_guard.h), if there is less: those that are at work end soon.
 */
#ifndef TRESTLE_SERVER_LARGE_WORK_H
#define TRESTLE_SERVER_LARGE_WORK_H

#include "base/settings.h"
#include "store/store.h"
#include "wire/request_room.h"

#include <stdatomic.h>

/* Changed by tests alone, microseconds. */
struct large_patience {
    int64_t requests;
    int64_t values;
    int64_t values_of_writes; /* while writes wait */
    int64_t memory;
};

struct large_rooms {
    struct request_room requests;
    struct request_room values;
    bool close; /* for the store's work; this and the next four are fixed */
    uint64_t memory;
    uint64_t takes;             /* bytes: by such work, of the largest cells */
    uint64_t flush_takes;       /* by a flush */
    uint64_t (*resident)(void); /* what the process has; changed by tests alone */
    struct large_patience patience;
    _Atomic uint64_t wanted; /* bytes that jobs wait for */
    atomic_uint writes;      /* that wait for flushes */
};

void large_rooms_init(struct large_rooms *rooms, const struct settings *settings);
void large_rooms_destroy(struct large_rooms *rooms);

/* Memory that such work waits for, bytes. Any thread. */
uint64_t large_rooms_want(struct large_rooms *rooms);

/* For store_options.on_large_work, of the rooms. Blocking. */
void large_work_changes(void *rooms, enum store_large_work what);

#endif
