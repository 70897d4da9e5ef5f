/* Sizes of what is stored, as Datastore's page on them has it: what statistics, and the limit on
 * keys, count in. They are not the bytes that it takes here.
 *
 * A string is its bytes and one more; a key 16, its namespace if it has one, and of each element
 * the kind and the name, or 8 for an id; a property its name and its value; an entity its key, its
 * properties, and 32; a row of a built-in index the key, the kind, the property's name and value,
 * and 32; one of a composite index the key, the values, and 32. */
#ifndef TRESTLE_DATASTORE_MODEL_STORAGE_SIZE_H
#define TRESTLE_DATASTORE_MODEL_STORAGE_SIZE_H

#include "datastore/model/key.h"

enum { DS_STORAGE_OVERHEAD = 32 }; /* of an entity, and of a row of an index */

size_t ds_key_storage(const Ds__Key *key);
size_t ds_value_storage(const Ds__Value *value);
size_t ds_entity_storage(const Ds__Entity *entity);

/* A string's. */
static inline size_t ds_text_storage(size_t size)
{
    return size + 1;
}

#endif
