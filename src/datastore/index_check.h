/* Whether the indexes of a database say what its entities say: for `trestle doctor`.
 *
 * Every entity's index rows are made anew and held against those that are there, with the types in
 * them. All rows are read once, in their order; what the entities make and what is there are both
 * added up, as sums of fingerprints, in which the order is no matter. Only if the sums of a kind of
 * rows differ, a second pass looks for each row, and names those that are missing, wrong or too
 * many. So it takes the memory of an entity, and reads a sound database from end to end once.
 *
 * Blocks. Nobody may write to the database meanwhile. */
#ifndef TRESTLE_DATASTORE_INDEX_CHECK_H
#define TRESTLE_DATASTORE_INDEX_CHECK_H

#include "row/schema.h"
#include "store/store.h"

struct ds_index_check {
    /* set by the caller */
    struct store *store;
    struct keyspace *keyspace; /* of the database's table */
    const struct schema *schema;
    int64_t now_us; /* since 1970 */
    void *context;
    /* Called for each row that is damaged; an index row that is missing has its key, too. */
    void (*report)(void *context, bytes row_key, const char *what);
    /* what was seen */
    uint64_t entities;
    uint64_t index_rows;
};

/* OK also if there is damage. Fails if rows cannot be read. */
status ds_index_check_run(struct ds_index_check *check);

/* Whether a table of this name is a database of Datastore's. */
bool ds_is_database_table(const char *table_name);

#endif
