/* How commits become one store batch: for commit.c. */
#ifndef TRESTLE_TABLET_COMMIT_PRIVATE_H
#define TRESTLE_TABLET_COMMIT_PRIVATE_H

#include "tablet/change_log.h"
#include "tablet/commit.h"
#include "tablet/event.h"

/* Bytes by which the queue is bounded: what the commit will put into a batch, roughly. */
size_t commit_size(const struct commit *commit);

/* It has nothing to write: it marks a place in the queue. */
bool commit_is_barrier(const struct commit *commit);

/* It puts a record in place of what it is made of (commit.h, 7). */
bool commit_is_mending(const struct commit *commit);

/* A batch being filled. Changes of one row that come together are folded into one operand: a row
 * that many clients add to would otherwise pile up operands, which each read pays for. They are
 * found by a hash table of the rows in the batch. The order of changes is kept row by row; between
 * rows it does not matter, except around a commit with `extend`, which may touch any key: what was
 * gathered is written out before it. */
struct commit_batch {
    struct store_batch *store_batch;
    struct store *store;    /* that it is for */
    struct change_log *log; /* may be NULL */
    uint64_t newest_version;
    size_t row_count; /* changes of rows */
    bool has_content;
    bool wants_sync; /* there is more in it than mendings */
    bool must_sync;  /* a commit asks for it whatever the durability */
    /* Private. */
    struct commit **slots; /* the first commit of a row; NULL: free */
    size_t slot_count;     /* a power of two */
    struct commit **heads; /* the same commits in the order they came */
    size_t head_count;
    size_t head_capacity;
    bytes *operands;
    size_t operand_capacity;
    struct buffer key;
    struct buffer value;
    /* For commit_events.c: events that are not in `store_batch` yet, and what an `extend` wrote. */
    struct buffer events;
    struct event_writer writer;
    uint64_t events_from; /* the sequence of the first of them; 0: there is none */
    struct store_batch *aside;
};

status commit_batch_init(struct commit_batch *batch, struct store *store, struct change_log *log);
void commit_batch_free(struct commit_batch *batch);
void commit_batch_clear(struct commit_batch *batch);
/* Passes over commits whose result is not OK, and sets the result of one that cannot be added: with
 * all its rows. */
void commit_batch_add(struct commit_batch *batch, struct commit *commit);
void commit_batch_finish(struct commit_batch *batch);

/* --- commit_events.c: what the change log gets; all of it does nothing without one --- */

status commit_events_init(struct commit_batch *batch);
void commit_events_free(struct commit_batch *batch);
/* Before the first commit is added. */
void commit_events_begin(struct commit_batch *batch);
/* The commit's event. False without memory: nothing of it was added, and it must be refused. */
bool commit_events_add(struct commit_batch *batch, struct commit *commit);
/* What the commit's `extend` writes, into the batch, and its event. False as above. */
bool commit_events_extend(struct commit_batch *batch, struct commit *commit);
/* After the last commit. */
void commit_events_end(struct commit_batch *batch);
/* After the batch was written, or was not. */
void commit_events_written(struct commit_batch *batch, bool is_written);

#endif
