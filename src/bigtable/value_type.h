/* google.bigtable.admin.v2.Type as a family's value_type.
 *
 * Only aggregates are enforced, as in production: a family of strings takes any bytes. Conditions
 * without which a type means nothing are checked all the same, and the type is kept and shown as it
 * was given. */
#ifndef TRESTLE_BIGTABLE_VALUE_TYPE_H
#define TRESTLE_BIGTABLE_VALUE_TYPE_H

#include "base/arena.h"
#include "google/bigtable/admin/v2/types.pb-c.h"
#include "row/schema.h"

/* Checks the type and fills in what the family has of it; NULL and a type of no kind mean none.
 * INVALID_ARGUMENT, or UNIMPLEMENTED for types of schema bundles. */
status value_type_from_message(const BtAdmin__Type *message, struct arena *arena,
                               struct family *family);

/* The family's type, which it must have, in the arena. As production does, it says what reads of an
 * aggregate return. */
status value_type_to_message(const struct family *family, struct arena *arena, BtAdmin__Type **out);

/* Whether a struct says how it is written, and may be: INVALID_ARGUMENT. */
status struct_encoding_check(const BtAdmin__Type__Struct *type);

#endif
