/* Rows of a Datastore database in words, for a person: `Order 5 / Item "a"`,
 * `Order.at = 2025-10-09T08:53:20Z, Order 5`. All text is the arena's. Fails without memory, and
 * with INTERNAL for what is damaged. */
#ifndef TRESTLE_INTROSPECT_DATABASE_TEXT_H
#define TRESTLE_INTROSPECT_DATABASE_TEXT_H

#include "datastore/model/rows.h"

/* A row of the database, or what it begins with: the words end where the bytes do. */
status database_row_text(bytes row_key, struct arena *arena, bytes *out);

/* A place in the index of a property: an encoded value of that type (ds_value_type). `where` stands
 * behind it: " (namespace x)". */
status database_value_text(const char *kind, const char *property, bytes value, uint8_t type,
                           const char *where, struct arena *arena, bytes *out);

#endif
