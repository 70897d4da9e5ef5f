/* The key that seals a place (sealed.h): 32 bytes that were drawn at random. */
#ifndef TRESTLE_PLACE_KEY_H
#define TRESTLE_PLACE_KEY_H

#include "os/cipher.h"

enum { PLACE_KEY_ID_BYTES = 8, PLACE_SALT_BYTES = 32 };

struct place_key {
    uint8_t master[CIPHER_KEY_BYTES];
    uint8_t id[PLACE_KEY_ID_BYTES]; /* tells keys apart, and nothing about the key */
};

/* Reads a key from a file that has 64 hexadecimal digits, and a newline at most.
 * FAILED_PRECONDITION if others than its owner and group may read it, or others than its owner
 * change it; INVALID_ARGUMENT; NOT_FOUND. */
status place_key_read(const char *path, struct place_key *out);

/* Makes a key of its 32 bytes. */
status place_key_make(const uint8_t master[CIPHER_KEY_BYTES], struct place_key *out);

/* The key of one object, by a salt that is drawn for it. */
status place_key_of_object(const struct place_key *key, const uint8_t salt[PLACE_SALT_BYTES],
                           uint8_t out[CIPHER_KEY_BYTES]);

/* What stands for a digest, of the same size: without the key it cannot be told for which. */
status place_key_hide(const struct place_key *key, const uint8_t digest[32], uint8_t out[32]);

#endif
