/* When tablets split and merge: see balance.c. Called by maintenance about once a second. */
#ifndef TRESTLE_CLUSTER_BALANCE_H
#define TRESTLE_CLUSTER_BALANCE_H

struct cluster;

/* Looks at every table's tablets: one that has grown over split_bytes or has served more than
 * split_rows_per_second is split, small cold neighbours are merged. Does nothing if balancing is
 * off. Blocks. */
void balance_run(struct cluster *cluster);

#endif
