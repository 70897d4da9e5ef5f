/* The backfill makes a composite index's rows of the entities that are there, while others write,
 * and removes them.
 *
 * They are made in chunks, in the order of the kind's index. Of a chunk the entities are locked and
 * read, as a commit does it, by what commits of the mode take (entity_locks.h; range_locks.h,
 * shared: no commit may change them, but readers need not wait), and their rows written at a moment
 * of its own, together with how far it is: so it can go on from there. Writers keep the rows of
 * what they write themselves. */
#ifndef TRESTLE_DATASTORE_INDEX_INDEX_BACKFILL_H
#define TRESTLE_DATASTORE_INDEX_INDEX_BACKFILL_H

#include "control/operations.h"
#include "datastore/index/indexes.h"

struct ds_backfill {
    struct datastore *datastore;
    struct ds_open_database *open;
    Datastore__CompositeIndex *definition; /* in the present set, CREATING; its position advances */
    struct operation *operation;           /* which may be cancelled */
    void (*progress)(void *context);       /* after each chunk */
    void *context;
};

/* INVALID_ARGUMENT if an entity has too many entries with it (index_rows.h); CANCELLED. Rows that
 * have been made then stay. */
status ds_backfill(struct ds_backfill *backfill);

/* Removes all rows of the index, which is not kept or read any more. CANCELLED when the server
 * stops: some may be left. */
status ds_index_rows_remove(struct ds_open_database *open, uint64_t index,
                            const struct operation *operation);

#endif
