/* Transactions: what they have read, until they end.
 *
 * An optimistic one reads as of one moment, that of its beginning, and holds no locks. At its
 * commit everything that it has read must still be as it was then. A pessimistic one shares what it
 * reads (range_locks.h), and reads as of whatever moment it has it: no other changes that until it
 * ends. So all that commit are as if they had come one after the other. One that only reads does so
 * as of one moment, in either mode, without locks. They are forgotten at a restart. */
#ifndef TRESTLE_DATASTORE_COMMIT_TRANSACTION_H
#define TRESTLE_DATASTORE_COMMIT_TRANSACTION_H

#include "base/clock.h"
#include "datastore/commit/range_locks.h"
#include "datastore/model/key.h"

#include <pthread.h>

/* How long one may live, and how long it may be left alone. */
#define DS_TRANSACTION_US (INT64_C(270) * 1000000)
#define DS_IDLE_US        (INT64_C(60) * 1000000)

enum { DS_TRANSACTION_ID_SIZE = 24 };

struct ds_transactions;
struct ds_usage;

struct ds_transaction {
    uint8_t id[DS_TRANSACTION_ID_SIZE];
    char *project; /* its own copies */
    char *database;
    bool is_read_only;
    bool is_pessimistic; /* never of one that only reads */
    bool is_aborted;     /* it had to give way: it can only be rolled back */
    int64_t at_us;       /* of its beginning: the moment it reads as of, unless it is pessimistic */
    struct vector ranges; /* of struct ds_read_range: what was read, and is to be as it was */
    struct ds_locker locker;
    struct arena *arena;
    /* Private. */
    struct ds_transaction *next;
    int64_t begun_us;    /* clock_steady_us */
    int64_t left_us;     /* when it was given back last */
    int64_t empty_bytes; /* of the arena, before anything was read */
    int64_t charged;     /* and those that have come to them */
    bool is_taken;
};

/* `locks`: those of pessimistic transactions; NULL: transactions are optimistic. `metrics` and
 * `usage` may be NULL. `most_bytes`: what all of them have read may take so much memory
 * (ds_transaction_charge).
 */
status ds_transactions_create(struct clock *clock, struct metrics *metrics,
                              struct ds_range_locks *locks, struct ds_usage *usage,
                              int64_t most_bytes, struct ds_transactions **out);
void ds_transactions_destroy(struct ds_transactions *transactions); /* NULL is fine */

struct ds_beginning {
    const struct ds_database *database;
    bool is_read_only;
    int64_t at_us;
    bytes previous; /* the id of the transaction that it repeats, whose age it gets; or empty */
};

/* It is taken by the caller. RESOURCE_EXHAUSTED for one too many. */
status ds_transaction_begin(struct ds_transactions *transactions,
                            const struct ds_beginning *beginning, struct ds_transaction **out);

/* The age of what is no transaction: it is younger than all of them. */
uint64_t ds_transactions_age(struct ds_transactions *transactions);

/* Takes it: one request uses a transaction at a time, others wait. INVALID_ARGUMENT if there is
 * none of that id in the database, or no longer. */
status ds_transaction_take(struct ds_transactions *transactions, bytes id,
                           const struct ds_database *database, struct ds_transaction **out);
void ds_transaction_give_back(struct ds_transactions *transactions,
                              struct ds_transaction *transaction);

/* It is taken, and gives way: its locks are free at once. */
void ds_transaction_abort(struct ds_transactions *transactions, struct ds_transaction *transaction);
/* ABORTED if it has given way. */
status ds_transaction_check(const struct ds_transaction *transaction);

/* Forgets one that is taken, with its locks: it was committed, or rolled back. */
void ds_transaction_end(struct ds_transactions *transactions, struct ds_transaction *transaction);

/* Forgets the one of that id. Clients roll back what they could not commit, whether or not that has
 * ended it: OK if there is none, INVALID_ARGUMENT only if that is no id. */
status ds_transaction_roll_back(struct ds_transactions *transactions, bytes id,
                                const struct ds_database *database);

/* Calls `visit` for each of the database that may write, that was not used since `until_us`
 * (clock_steady_us) and that has not ended: its client may have left it. Under a lock: it should
 * only look. */
void ds_transactions_visit_left(
    struct ds_transactions *transactions, const struct ds_database *database, int64_t until_us,
    void (*visit)(void *context, const struct ds_transaction *transaction), void *context);

/* Notes that the range was read. It is taken. RESOURCE_EXHAUSTED beyond its memory. */
status ds_transaction_note(struct ds_transaction *transaction, bytes from, bytes to);

/* Charges the transaction: what it has noted, or shared, since the last time counts towards the
 * memory of all. Beyond that it gives way, so that its client tries again later: ABORTED, and what
 * it has read is forgotten. It is taken. */
status ds_transaction_charge(struct ds_transactions *transactions,
                             struct ds_transaction *transaction);

#endif
