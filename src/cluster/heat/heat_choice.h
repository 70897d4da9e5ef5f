/* Where a table's ranges of keys begin, so that they have about the same size. Private to cluster/.
 */
#ifndef TRESTLE_CLUSTER_HEAT_HEAT_CHOICE_H
#define TRESTLE_CLUSTER_HEAT_HEAT_CHOICE_H

#include "heat/heat_ranges.h"

struct table;

/* Rows that may be looked at one by one, about a tenth of a second. */
enum { HEAT_MOST_WALKED = 200000 };

/* At most `most` ranges, and as a rule half as many or more if there are as many rows. `*size`:
 * that of the table now, in bytes. Looks at no more than `most_walked` rows and asks the store for
 * some thousand estimates: blocks for some ten milliseconds more. Reads what is in memory alone. */
status heat_choose_ranges(struct table *table, size_t most, size_t most_walked, uint64_t *size,
                          struct heat_ranges **out);

#endif
