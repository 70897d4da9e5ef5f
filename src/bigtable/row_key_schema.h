/* Table.row_key_schema: how SQL reads row keys (sql/plan/key_schema.h). Writes and reads of the
 * data service do not look at it, so that keys that do not fit may be there before it and after. */
#ifndef TRESTLE_BIGTABLE_ROW_KEY_SCHEMA_H
#define TRESTLE_BIGTABLE_ROW_KEY_SCHEMA_H

#include "base/status.h"
#include "google/bigtable/admin/v2/types.pb-c.h"
#include "row/schema.h"

/* Whether a table with these families may have it: an encoding, and fields with names of their own,
 * of types that SQL can read, each with its encoding. There may be no field. NULL is fine.
 * INVALID_ARGUMENT. */
status row_key_schema_check(const BtAdmin__Type__Struct *schema, const struct family *families,
                            size_t count);

/* Whether the families may be, as far as its fields are concerned: INVALID_ARGUMENT. */
status row_key_schema_check_families(const BtAdmin__Type__Struct *schema,
                                     const struct family *families, size_t count);

/* Whether a table's may become another; NULL: none. It may come, and go if the caller means it;
 * what stays stays as it is. INVALID_ARGUMENT. */
status row_key_schema_check_change(const BtAdmin__Type__Struct *before,
                                   const BtAdmin__Type__Struct *after, bool ignore_warnings);

/* Whether both have the same fields, in the same encoding; NULL: none. */
bool row_key_schema_is_same(const BtAdmin__Type__Struct *a, const BtAdmin__Type__Struct *b);

#endif
