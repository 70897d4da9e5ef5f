/* Which of an instance's clusters a request is best served at.
 *
 * How far one zone is from another is only known by their names: `us-east1-b` lies in the region
 * `us-east1`, and that on the continent `us`. Any thread. */
#ifndef TRESTLE_BIGTABLE_NEARNESS_H
#define TRESTLE_BIGTABLE_NEARNESS_H

#include "base/bytes.h"

enum zone_distance {
    ZONE_SAME,
    ZONE_SAME_REGION,
    ZONE_SAME_CONTINENT,
    ZONE_FAR,
};

enum zone_distance zone_distance(const char *a, const char *b);

/* By how much a cluster, by its id, wants a row, of rendezvous hashing: the row goes to the cluster
 * whose weight is the greatest. So each has an equal share, and of a cluster that comes or goes
 * only its own share moves. The same on every machine, and for ever. */
uint64_t row_affinity_weight(const char *cluster_id, bytes row_key);

#endif
