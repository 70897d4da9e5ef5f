/* Checks which keys, names, values and entities of a request may be stored, in production's words
 * where they are known. All failures are INVALID_ARGUMENT. Limits are LIMIT_DS_… of base/limits.h.
 *
 * Reserved are names that begin and end with two underscores. */
#ifndef TRESTLE_DATASTORE_MODEL_VALIDATE_H
#define TRESTLE_DATASTORE_MODEL_VALIDATE_H

#include "datastore/model/key.h"

/* The use of a key decides what it must be. */
enum ds_key_use {
    DS_KEY_READ,     /* complete; its names may be reserved */
    DS_KEY_WRITE,    /* complete: of update, delete, reserveIds */
    DS_KEY_INSERT,   /* the last element may be incomplete: of insert and upsert */
    DS_KEY_ALLOCATE, /* the last element must be */
    DS_KEY_VALUE,    /* complete, of any database; its names may be reserved */
    DS_KEY_NESTED,   /* of an entity in a value: as a value, but may be incomplete */
};

/* `key` has its partition (ds_key_fill); it must be `database`'s, unless the use says otherwise. */
status ds_key_check(const Ds__Key *key, const struct ds_database *database, enum ds_key_use use);

/* A namespace to be read; NULL is the one without a name, in the request's database. */
status ds_partition_check(const Ds__PartitionId *partition, const struct ds_database *database);

/* Whether the name begins and ends with two underscores. */
bool ds_name_is_reserved(const char *name);

/* A kind, or a property's name, that a query says. */
status ds_kind_check(const char *kind);
status ds_property_check(const char *name);

/* A property's name that an entity may have. */
status ds_property_name_check(const char *name);

/* A value to compare with, in a query or a transform: as one that is indexed. `name`: of the
 * property, for the words. */
status ds_value_check(const Ds__Value *value, const char *name);

/* An entity to be stored; `use` is DS_KEY_INSERT or DS_KEY_WRITE. index_rows.h checks how many
 * index rows it has. */
status ds_entity_check(const Ds__Entity *entity, const struct ds_database *database,
                       enum ds_key_use use);

/* The same, and its serialised form, in the arena. */
status ds_entity_encode(const Ds__Entity *entity, const struct ds_database *database,
                        enum ds_key_use use, struct arena *arena, bytes *stored);

/* To be called before anything else: ds_key_fill for its key and for all keys in its values; and
 * properties, here and in values, are sorted by name, of those with one name the last kept, as
 * protobuf has it for maps. Timestamps are rounded down to microseconds, as entity.proto has it. */
status ds_entity_normalise(Ds__Entity *entity, const struct ds_database *database,
                           struct arena *arena);

/* The same for a value by itself: of a filter, or a transform. */
status ds_value_normalise(Ds__Value *value, const struct ds_database *database,
                          struct arena *arena);

#endif
