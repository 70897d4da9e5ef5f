/* Drops of rows (docs/internals/drops.md) that can be forgotten: see drop_pass.c. Private to
 * cluster/. */
#ifndef TRESTLE_CLUSTER_DROP_PASS_H
#define TRESTLE_CLUSTER_DROP_PASS_H

#include "base/bytes.h"
#include "os/job_pool.h"

#include <pthread.h>
#include <stdatomic.h>

struct cluster;
struct table;

/* Where the pass over a keyspace's oldest drop is: the job's, but for the last. All zeroes: none
 * has begun. */
struct drop_pass {
    uint64_t sequence;  /* of the drop; 0: none is under way */
    struct buffer next; /* the first row of the next piece */
    bool is_over;       /* there is none, and nothing older was found in any */
    /* By the steady clock: something has kept what is older. Set by the job; any thread reads it.
     */
    _Atomic int64_t not_until_us;
};

/* A part of struct table. */
struct table_drop_pass {
    struct pool_job job;
    size_t next_space; /* the job's: where it looks first */
    pthread_mutex_t lock;
    pthread_cond_t piece_over;
    uint64_t pieces; /* over, or given up; guarded by `lock` */
};

void drop_pass_init(struct table *table);
void drop_pass_free(struct table *table);

/* Rows of the table were dropped: asks for the pass over them, unless that is put off. Maintenance
 * by hand asks when it is told to. Any thread that holds the table. */
void drop_pass_ask(struct table *table);

/* Asks for the next piece and waits until one is over, or it is known that there is nothing to do
 * at present. May wait for other tables' pieces, and for what is more urgent. Blocks; not with a
 * lock held, nor in a job. */
void drop_pass_await_piece(struct table *table);

/* Asks for the passes that are due. Called by maintenance, each round. */
void drop_pass_run(struct cluster *cluster);

#endif
