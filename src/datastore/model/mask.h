/* Property masks: which properties, by their paths (property_path.h), are read or written.
 * Entities are an arena's and normalised; results share with them what is the same. */
#ifndef TRESTLE_DATASTORE_MODEL_MASK_H
#define TRESTLE_DATASTORE_MODEL_MASK_H

#include "base/arena.h"
#include "base/status.h"
#include "google/datastore/v1/datastore.pb-c.h"

enum ds_mask_use { DS_MASK_READ, DS_MASK_WRITE };

/* INVALID_ARGUMENT if a path is none, or of a property that can have no value. */
status ds_mask_check(const Ds__PropertyMask *mask, enum ds_mask_use use, struct arena *arena);

/* The entity with what the mask names, and its key, which the mask may name too. INVALID_ARGUMENT
 * if a path is none. */
status ds_mask_read(const Ds__Entity *entity, const Ds__PropertyMask *mask, struct arena *arena,
                    Ds__Entity **out);

/* `old` with what the mask names made what it is in `new_one`: if it is not there, it goes. Without
 * an old entity, NULL, only what the mask names is written. The key is new_one's. */
status ds_mask_write(const Ds__Entity *old, const Ds__Entity *new_one, const Ds__PropertyMask *mask,
                     struct arena *arena, Ds__Entity **out);

#endif
