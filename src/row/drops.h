/* The ranges of a table's rows that were dropped: each a row tombstone over all rows of a range,
 * with a version of its own (docs/internals/drops.md).
 *
 * Of a row under a drop what is older than the drop's version is not there: reads pass over it, and
 * folds throw it away. Versions decide, so what came before the drop and arrives after it is
 * covered, and what is newer is not, whenever it came.
 *
 * Invariants
 *  1. A drop that a change has been written after is found by every fold that has that change in
 *     hand: who adds a drop does so before anything newer is written. So no add from before a drop
 *     is made one with an add from behind it.
 *  2. While somebody holds them (row_drops_hold), folds throw away nothing for the drops that come:
 *     he reads at an instant before them, and a fold may be of what he is to see. They keep apart
 *     the adds on both sides of such a drop instead, and collect nothing by rules that count. Nor
 * is any drop removed then: what it covers is still there for him.
 *  3. A drop is removed once nothing older than it is left in its range. What was read before it
 *     must not be written after that: row_drops_since says so, also of drops that are gone.
 *
 * Threads: any, but row_drops_reserve, _add and _remove are called by one at a time. A lookup takes
 * a lock only while there are drops, and costs a binary search. */
#ifndef TRESTLE_ROW_DROPS_H
#define TRESTLE_ROW_DROPS_H

#include "base/bytes.h"
#include "base/status.h"

struct row_drop;
struct row_drops;

/* Without drops. */
status row_drops_create(struct row_drops **out);
/* With all its drops. NULL is fine. */
void row_drops_destroy(struct row_drops *drops);

/* Rows from `from` up to but not including `to` (empty: no bound), which are copied. */
status row_drop_create(bytes from, bytes to, struct row_drop **out);
void row_drop_destroy(struct row_drop *drop); /* of one that was not added; NULL is fine */
/* How many bytes it is thought to cover: for who measures, and nothing else. 0 before. */
void row_drop_set_bytes(struct row_drop *drop, uint64_t bytes);
/* Of which table files it is known that all they have was written before the drop: those up to this
 * number (store.h, keyspace_newest_table). 0 before: of none. */
void row_drop_set_newest_table(struct row_drop *drop, uint64_t number);

/* Room for one more, so that adding it cannot fail. */
status row_drops_reserve(struct row_drops *drops);
/* Takes the drop. Both numbers are its commit's, and not 0. */
void row_drops_add(struct row_drops *drops, struct row_drop *drop, uint64_t version,
                   uint64_t sequence);
/* Removes the drop of that sequence; false if there is none. While nobody holds them. */
bool row_drops_remove(struct row_drops *drops, uint64_t sequence);

/* How many there are. */
size_t row_drops_count(const struct row_drops *drops);

/* What folds are to know of a key of a keyspace, of a record or an overflow cell; both 0: nothing.
 */
struct row_drops_look {
    uint64_t dropped;   /* what is older than this version goes */
    uint64_t held_from; /* what is older than this version is not there, and stays for who holds the
                         * drops: it counts for nothing, and its adds do not meet newer ones */
};
struct row_drops_look row_drops_look(struct row_drops *drops, bytes key);

/* For readers: what is older than this version is not there, in the row; 0: all is. To be asked
 * after the row was read, since what has been written behind a drop is found after the drop is. If
 * row_drops_gone rises from before a read to after this, the read is to be done anew: it may have
 * met what a drop covered that is gone. */
uint64_t row_drops_over(struct row_drops *drops, bytes row_key);

/* The greatest sequence of a drop that is here no more; 0: none went. */
uint64_t row_drops_gone(const struct row_drops *drops);

/* Whether the row has been dropped by a commit with a greater sequence than `as_of`. May say yes
 * where rows were dropped whose drop is gone already. */
bool row_drops_since(struct row_drops *drops, bytes row_key, uint64_t as_of);

/* Somebody reads at an instant that begins now, or has yet to come: see 2. */
void row_drops_hold(struct row_drops *drops);
/* The same of one that began before the drop with that sequence, at a start: it and what came after
 * it are held, too. */
void row_drops_hold_from(struct row_drops *drops, uint64_t sequence);
void row_drops_let_go(struct row_drops *drops);
bool row_drops_are_held(struct row_drops *drops);

/* One drop, as it was added. The slices are the drop's. */
struct row_drop_words {
    uint64_t version;
    uint64_t sequence;
    uint64_t bytes;        /* that it is thought to cover */
    uint64_t newest_table; /* row_drop_set_newest_table */
    bytes from;
    bytes to;
    bool is_held;
};
/* The one with the least sequence that is greater than `after`; false: there is none. The slices
 * are valid until that is removed. */
bool row_drops_next(struct row_drops *drops, uint64_t after, struct row_drop_words *out);

/* The same of those that are over some of the rows from `from` up to `to` (empty: no bound), for
 * who does not keep others from removing them: its bounds, as far as they lie within these, are
 * copied. Without memory the buffers say so. */
bool row_drops_within(struct row_drops *drops, bytes from, bytes to, uint64_t after,
                      struct row_drop_words *out, struct buffer *out_from, struct buffer *out_to);

/* Whether a drop that is not held is over all keys, of records or of overflow cells, from `from` up
 * to `to` (in the same space, or its end), and came after all that the table file of that number
 * has: then nothing of those keys in that file is there any more. */
bool row_drops_cover_table(struct row_drops *drops, bytes from, bytes to, uint64_t table);

/* Another list with the drops that there are now: for who reads at the present instant, whatever
 * comes. None is added or removed meanwhile. */
status row_drops_copy(struct row_drops *drops, struct row_drops **out);

#endif
