/* Sets of column tombstones: intervals of timestamps, each as of a version. Private to row/. */
#ifndef TRESTLE_ROW_INTERVALS_H
#define TRESTLE_ROW_INTERVALS_H

#include "row/interim_combine.h"

/* False without memory. */
bool intervals_add(struct intervals *intervals, struct interval interval);
void intervals_clear(struct intervals *intervals); /* keeps the memory */
void intervals_free(struct intervals *intervals);

/* Makes them disjoint, sorted by start, each moment with the greatest version that covers it, and
 * neighbours of the same version joined. O(n log n). False without memory. */
bool intervals_normalise(struct intervals *intervals);

#endif
