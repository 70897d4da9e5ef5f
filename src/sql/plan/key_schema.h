/* Structured row keys: how the parts of a table's keys are written into them, and read.
 *
 * A schema is a google.bigtable.admin.v2.Type.Struct with an encoding: one field alone, fields with
 * a delimiter between, or the ordered code. docs/reference/sql.md has the bytes. */
#ifndef TRESTLE_SQL_PLAN_KEY_SCHEMA_H
#define TRESTLE_SQL_PLAN_KEY_SCHEMA_H

#include "sql/value.h"

struct sql_key_schema;

/* Reads a serialised Type.Struct, which was checked when the table got it. In the arena. */
status sql_key_schema_read(bytes row_key_schema, struct arena *arena,
                           const struct sql_key_schema **out);

/* The schema of a materialized view's keys: fields of BYTES, STRING, INT64 and TIMESTAMP, in
 * ordered code, each of which may be NULL: that is the empty part, and a text of nothing but zeros,
 * or an empty one, has one zero more. In the arena; the fields stay as long. */
status sql_key_schema_of_view(const struct sql_field *fields, size_t count, struct arena *arena,
                              const struct sql_key_schema **out);

/* Appends the key of a view's row: as many values as the schema has. Failures show in `out`. */
void sql_key_append(const struct sql_key_schema *schema, const struct sql_value *parts,
                    struct buffer *out);

size_t sql_key_schema_count(const struct sql_key_schema *schema);
struct sql_field sql_key_schema_part(const struct sql_key_schema *schema, size_t index);

/* The parts of a key: as many values as the schema has. INVALID_ARGUMENT for a key that is no such
 * one.
 *
 * Keys that can be read are in the order of their parts, with one exception: in a part before a
 * delimiter bytes may occur that come before the delimiter's first or are it. */
status sql_key_decode(const struct sql_key_schema *schema, bytes key, struct arena *arena,
                      struct sql_value *parts);

/* Whether the order of all keys is that of their parts, the first before the second: without the
 * exception. */
bool sql_key_schema_has_order(const struct sql_key_schema *schema);

/* A bound of a part's values; `value` NULL: none. */
struct sql_part_bound {
    const struct sql_value *value;
    bool is_open; /* the value itself is outside */
};

/* The keys whose first `count` parts have these values (none NULL), and whose next one, if there is
 * another, is within the bounds: from `*from` on, before `*to` (empty: no bound). Keys that are
 * none of the schema may be among them. With all parts `*from` is the key. `*is_empty` says that
 * there are none; then the rest says nothing. */
status sql_key_span(const struct sql_key_schema *schema, const struct sql_value *parts,
                    size_t count, const struct sql_part_bound *lower,
                    const struct sql_part_bound *upper, struct buffer *from, struct buffer *to,
                    bool *is_empty);

#endif
