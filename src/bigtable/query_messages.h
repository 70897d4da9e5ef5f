/* Types and values of SQL as the data API has them. */
#ifndef TRESTLE_BIGTABLE_QUERY_MESSAGES_H
#define TRESTLE_BIGTABLE_QUERY_MESSAGES_H

#include "google/bigtable/v2/bigtable.pb-c.h"
#include "sql/plan/plan.h"

/* --- types --- */

status query_type_to_message(const struct sql_type *type, struct arena *arena, Bt__Type **out);

/* INVALID_ARGUMENT for a type that a parameter cannot have. Of tables' types, only encodings are
 * forgotten. */
status query_type_from_message(const Bt__Type *message, struct arena *arena,
                               const struct sql_type **out);

/* Names and types of the columns. */
status query_metadata(const struct sql_operator *root, struct arena *arena,
                      Bt__ResultSetMetadata **out);

/* --- values --- */

/* Appends the value as field 2 of ProtoRows: `repeated Value values`, without its type. */
void query_value_append(struct buffer *out, const struct sql_type *type,
                        const struct sql_value *value);

/* A parameter's value, which has the type. INVALID_ARGUMENT `params 'k' has type … but expected
 * type …`. What it points to is the message's. */
status query_value_from_message(const char *name, const Bt__Value *message,
                                const struct sql_type *type, struct arena *arena,
                                struct sql_value *out);

/* INVALID_ARGUMENT, in the same words. */
status query_parameter_mismatch(const char *name, enum sql_kind has, enum sql_kind expected);

#endif
