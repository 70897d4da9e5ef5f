/* Edits of the catalog, and looks at its records, for all modules that keep some there: catalog.h
 * lists the keys, and whose they are.
 *
 * What the catalog is kept in is seen in cluster/ and below it alone, today a keyspace of a store:
 * above, `struct keyspace` is only passed on. */
#ifndef TRESTLE_CLUSTER_CATALOG_TXN_H
#define TRESTLE_CLUSTER_CATALOG_TXN_H

#include "base/arena.h"
#include "base/status.h"

struct catalog_txn;
struct keyspace;
struct store;
struct store_batch;

/* --- edits --- */

/* Records that are put and deleted together, or none of them. Nothing is written before it is
 * passed to cluster_write_catalog, or to a function of cluster.h that takes a `txn`; it is not to
 * be used again then. One thread at a time. NULL without memory. */
struct catalog_txn *catalog_txn_create(struct keyspace *catalog);
void catalog_txn_destroy(struct catalog_txn *txn); /* NULL is fine */

/* Copy what they are given. No failure shows before the write, which then says so. The value is not
 * empty. */
void catalog_txn_put(struct catalog_txn *txn, bytes key, bytes value);
void catalog_txn_delete(struct catalog_txn *txn, bytes key);

/* Writes it, synced, into a store that no server has open. Blocks. */
status catalog_txn_write_unserved(struct catalog_txn *txn, struct store *store);

/* The batch that is to be written; for cluster/ alone. */
struct store_batch *catalog_txn_batch(struct catalog_txn *txn);

/* --- looks: may wait for the disk --- */

/* Appends the record's value, if there is such a record. */
status catalog_get(struct keyspace *catalog, bytes key, struct buffer *value, bool *is_there);

/* Calls `visit` with each record whose key starts with the prefix, which is not empty, by rising
 * key, until it fails. The bytes are valid during the call; the arena is `visit`'s to use
 * meanwhile. */
status catalog_visit(struct keyspace *catalog, bytes prefix,
                     status (*visit)(void *context, bytes key, bytes value, struct arena *arena),
                     void *context);

#endif
