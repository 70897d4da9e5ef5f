/* What commits are about to write: the keys of their rows, from before they draw their moments
 * until they are applied. Whoever has read a range of rows, and draws a moment, learns from it
 * whether a commit before his will change the range, and need not wait until it has.
 *
 * Commits under way are few, so they stand in a list. Any thread. */
#ifndef TRESTLE_DATASTORE_IN_FLIGHT_H
#define TRESTLE_DATASTORE_IN_FLIGHT_H

#include "base/bytes.h"
#include "datastore/moments.h"

struct ds_in_flight {
    pthread_mutex_t lock;
    struct ds_flight *first;
};

/* Of one commit: its owner's, with the keys, as long as it is there. All zeroes is one that is not.
 */
struct ds_flight {
    const bytes *keys; /* in any order */
    size_t count;
    const struct ds_moment *moment; /* all zeroes as long as it is not drawn */
    /* Private. */
    struct ds_flight *next;
    bool is_there;
};

void ds_in_flight_init(struct ds_in_flight *in_flight);
void ds_in_flight_free(struct ds_in_flight *in_flight); /* nothing is there */

void ds_in_flight_add(struct ds_in_flight *in_flight, struct ds_flight *flight);
void ds_in_flight_remove(struct ds_in_flight *in_flight, struct ds_flight *flight);

/* Whether a commit that comes before the moment, which is drawn, is about to write a row of the
 * range
 * (`to` is exclusive; empty: no bound). If not, those before it have applied what they write there,
 * or have failed. */
bool ds_in_flight_meets(struct ds_in_flight *in_flight, bytes from, bytes to,
                        struct ds_moments *moments, const struct ds_moment *moment);

#endif
