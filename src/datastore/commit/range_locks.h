/* Locks of rows, and of ranges of rows, which pessimistic transactions hold.
 *
 * A *locker* is a transaction, or a commit without one. It *shares* ranges that it reads, and
 * *claims* rows that it writes. A row that is claimed is in no range that another shares, and is
 * claimed by no other. So what a transaction has shared stays as it is, until it ends.
 *
 * A locker that cannot have what it wants waits, two seconds at most; a claim before anything of it
 * is drawn or written. Lockers never wait in a circle: when one would come to be, its youngest
 * member is ABORTED. A reader does not pass an older commit that waits. Of those that wait at a
 * time there are fewer than threads for requests, so that those that hold locks come to their end:
 * the youngest of too many is ABORTED, too. A transaction that begins again has the age of the one
 * before, and so becomes the oldest in time.
 *
 * Lockers stand in one list, which is walked under one lock: what is held is little, by few. */
#ifndef TRESTLE_DATASTORE_COMMIT_RANGE_LOCKS_H
#define TRESTLE_DATASTORE_COMMIT_RANGE_LOCKS_H

#include "base/clock.h"
#include "base/metrics.h"
#include "base/vector.h"

#include <stdatomic.h>

struct grpc_call;
struct ds_range_locks;

struct ds_read_range {
    bytes from; /* row keys */
    bytes to;   /* exclusive; empty: no bound */
};

struct ds_claim {
    const bytes *rows; /* rising */
    size_t count;
};

enum { DS_MOST_CLAIMS = 2 };

/* A locker, its owner's; used by one thread at a time. All zeroes except the first four is one that
 * holds nothing. */
struct ds_locker {
    const void *database; /* lockers of different ones do not meet */
    uint64_t age;         /* the lower, the older */
    struct arena *arena;  /* the owner's, for what is shared */
    bool is_apart;        /* it waits on no thread for requests: it is not among those of whom
                           * there may be too many */
    /* When its locks expire, by clock_steady_us: see ds_locker_keep. */
    _Atomic int64_t until_us;
    /* Private. */
    bool is_listed;
    bool is_dropped;
    bool is_waiting;
    struct ds_locker *next;
    struct vector shared; /* of struct ds_read_range */
    struct ds_claim claims[DS_MOST_CLAIMS];
    size_t claim_count;
    const struct ds_wanted *wanted; /* NULL: nothing */
    uint64_t walk;                  /* the last that came by */
};

/* At most `most_waiting` wait at a time. `metrics` may be NULL. */
status ds_range_locks_create(struct clock *clock, struct metrics *metrics, unsigned most_waiting,
                             struct ds_range_locks **out);
void ds_range_locks_destroy(struct ds_range_locks *locks); /* nothing is held; NULL is fine */

/* Shares all of the ranges, or none more than before. Once it returns, the ranges hold what is
 * applied. ABORTED, CANCELLED (of `call`, which may be NULL), RESOURCE_EXHAUSTED beyond the arena's
 * limit. */
status ds_range_locks_share(struct ds_range_locks *locks, struct ds_locker *locker,
                            const struct ds_read_range *ranges, size_t count,
                            const struct grpc_call *call);

/* Claims all of the rows, or none; at most DS_MOST_CLAIMS times. They are the caller's until the
 * locker releases them. */
status ds_range_locks_claim(struct ds_range_locks *locks, struct ds_locker *locker,
                            struct ds_claim claim, const struct grpc_call *call);

/* Everything that it holds. */
void ds_range_locks_release(struct ds_range_locks *locks, struct ds_locker *locker);

/* ABORTED, in the words for a transaction that has to give way. */
status ds_contended(void);

/* --- expiry --- */

/* Its locks are its own, until ds_locker_leave. False if they have expired, by `now_us`: others may
 * have them then. */
bool ds_locker_keep(struct ds_locker *locker, int64_t now_us);
void ds_locker_leave(struct ds_locker *locker, int64_t until_us);

#endif
