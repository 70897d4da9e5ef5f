/* Requests for single rows by the minute, added up from what was counted by ranges of keys. */
#ifndef TRESTLE_INTROSPECT_HEAT_MINUTES_H
#define TRESTLE_INTROSPECT_HEAT_MINUTES_H

#include "advisor/advice.h"
#include "cluster/heat/heat_matrix.h"

struct heat_minutes {
    const struct advice_minute *all; /* rising; the arena's */
    size_t count;
};

/* Of the ranges whose owner, of as many as there are ranges, is `owner`: of each minute the most
 * that there was in any sixty seconds that began in it, so that a load which begins in the middle
 * of one is no smaller for it. A time that is longer than a minute counts with what it has in a
 * minute on average. */
status heat_minutes_of(const struct heat_matrix *matrix, const void *const *owners,
                       const void *owner, struct arena *arena, struct heat_minutes *out);

#endif
