/* Two numbers of a commit, both of 64 bits, both with microseconds since 1970 in the upper 52.
 *
 *     version    | microseconds: 52 | counter: 7 | cluster: 5 |
 *     sequence   | microseconds: 52 | counter: 12             |
 *
 * A version decides between two changes of a cell: the greater one counts. It is unique over all
 * clusters that copy each other's changes, since its low bits name the one that gave it; a change
 * keeps its version wherever it is copied to. With more than 128 in a microsecond the counter runs
 * into the next microsecond by itself.
 *
 * A sequence is a place in the commit queue of one store, and means nothing elsewhere. It has a
 * time, that of the versions' clock when it was given, so that what was archived up to a second can
 * be told by it.
 *
 * Formats of the store before 3 had one number for both, all of whose low bits were a counter:
 * versions from before are never asked for their cluster. */
#ifndef TRESTLE_TABLET_VERSION_H
#define TRESTLE_TABLET_VERSION_H

#include <stdbool.h>
#include <stdint.h>

enum {
    VERSION_LOW_BITS = 12, /* below the microseconds; of sequences, too */
    VERSION_CLUSTER_BITS = 5,
    VERSION_CLUSTERS = 1 << VERSION_CLUSTER_BITS,
    VERSION_STEP = VERSION_CLUSTERS, /* from one version to the next of a cluster */
};

static inline int64_t version_time_us(uint64_t version)
{
    return (int64_t)(version >> VERSION_LOW_BITS);
}

/* The least of a microsecond, which is not negative. */
static inline uint64_t version_at(int64_t time_us)
{
    return (uint64_t)time_us << VERSION_LOW_BITS;
}

/* The cluster's least that is greater than `version`. */
static inline uint64_t version_after(uint64_t version, unsigned cluster)
{
    uint64_t low = version % VERSION_STEP;
    return version - low + cluster + (cluster > low ? 0 : VERSION_STEP);
}

/* Which cluster gave it. False: it is of before `clusters_from`, and does not say. */
static inline bool version_cluster(uint64_t version, uint64_t clusters_from, unsigned *cluster)
{
    *cluster = (unsigned)(version % VERSION_STEP);
    return version >= clusters_from;
}

#endif
