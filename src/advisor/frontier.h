/* The ends of a sample's readings, behind which nothing was read yet. */
#ifndef TRESTLE_ADVISOR_FRONTIER_H
#define TRESTLE_ADVISOR_FRONTIER_H

#include "advisor/place.h"

/* All zeroes is one without ends. */
struct frontier {
    struct buffer ends; /* bytes: the last keys of readings, whose memory is the caller's */
};

/* Takes note of a reading that began there and came up to `last`, which is empty if it found no
 * row; or came to the end of the table. False without memory. */
bool frontier_note(struct frontier *frontier, bytes start, bytes last, bool is_end);

/* One of the ends; false: there is none. */
bool frontier_choose(const struct frontier *frontier, struct advice_random *random, bytes *out);

/* Forgets an end behind which nothing needs to be read any more. */
void frontier_drop(struct frontier *frontier, bytes end);

void frontier_free(struct frontier *frontier);

#endif
