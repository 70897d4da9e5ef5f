/* A tablet: the rows of one table from `start` up to `end`, in one keyspace of one shard.
 *
 * Routing and statistics know tablets; the data does not: a split or merge moves no byte
 * (docs/internals/architecture.md, "Tablets are ranges"). A tablet object is immutable except for
 * its counters, and is counted by reference: requests keep the tablet they were routed to while the
 * table's map moves on. What they commit is routed again then (commit.h, 9). */
#ifndef TRESTLE_TABLET_TABLET_H
#define TRESTLE_TABLET_TABLET_H

#include <stdatomic.h>

#include "base/bytes.h"
#include "base/status.h"
#include "store/store.h"
#include "tablet/key_sample.h"

/* What the balancer saw when it last looked; only its thread touches this. */
struct tablet_look {
    int64_t at_us;       /* 0: never */
    uint64_t rows;       /* read and written up to then */
    unsigned busy_looks; /* in a row */
    int64_t idle_since_us;
    uint64_t sized_at_bytes; /* bytes_written when its size was last asked for; 0: never */
};

/* Rows served, and whether that made it hot, as cluster/heat/heat.c saw it when it last looked;
 * only its thread touches this. */
struct tablet_heat {
    uint64_t rows_before; /* up to then */
    uint64_t rows;        /* since the look before */
    uint64_t hot_id;      /* of what is told of it in this window; 0: it was not hot */
    int64_t hot_from_us;  /* since 1970 */
    int64_t hot_for_us;   /* how long it has been, by the steady clock */
    double hot_percent;   /* of all processors, on average over that */
};

struct shard; /* the cluster's: only its identity is used here */

struct tablet {
    uint32_t magic;
    atomic_uint references;
    uint64_t id;
    struct shard *shard; /* whose store the keyspace is of */
    struct keyspace *keyspace;
    bytes start; /* inclusive; empty: the first row */
    bytes end;   /* exclusive; empty: no bound */
    /* Rows since the tablet was made; rates are differences that the balancer takes. */
    atomic_ullong rows_read;
    atomic_ullong rows_written;
    atomic_ullong bytes_read;
    atomic_ullong bytes_written;
    struct key_sample asked_for; /* keys of the rows that are read and written */
    struct tablet_look look;
    struct tablet_heat heat;
    /* The tablet is in the map no more, or its table takes no writes: only the commit thread
     * touches this, for each write. So it is far from what others count there. */
    bool is_former;
};

/* Copies the bounds; one reference. */
status tablet_create(uint64_t id, struct shard *shard, struct keyspace *keyspace, bytes start,
                     bytes end, struct tablet **out);
void tablet_retain(struct tablet *tablet);
void tablet_release(struct tablet *tablet);

bool tablet_contains(const struct tablet *tablet, bytes row_key);

#endif
