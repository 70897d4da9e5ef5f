/* SipHash-2-4 with 128 bits, by Aumasson and Bernstein: a fingerprint of bytes that come in parts.
 *
 * Two inputs of this world do not have the same one. The key is fixed, since fingerprints are
 * stored: an attacker who knows it could look for inputs that meet, so it is not for keeping people
 * apart that do not trust each other. */
#ifndef TRESTLE_BASE_SIPHASH_H
#define TRESTLE_BASE_SIPHASH_H

#include "base/bytes.h"

struct siphash {
    uint64_t v[4];
    uint64_t tail; /* bytes that do not fill a word yet, the first the lowest */
    uint64_t size; /* of all that was added */
};

struct fingerprint {
    uint64_t words[2]; /* as little-endian words of the specification's output */
};

void siphash_start(struct siphash *hash);
void siphash_add(struct siphash *hash, bytes part);
struct fingerprint siphash_finish(struct siphash *hash);

static inline bool fingerprint_equal(struct fingerprint a, struct fingerprint b)
{
    return a.words[0] == b.words[0] && a.words[1] == b.words[1];
}

#endif
