/* The rows of a table that take most, as far as the store notes it while it writes tables
 * (keyspace_weigh): candidates, of which some may have shrunk, or be gone, since. Only what has
 * records of its own is weighed, the large cells of rows, not the rest of them, which
 * --overflow-threshold bounds. */
#ifndef TRESTLE_CLUSTER_WEIGHTS_H
#define TRESTLE_CLUSTER_WEIGHTS_H

#include "cluster/cluster.h"

struct row_weight {
    bytes row_key;
    uint64_t size;          /* of keys and values, about */
    uint64_t largest_value; /* about, too */
};

/* Some of them, by their size or by ten times their largest value, the heaviest first; in the
 * arena. What it costs goes with the number of the table's files and is bounded beside that. May
 * wait for the disk. */
status table_weigh(struct table *table, struct arena *arena, struct row_weight **out,
                   size_t *count);

#endif
