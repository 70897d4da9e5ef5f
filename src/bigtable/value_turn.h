/* A call's turn to have a large value in memory, of a row whose values are got one by one, beside
 * those of all other calls: a client may stop reading within one.
 *
 *     asks ──(there is room, at once or in turn)──▶ has ──(it is sent, or the call ends)──▶ free
 *      │                                             │
 *      └──(LIMIT_STALL_SECONDS)──▶ free              └──(its client does not go on, and others
 *                                                        ask)──▶ free, and asks again later
 *
 * Invariants
 *  1. A call holds room for one value, which is given back before it asks for another: so none
 *     waits for what waits for it.
 *  2. A call whose client does not go on gives up its room for others. So each that asks has its
 *     turn, whatever clients do, as long as those before it end or stop.
 *  3. One value has room when no other does, however large it is.
 *
 * A value takes VALUE_TURN_COPIES times its size: the block that it is in, and what the store makes
 * of that, or the next block while the row is found to end before it. */
#ifndef TRESTLE_BIGTABLE_VALUE_TURN_H
#define TRESTLE_BIGTABLE_VALUE_TURN_H

#include "base/status.h"
#include "os/loop.h"
#include "wire/request_room.h"

enum { VALUE_TURN_COPIES = 2 };

/* The turn of one call, which sets all of these before it asks for the first time. Zeroes: it holds
 * nothing and has not asked. Everything is for the thread that has the call in hand, the loop's if
 * not said otherwise; so are the callbacks. */
struct value_turn {
    struct request_room *room; /* of all calls; outlives them */
    struct loop *loop;
    /* OK: it is the call's turn. RESOURCE_EXHAUSTED: it has waited too long. Takes the status. */
    void (*ended)(struct value_turn *turn, status s);
    /* Others ask for what the call holds: it lets go of its value, and holds nothing. */
    void (*wanted)(struct value_turn *turn);
    /* private */
    size_t held; /* bytes: for a value and its copies */
    struct request_waiter waiter;
    struct task granted;
    struct timer patience; /* of a call that waits: until it gives up, or is looked at again */
};

/* Whether a value of that size may be got. Those that go out as one chunk always may: no client
 * stops within one. Any thread. */
bool value_turn_covers(const struct value_turn *turn, size_t size);

/* How much may be read at once where the size is not known before: a block, whatever it has. */
size_t value_turn_most(const struct value_turn *turn);

/* Gives back room beyond that size. Any thread. */
void value_turn_shrink(struct value_turn *turn, size_t size);

/* Gives back what it holds, and asks for room. `*has`: there is; else `ended` is called, not before
 * this has returned. RESOURCE_EXHAUSTED without memory. */
status value_turn_ask(struct value_turn *turn, size_t size, bool *has);

/* The call does not wait for the value any more. False: it has room, and `ended` comes. */
bool value_turn_leave(struct value_turn *turn);

/* Its client does not go on, from now until it does: `wanted` may be called between, or at once. */
void value_turn_client_stops(struct value_turn *turn);
void value_turn_client_goes_on(struct value_turn *turn);

#endif
