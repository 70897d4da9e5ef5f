/* Property transforms: changes of an entity's properties by what they are.
 *
 * increment, maximum and minimum take numbers. Integers stop at the ends of their range; with a
 * double in it a sum is a double. A property that is no number becomes the operand. Of equal
 * numbers the property's stays; a NaN makes a NaN.
 * append_missing_elements and remove_all_from_array make an empty array of what is none. Elements
 * are the same if they are equal, 3 and 3.0 too, NaN and NaN; a string is not a blob.
 * A number stays excluded from indexes if it was; of an array only the elements are. */
#ifndef TRESTLE_DATASTORE_MODEL_TRANSFORM_H
#define TRESTLE_DATASTORE_MODEL_TRANSFORM_H

#include "base/arena.h"
#include "base/status.h"
#include "datastore/model/key.h"
#include "google/datastore/v1/datastore.pb-c.h"

/* Makes the operand what ds_entity_normalise makes of an entity's values. */
status ds_transform_normalise(const Ds__PropertyTransform *transform,
                              const struct ds_database *database, struct arena *arena);

/* Applies them in order. `entity`, and operands, are normalised; the entity is left as it is;
 * `*out` shares with it what is the same, and must be checked (validate.h) as any entity that is to
 * be stored. `*results`: a value for each, as MutationResult has them. `now_us`: the time of the
 * request, microseconds since 1970; REQUEST_TIME is that in whole milliseconds. INVALID_ARGUMENT
 * for more than LIMIT_DS_TRANSFORMS, paths and operands that are none. */
status ds_transform(const Ds__Entity *entity, Ds__PropertyTransform *const *transforms,
                    size_t count, int64_t now_us, struct arena *arena, Ds__Entity **out,
                    Ds__Value ***results);

#endif
