/* Keys of entities: their paths as bytes, and their order. docs/internals/datastore-layout.md has
 * the bytes.
 *
 * A *path* is the encoding of a key's elements, one behind the other, so that a parent's path is
 * the beginning of its children's, and paths order as keys do: by elements; of an element first
 * the kind, then numbers (signed) before names, kinds and names by their bytes.
 *
 * Project, database and namespace are no part of a path. Only complete keys have one: the caller
 * has seen to that (ds_key_is_complete). All functions are pure. */
#ifndef TRESTLE_DATASTORE_MODEL_KEY_H
#define TRESTLE_DATASTORE_MODEL_KEY_H

#include "base/arena.h"
#include "base/status.h"
#include "google/datastore/v1/entity.pb-c.h"

/* A flip is the byte with which every byte of a value is combined, by exclusive or. */
enum ds_flip { DS_ASCENDING = 0x00, DS_DESCENDING = 0xff };

/* The database that a request goes to. Strings that outlive what is made with it. */
struct ds_database {
    const char *project;
    const char *id; /* "" is the one without a name */
};

/* Whether the element has a name or a number; 0 is none, but says that one is to be allocated. */
bool ds_element_is_complete(const Ds__Key__PathElement *element);

/* Whether there is an element and all are complete. */
bool ds_key_is_complete(const Ds__Key *key);

bytes ds_key_namespace(const Ds__Key *key); /* empty without a partition */
bytes ds_key_kind(const Ds__Key *key);      /* its last element's; empty without one */

/* Append; failures show in out->failed. */
void ds_path_append(struct buffer *out, const Ds__Key *key);

/* An ancestor: a path and a mark behind it, with which longer paths do not begin. */
void ds_ancestor_append(struct buffer *out, bytes path);

/* Bytes of the element, or of the ancestor with its mark, at the start of `encoded`; 0 if there is
 * none. An ancestor has at least one element. */
size_t ds_element_size(bytes encoded, enum ds_flip flip);
size_t ds_ancestor_size(bytes encoded, enum ds_flip flip);

/* Whether the bytes are elements, one or more, and nothing else. */
bool ds_path_is_valid(bytes path);

/* A key with this path, in the arena, without a partition. INTERNAL if it is no path: what was
 * stored is damaged. A text with a zero byte in it is none, for a message cannot hold it. */
status ds_path_decode(bytes path, struct arena *arena, Ds__Key **out);

/* Gives the key the database, whatever it had: of an entity that is kept, since its database may
 * have come out of a backup under another name. */
void ds_key_move(Ds__Key *key, const struct ds_database *database);

/* Gives the key the request's database if it says none; as in production, a partition without a
 * project says none. */
status ds_key_fill(Ds__Key *key, const struct ds_database *database, struct arena *arena);

/* The order of the paths: negative, zero or positive. */
int ds_key_compare(const Ds__Key *a, const Ds__Key *b);

/* The order of keys as values: project, database, namespace, path. */
int ds_key_value_compare(const Ds__Key *a, const Ds__Key *b);

/* --- parts of an encoding, for what else is encoded --- */

void ds_number_append(struct buffer *out, uint64_t number); /* 8 bytes, big-endian */
uint64_t ds_number_read(const uint8_t *encoded, enum ds_flip flip);

/* The bytes, each combined with `flip`. */
void ds_bytes_append(struct buffer *out, bytes b, enum ds_flip flip);

/* Combines what has been appended from `start` on with `flip`. */
void ds_flip_from(struct buffer *out, size_t start, enum ds_flip flip);

/* The text at the start of `*encoded`, which moves behind it, as a string of the arena. INTERNAL
 * if there is none, or one with a zero byte in it. */
status ds_text_read(bytes *encoded, enum ds_flip flip, struct arena *arena, const char **out);

/* INTERNAL: the stored bytes are not as we write them. */
status ds_damaged(const char *what);

#endif
