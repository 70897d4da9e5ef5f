/* Checks a Cluster's settings, and completes them with what production fills in. */
#ifndef TRESTLE_BIGTABLE_CLUSTER_SETTINGS_H
#define TRESTLE_BIGTABLE_CLUSTER_SETTINGS_H

#include "base/arena.h"
#include "base/status.h"
#include "google/bigtable/admin/v2/instance.pb-c.h"

/* For a cluster that is to be made. */
status complete_cluster(BtAdmin__Cluster *cluster);

/* Whether the number of nodes follows the load; of a cluster that was completed. */
bool cluster_autoscales(const BtAdmin__Cluster *cluster);

/* Completes the settings that may change later: nodes, and how their number follows the load. */
status complete_cluster_size(BtAdmin__Cluster *cluster);

#endif
