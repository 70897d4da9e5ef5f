/* Paths of properties, as masks and transforms have them: names with dots between, of a property
 * and of those in the entities that are its values. In a name a dot or a backslash has a backslash
 * before it.
 *
 * Entities are those of an arena, and normalised (validate.h). A changed entity is a copy that
 * shares with the old one what is not on the path; neither may be altered after that. */
#ifndef TRESTLE_DATASTORE_MODEL_PROPERTY_PATH_H
#define TRESTLE_DATASTORE_MODEL_PROPERTY_PATH_H

#include "base/arena.h"
#include "base/status.h"
#include "google/datastore/v1/entity.pb-c.h"

struct ds_property_path {
    const char **names;
    size_t count; /* at least 1 */
};

/* INVALID_ARGUMENT if a name is empty, or a backslash before something else. */
status ds_property_path_parse(const char *text, struct arena *arena, struct ds_property_path *out);

/* By names; a path before those that it begins. */
int ds_property_path_compare(const struct ds_property_path *a, const struct ds_property_path *b);

/* The property of this name; NULL if there is none. */
Ds__Value *ds_property_find(const Ds__Entity *entity, const char *name);

/* The value at the end of the path; NULL if there is none. */
Ds__Value *ds_property_get(const Ds__Entity *entity, const struct ds_property_path *path);

/* The entity with this value there. Whatever is missing on the way, or is no entity, becomes one.
 */
status ds_property_set(const Ds__Entity *entity, const struct ds_property_path *path,
                       Ds__Value *value, struct arena *arena, Ds__Entity **out);

/* The next property of an entity that is being made, in the order of names; its array has room. */
status ds_property_append(Ds__Entity *entity, const char *name, Ds__Value *value,
                          struct arena *arena);

/* A copy of `like` (NULL: an empty entity) without properties, with room for so many. */
status ds_entity_like(const Ds__Entity *like, size_t properties, struct arena *arena,
                      Ds__Entity **out);

/* A copy of `like` (NULL: a value of which nothing is known) whose value is this entity. */
status ds_entity_value_like(const Ds__Value *like, Ds__Entity *entity, struct arena *arena,
                            Ds__Value **out);

#endif
