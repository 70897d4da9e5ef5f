/* Which loads last: hotspots that window after window shows by itself, up to now, and that all
 * these windows show together. So few requests say something, which would not if they had come at
 * once; and what a table was filled with before does not hide what it is used for. Private to
 * cluster/.
 */
#ifndef TRESTLE_CLUSTER_HEAT_HEAT_LASTING_H
#define TRESTLE_CLUSTER_HEAT_HEAT_LASTING_H

#include "cluster/heat/heat_hotspots.h"
#include "cluster/heat/heat_matrix.h"
#include "heat/heat_ranges.h"

enum {
    HEAT_LASTING_WINDOWS = 2,  /* at least, each with HEAT_HOTSPOT_LEAST_ROWS */
    HEAT_LASTING_HOTSPOTS = 3, /* at most: a front, hot writes, hot reads */
};

/* The windows are the matrix's times. A window with fewer rows is passed over, a dozen of them in a
 * row are the end. `out` has room for HEAT_LASTING_HOTSPOTS, whose `windows` and `from_us` are set.
 */
status heat_lasting_hotspots(const struct heat_matrix *matrix, const struct heat_ranges *data,
                             heat_section *section_of, struct arena *arena,
                             struct heat_hotspot *out, size_t *count);

#endif
