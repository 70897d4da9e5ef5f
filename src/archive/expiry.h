/* Expiry removes from an archive pieces that are older than they are to be kept, and the files that
 * these brought. See archiver.h for when that is so.
 *
 * Invariants
 *  1. Pieces go from the oldest on, so what stays has no hole. The newest stays in any case: the
 *     stream goes on behind it.
 *  2. A piece goes after the files that it names: what a crash leaves is found again.
 *
 * One thread; all of it blocks. */
#ifndef TRESTLE_ARCHIVE_EXPIRY_H
#define TRESTLE_ARCHIVE_EXPIRY_H

#include "place/place.h"

struct archive_expiry {
    struct place *place;
    uint64_t stream;
    uint64_t up_to; /* a sequence: pieces that end at it or before go */
    size_t most;    /* so many now */
};

/* `*removed`: how many pieces. A piece that is damaged goes, too. */
status archive_expire(const struct archive_expiry *expiry, size_t *removed);

#endif
