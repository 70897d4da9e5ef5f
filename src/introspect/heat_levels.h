/* One number of a table's heat as levels, a character for each range and time: what a picture
 * needs, in a small part of the size of all sums. */
#ifndef TRESTLE_INTROSPECT_HEAT_LEVELS_H
#define TRESTLE_INTROSPECT_HEAT_LEVELS_H

#include "base/arena.h"
#include "cluster/heat/heat_matrix.h"
#include "trestle/insight/v1/insight.pb-c.h"

/* A level stands for what is at most a tenth more or less: a picture shows no less than that. */
#define HEAT_LEVEL_RATIO 1.2

typedef double heat_level_number(const struct heat_sum *sum);

struct heat_levels {
    heat_level_number *number;
    double most; /* of all ranges and times; 0: there is nothing */
};

/* What the request calls so; of "unspecified" one that is always 0; NULL: there is no such number.
 */
heat_level_number *heat_levels_number(Insight__ReadHeatRequest__Number number);

/* False: no levels are asked for. */
bool heat_levels_of(const struct heat_matrix *matrix, Insight__ReadHeatRequest__Number number,
                    struct heat_levels *out);

/* The characters of a time, as Heat.Time.levels has them; the arena's. */
status heat_levels_text(const struct heat_levels *levels, const struct heat_time *time,
                        size_t ranges, struct arena *arena, const char **out);

#endif
