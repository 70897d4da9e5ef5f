/* Paths of a google.protobuf.FieldMask. */
#ifndef TRESTLE_BIGTABLE_FIELD_MASK_H
#define TRESTLE_BIGTABLE_FIELD_MASK_H

#include <stdbool.h>

/* Whether `path` names the field, which is given in the proto's spelling ("gc_rule"); the JSON
 * spelling ("gcRule") is the same. */
bool field_path_is(const char *path, const char *field);

#endif
