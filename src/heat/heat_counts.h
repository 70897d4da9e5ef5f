/* What requests do to a table's ranges of keys, counted: docs/internals/heat.md.
 *
 *     heat_counts_choose    when a request begins: whether it is counted, and for how many
 *     heat_counts_add       when it has ended
 *     heat_counts_take      once a window: what was counted, to be kept
 *
 * Invariants
 *  1. Each processor counts in a slot of its own. A request that is counted takes the slot, which
 *     is one exchange on a line of memory that no other processor uses, and never waits for it: a
 *     slot that is taken, by a thread that was interrupted or by heat_counts_take, is passed over
 *     for the next, some times around.
 *  2. `ranges` and `cells` of a slot are looked at only by the thread that has taken it. So once
 *     all slots have been taken and given other ranges, no thread looks at the former ones, and
 *     they are freed.
 *  3. The busier a slot is, the fewer requests are counted, each for as many: all of the first
 *     HEAT_COUNTED_ALL after a take, then one in two of as many again, down to one in 32.
 *  4. Keys that rise are of one moving front: what is handed out of a range has HEAT_RISING only
 *     if of all writes of its slot, from the range's first on to its last that rose, half or more
 *     went there, and if fronts of the slot come one behind the other: no more than a tenth of
 *     what rose did so in ranges that lie before the one that had been a front until then. Where
 *     each device, say, adds rows behind its own name, one by one or in batches, they rise in many
 *     ranges, and none of these is a front. */
#ifndef TRESTLE_HEAT_HEAT_COUNTS_H
#define TRESTLE_HEAT_HEAT_COUNTS_H

#include "heat/heat_ranges.h"

enum heat_number {
    HEAT_READS, /* rows */
    HEAT_WRITES,
    HEAT_READ_BYTES,
    HEAT_WRITTEN_BYTES,
    HEAT_READ_US, /* that reads of single rows took, all together, and how many those were */
    HEAT_TIMED_READS,
    HEAT_WRITE_US,
    HEAT_TIMED_WRITES,
    HEAT_RISING,      /* writes to keys after all those of the range some time before, at one
                         moving front: invariant 4 */
    HEAT_LARGEST_ROW, /* bytes, of those read: not a sum */
    HEAT_NUMBERS,
};

enum { HEAT_KEY_BYTES = 60, HEAT_COUNTED_ALL = 2048 };

/* The beginning of a key. */
struct heat_key {
    uint32_t size; /* of the key: it may have more bytes than are here */
    uint8_t data[HEAT_KEY_BYTES];
};

struct heat_cell {
    uint64_t numbers[HEAT_NUMBERS];
    /* Boyer and Moore's vote: a key that more than half of the requests for single rows ask for is
     * the favourite in the end, and the votes that are left are how many more than half they are,
     * twice, or fewer. */
    uint64_t votes;
    uint64_t favourite_hash;
    struct heat_key favourite;
    struct heat_key greatest; /* that was written */
    struct heat_key mark;     /* the greatest some time before */
    uint32_t writes_seen;
    uint64_t written_from;  /* of the slot: its `written` before the first write to the range */
    uint64_t written_until; /* and after the last that rose */
    bool was_front;         /* of the slot, once at least */
    bool fell;              /* and lay before the front until then */
};

struct heat_counts;

struct heat_counts *heat_counts_create(void);         /* of one range; NULL without memory */
void heat_counts_destroy(struct heat_counts *counts); /* NULL is fine; no thread counts any more */

/* How many requests this one is counted for; 0: it is not. Any thread, as for the next. */
uint32_t heat_counts_choose(struct heat_counts *counts);

struct heat_event {
    bytes key;
    bool is_write;
    uint32_t weight; /* heat_counts_choose's */
    uint64_t rows;
    uint64_t bytes;
    uint64_t us;          /* 0: not timed; of a single row */
    uint64_t largest_row; /* of those read; 0: not known */
};

/* Without memory it is not counted. */
void heat_counts_add(struct heat_counts *counts, const struct heat_event *event);

/* The rest is for one thread at a time: maintenance, and readers, under the table's lock. */

const struct heat_ranges *heat_counts_ranges(const struct heat_counts *counts);

/* Whether anything was counted since the last take. */
bool heat_counts_any(struct heat_counts *counts);

/* Adds what was counted to `sums`, one for each of the ranges, and starts again from 0, with the
 * ranges `next` if that is not NULL: it is taken over, and the former ranges are returned, which
 * are the caller's then. Else NULL. */
struct heat_ranges *heat_counts_take(struct heat_counts *counts, struct heat_cell *sums,
                                     struct heat_ranges *next);

/* Adds what was counted since the last take, and leaves it there. */
void heat_counts_look(struct heat_counts *counts, struct heat_cell *sums);

/* The same by hand, for sums of sums. */
void heat_cell_add(struct heat_cell *to, const struct heat_cell *cell);

#endif
