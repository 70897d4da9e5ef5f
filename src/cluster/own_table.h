/* Tables that the server keeps of itself, under CLUSTER_OWN_TABLES: how they are written, in
 * batches, and read. No API lists them. They come to be with the first row. Functions block. */
#ifndef TRESTLE_CLUSTER_OWN_TABLE_H
#define TRESTLE_CLUSTER_OWN_TABLE_H

#include "base/vector.h"
#include "cluster/cluster.h"

struct row_change;
struct scan_row;

struct own_table {
    const char *name;
    status (*make)(struct cluster *cluster, struct table **out);
    status (*complete)(struct table *table); /* before it is written, if it was there; NULL: none */
    bool is_unseen;                          /* its commits are: row_group's is_own */
};

/* With a reference. `*out` is NULL if it is not there, and is not to be made. */
status own_table_hold(const struct own_table *own, struct cluster *cluster, bool make,
                      struct table **out);

/* --- writing --- */

/* Rows that are written together, or not at all. All zeroes but the arena is empty. */
struct own_batch {
    struct arena *arena;
    struct vector rows; /* of struct grouped_row */
};

/* The key, and what the change points to, are in the batch's arena. RESOURCE_EXHAUSTED without
 * memory; so is a key without data, for which there was none. */
status own_batch_add(struct own_batch *batch, bytes row_key, struct row_change *change);

/* Writes them, if there are any; either way the batch is empty afterwards. Only on threads that no
 * holder of a row's lock waits for. */
status own_batch_write(struct own_batch *batch, const struct own_table *own,
                       struct cluster *cluster);

/* Frees what the batch holds outside of its arena, without writing. */
void own_batch_drop(struct own_batch *batch);

/* --- reading --- */

struct own_reading {
    bytes from;
    bytes to; /* exclusive; at or before `from`: there is nothing to read */
    bool reversed;
    bool is_background; /* see scan_spec */
    size_t memory;      /* for the scan */
    /* Sets `*ends` if it wants no more. The row is valid during the call. */
    status (*row)(void *context, const struct scan_row *row, bool *ends);
    void *context;
};

/* Nothing, if there is no such table. */
status own_table_read(const struct own_table *own, struct cluster *cluster,
                      const struct own_reading *reading);

#endif
