/* Room in memory for the values that SQL queries compute, all of them together.
 *
 *     of all queries         `most`: what --query-threads of them may keep
 *     of one, beyond that    `large_most`, one query at a time: the largest cell that a message may
 *                            have, as the store reads it and as the row has it. It has the room of
 *                            ReadRows's large values meanwhile, so it waits for those, and for
 *                            compactions of large cells, as they do for it
 *
 * The large one is so until what it holds fits among the others': mostly when the row has been
 * computed, and waits for its client alone, which has LIMIT_STALL_SECONDS.
 *
 * A query that finds no room waits on its thread, if another is left: the one that has it may need
 * a thread to end. In vain, it is RESOURCE_EXHAUSTED.
 *
 * Invariants
 *  1. The large one waits for no other query. So those that wait for it do not wait for ever.
 *  2. A query's room counts among `most`, or it is the large one: never both.
 *
 * A query's memory is its own thread's; the room is for any. */
#ifndef TRESTLE_BIGTABLE_QUERY_ROOM_H
#define TRESTLE_BIGTABLE_QUERY_ROOM_H

#include "base/budget.h"
#include "base/status.h"
#include "wire/request_room.h"

struct query_memory;

struct query_room {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    size_t most;       /* bytes; this and the next three are fixed */
    size_t large_most; /* bytes */
    unsigned threads;  /* that queries have */
    struct request_room *values;
    size_t held;                /* by all but the large one */
    struct query_memory *large; /* NULL: none is, nor is to be next */
    unsigned waiting;           /* for the large one */
};

struct query_room_options {
    size_t query_memory; /* bytes that one query may keep */
    unsigned threads;
    size_t max_message;          /* bytes */
    struct request_room *values; /* outlives it */
};

void query_room_init(struct query_room *room, const struct query_room_options *options);
void query_room_destroy(struct query_room *room); /* no query holds any */

enum query_refusal { QUERY_NOT_REFUSED, QUERY_TOO_LARGE, QUERY_NO_ROOM };

/* The memory of one query. It stays where it is as long as it holds any. */
struct query_memory {
    struct budget budget;
    struct query_room *room;
    /* Whether the query's client does not wait any more. */
    bool (*is_given_up)(const void *context);
    const void *context;
    /* private */
    size_t held;
    bool is_large;
    enum query_refusal refusal; /* the last one's reason */
    bool is_granted;            /* under the room's lock */
    struct request_waiter waiter;
};

/* `room` NULL: it is bounded by nothing. The budget to be given to others, or NULL. */
struct budget *query_memory_init(struct query_memory *memory, struct query_room *room,
                                 bool (*is_given_up)(const void *context), const void *context);

/* Takes the status; with words of its own if the memory was refused. */
status query_memory_tell(const struct query_memory *memory, status s);

#endif
