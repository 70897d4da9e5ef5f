/* Points of one subject, folded into longer ones. Pure functions. */
#ifndef TRESTLE_HISTORY_FOLD_H
#define TRESTLE_HISTORY_FOLD_H

#include "history/point.h"

struct history_points {
    struct history_point *items; /* by time, in an arena */
    size_t count;
};

/* Points of `step_us` each, which begin at a multiple of it; those of a step without any are not
 * there. `server`: the server's of the same steps, which say how much of each was seen; NULL: these
 * are the server's. RESOURCE_EXHAUSTED without memory. */
status history_fold(const struct history_points *points, int64_t step_us,
                    const struct history_points *server, struct arena *arena,
                    struct history_points *out);

/* A table's points at each time at which the server has one: where the table has none nothing came,
 * and its size is what it was. Both were folded by the same steps. */
status history_fill(const struct history_points *table, const struct history_points *server,
                    struct arena *arena, struct history_points *out);

#endif
