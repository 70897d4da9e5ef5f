/* Ranges of row keys that a table's heat is counted by: where each begins. Immutable.
 *
 * They cover all keys: the first begins with the first key, the last has no end. */
#ifndef TRESTLE_HEAT_HEAT_RANGES_H
#define TRESTLE_HEAT_HEAT_RANGES_H

#include "base/bytes.h"
#include "base/status.h"

enum { HEAT_MOST_RANGES = 1024 }; /* of a table */

struct heat_ranges {
    size_t count;
    bytes shared;    /* what all borders begin with */
    bytes *borders;  /* count - 1 of them, rising: where the ranges after the first begin */
    uint64_t *heads; /* of each, the eight bytes after `shared`, as a number */
    uint64_t *sizes; /* bytes that each range had, about; NULL: as many as any other */
    uint32_t *rows;  /* of each range, when they were counted; NULL: they never were */
};

/* What is known of the data in each range, when ranges are made: one number more than there are
 * borders, or NULL. */
struct heat_weights {
    const uint64_t *sizes; /* bytes */
    const uint32_t *rows;
};

/* Copies the borders, which rise and of which none is empty, and the weights; NULL: none are known.
 */
status heat_ranges_create(const bytes *borders, size_t border_count,
                          const struct heat_weights *weights, struct heat_ranges **out);
status heat_ranges_copy(const struct heat_ranges *ranges, struct heat_ranges **out);
void heat_ranges_destroy(struct heat_ranges *ranges); /* NULL is fine */

/* Which of them has the key. Any thread. */
size_t heat_ranges_find(const struct heat_ranges *ranges, bytes key);

bytes heat_range_start(const struct heat_ranges *ranges, size_t range); /* empty for the first */
bytes heat_range_end(const struct heat_ranges *ranges, size_t range);   /* empty for the last */

#endif
