/* How the memory of `--memory` is divided among the parts of a server, and whether it is enough.
 *
 * The arithmetic is in sizing.c alone; docs/operating/sizing.md tells it. */
#ifndef TRESTLE_BASE_SIZING_H
#define TRESTLE_BASE_SIZING_H

#include "base/settings.h"

/* The memory that each part may take, bytes. */
struct sizing {
    uint64_t base;          /* the program, its threads, what is known of tables */
    uint64_t allocator;     /* free, and not given back yet */
    uint64_t cache;         /* blocks of tables, and large values that are sent */
    uint64_t write_buffers; /* those that are filled, and those that are flushed meanwhile */
    uint64_t connections;   /* that are idle */
    uint64_t messages;      /* requests, packed, and waiting to be committed */
    uint64_t large_work;    /* flushes and compactions of the largest cells, beyond what these and
                             * values give up for them */
    uint64_t queries;
    uint64_t transactions;
};

struct sizing sizing_of(const struct settings *settings);
uint64_t sizing_sum(const struct sizing *sizing);

/* With the setting `memory` fills in what was not given of the others that it is about; what is
 * left is the cache's. And, with it or without, raises a disk's reserve that was not given to what
 * the write buffer needs. INVALID_ARGUMENT with one line of words for what cannot hold. */
status sizing_derive(struct settings *settings);

/* Whether the write buffer may fill the disk after writes are refused. */
bool sizing_reserve_is_short(const struct settings *settings);

/* Mutations that may wait to be committed, bytes; and long request messages that may be in memory
 * (wire/request_room.h: half of that comes to it). */
uint64_t sizing_commit_queue(const struct settings *settings);
uint64_t sizing_requests(const struct settings *settings);

/* The most that a call may send before its message has room there, bytes: so many may wait as have
 * a quarter of that room together. */
uint64_t sizing_unasked(const struct settings *settings);

/* Both from the share of the cache: large values that ReadRows sends (bigtable/value_turn.h), and
 * blocks of tables. */
uint64_t sizing_values(const struct settings *settings);
uint64_t sizing_blocks(const struct settings *settings);

/* The most that one call may take of room for values, bytes: all values of a row that an update
 * looks at, with their copies. */
uint64_t sizing_values_alone(const struct settings *settings);

/* Whether a flush or a compaction of the largest cells, which takes SIZING_LARGE_COPIES of one, has
 * no room beside all else. */
enum { SIZING_LARGE_COPIES = 8 };
bool sizing_lacks_large_work(const struct settings *settings);

/* What nothing large is granted of, bytes: what has no room of its own may grow by that. */
uint64_t sizing_spare(const struct settings *settings);

/* What one such job takes at most, bytes; and one that is a flush. */
uint64_t sizing_large_work(const struct settings *settings);
uint64_t sizing_large_flush(const struct settings *settings);

/* The largest commit that a server with so much memory writes, and can replay: an eighth more than
 * may wait to be committed. 0: any. */
uint64_t sizing_largest_commit(const struct settings *settings);

/* The largest cell that there is memory for, bytes: as large as a request may be. 0: any. */
uint64_t sizing_largest_cell(const struct settings *settings);

/* The same of all bodies of HTTP/1.1. */
uint64_t sizing_http1_bodies(const struct settings *settings);

#endif
