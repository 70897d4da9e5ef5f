/* What an app profile decides for a request: whether it may be a single-row transaction, and the
 * cluster that its answer names in ResponseParams, by which clients label what they measure.
 *
 * That cluster is the one that the profile's single-cluster routing names, else, of those of the
 * request's instance that it may be, the nearest to the server's zone (nearness.h), of equally near
 * ones the first by id. An instance without clusters, as any is that was never made, is served by
 * BIGTABLE_CLUSTER_ID in the server's zone.
 *
 * There is one metadata for each cluster and zone that was ever named, made once, and kept until
 * the end: the connections' compression remembers it. So are the choices that there were. What is
 * decided for an instance and a profile is remembered until any cluster or profile changes.
 *
 * Any thread. */
#ifndef TRESTLE_BIGTABLE_SERVED_BY_H
#define TRESTLE_BIGTABLE_SERVED_BY_H

#include "control/control.h"

struct metadata;
struct served_by;

/* `zone_id`, the server's, outlives it. */
status served_by_create(struct control *control, const char *zone_id, struct served_by **out);
void served_by_destroy(struct served_by *served_by); /* NULL is fine; after the control plane */

/* A cluster where it is. All of it stays until the end, as of the next two. */
struct served_place {
    const struct metadata *params; /* ResponseParams */
    const char *zone_id;
    const char *cluster_id;
};

/* Those that multi-cluster routing may have a request go to, at least one. */
struct served_choice {
    bool has_row_affinity;
    size_t count;
    const struct served_place *const *places; /* the nearest first */
};

struct served {
    const struct metadata *params; /* of the cluster that is named: ResponseParams */
    const char *zone_id;           /* where it is */
    bool has_cluster;              /* false: the instance has none */
    /* NULL: routing to one cluster, or an instance without any. */
    const struct served_choice *choice;
    /* CheckAndMutateRow and ReadModifyWriteRow: only with single-cluster routing that says so. By
     * `default`, if it routes to any cluster, and by a profile that is not there: true. */
    bool allows_transactions;
    /* They are allowed although any cluster may be served: right as long as all are one copy. */
    bool is_lenient;
};

/* `instance` is a checked name; `profile` an id, NULL or empty: the default one. Without memory
 * RESOURCE_EXHAUSTED, and `params` are those of an instance without clusters, for this once. */
status served_by_find(struct served_by *served_by, bytes instance, const char *profile,
                      struct served *out);

#endif
