/* What a request reads from: ReadOptions become a snapshot. */
#ifndef TRESTLE_DATASTORE_READING_H
#define TRESTLE_DATASTORE_READING_H

#include "datastore/ds_call.h"
#include "datastore/snapshot.h"
#include "google/datastore/v1/datastore.pb-c.h"

struct ds_index_set;
struct ds_open_database;
struct ds_transaction;

struct ds_reading {
    struct ds_snapshot snapshot;
    bytes new_transaction; /* the id of one that the options asked for; else empty */
    int64_t read_time_us;  /* of the snapshot, for the answer */
    /* Private. */
    struct datastore *datastore;
    struct ds_open_database *open;      /* NULL: nobody has written to it */
    const struct ds_index_set *indexes; /* taken; NULL: not */
    struct ds_transaction *transaction; /* taken; NULL: none */
};

/* `options` may be NULL. INVALID_ARGUMENT, FAILED_PRECONDITION for a time that is too old. On
 * failure there is nothing to end. */
status ds_read_begin(struct ds_call *call, const Ds__ReadOptions *options, struct ds_reading *out);
void ds_read_end(struct ds_reading *reading);

/* The composite indexes that a query can use: reading->snapshot.indexes, until the reading ends. */
void ds_read_indexes(struct ds_reading *reading);

/* Every range of rows that was looked at, for the transaction, if there is one. */
status ds_reading_note_range(struct ds_reading *reading, bytes from, bytes to);

/* Begins a transaction, which is taken. */
struct ds_transaction;
status ds_begin(struct ds_call *call, const Ds__TransactionOptions *options,
                struct ds_transaction **out);

#endif
