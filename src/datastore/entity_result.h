/* Parts of answers. */
#ifndef TRESTLE_DATASTORE_ENTITY_RESULT_H
#define TRESTLE_DATASTORE_ENTITY_RESULT_H

#include "datastore/commit/snapshot.h"
#include "google/datastore/v1/datastore.pb-c.h"

status ds_time_message(int64_t us, struct arena *arena, Pb__Timestamp **out);

/* An entity with its version and times, without what is not in the mask (NULL: all is). */
status ds_entity_result(const struct ds_version *version, const Ds__PropertyMask *mask,
                        struct arena *arena, Ds__EntityResult **out);

#endif
