/* Locks of entities: a commit holds those that it writes from the read of what they are until it is
 * applied, so that each change begins with the one before.
 *
 * A lock is a row key's. A commit that wants several takes them in the order of their keys; one
 * that waits longer than until its deadline is told so. Threads block: they are Datastore's own. */
#ifndef TRESTLE_DATASTORE_COMMIT_ENTITY_LOCKS_H
#define TRESTLE_DATASTORE_COMMIT_ENTITY_LOCKS_H

#include "base/bytes.h"
#include "base/status.h"

struct ds_locks;

/* A lock that is held, or waited for: its owner's. */
struct ds_lock {
    bytes key; /* the owner's, as long as the lock */
    struct ds_lock *next;
};

status ds_locks_create(struct ds_locks **out);
void ds_locks_destroy(struct ds_locks *locks); /* nothing is held; NULL is fine */

/* Takes them all, or none: `keys` rise, and none is there twice. ABORTED after `most_us`. */
status ds_locks_take(struct ds_locks *locks, struct ds_lock *taken, size_t count, int64_t most_us);
void ds_locks_release(struct ds_locks *locks, struct ds_lock *taken, size_t count);

#endif
