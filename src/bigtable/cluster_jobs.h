/* The operation that waits until the rows of an instance are at a cluster that was added to it
 * (clusters.c): of a server with peers. */
#ifndef TRESTLE_BIGTABLE_CLUSTER_JOBS_H
#define TRESTLE_BIGTABLE_CLUSTER_JOBS_H

#include "bigtable/services.h"

/* Its argument is a serialized CreateClusterMetadata with the request and the time of the start;
 * its context the struct bigtable. It ends once the cluster is READY, which is not its doing. */
extern const struct operation_kind create_cluster_kind;

#endif
