/* The commit queue's insides, for its files; how commits become one store batch. */
#ifndef TRESTLE_TABLET_COMMIT_PRIVATE_H
#define TRESTLE_TABLET_COMMIT_PRIVATE_H

#include "tablet/commit_observer.h"

/* As commit_submit, without its checks: also when the queue is full, or rows are out of service. */
status commit_submit_beyond(struct commit_queue *queue, struct commit *commit);
struct store *commit_queue_store(const struct commit_queue *queue);

/* Whether it has what its kind has, and nothing else. */
bool commit_is_well_formed(const struct commit *commit);

/* Whether its rows are in this store; for DCHECKs. */
bool commit_is_of_store(const struct commit *commit, struct store *store);

/* DATA_LOSS for a change that would build on rows that are out of service. */
status commit_check_in_service(const struct commit *commit);

/* Bytes by which the queue is bounded: what the commit will put into a batch, roughly. */
size_t commit_size(const struct commit *commit);

/* What is to be posted, loop by loop: each is woken once for all its commits of a batch. */
enum { COMMIT_LOOPS_AT_ONCE = 32 }; /* beyond, a loop is woken once a commit */

struct commit_posts {
    struct {
        struct loop *loop;
        struct list tasks;
    } loops[COMMIT_LOOPS_AT_ONCE];
    size_t count;
};

void commit_posts_add(struct commit_posts *posts, struct commit *commit);
void commit_posts_send(struct commit_posts *posts);

/* A ceiling that lasts for a while. */
static inline uint64_t ceiling_above(uint64_t number)
{
    return number + version_at(COMMIT_CEILING_SLACK_US);
}

/* From this version on they name the cluster that gave them: commit_read_clusters_from. */
void commit_put_clusters_from(struct store_batch *batch, struct keyspace *catalog,
                              uint64_t version);

/* A batch being filled. Changes of one row that come together are folded into one operand: a row
 * that many clients add to would otherwise pile up operands, which each read pays for. They are
 * found by a hash table of the rows in the batch. The order of changes is kept row by row; between
 * rows it does not matter, except around a commit with `extend`, which may touch any key: what was
 * gathered is written out before it. */
struct commit_batch {
    struct store_batch *store_batch;
    struct store *store; /* that it is for */
    const struct commit_observer *observers;
    size_t observer_count;
    const _Atomic(uint64_t) *tombstones_from; /* as in commit_options; set after the init */
    uint64_t newest_version;
    uint64_t newest_sequence;
    size_t row_count; /* changes of rows */
    bool has_content;
    bool wants_sync; /* there is more in it than rewrites and commits of views */
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
    struct store_batch *aside; /* what an `extend` wrote, for observers; NULL if none sees it */
};

/* Observers outlive the batch. */
status commit_batch_init(struct commit_batch *batch, struct store *store,
                         const struct commit_observer *observers, size_t observer_count);
void commit_batch_free(struct commit_batch *batch);
void commit_batch_clear(struct commit_batch *batch);
/* Passes over commits whose result is not OK, and sets the result of one that cannot be added: with
 * all its rows. */
void commit_batch_add(struct commit_batch *batch, struct commit *commit);
void commit_batch_finish(struct commit_batch *batch);

/* For observers: after the last commit was added and the batch finished; after it was written, or
 * was not; a commit was applied. */
void commit_batch_end(struct commit_batch *batch);
void commit_batch_tell_written(struct commit_batch *batch, bool is_written);
void commit_batch_tell_applied(const struct commit_batch *batch, const struct commit *commit);

#endif
