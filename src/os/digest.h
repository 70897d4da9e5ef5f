/* Digests of bytes: MD5 and the SHA family, and HMAC; by OpenSSL. */
#ifndef TRESTLE_OS_DIGEST_H
#define TRESTLE_OS_DIGEST_H

#include "base/status.h"

enum digest_kind { DIGEST_MD5, DIGEST_SHA1, DIGEST_SHA256, DIGEST_SHA512 };

enum { DIGEST_MOST_BYTES = 64 };

/* Writes the digest and its size in bytes. RESOURCE_EXHAUSTED; UNAVAILABLE if this system's OpenSSL
 * does not have the kind (MD5, where FIPS rules). Any thread. */
status digest_compute(enum digest_kind kind, bytes text, uint8_t out[DIGEST_MOST_BYTES],
                      size_t *size);

enum { HMAC_SHA256_BYTES = 32 };

/* HMAC with SHA-256 (RFC 2104). UNAVAILABLE as above. Any thread. */
status hmac_sha256(bytes key, bytes text, uint8_t out[HMAC_SHA256_BYTES]);

/* The digest of what comes piece by piece. */
struct digest;

status digest_create(enum digest_kind kind, struct digest **out); /* fails as digest_compute */
void digest_destroy(struct digest *digest);                       /* NULL is fine */
status digest_add(struct digest *digest, bytes piece);
/* The digest of all pieces so far; none may follow. */
status digest_finish(struct digest *digest, uint8_t out[DIGEST_MOST_BYTES], size_t *size);

/* The digest of a file's content. NOT_FOUND, … */
status digest_file(enum digest_kind kind, const char *path, uint8_t out[DIGEST_MOST_BYTES],
                   size_t *size);

#endif
