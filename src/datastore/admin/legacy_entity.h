/* Entities in the form of the first Datastore API (EntityProto), in which exports hold them.
 *
 * An EntityProto is a protobuf message, with groups in it:
 *
 *     EntityProto     13 key: Reference | 14 property | 15 property, not indexed: Property
 *                     16 the key's first element: Path
 *     Reference       13 app | 14 Path | 20 namespace | 23 database
 *     Path            1 group Element: 2 kind | 3 id | 4 name
 *     Property        1 meaning | 2 meaning's URI | 3 name | 4 is one of several | 5 PropertyValue
 *     PropertyValue   none: null | 1 integer | 2 boolean | 3 text or bytes | 4 double
 *                     5 group Point: 6, 7 doubles
 *                     8 group User: 9 email | 10 domain | 18 number | 19 id | 21 identity | 22 its
 *                       provider
 *                     12 group Reference: 13 app | 14 group Element: 15 kind | 16 id | 17 name
 *                       20 namespace | 23 database
 *
 * What has no type of its own has a meaning: timestamps (microseconds) 7, geo points 9, blobs 14 or
 * 16, entities (an EntityProto) 19, empty arrays 24. An array is several properties of one name.
 *
 * All value types come back as they were, except what the form cannot say: timestamps are to the
 * microsecond, excluding an array excludes its values, and what a meaning overrules loses it. */
#ifndef TRESTLE_DATASTORE_ADMIN_LEGACY_ENTITY_H
#define TRESTLE_DATASTORE_ADMIN_LEGACY_ENTITY_H

#include "datastore/model/key.h"
#include "google/datastore/v1/entity.pb-c.h"

/* Appends; failures show in out->failed. */
void ds_legacy_encode(const Ds__Entity *entity, struct buffer *out);

/* The entity of `wire`, as one of `database`, in the arena. Its key, and keys of the database that
 * it was of, become keys of `database`. Blobs point into `wire`. INVALID_ARGUMENT if the bytes are
 * none, or hold what cannot be stored. validate.h says what may be stored. */
status ds_legacy_decode(bytes wire, const struct ds_database *database, struct arena *arena,
                        Ds__Entity **out);

#endif
