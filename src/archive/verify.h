/* Reading an archive from end to end: what of it is missing or damaged, and which moments can be
 * had all the same.
 *
 * Invariant: what is found sound here archive_restore (archive/restore.h) takes. Each piece has its
 * checksum and follows the one before, and the files that it names are what it says.
 *
 * All of it blocks. */
#ifndef TRESTLE_ARCHIVE_VERIFY_H
#define TRESTLE_ARCHIVE_VERIFY_H

#include "archive/piece.h"
#include "place/place.h"

/* A server's knowledge of a stream, without which what is missing at its ends cannot be told. */
struct archive_known {
    uint64_t pieces;                    /* how many it has put */
    uint8_t digest[PIECE_DIGEST_BYTES]; /* of the last of them */
    uint64_t oldest_base; /* of its whole backups that the stream goes on from; 0: none */
};

struct archive_verifying {
    struct place *place;
    uint64_t stream;
    const struct archive_known *known; /* of the stream; NULL: nothing is */
    /* Hears of what is missing or damaged, in a sentence that names it. */
    void (*damage)(void *context, const char *what);
    /* Hears from when to when moments can be had, both as sequences: with a whole backup of a
     * moment in between, those from there up to the last. */
    void (*moments)(void *context, uint64_t after, uint64_t last);
    void *context;
    const struct store_pacer *pacer; /* hears of what was read; NULL: none */
};

struct archive_verified {
    size_t pieces;
    size_t files;
    uint64_t bytes;
    size_t damages;
};

/* Fails if it could not go on, or the pacer ends it: CANCELLED; a damage is no failure. */
status archive_verify(const struct archive_verifying *verifying, struct archive_verified *out);

#endif
