/* The services of Bigtable's API over one cluster: tables of methods for wire/grpc.h.
 *
 * google.bigtable.v2.Bigtable, google.bigtable.admin.v2.BigtableTableAdmin and
 * google.longrunning.Operations. Methods that are not built answer UNIMPLEMENTED. */
#ifndef TRESTLE_BIGTABLE_SERVICES_H
#define TRESTLE_BIGTABLE_SERVICES_H

#include "cluster/cluster.h"
#include "wire/grpc.h"

/* What every handler sees: the context of all services. Outlives them. */
struct bigtable {
    struct cluster *cluster;
    bool gc_on_read; /* hide from readers what a garbage-collection rule condemns */
    struct metadata *response_params; /* the header that says which cluster has answered */
};

/* RESOURCE_EXHAUSTED without memory. */
status bigtable_init(struct bigtable *bigtable, struct cluster *cluster, bool gc_on_read);
void bigtable_free(struct bigtable *bigtable); /* all zeroes are fine */

/* One server is one cluster in one zone, whatever the instance is called: what clients are told in
 * cluster_states and in response metadata. */
#define BIGTABLE_CLUSTER_ID "trestle"
#define BIGTABLE_ZONE_ID    "local"

struct grpc_service bigtable_data_service(struct bigtable *bigtable);
struct grpc_service bigtable_table_admin_service(struct bigtable *bigtable);
struct grpc_service bigtable_operations_service(struct bigtable *bigtable);

#endif
