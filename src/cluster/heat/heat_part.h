/* How small a part of a table a range of its rows is, by ranges of even size: whether a load that
 * is there is a load on little. Private to cluster/.
 *
 * A range with few bytes may have many rows, and then it is no wonder that many rows of it are
 * asked for; and an index that is read from end to end is small only beside what it is an index of.
 * So a part is small if it is so by bytes, by rows, where these were counted, and within each
 * section that it has rows of. */
#ifndef TRESTLE_CLUSTER_HEAT_HEAT_PART_H
#define TRESTLE_CLUSTER_HEAT_HEAT_PART_H

#include "cluster/heat/heat_hotspots.h"
#include "heat/heat_ranges.h"

/* The part of the table's bytes in the range, from 0 to 1: half of one of the ranges of even size
 * at least. */
double heat_part_of_data(const struct heat_ranges *data, bytes start, bytes end);

/* The greatest of its parts: of bytes and of rows, of each section, or of the table if `section_of`
 * is NULL. A section that begins and ends within one of the ranges of even size is not seen. Fails
 * without memory. */
status heat_part_of_sections(const struct heat_ranges *data, heat_section *section_of, bytes start,
                             bytes end, double *out);

#endif
