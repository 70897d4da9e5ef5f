/* Garbage collection without traffic: see gc_pass.c. Called by maintenance about once a second. */
#ifndef TRESTLE_CLUSTER_GC_PASS_H
#define TRESTLE_CLUSTER_GC_PASS_H

struct cluster;

/* Does a bounded piece of work on the tables whose last pass is longer ago than gc_interval_us.
 * Blocks. */
void gc_pass_run(struct cluster *cluster);

#endif
