/* Signed tokens: JSON Web Tokens, checked against a set of public keys (RFC 7515, 7517, 7519).
 *
 * A key says by its type how it signs, and a token that claims another algorithm is refused: RS256
 * for RSA keys of 2,048 bits or more, ES256 for P-256, EdDSA for Ed25519. Nothing else is accepted,
 * above all neither "none" nor what is signed with a shared secret. */
#ifndef TRESTLE_ACCESS_JWT_H
#define TRESTLE_ACCESS_JWT_H

#include "base/status.h"

struct jwks;

/* From the JSON of a key set. Keys of other kinds are passed over; INVALID_ARGUMENT if none is
 * left.
 */
status jwks_parse(bytes json, struct jwks **out);
void jwks_destroy(struct jwks *keys); /* NULL is fine */
size_t jwks_count(const struct jwks *keys);

enum { JWT_LEEWAY_SECONDS = 60 }; /* clocks may differ by so much */

struct jwt_expectation {
    const char *issuer;
    const char *audience;
};

/* Whether the token is signed by one of the keys, for the audience, by the issuer, and not out of
 * date. UNAUTHENTICATED with a few words otherwise, RESOURCE_EXHAUSTED without memory.
 * `*principal`, to be freed, is made of the claim `email`, or without that of `sub`:
 * "serviceAccount:…" if it ends with gserviceaccount.com, else "user:…". `*expires_us`: when the
 * token is to be refused. Thread-safe. */
status jwt_verify(const struct jwks *keys, const struct jwt_expectation *expected, bytes token,
                  int64_t now_us, char **principal, int64_t *expires_us);

#endif
