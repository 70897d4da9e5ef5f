/* Events (event.h) applied to a store that nothing else writes to: the way back from an archive.
 * Changes of rows go into the store as commits do (commit_batch.c), with the versions that they
 * had; changes of records as they were.
 *
 * Invariants
 *  1. Events come in their order, all later than what the store has: what it has then is what the
 *     store had that wrote them, up to the last that was applied.
 *  2. A replay that ends early leaves a prefix of the events, at the end of some batch. So it works
 *     on a directory that becomes one when it is done.
 *
 * One thread; all of it blocks. */
#ifndef TRESTLE_TABLET_REPLAY_H
#define TRESTLE_TABLET_REPLAY_H

#include "base/clock.h"
#include "store/store.h"
#include "tablet/event.h"

struct replayer;

struct replay_options {
    struct store *store;
    struct keyspace *catalog;
    struct clock *clock;
    /* Events up to the one sequence, and after the other, are left out. */
    uint64_t after;
    uint64_t until;
    /* Rows of these alone, by rising id, and all of the catalog. NULL: of all. */
    const uint64_t *keyspaces;
    size_t keyspace_count;
    /* Makes a keyspace, which is not there, of the files that the change names. NULL: none is made.
     */
    status (*take_in)(void *context, const struct event_change *change);
    void *context;
};

status replayer_create(const struct replay_options *options, struct replayer **out);
void replayer_destroy(struct replayer *replayer); /* NULL is fine */

/* The entry stays as it is until the next replayer_flush. DATA_LOSS if it does not parse, or names
 * a keyspace that is not there. */
status replayer_apply(struct replayer *replayer, bytes entry);
/* Writes what was applied; not synced. */
status replayer_flush(struct replayer *replayer);
/* The same, synced; sequences begin at `sequence` at least, versions above all that were applied,
 * and the store has no change log. */
status replayer_finish(struct replayer *replayer, uint64_t sequence);

struct replay_counts {
    uint64_t events;
    uint64_t newest;         /* the sequence of the last that was applied; 0: none was */
    uint64_t newest_version; /* no version in the store is above it */
};
struct replay_counts replayer_counts(const struct replayer *replayer);

#endif
