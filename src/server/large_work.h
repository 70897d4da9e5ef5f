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
 * Then it waits, half a minute at most, until there is as much memory as it takes, and a sixteenth
 * of all beside; and as the cache and write buffers may still grow by, unless a write waits: then
 * these do not grow. Calls for data are refused
 * meanwhile (server/memory_guard.h), if there is less: those that are at work end soon, and writes
 * that wait for flushes give up after twenty seconds.
 *
 * What the rooms may have is more than what is left beside everything else: of the values one may
 * be larger than their share. So both go by what the process really has, too (request_memory): what
 * is asked for has room once it fits beside that, beside all that those which have room may still
 * take, and beside what the store's cache and write buffers may still grow by. How much of theirs
 * the others have taken already nobody knows; it is counted twice. Who has room but for memory for
 * a second, since others come in time after time, has the other room closed for twenty. */
#ifndef TRESTLE_SERVER_LARGE_WORK_H
#define TRESTLE_SERVER_LARGE_WORK_H

#include "base/settings.h"
#include "store/store.h"
#include "wire/request_room.h"

#include <stdatomic.h>

/* Who wants how much, when the guard looks. */
struct memory_wishes {
    uint64_t wanted; /* bytes, by the store's work: calls for data are refused while they lack */
    uint64_t growth; /* bytes that the store may take by itself */
    bool is_wanted;  /* by requests or values that have room but for memory; these wait */
    bool is_busy;    /* the store's work waits, or is done: all that is free may be needed */
};

/* Changed by tests alone, microseconds. */
struct large_patience {
    int64_t requests;
    int64_t values;
    int64_t values_of_writes; /* while writes wait */
    int64_t memory;
};

/* Of a room whose first has waited for nothing but memory. */
struct room_turn {
    unsigned looks; /* so far */
    bool is_alone;  /* the other room is closed for it */
};

struct large_rooms {
    struct request_room requests;
    struct request_room values;
    bool close; /* for the store's work; this and the next five are fixed */
    uint64_t memory;
    uint64_t spare;             /* bytes that nothing is granted of: for what has no room */
    uint64_t takes;             /* bytes: by such work, of the largest cells */
    uint64_t flush_takes;       /* by a flush */
    uint64_t (*resident)(void); /* what the process has; changed by tests alone */
    struct large_patience patience;
    _Atomic uint64_t wanted; /* bytes that jobs wait for */
    atomic_uint writes;      /* that wait for flushes */
    atomic_uint jobs;        /* that wait, or run */
    _Atomic uint64_t growth; /* bytes, that the store may take by itself: at the last look */
    struct request_memory shared;
    struct room_turn requests_turn; /* of who looks, as is the next */
    struct room_turn values_turn;
};

void large_rooms_init(struct large_rooms *rooms, const struct settings *settings);
void large_rooms_destroy(struct large_rooms *rooms);

/* Grants what there is memory for, and says what is wanted: twenty times a second, of one thread.
 * `growth`: bytes that the store's cache and write buffers may still take. */
struct memory_wishes large_rooms_look(struct large_rooms *rooms, uint64_t growth);

/* For store_options.on_large_work, of the rooms. Blocking. */
void large_work_changes(void *rooms, enum store_large_work what);

#endif
