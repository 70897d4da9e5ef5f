/* A reading is what a request reads from: ReadOptions become a snapshot. */
#ifndef TRESTLE_DATASTORE_COMMIT_READING_H
#define TRESTLE_DATASTORE_COMMIT_READING_H

#include "datastore/commit/range_locks.h"
#include "datastore/commit/snapshot.h"
#include "datastore/ds_call.h"
#include "google/datastore/v1/datastore.pb-c.h"

struct ds_index_set;
struct ds_open_database;
struct ds_transaction;

struct ds_reading {
    struct ds_snapshot snapshot;
    bytes new_transaction;              /* the id of one that the options asked for; else empty */
    int64_t read_time_us;               /* of the snapshot, for the answer */
    struct ds_transaction *transaction; /* taken; NULL: none */
    /* Private. */
    struct ds_call *call;
    struct ds_open_database *open;      /* NULL: it was never written to */
    const struct ds_index_set *indexes; /* taken; NULL: not */
    struct vector noted;                /* of struct ds_read_range, that are yet to be shared */
    bool is_of_a_moment; /* that was asked for, or of an optimistic transaction; else the present */
    unsigned times;      /* that it was read in vain */
};

/* `options` may be NULL. INVALID_ARGUMENT, FAILED_PRECONDITION for a time that is too old. On
 * failure there is nothing to end. */
status ds_read_begin(struct ds_call *call, const Ds__ReadOptions *options, struct ds_reading *out);
void ds_read_end(struct ds_reading *reading);

/* The composite indexes that a query can use: reading->snapshot.indexes, until the reading ends, or
 * is done again. */
void ds_read_indexes(struct ds_reading *reading);

/* Reads of a transaction are noted, so that they are still so when it commits; there may be none. A
 * caller that knows the ranges of rows announces them before it reads; the snapshot may be a later
 * one then. */
status ds_reading_announce(struct ds_reading *reading, const struct ds_read_range *ranges,
                           size_t count);

/* Others note every range that they have looked at: a pessimistic transaction has what it read to
 * itself only at the end, and it may have changed meanwhile. All ask at the end whether they have
 * to read again, also since what was at the moment may have gone, if the clock was set ahead. `*s`
 * is what came of reading; if that cannot be relied on, and cannot be read again, it becomes
 * ABORTED, or FAILED_PRECONDITION for a moment that is too old.
 *
 *     do
 *         s = read(&reading);
 *     while (ds_reading_again(&reading, &s)); */
status ds_reading_note_range(struct ds_reading *reading, bytes from, bytes to);
bool ds_reading_again(struct ds_reading *reading, status *s);

/* Begins a transaction, which is taken. */
struct ds_transaction;
status ds_begin(struct ds_call *call, const Ds__TransactionOptions *options,
                struct ds_transaction **out);

#endif
