/* A place whose objects are sealed with a key: a reader without the key learns how many objects
 * there are, their sizes to a few bytes, their names and when they were put; names of contents are
 * keyed. A writer without it cannot change, cut or swap one without being noticed; it can remove
 * one, or put a former one of the same name back.
 *
 * An object is (docs/internals/format.md)
 *
 *     "trestle sealed 1\n" | the key's id | a salt | chunks
 *
 * Each chunk is sealed by a key of the object's own, made of the salt; its nonce has its number and
 * whether it is the last one, and what is associated is the object's name. So a chunk that is
 * missing, doubled, moved, or of another object is no chunk of this one, and neither is an end that
 * was not the end. */
#ifndef TRESTLE_PLACE_SEALED_H
#define TRESTLE_PLACE_SEALED_H

#include "place/key.h"
#include "place/place.h"

/* Takes the place over: it is closed with the new one, or if this fails. What is read must have
 * been sealed with this key: PERMISSION_DENIED, DATA_LOSS. The key is copied. */
status place_seal(struct place *inner, const struct place_key *key, struct place **out);

/* For a read without a key: PERMISSION_DENIED, in words, if that is how a sealed object begins. */
status place_check_plain(const struct place *place, const char *name, bytes beginning);

#endif
