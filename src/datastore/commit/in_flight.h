/* Commits in flight: the keys of the rows that they are about to write, from before they draw their
 * moments until they are applied. A commit that has read ranges of rows, and validates them, learns
 * from these what it cannot see in the table yet.
 *
 * Much may have been read, and looking whether it has changed takes long, so no commit does it with
 * a moment drawn, which would hold up all that come later. It *watches* the ranges first; then it
 * looks at the table, which has all that had been applied before; then it draws its moment, and
 * asks the watch whether another has written a row of the ranges since, or is about to, before that
 * moment. That asks memory alone.
 *
 * Commits under way are few, and those that validate fewer, so they stand in lists. Any thread. */
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

/* The flight of one commit, which owns it and the keys as long as it is there. All zeroes is one
 * that is not there. */
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

/* Fails a flight: its commit writes nothing after all. Before its moment is given up. */
void ds_flight_fail(struct ds_flight *flight);

/* Removes a flight, whose moment is past, or was never drawn. */
void ds_in_flight_remove(struct ds_in_flight *in_flight, struct ds_flight *flight);

/* The watch of a commit that validates, which owns it and the ranges as long as it is there. All
 * zeroes is one that is not there. */
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
