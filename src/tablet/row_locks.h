/* A row lock gives the right to change a row. A caller that must wait is called back; a thread
 * blocks only in row_lock_wait, row_locks_acquire_many and row_locks_acquire_all.
 *
 * A lock is a stripe: rows share one when their hashes do. Every change of a row holds its stripe
 * while it enters the commit queue; what reads before it writes (check-and-mutate,
 * read-modify-write, overflows, replacement of hot rows) holds it from the read until its commit is
 * acknowledged. Stripes are first come, first served. (A reader without the lock may still write
 * what follows from its read if it finds, under the lock, that the row was not changed meanwhile:
 * the stripe's sequence says so. See cluster/row_rewrite.h.)
 *
 * No deadlock: who waits for a stripe holds none, save those that take several, all of them at once
 * and in rising order (row_locks_acquire_many, row_locks_acquire_all). Several writes that enter
 * the commit queue together (rows_write_all) hold a stripe each, but leave a waiter in line, and
 * give theirs back, where one is held. */
#ifndef TRESTLE_TABLET_ROW_LOCKS_H
#define TRESTLE_TABLET_ROW_LOCKS_H

#include "base/list.h"
#include "base/status.h"

struct row_locks;

struct row_lock_waiter {
    struct link link;
    /* Called with the stripe held, on the thread that released it: post to a loop if there is more
     * to do than a few instructions. */
    void (*granted)(struct row_lock_waiter *waiter);
};

status row_locks_create(struct row_locks **out);
void row_locks_destroy(struct row_locks *locks); /* nothing held */

uint64_t row_lock_hash(uint64_t keyspace_id, bytes row_key);

/* True: held, `granted` is not called. False: queued. */
bool row_lock_acquire(struct row_locks *locks, uint64_t hash, struct row_lock_waiter *waiter);
/* Takes it if it is free; does not wait, and does not queue. */
bool row_lock_try(struct row_locks *locks, uint64_t hash);
/* Waits for it: for maintenance alone, which no holder of a stripe waits for. */
void row_lock_wait(struct row_locks *locks, uint64_t hash);
void row_lock_release(struct row_locks *locks, uint64_t hash);

/* A stripe remembers the newest sequence that entered the commit queue under it, so that a reader
 * under the lock knows whether it has to wait for commits before it. Call with the stripe held. */
void row_lock_note_sequence(struct row_locks *locks, uint64_t hash, uint64_t sequence);
uint64_t row_lock_sequence(struct row_locks *locks, uint64_t hash);

/* Takes the stripes of several rows, each once, waiting as long as that needs: for changes of them
 * all at once. Only on threads that no holder of a stripe waits for. Leaves in place of the hashes
 * one of each stripe, `*count` of them, for the release. */
void row_locks_acquire_many(struct row_locks *locks, uint64_t *hashes, size_t *count);
/* `sequence`: the newest that entered the queue meanwhile. */
void row_locks_release_many(struct row_locks *locks, const uint64_t *hashes, size_t count,
                            uint64_t sequence);

/* Takes every stripe, waiting as long as that needs: for who deletes ranges, and schema barriers.
 * Pool threads only. */
void row_locks_acquire_all(struct row_locks *locks);
/* `sequence`: the newest that entered the queue meanwhile. */
void row_locks_release_all(struct row_locks *locks, uint64_t sequence);

/* Whether the row's lock is held; whether all are, or are being taken: for DCHECKs. */
bool row_lock_is_held(struct row_locks *locks, uint64_t hash);
bool row_locks_are_all_held(struct row_locks *locks);

#endif
