/* Whether the indexes of a database say what its entities say: for `trestle doctor`, and for
 * `trestle repair` (index_repair.h).
 *
 * Every entity's index rows are made again and held against those that are there, with the types in
 * them. All rows are read once, in their order; what the entities make and what is there are both
 * added up, as sums of fingerprints, in which the order is no matter. Only if the sums of a kind of
 * rows differ, a second pass looks for each row, and names those that are missing, wrong or too
 * many. So it takes the memory of an entity, and reads a sound database from end to end once.
 *
 * Blocks. The database must not be written to meanwhile. */
#ifndef TRESTLE_DATASTORE_INDEX_INDEX_CHECK_H
#define TRESTLE_DATASTORE_INDEX_INDEX_CHECK_H

#include "row/schema.h"
#include "store/store.h"

/* Kinds of damaged rows, by what becomes of them if their index is made again. */
enum ds_index_damage_kind {
    DS_DAMAGE_OTHER,    /* nothing: what is wrong is not of an index, or may not be */
    DS_DAMAGE_TOO_MANY, /* it ends: it is there, and no entity has it */
    DS_DAMAGE_MISSING,  /* it is written: an entity has it, and it is not there */
    DS_DAMAGE_TYPES,    /* it is corrected: it holds other types than its entity has */
    DS_DAMAGE_KINDS,
};

/* The slices are the check's, until `report` returns. */
struct ds_index_damage {
    enum ds_index_damage_kind kind;
    bytes row_key;
    const char *what;
    bytes is;    /* what the row should hold; of those that are missing or have wrong types */
    bytes found; /* what it holds; of those that are too many or have wrong types */
};

struct ds_index_check {
    /* set by the caller */
    struct store *store;
    struct keyspace *keyspace; /* of the database's table */
    const struct schema *schema;
    int64_t now_us; /* since 1970 */
    void *context;
    /* Called once for each row that is damaged; what is not OK ends the check. It may write rows of
     * what is repaired (index_repair.h): nothing is reported that it has put right. */
    status (*report)(void *context, const struct ds_index_damage *damage);
    /* what was seen */
    int64_t newest_us; /* the latest moment of the rows that are; known after they are all read */
    uint64_t entities;
    uint64_t index_rows;
};

/* OK also if there is damage. Fails if rows cannot be read. */
status ds_index_check_run(struct ds_index_check *check);

/* Whether a table of this name is a database of Datastore's. */
bool ds_is_database_table(const char *table_name);

#endif
