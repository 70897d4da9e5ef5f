/* What commits are about to write: the keys of their rows, from before they draw their moments
 * until they are applied. Whoever has read ranges of rows, and validates them, learns from it what
 * he cannot see in the table yet.
 *
 * Much may have been read, and looking whether it has changed takes long, so nobody does it with a
 * moment drawn, which would hold up all that come later. He *watches* the ranges first; then he
 * looks at the table, which has all that had been applied before; then he draws his moment, and
 * asks the watch whether anybody has written a row of the ranges since, or is about to, before that
 * moment. That asks memory alone.
 *
 * Commits under way are few, and who validates fewer, so they stand in lists. Any thread. */
#ifndef TRESTLE_DATASTORE_COMMIT_IN_FLIGHT_H
#define TRESTLE_DATASTORE_COMMIT_IN_FLIGHT_H

#include "base/bytes.h"
#include "datastore/commit/range_locks.h"
#include "datastore/commit/sequencer.h"

struct ds_in_flight {
    pthread_mutex_t lock;
    struct ds_flight *first;
    struct ds_watch *first_watch;
};

/* Of one commit: its owner's, with the keys, as long as it is there. All zeroes is one that is not.
 */
struct ds_flight {
    const bytes *keys; /* in any order */
    size_t count;
    const struct ds_turn *moment; /* all zeroes as long as it is not drawn */
    /* Private. */
    atomic_bool has_failed;
    struct ds_flight *next;
    bool is_there;
};

void ds_in_flight_init(struct ds_in_flight *in_flight);
void ds_in_flight_free(struct ds_in_flight *in_flight); /* nothing is there */

void ds_in_flight_add(struct ds_in_flight *in_flight, struct ds_flight *flight);

/* It writes nothing after all: before its moment is given up. */
void ds_flight_fail(struct ds_flight *flight);

/* Its moment is past, or was never drawn. */
void ds_in_flight_remove(struct ds_in_flight *in_flight, struct ds_flight *flight);

/* Of one who validates: his, with the ranges, as long as it is there. All zeroes is one that is
 * not. */
struct ds_watch {
    const struct ds_read_range *ranges; /* by `from`; none overlaps the next */
    size_t count;
    int64_t after_us; /* commits up to this moment had been applied when the ranges were read */
    /* Private. */
    bool is_met;
    struct ds_watch *next;
    bool is_there;
};

void ds_in_flight_watch(struct ds_in_flight *in_flight, struct ds_watch *watch);
void ds_in_flight_unwatch(struct ds_in_flight *in_flight, struct ds_watch *watch);

/* Whether a commit of a moment after `after_us` and before this one, which is drawn, has written a
 * row of the ranges since the watch began, or is about to. */
bool ds_watch_is_met(struct ds_in_flight *in_flight, const struct ds_watch *watch,
                     struct ds_sequencer *sequencer, const struct ds_turn *moment);

#endif
