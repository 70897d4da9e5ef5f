/* Tables at rest are put together, and such as cost those who read them.
 *
 * Rows that are written over and over lie in pieces, in write buffers and in several tables of the
 * store, and stay so when the writing ends: the store compacts by what comes in. Each reader would
 * then put together the row that it reads (row_rewrite.h), which costs several times what it costs
 * to go through all of them in order. So when nothing has been written to a table for a moment, and
 * rows of it are in pieces, it is compacted.
 *
 * What that writes is bounded: a table is at most MOST_WRITTEN_FOR_A_BYTE times as large as what
 * was written to it since the last time, and at most LARGEST_TABLE; others are left to the store.
 *
 * A table that is read and written at once never rests. So what its readers go through in vain is
 * counted (keyspace_waste), and when it comes to WASTE_FOR_A_BYTE times the table, they have paid
 * as much as it takes to compact it, and it is compacted. All of that together so costs no more
 * than twice what the readers would pay at the least. Of bytes it writes at most
 * MOST_READ_FOR_A_BYTE for each one that was written to the table.
 *
 * Nothing depends on it being done. */
#ifndef TRESTLE_CLUSTER_IDLE_COMPACTION_H
#define TRESTLE_CLUSTER_IDLE_COMPACTION_H

#include "os/job_pool.h"

#include <stdatomic.h>
#include <stdint.h>

struct cluster;
struct table;

/* What was seen of a table; only maintenance touches this, and of what is atomic its job. */
struct table_idleness {
    struct pool_job job;
    _Atomic uint64_t uncompacted; /* bytes written since it was last put together, or the start */
    atomic_bool is_at_rest;       /* by the last look */
    _Atomic uint64_t waste;       /* of its keyspaces, when it was last put together */
    atomic_bool was_compacted;    /* since the start: before that, `uncompacted` says too little */
    uint64_t written;             /* bytes, when it was last looked at */
    unsigned quiet_looks;         /* in a row */
};

/* A table has come, of which nothing has been seen yet. */
void settling_init(struct table *table);

/* What was seen of all of a shard, likewise. */
struct shard_idleness {
    uint64_t applied_version; /* of the commit queue, at the last look */
    uint64_t waste;           /* of the store, likewise */
    unsigned quiet_looks;
};

/* Looks at all tables, and has those put together that have come to rest: as jobs of maintenance
 * (maintenance.h), which calls this ten times a second. */
void idle_compaction_run(struct cluster *cluster);

#endif
