/* Signatures with a private key. */
#ifndef TRESTLE_OS_SIGNING_H
#define TRESTLE_OS_SIGNING_H

#include "base/bytes.h"
#include "base/status.h"

struct signing_key;

/* A private RSA key in PEM. INVALID_ARGUMENT. */
status signing_key_create(bytes pem, struct signing_key **out);
void signing_key_destroy(struct signing_key *key); /* NULL is fine */

/* Appends the signature as RS256 has it: RSASSA-PKCS1-v1_5 with SHA-256 (RFC 7518, 3.3). */
status signing_key_sign(const struct signing_key *key, bytes message, struct buffer *out);

#endif
