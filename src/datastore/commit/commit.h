/* Commits: mutations become rows, all of them or none.
 *
 *  1. Keys and entities are checked; keys without an id get one. One of an optimistic transaction
 *     looks whether what the transaction has read is still so, and watches it (in_flight.h).
 *  2. The entities that are written are locked, or claimed if transactions are pessimistic
 *     (range_locks.h), and read.
 *  3. Each mutation is applied to what the ones before have made of its entity.
 *  4. The rows of indexes that come and go are found, and claimed or announced (in_flight.h); then
 *     the commit draws its moment. One of an optimistic transaction asks its watch whether a commit
 *     before it has changed what was read since, or is about to.
 *  5. All rows enter the commit queue as one group. No thread waits for the disk: when they are
 *     durable, and the commits before are, the call's loop unlocks the entities, ends the
 *     transaction and answers.
 *
 * So commits have an order, that of their moments, and are as if they had come one after the other
 * in it: what a commit has read and written no other changes between its reading and its moment. */
#ifndef TRESTLE_DATASTORE_COMMIT_COMMIT_H
#define TRESTLE_DATASTORE_COMMIT_COMMIT_H

#include "datastore/commit/allocate.h"
#include "datastore/commit/range_locks.h"
#include "datastore/commit/rows_write.h"
#include "datastore/database.h"
#include "datastore/ds_call.h"
#include "google/datastore/v1/datastore.pb-c.h"

struct ds_index_set;
struct ds_transaction;

/* An entity that a commit writes: what it is, and what becomes of it. */
struct ds_written {
    const Ds__Key *key; /* complete */
    bytes row_key;
    const Ds__Entity *old; /* NULL: it is not there */
    bytes old_stored;      /* its serialised form */
    int64_t old_version_us;
    int64_t create_us;     /* 0: it is made by this commit */
    const Ds__Entity *now; /* NULL: it is deleted, or was never there */
    bytes now_stored;      /* its serialised form, when all mutations have been applied */
    bool is_changed;
    bytes record;                  /* of a busy entity: what its row is to have; else empty */
    int last_operation;            /* of the mutation before; 0: none */
    const Ds__Mutation *versioned; /* the last so far that wants it to have a version; NULL */
};

/* The work on one mutation. */
struct ds_work {
    const Ds__Mutation *mutation;
    Ds__Key *key;
    const Ds__Entity *entity; /* normalised; NULL: a delete */
    bytes stored; /* the serialised form of what it makes; without data: not yet known */
    bool has_new_id;
    bool is_conflict;
    struct ds_written *written;
    Ds__Value **transform_results;
    size_t transform_count;
};

/* In the call's arena. */
struct ds_commit {
    struct ds_call *call;
    struct ds_open_database *open;
    struct ds_database database;
    int64_t now_us; /* of the request */
    bool is_transactional;
    struct ds_transaction *transaction; /* taken; NULL: none */
    bool is_own; /* the server's, which waits for it; it may write what clients may not */
    struct ds_work *works;
    size_t work_count;
    struct ds_written *written; /* by row key */
    size_t written_count;
    struct ds_lock *locks;
    size_t lock_count;        /* that are held */
    struct ds_locker *locker; /* the transaction's, or `own_locker`; NULL: nothing is claimed */
    struct ds_locker own_locker;
    const struct ds_index_set *indexes; /* taken before the moment is drawn; NULL: not yet */
    struct vector rows;                 /* of struct ds_row_write */
    struct ds_held_ids held_ids;        /* whose marks are among them */
    struct ds_flight flight;            /* of an optimistic commit: all rows' keys */
    struct ds_watch watch;              /* the same: of what its transaction has read */
    struct ds_rows_writing writing;     /* its moment is the commit's */
    int32_t index_updates;
    struct task finish; /* what is posted to the call's loop when it is past; set by the owner */
};

/* A commit of the server's own, without a transaction. Kinds and names may be reserved; the
 * entities are such as it makes itself, and are not checked otherwise. The request is the arena's.
 * Blocks until it is durable, and in the present. */
status ds_commit_own(struct datastore *datastore, const struct ds_database *database,
                     const Ds__CommitRequest *request, struct arena *arena);

/* The same of a list of Ds__Mutation *, not transactional, if there are any. The list is empty
 * then, and the arena, which has it, as new. */
status ds_commit_mutations(struct datastore *datastore, const struct ds_database *database,
                           struct vector *mutations, struct arena *arena);

/* Tells what it has left of busy entities (recent.h), before it unlocks them (commit_write.c). */
void ds_commit_tell(const struct ds_commit *commit);

/* Step 1 (commit_check.c), for a commit whose database is open. */
status ds_commit_prepare(struct ds_commit *commit, const Ds__CommitRequest *request);

/* Steps 2 and 3 (commit_apply.c). The locks are held afterwards, also on failure. */
status ds_commit_read(struct ds_commit *commit);
status ds_commit_apply(struct ds_commit *commit);
void ds_commit_unlock(struct ds_commit *commit);

/* The part of step 1 that looks at what was read (commit_write.c). ABORTED if it has changed. */
status ds_commit_look_at_reads(struct ds_commit *commit);

/* Step 4 up to the moment, and the rest (commit_write.c). That posts `finish`, whether it succeeds
 * or not (writing.result), maybe before it returns. Of the server's own the moment is to be ended
 * instead. */
status ds_commit_find_rows(struct ds_commit *commit);
void ds_commit_write(struct ds_commit *commit);

#endif
