/* Sets of byte strings: the row keys, or the qualifiers of a family, that an authorized view has.
 *
 * A set is kept as ranges in order that neither overlap nor touch, so that a look is a bisection.
 */
#ifndef TRESTLE_ROW_STRING_SET_H
#define TRESTLE_ROW_STRING_SET_H

#include "base/arena.h"
#include "base/status.h"

#include <protobuf-c/protobuf-c.h>

struct string_range {
    bytes from;
    bytes to; /* exclusive; empty: no bound */
};

/* All zeroes is the empty set. */
struct string_set {
    const struct string_range *ranges;
    size_t count;
};

/* The set of these strings and of all that begin with one of the prefixes. It points into them, and
 * into the arena. */
status string_set_make(const ProtobufCBinaryData *strings, size_t string_count,
                       const ProtobufCBinaryData *prefixes, size_t prefix_count,
                       struct arena *arena, struct string_set *out);

/* The first range that does not end at or before the string: the one that has it, if any does. NULL
 * if there is none. */
const struct string_range *string_set_seek(const struct string_set *set, bytes string);

bool string_set_has(const struct string_set *set, bytes string);
bool string_set_has_all(const struct string_set *set);

#endif
