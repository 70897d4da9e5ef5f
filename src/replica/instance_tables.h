/* The tables of an instance that its peers have, too. */
#ifndef TRESTLE_REPLICA_INSTANCE_TABLES_H
#define TRESTLE_REPLICA_INSTANCE_TABLES_H

#include "cluster/cluster.h"

/* Calls `visit` with each that there is when its turn comes, by name, until it fails. `visit` may
 * block, and so does this. */
status instance_tables_visit(struct cluster *cluster, const char *instance,
                             status (*visit)(void *context, struct table *table), void *context);

#endif
