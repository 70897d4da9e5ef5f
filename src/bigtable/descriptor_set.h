/* Schema bundles: serialised google.protobuf.FileDescriptorSets, as `protoc --include_imports
 * --descriptor_set_out` makes them. */
#ifndef TRESTLE_BIGTABLE_DESCRIPTOR_SET_H
#define TRESTLE_BIGTABLE_DESCRIPTOR_SET_H

#include "base/arena.h"
#include "base/status.h"

/* Whether it parses, has every file that its files import, and every type and oneof that its fields
 * are of, gives no name and no number twice, and no field a number that none may have.
 * INVALID_ARGUMENT, saying what is wrong. */
status descriptor_set_check(bytes set, struct arena *arena);

/* Whether a reader with `after` understands what was written with `before`, by number and by name:
 * types, fields and values stay, fields keep their types, none becomes required, and what could
 * stand together still can. INVALID_ARGUMENT, saying what does not. Both have been checked. */
status descriptor_set_check_successor(bytes before, bytes after, struct arena *arena);

#endif
