/* Counts what requests do (usage_state.h), always, for advice: docs/internals/heat.md, "Usage".
 *
 *     usage_weight    whether a request is counted, and for how many
 *     usage_note_…    it is
 *
 * Invariants
 *  1. A request for the weight reads two words that seldom change, and writes none. Counting takes
 *     a lock that is tried, not waited for: a request that does not get it is not counted.
 *  2. Time is cut into slices of 16 ms. The busier a table is, the fewer of them are counted, all
 *     that begins within one, each for as many: so what a caller asks for one after the other is
 *     seen as it is. All of the first USAGE_COUNTED_ALL requests in about a minute are, then half,
 *     and so on down to one in 32. Scans of ranges are all counted.
 *  3. What was counted is of the present day, or of the one before: older days go. (Days begin when
 *     the first request was counted, by the wall clock.)
 *  4. It is counted in pieces of USAGE_PIECE_US, which begin in the same way. Those of the last
 *     hour are there by themselves, too, in memory alone: a start forgets them, not what is in the
 *     day.
 *
 * Each table that was asked for has about 9 KB, and seven times what its state takes as bytes. */
#ifndef TRESTLE_CLUSTER_USAGE_COUNTS_H
#define TRESTLE_CLUSTER_USAGE_COUNTS_H

#include "base/arena.h"
#include "base/status.h"
#include "cluster/usage_state.h"

#include <stdatomic.h>
#include <stddef.h>

struct table;
struct usage_counts;

enum {
    USAGE_COUNTED_ALL = 2048,
    USAGE_PIECES = 6, /* that are kept, besides the present one */
};

#define USAGE_PIECE_US (INT64_C(600) * 1000000)

/* For how many a request counts that began then, by the steady clock; 0: it does not. Any thread.
 */
uint32_t usage_weight(struct table *table, int64_t began_us);

void usage_note_scan(struct table *table, const struct usage_scan *scan);

/* Requests whose weight is not 0; `caller` tells callers apart. */
struct usage_request {
    uint32_t weight;
    uint64_t caller;
    int64_t began_us; /* by the steady clock */
    int64_t ended_us;
};

struct usage_read {
    struct usage_request request;
    const bytes *keys; /* of single rows; none: of a range */
    size_t key_count;
    bool knows_columns;
    bytes columns; /* see usage_state.h */
};

void usage_note_read(struct table *table, const struct usage_read *read);
/* MutateRow. `is_cell`: it sets a cell, and does nothing else. */
void usage_note_write(struct table *table, const struct usage_request *request, bytes key,
                      bool is_cell);
/* ReadModifyWriteRow that increments. */
void usage_note_increment(struct table *table, const struct usage_request *request, bytes key,
                          bytes family, bytes qualifier);

/* What is known of today and of the day before. With `since_us`, by the wall clock since 1970, of
 * what was counted since then, in steps: of pieces and days that began then or later. (0: all.) May
 * wait for the disk. `from_us` is 0 if nothing is known. */
status usage_look(struct table *table, int64_t since_us, struct usage_state *out);

/* Maintenance's, at the end of a window, and a stop's: puts what was counted where it is kept
 * (usage_store.h). */
status usage_keep(struct table *table);

void usage_counts_destroy(struct usage_counts *counts); /* NULL is fine */

#endif
