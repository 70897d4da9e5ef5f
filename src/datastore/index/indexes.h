/* The composite indexes of a database: which there are, and which are in use.
 *
 * The indexes of a moment are a set, which never changes. A thread that writes entities, or queries
 * them, takes the set of the present and gives it back. A change makes another set the present one;
 * it is complete when no thread uses an older one any more, which *draining* waits for:
 *
 *     CREATING   writers keep its rows. Drained, so that none writes without them; then the rows
 *                of the entities that were there are made
 *     READY      queries use it, those as of `ready_us` or later
 *     DELETING   its rows are not kept or read. Drained, then they are removed, and at last it
 *     ERROR      as DELETING, except that a client is to delete it
 *
 * A commit takes its set before it draws its moment. So a reader of rows of an index that is not in
 * the present set any more, once all moments before its own have ended, may not have seen all
 * (ds_indexes_keeps).
 *
 * Any thread. */
#ifndef TRESTLE_DATASTORE_INDEX_INDEXES_H
#define TRESTLE_DATASTORE_INDEX_INDEXES_H

#include "base/vector.h"
#include "datastore/database.h"
#include "datastore/index/index_definition.h"

struct ds_index_set {
    /* The indexes that writers keep: the ready ones by the time at which they became so, then those
     * that are being made. */
    const struct ds_index *indexes;
    const int64_t *ready_us; /* INT64_MAX: it is being made */
    size_t count;
    Datastore__CompositeIndex **definitions; /* of all there are, by id */
    size_t definition_count;
    /* Private. */
    struct arena *arena;
    struct ds_index_set *next; /* older ones that are in use */
    uint64_t number;           /* of the set: they rise */
    size_t users;
};

/* Reads what the table has. `open` has its table, its moments, and no user yet. */
status ds_indexes_create(struct ds_open_database *open, struct ds_indexes **out);
void ds_indexes_destroy(struct ds_indexes *indexes); /* none is in use; NULL is fine */

const struct ds_index_set *ds_indexes_take(struct ds_indexes *indexes);
void ds_indexes_give_back(struct ds_indexes *indexes, const struct ds_index_set *set);

/* How many of the first of set->indexes a query as of the time can use. */
size_t ds_index_set_ready(const struct ds_index_set *set, int64_t at_us);

/* Whether the index of a composite index's row, or of a prefix of some, is kept at present; true of
 * other rows. */
bool ds_indexes_keeps(struct ds_indexes *indexes, bytes row_key);

/* --- changes --- */

/* From the look at what there is to the change: one at a time. Blocks. */
void ds_indexes_lock(struct ds_indexes *indexes);
void ds_indexes_unlock(struct ds_indexes *indexes);

/* The definition as it is kept, with how far its making is; NULL if there is none. In the arena. */
status ds_indexes_read(struct ds_open_database *open, uint64_t id, struct arena *arena,
                       Datastore__CompositeIndex **out);

/* All that are kept, by id: of Datastore__CompositeIndex *. */
status ds_indexes_list(struct ds_open_database *open, struct arena *arena, struct vector *out);

/* Makes the definition durable, in place of the one of its id, and the set with it the present one.
 * With the lock held. */
status ds_indexes_put(struct datastore *datastore, struct ds_open_database *open,
                      const Datastore__CompositeIndex *definition, struct arena *arena);

/* The same without the one of the id. */
status ds_indexes_remove(struct datastore *datastore, struct ds_open_database *open, uint64_t id,
                         struct arena *arena);

/* The row that holds a definition, to be written with others. */
struct ds_row_write;
status ds_definition_row(const Datastore__CompositeIndex *definition, struct arena *arena,
                         struct ds_row_write *out);

/* Waits until no thread uses a set that is older than the present one. */
void ds_indexes_drain(struct ds_indexes *indexes);

#endif
