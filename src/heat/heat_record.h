/* What a table's ranges of keys were asked for in some time, as it is kept: docs/internals/heat.md
 * has the bytes. A record says itself where its ranges begin and end: it refers to nothing else. */
#ifndef TRESTLE_HEAT_HEAT_RECORD_H
#define TRESTLE_HEAT_HEAT_RECORD_H

#include "base/arena.h"
#include "base/status.h"
#include "heat/heat_counts.h"

struct heat_sum {
    uint64_t numbers[HEAT_NUMBERS];
    /* The key that most requests for single rows asked for, and how many more than half of them at
     * least; 0: no key is known to stand out. As the next it is no longer than HEAT_KEY_BYTES, with
     * the rest cut off. */
    uint64_t votes;
    bytes favourite;
    bytes newest; /* the greatest key that was written, if many keys rose; else empty */
};

struct heat_entry {
    bytes start;
    bytes end; /* empty: no bound */
    struct heat_sum sum;
};

struct heat_record {
    int64_t from_us; /* since 1970 */
    int64_t until_us;
    double cpu_percent; /* that the process took, of all processors of the machine */
    size_t count;
    struct heat_entry *entries; /* by start; they do not overlap, but there may be gaps */
};

/* The mean over two times one after the other, one of which may be none. */
double heat_mean(double first, int64_t first_us, double second, int64_t second_us);

/* The ranges of which something was counted. The keys point into `ranges` and `cells`. */
status heat_record_of(const struct heat_ranges *ranges, const struct heat_cell *cells,
                      struct arena *arena, struct heat_record *out);

/* `from_us` is left to the key that it is kept under. */
void heat_record_encode(const struct heat_record *record, struct buffer *out);

/* Points into `value` and the arena. DATA_LOSS if it is no record. */
status heat_record_decode(bytes value, int64_t from_us, struct arena *arena,
                          struct heat_record *out);

/* Adds what is in `from`, keys included. */
void heat_sum_add(struct heat_sum *to, const struct heat_sum *from);

/* The shortest run of entries, of those from `first` to `last`, that has `share` of what they all
 * have of some numbers (a bit each, 1 << HEAT_READS); of several, the first. `*sum` is what it has,
 * and 0 if there is nothing. */
struct heat_run {
    size_t first;
    size_t last;
    uint64_t sum;
    uint64_t total; /* of all entries that were looked at */
};

struct heat_run heat_busiest_run(const struct heat_record *record, size_t first, size_t last,
                                 unsigned numbers, double share);

/* Narrows [*start, *end) to where nearly all of its rows were asked for, if that is a small part of
 * it: four fifths, in a quarter of its `ranges` or fewer. */
void heat_record_narrow(const struct heat_record *record, const struct heat_ranges *ranges,
                        bytes *start, bytes *end);

#endif
