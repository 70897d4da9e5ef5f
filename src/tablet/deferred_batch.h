/* Changes of a keyspace noted down on one thread and added to a store batch on another.
 *
 * Row maintenance (row_maintenance.h) works out on a pool thread what is to be written, but only
 * the commit queue writes, and only there is the version known. */
#ifndef TRESTLE_TABLET_DEFERRED_BATCH_H
#define TRESTLE_TABLET_DEFERRED_BATCH_H

#include "store/store.h"

/* All zeroes is empty. Failures show in changes.failed. */
struct deferred_batch {
    struct buffer changes; /* each: what, size of key, key, size of value, value */
};

void deferred_put(struct deferred_batch *batch, bytes key, bytes value);
void deferred_merge(struct deferred_batch *batch, bytes key, bytes operand);
void deferred_delete(struct deferred_batch *batch, bytes key);
void deferred_delete_range(struct deferred_batch *batch, bytes from, bytes to);
void deferred_batch_free(struct deferred_batch *batch);

void deferred_batch_replay(const struct deferred_batch *batch, struct keyspace *keyspace,
                           struct store_batch *out);

#endif
