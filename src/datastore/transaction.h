/* Transactions: what they have read, until they end.
 *
 * A transaction reads as of one moment, that of its beginning, and holds no locks. At its commit
 * everything that it has read must still be as it was then (optimistic concurrency); so all that
 * commit are as if they had come one after the other. It is forgotten at a restart. */
#ifndef TRESTLE_DATASTORE_TRANSACTION_H
#define TRESTLE_DATASTORE_TRANSACTION_H

#include "base/clock.h"
#include "datastore/key.h"
#include "sql/vector.h"

#include <pthread.h>

/* How long one may live, and how long it may be left alone. */
#define DS_TRANSACTION_US (INT64_C(270) * 1000000)
#define DS_IDLE_US        (INT64_C(60) * 1000000)

enum { DS_TRANSACTION_ID_SIZE = 16 };

struct ds_transactions;

struct ds_read_range {
    bytes from; /* row keys */
    bytes to;   /* exclusive; empty: no bound */
};

struct ds_transaction {
    uint8_t id[DS_TRANSACTION_ID_SIZE];
    const char *project; /* its own copies */
    const char *database;
    bool is_read_only;
    int64_t at_us;        /* the moment it reads as of */
    struct vector ranges; /* of struct ds_read_range: what was read; unless it is read-only */
    struct arena *arena;
    /* Private. */
    struct ds_transaction *next;
    int64_t begun_us; /* clock_steady_us */
    int64_t used_us;
    bool is_taken;
};

status ds_transactions_create(struct clock *clock, struct ds_transactions **out);
void ds_transactions_destroy(struct ds_transactions *transactions); /* NULL is fine */

/* It is taken by the caller. RESOURCE_EXHAUSTED for one too many. */
status ds_transaction_begin(struct ds_transactions *transactions,
                            const struct ds_database *database, bool is_read_only, int64_t at_us,
                            struct ds_transaction **out);

/* Takes it: one request uses a transaction at a time, others wait. INVALID_ARGUMENT if there is
 * none of that id in the database, or no longer. */
status ds_transaction_take(struct ds_transactions *transactions, bytes id,
                           const struct ds_database *database, struct ds_transaction **out);
void ds_transaction_give_back(struct ds_transactions *transactions,
                              struct ds_transaction *transaction);

/* Forgets one that is taken: it was committed, or rolled back. */
void ds_transaction_end(struct ds_transactions *transactions, struct ds_transaction *transaction);

/* Forgets the one of that id. Clients roll back what they could not commit, whether or not that has
 * ended it: OK if there is none, INVALID_ARGUMENT only if that is no id. */
status ds_transaction_roll_back(struct ds_transactions *transactions, bytes id,
                                const struct ds_database *database);

/* Notes that the range was read. It is taken. RESOURCE_EXHAUSTED beyond its memory. */
status ds_transaction_note(struct ds_transaction *transaction, bytes from, bytes to);

#endif
