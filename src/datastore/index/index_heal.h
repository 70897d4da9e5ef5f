/* Makes right what in a database follows from rows that are given up, while it is served: what a
 * repair of its table calls (table_repair_options.repair) before anything of them is in service.
 *
 *     index rows whose entities are gone, or are others now (a backup had them)    removed
 *     index rows of entities that are there                                         written
 *     definitions of composite indexes, as far as the server has them in memory     written
 *     the counter of automatic ids, beyond all that entities have; marks of ids     written
 *
 * What is given up is deleted, or filled, and closed: a commit that would alter a row of it is
 * refused as a whole. So of an entity that lies there, or that has index rows there, nothing of
 * that changes meanwhile, and no client is locked out of the rest.
 *
 * Past versions of the last hour get their index rows, too: of entities that are there still, or
 * that were deleted and are not given up.
 *
 * It reads all entities, and if entities are given up, or a backup had something, all index rows,
 * once; it takes the memory of
 * one and of a thousand rows. Whatever ends it, it is done again, from its beginning. */
#ifndef TRESTLE_DATASTORE_INDEX_INDEX_HEAL_H
#define TRESTLE_DATASTORE_INDEX_INDEX_HEAL_H

#include "datastore/database.h"

struct ds_heal {
    /* set by the caller */
    struct table *table;                /* a database's */
    const struct ds_database *database; /* its name */
    struct ds_open_database *open;      /* NULL: it is not open, nor can be opened meanwhile */
    /* Rows that are given up are filled from a backup: its index rows are of entities as they were
     * then. */
    bool is_filled;
    bool (*goes_on)(const void *context); /* false: CANCELLED. NULL: always */
    const void *context;
    /* what was done */
    uint64_t removed; /* index rows */
    uint64_t written; /* index rows, whether or not they were there */
};

/* For `repair`, on its thread, with a struct ds_heal as the context. INTERNAL if an entity, or an
 * index row, is none of ours. Blocks. */
status ds_heal_run(void *heal, const struct given_up *ranges, size_t count);

/* Sets `heal` for that table, except is_filled and goes_on, and opens the database if it can be
 * opened. Without `datastore` it is not open: the server is stopped. The strings are the arena's.
 */
status ds_heal_open(struct datastore *datastore, struct table *table, struct arena *arena,
                    struct ds_heal *heal);

/* Appends to the words of such a range what that comes to. */
void ds_heal_describe(const struct lost_rows *lost, struct buffer *out);

#endif
