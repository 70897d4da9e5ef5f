/* Structured row keys: how the parts of a table's keys are written into them, and read.
 *
 * A schema is a google.bigtable.admin.v2.Type.Struct with an encoding: one field alone, fields with
 * a delimiter between, or the ordered code. docs/reference/sql.md has the bytes. */
#ifndef TRESTLE_SQL_KEY_SCHEMA_H
#define TRESTLE_SQL_KEY_SCHEMA_H

#include "sql/value.h"

struct sql_key_schema;

/* Of a serialised Type.Struct, which was checked when the table got it. In the arena. */
status sql_key_schema_read(bytes row_key_schema, struct arena *arena,
                           const struct sql_key_schema **out);

size_t sql_key_schema_count(const struct sql_key_schema *schema);
struct sql_field sql_key_schema_part(const struct sql_key_schema *schema, size_t index);

/* The parts of a key: as many values as the schema has. INVALID_ARGUMENT for a key that is no such
 * one. */
status sql_key_decode(const struct sql_key_schema *schema, bytes key, struct arena *arena,
                      struct sql_value *parts);

/* The beginning that all keys have whose first parts have these values (none NULL): for ranges.
 * `*is_whole` says that a key with all parts is exactly it. */
status sql_key_encode(const struct sql_key_schema *schema, const struct sql_value *parts,
                      size_t count, struct buffer *out, bool *is_whole);

#endif
