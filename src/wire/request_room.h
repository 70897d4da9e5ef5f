/* Room for the request messages of all connections together. (There is one more for values of rows
 * that are sent, bigtable/value_turn.h: all of those are long.)
 *
 * A short message is there when it is asked about: it has room or not. A long one waits for room,
 * those of all connections in the order in which they asked, and its client sends no more of it
 * meanwhile than a part: what a stream may send unasked.
 *
 *     long messages              `most`: the largest fits when there is no other
 *     short messages             a quarter of that, and while no long one waits all that is free
 *     parts of those that wait   a quarter; beyond, long messages are refused, too
 *
 * Invariants
 *  1. A message that waits holds nothing but its part, and parts are counted for themselves. So
 *     whatever is waited for has all the room that it needs to end.
 *  2. While one waits none that asks later gets room, and short messages keep to their quarter. So
 *     the first is granted when those before it have ended, however large it is. (What grows while
 *     it is inflated takes room past it, or is refused: it cannot be asked to wait.)
 *  3. Where rooms share memory (request_memory) a long message has room once there is memory for
 *     it, too, beside what the others may still take. What frees memory gives no room back, so
 *     somebody looks again (request_room_look); and who could let go of some hears that it is
 *     wanted, in whichever room. */
#ifndef TRESTLE_WIRE_REQUEST_ROOM_H
#define TRESTLE_WIRE_REQUEST_ROOM_H

#include "base/list.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* Bytes that a request holds. */
struct request_share {
    size_t long_bytes;
    size_t short_bytes;
};

/* The process's, of which several rooms give. Outlives them. */
struct request_memory {
    /* Whether there is so much more. Called with a room's lock held: it takes none. */
    bool (*has)(const void *context, size_t bytes);
    const void *context;
    atomic_bool is_wanted; /* by one that has room but for this; set by who looks */
};

struct request_room {
    pthread_mutex_t lock;
    size_t most;  /* fixed, */
    size_t alone; /* and this: what one message may take that has room for itself; no bound */
    size_t part;  /* and this: what one that waits may have sent; LIMIT_STREAM_WINDOW_BYTES */
    struct request_share held;
    size_t parts; /* bytes */
    struct list waiting;
    unsigned closings;
    pthread_cond_t emptied;        /* of long messages */
    struct request_memory *memory; /* fixed; NULL: whatever it takes is there */
    unsigned times;        /* fixed: what a long message takes of it, as often as its size */
    atomic_size_t claimed; /* of it, by long messages; changes under the lock */
};

/* A wait for one long message: it is the caller's, and stays where it is until it has been granted,
 * or has left. */
struct request_waiter {
    struct link link;
    size_t size;
    bool is_waiting;                                /* under the room's lock */
    void (*granted)(struct request_waiter *waiter); /* on any thread, without a lock */
};

/* The room takes `most` and half of that at most, except for what is taken anyway. */
void request_room_init(struct request_room *room, size_t most);
void request_room_bound(struct request_room *room, size_t alone);   /* before it is used, */
void request_room_set_part(struct request_room *room, size_t part); /* likewise */
void request_room_share(struct request_room *room, struct request_memory *memory,
                        unsigned times); /* likewise */

/* Whether it can ever have so much. */
bool request_room_could_hold(const struct request_room *room, size_t size);
void request_room_destroy(struct request_room *room); /* none may be waiting */

/* All of these on any thread. */

bool request_room_take_short(struct request_room *room, size_t size);

/* Without waiting: for what a message has grown by as it was inflated. */
bool request_room_take_long(struct request_room *room, size_t size);

/* For what is never refused. */
void request_room_take_anyway(struct request_room *room, struct request_share share);

/* A part, for a message that will ask when its turn among its connection's has come. */
bool request_room_take_part(struct request_room *room);
void request_room_return_part(struct request_room *room);

/* Whether the waiter's `size` was taken; if not, `granted` is called when it is. */
bool request_room_ask(struct request_room *room, struct request_waiter *waiter);

/* Whether anybody waits, or it is closed; or somebody waits for memory that it shares. */
bool request_room_is_wanted(struct request_room *room);

/* False: `granted` has been or is being called, and what it was called for is held. */
bool request_room_leave(struct request_room *room, struct request_waiter *waiter);

void request_room_give_back(struct request_room *room, struct request_share share);

/* Grants what there is memory for by now. Whether the first that waits lacks nothing else. */
bool request_room_look(struct request_room *room);

/* What its long messages may take of memory, bytes. Takes no lock. */
size_t request_room_claims(const struct request_room *room);

/* While it is closed, by however many, long messages get no room but what they have, as if one
 * waited that is larger than all: for a caller that needs the memory itself. */
void request_room_close(struct request_room *room);
void request_room_open(struct request_room *room);

/* Whether no long message has room; waits for that so many seconds at most. */
bool request_room_await_empty(struct request_room *room, unsigned seconds);

#endif
