/* Entities expire by a property of their kind that is a moment. A kind has one such property at
 * most. Entities whose property is of another type, or that lack it, do not expire.
 *
 * That a property says so is a resource of the control plane (RESOURCE_FIELD), a
 * google.firestore.admin.v1.Field by its name. */
#ifndef TRESTLE_DATASTORE_ADMIN_TTL_H
#define TRESTLE_DATASTORE_ADMIN_TTL_H

#include "base/vector.h"
#include "control/control.h"
#include "datastore/model/field_name.h"

/* Appends struct ds_field_name, in the arena: all of a database. */
status ds_ttl_list(struct control *control, const struct ds_database *database, struct arena *arena,
                   struct vector *out);

bool ds_ttl_has_expired(const struct ds_field_name *field, const Ds__Entity *entity,
                        int64_t now_us);

#endif
