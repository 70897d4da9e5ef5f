/* Splitting and merging tablets: one commit of catalog records, and one change of the map at its
 * place (commit.h, 9). Private to cluster/. No data moves, no request waits. A read that was routed
 * to a former tablet finishes there, on the same rows of the same keyspace; a write is routed
 * again. Block for the commit. */
#ifndef TRESTLE_CLUSTER_RESHAPE_H
#define TRESTLE_CLUSTER_RESHAPE_H

#include "cluster/table.h"

/* Splits the tablet in two: [start, at) and [at, end). `at` must lie inside. NOT_FOUND if the
 * tablet is not in the map any more. */
status reshape_split(struct table *table, struct tablet *tablet, bytes at);

/* Makes one of two neighbours, which must share a keyspace. */
status reshape_merge(struct table *table, struct tablet *left, struct tablet *right);

#endif
