/* Which tablets were hot, and when: what ListHotTablets tells.
 *
 * Once a window the processor time that the process took is shared out among the tablets, by the
 * rows that they served in it. A tablet was hot if its share is HEAT_LEAST_PERCENT of what the
 * machine's processors could have given, or more. It is an estimate: rows are taken to cost alike,
 * and what the process does beside serving them counts for them.
 *
 * What is known is in memory, for a day, and HEAT_MOST entries at most. */
#ifndef TRESTLE_CLUSTER_HEAT_H
#define TRESTLE_CLUSTER_HEAT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/status.h"

enum { HEAT_LEAST_PERCENT = 10, HEAT_MOST = 10000 };

struct cluster;
struct heat;

status heat_create(struct heat **out);
void heat_destroy(struct heat *heat); /* NULL is fine */

/* A look at all tablets, if a window has passed since the last one. For maintenance. */
void heat_run(struct cluster *cluster);

struct hot_tablet {
    uint64_t
        id; /* rises with time, and is not of the tablet: it may have been hot more than once */
    const char *table;
    bytes start;
    bytes end;
    int64_t from_us; /* since 1970 */
    int64_t until_us;
    double cpu_percent; /* of all processors of the machine */
};

/* Calls `visit` for each one with an id over `after`, by rising id, until it returns false. What it
 * gets is valid during the call, which is under a lock: it should only copy. Any thread. */
void cluster_hot_tablets(struct cluster *cluster, uint64_t after,
                         bool (*visit)(void *context, const struct hot_tablet *hot), void *context);

#endif
