/* A set of the results that have been: byte strings, up to a number. */
#ifndef TRESTLE_DATASTORE_QUERY_QUERY_SEEN_H
#define TRESTLE_DATASTORE_QUERY_QUERY_SEEN_H

#include "base/arena.h"
#include "base/status.h"

/* More are not kept: an entity's own values then say whether it has been. */
enum { DS_MOST_SEEN = 1 << 16 };

/* All zeroes is empty. */
struct ds_seen {
    bytes *slots;
    size_t capacity; /* a power of two, or 0 */
    size_t count;
};

/* Adds a copy, in the arena; `*is_new` says whether it was not there. */
status ds_seen_add(struct ds_seen *seen, bytes what, struct arena *arena, bool *is_new);

static inline bool ds_seen_is_full(const struct ds_seen *seen)
{
    return seen->count >= DS_MOST_SEEN;
}

#endif
