/* The cluster that an answer names in ResponseParams: the one that the app profile's single-cluster
 * routing names, else the first by id, of the request's instance; clients label what they measure
 * with it. An instance without clusters, as any is that was never made, is served by
 * BIGTABLE_CLUSTER_ID in BIGTABLE_ZONE_ID.
 *
 * There is one metadata for each cluster and zone that was ever named, made once, and kept until
 * the end: the connections' compression remembers it. Which one it is for an instance and a profile
 * is remembered until any cluster or profile changes.
 *
 * Any thread. */
#ifndef TRESTLE_BIGTABLE_SERVED_BY_H
#define TRESTLE_BIGTABLE_SERVED_BY_H

#include "control/control.h"

struct metadata;
struct served_by;

status served_by_create(struct control *control, struct served_by **out);
void served_by_destroy(struct served_by *served_by); /* NULL is fine; after the control plane */

/* `instance` is a checked name; `profile` an id, NULL or empty: the default one. Never NULL:
 * without memory, what an instance without clusters has, for this once. */
const struct metadata *served_by_params(struct served_by *served_by, bytes instance,
                                        const char *profile);

#endif
