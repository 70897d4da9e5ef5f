/* Places in a table at which a sample is taken: keys that are made of keys that are there.
 *
 * A table's rows are nowhere near even over all byte strings, so a place is a mix of known keys:
 * their common start, one byte between what the table's first and last key have there, and then, by
 * the toss of a coin, bytes that the keys have at that position or anywhere. It need not be a
 * row's key; the rows behind it are the sample. */
#ifndef TRESTLE_ADVISOR_PLACE_H
#define TRESTLE_ADVISOR_PLACE_H

#include "base/bytes.h"

/* Random enough for a sample; any seed but 0. */
struct advice_random {
    uint64_t state;
};

/* 0 … bound - 1 */
size_t advice_random_below(struct advice_random *random, size_t bound);

/* A place between that key and the next of those that are known: where keys of a few words differ
 * far behind their start, none that is made of whole keys comes to lie among those of one word. */
void advice_place_behind(const bytes *keys, size_t count, bytes key, struct advice_random *random,
                         struct buffer *out);

/* `keys`: some of the table's, at least one, among them its first and its last as far as they are
 * known. Sets `out`, which fails without memory. */
void advice_place(const bytes *keys, size_t count, struct advice_random *random,
                  struct buffer *out);

#endif
