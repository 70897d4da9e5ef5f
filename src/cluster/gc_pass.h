/* Garbage collection without traffic: see gc_pass.c. Private to cluster/. */
#ifndef TRESTLE_CLUSTER_GC_PASS_H
#define TRESTLE_CLUSTER_GC_PASS_H

struct cluster;
struct table;

/* A table has come, of which nothing has been looked at yet. */
void gc_pass_init(struct table *table);

/* Asks for the next piece of the tables whose last pass is longer ago than gc_interval_us. Called
 * by maintenance about once a second. */
void gc_pass_run(struct cluster *cluster);

/* A range of the table's keys was deleted: its next pass, which compacts what deletes ranges, is
 * due at once, or after the one that is under way. Any thread that holds the table. */
void gc_pass_hurry(struct table *table);

#endif
