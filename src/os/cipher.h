/* Sealing: AES-256 in Galois/Counter mode, by OpenSSL. What is sealed can be read with the key
 * alone, and what was changed since is not taken for it. Any thread. */
#ifndef TRESTLE_OS_CIPHER_H
#define TRESTLE_OS_CIPHER_H

#include "base/status.h"

enum { CIPHER_KEY_BYTES = 32, CIPHER_NONCE_BYTES = 12, CIPHER_TAG_BYTES = 16 };

struct cipher_place {
    const uint8_t *key;   /* CIPHER_KEY_BYTES */
    const uint8_t *nonce; /* CIPHER_NONCE_BYTES; never twice with one key */
    bytes associated;     /* is not sealed, but must be the same when it is opened */
};

/* Writes CIPHER_TAG_BYTES more than `plain` has. UNAVAILABLE if this system's OpenSSL does not do
 * it; RESOURCE_EXHAUSTED. */
status cipher_seal(const struct cipher_place *place, bytes plain, uint8_t *out);

/* The other way round. DATA_LOSS if it was not sealed so, or is less than a tag. */
status cipher_open(const struct cipher_place *place, bytes sealed, uint8_t *out);

/* Wipes the memory, whatever the compiler thinks of it. */
void cipher_forget(void *memory, size_t size);

/* Bytes that cannot be guessed. UNAVAILABLE. */
status cipher_random(uint8_t *out, size_t size);

#endif
