/* How often which value came: a log-linear histogram of whole numbers.
 *
 * Values below 64 are counted exactly; above, each power of two is cut into 32 equal buckets, so
 * that a value read back is off by at most 1/64 (1.6 %). Fixed size, nothing is allocated; values
 * from 0 to 2^63 - 1. Not for several threads at once: give each its own and merge them. */
#ifndef TRESTLE_BASE_HISTOGRAM_H
#define TRESTLE_BASE_HISTOGRAM_H

#include <stdint.h>

enum {
    HISTOGRAM_SUB_BITS = 5,
    HISTOGRAM_BUCKETS = (63 - HISTOGRAM_SUB_BITS + 1) << HISTOGRAM_SUB_BITS,
};

/* All zeroes is empty. */
struct histogram {
    uint64_t count;
    uint64_t sum;
    uint64_t largest;
    uint64_t buckets[HISTOGRAM_BUCKETS];
};

void histogram_add(struct histogram *histogram, uint64_t value);
void histogram_merge(struct histogram *into, const struct histogram *from);

/* The value that `percent` (0 to 100) of all values do not exceed; exact for the largest; 0 if
 * empty. */
uint64_t histogram_percentile(const struct histogram *histogram, double percent);

#endif
