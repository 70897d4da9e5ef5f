/* Sums of doubles that lose nothing: whatever the order, and whatever was added and taken back
 * again, the same numbers have the same sum.
 *
 * A sum is a number of fixed point in two's complement, from the least bit that a double can have,
 * 2^-1074, to its greatest, with 64 bits above that for carries: any 2^63 doubles have room. NaN
 * and infinities, which are no such numbers, are counted beside it. */
#ifndef TRESTLE_BASE_EXACT_SUM_H
#define TRESTLE_BASE_EXACT_SUM_H

#include "base/bytes.h"

enum { EXACT_SUM_LIMBS = 34 };

/* All zeroes is the sum of nothing. */
struct exact_sum {
    uint64_t limbs[EXACT_SUM_LIMBS]; /* least first */
    uint64_t nans; /* modulo 2^64, as all here: what is taken back may come before what was added */
    uint64_t infinities;
    uint64_t negative_infinities;
};

void exact_sum_add(struct exact_sum *sum, double value);
void exact_sum_take(struct exact_sum *sum, double value); /* takes back what was added */

/* Adds all that was added to another sum, or takes it back. */
void exact_sum_merge(struct exact_sum *sum, const struct exact_sum *other);
void exact_sum_unmerge(struct exact_sum *sum, const struct exact_sum *other);

/* Whether NaN or an infinity is in it. */
bool exact_sum_is_special(const struct exact_sum *sum);

/* The sum, rounded once: a double made of it is the double next to the exact sum, or an infinity
 * if that is beyond its range. */
long double exact_sum_value(const struct exact_sum *sum);

/* Appends the sum in as many bytes as it takes: 13 to 22 for that of one common double. */
void exact_sum_append(struct buffer *out, const struct exact_sum *sum);
/* Takes one off the front of `rest`; false if there is none. */
bool exact_sum_take_written(bytes *rest, struct exact_sum *out);

#endif
