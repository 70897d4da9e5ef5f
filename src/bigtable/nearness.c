/* See nearness.h. */
#include "bigtable/nearness.h"

#include "base/siphash.h"

#include <string.h>

/* Without "-b". */
static bytes region_of(const char *zone)
{
    const char *dash = strrchr(zone, '-');
    return bytes_make(zone, dash == NULL ? strlen(zone) : (size_t)(dash - zone));
}

static bytes continent_of(const char *zone)
{
    return bytes_make(zone, strcspn(zone, "-"));
}

enum zone_distance zone_distance(const char *a, const char *b)
{
    if (strcmp(a, b) == 0)
        return ZONE_SAME;
    if (bytes_equal(region_of(a), region_of(b)))
        return ZONE_SAME_REGION;
    return bytes_equal(continent_of(a), continent_of(b)) ? ZONE_SAME_CONTINENT : ZONE_FAR;
}

uint64_t row_affinity_weight(const char *cluster_id, bytes row_key)
{
    struct siphash hash;
    siphash_start(&hash);
    siphash_add(&hash, bytes_make(cluster_id, strlen(cluster_id) + 1)); /* the NUL parts them */
    siphash_add(&hash, row_key);
    return siphash_finish(&hash).words[0];
}
