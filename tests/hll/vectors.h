/* tests/data/hll-vectors.json: what Google's Zetasketch was seen to give. Long states are there by
 * their SHA-256. */
#ifndef TRESTLE_TESTS_HLL_VECTORS_H
#define TRESTLE_TESTS_HLL_VECTORS_H

#include "base/bytes.h"
#include "base/testing/testing.h"

#include <jansson.h>

bool vectors_load(const char *path);
void vectors_free(void);

/* An array of vectors, which is not empty. */
const json_t *section(const char *name);

/* Calls `check` with every vector of the section. */
void each(const char *name, void (*check)(const json_t *vector));

/* A field of a vector: NULL if it is not there; a number must be. */
const char *text_of(const json_t *vector, const char *key);
int64_t number_of(const json_t *vector, const char *key);

struct buffer from_hex(const char *hex); /* the caller frees it */
void assert_sha256(bytes state, const char *expected);

#endif
