/* Paths of a google.protobuf.FieldMask. */
#ifndef TRESTLE_BIGTABLE_FIELD_MASK_H
#define TRESTLE_BIGTABLE_FIELD_MASK_H

#include "base/arena.h"
#include "base/status.h"
#include "google/protobuf/field_mask.pb-c.h"

/* Whether `path` names the field, which is given in the proto's spelling ("gc_rule"); the JSON
 * spelling ("gcRule") is the same. */
bool field_path_is(const char *path, const char *field);

/* Makes those fields of `target` that the mask names what they are in `source`, a message of the
 * same type, and leaves the others alone. Sub-messages are made as needed; what is copied is
 * shared. `allowed`, NULL at the end, are the paths that may be named, they and what lies below
 * them; others: INVALID_ARGUMENT. A mask that names nothing: INVALID_ARGUMENT. */
status field_mask_apply(const Pb__FieldMask *mask, const char *const *allowed,
                        const ProtobufCMessage *source, ProtobufCMessage *target,
                        struct arena *arena);

/* The same, where a mask may be left out, which means the allowed fields that are set in `source`,
 * and may be `*`, which means all allowed ones. */
status field_mask_apply_set(const Pb__FieldMask *mask, const char *const *allowed,
                            const ProtobufCMessage *source, ProtobufCMessage *target,
                            struct arena *arena);

#endif
