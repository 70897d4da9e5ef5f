/* Names of properties in Firestore's administration, where a kind is a collection group and a
 * property a field:
 *
 *     projects/P/databases/D/collectionGroups/KIND/fields/PROPERTY
 *
 * D is "(default)" for the database without a name. PROPERTY is a path: names with dots between, of
 * a property and of those in the entities that are its values. A name with other characters than
 * letters, digits and underscores stands in backticks; in it a backtick or a backslash has a
 * backslash before it. A slash cannot be in either. */
#ifndef TRESTLE_DATASTORE_MODEL_FIELD_NAME_H
#define TRESTLE_DATASTORE_MODEL_FIELD_NAME_H

#include "datastore/model/key.h"
#include "datastore/model/property_path.h"

struct ds_field_name {
    struct ds_database database;
    const char *kind;             /* "-", any, in a parent only */
    struct ds_property_path path; /* without names in a parent */
    const char *property;         /* as indexes call it: "outer.inner" */
    const char *name;             /* the whole, with backticks only where they must be */
    const char *database_name;    /* its beginning: projects/P/databases/D */
};

/* Both in the arena. INVALID_ARGUMENT for what is none, or names a kind or property that no client
 * may write. */
status ds_field_parse(const char *name, struct arena *arena, struct ds_field_name *out);

/* The name without what begins with "/fields". */
status ds_field_parent_parse(const char *name, struct arena *arena, struct ds_field_name *out);

#endif
