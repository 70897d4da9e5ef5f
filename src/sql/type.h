/* The types of GoogleSQL for Bigtable.
 *
 * A type is immutable. Those without parts are the constants below; others live in an arena, and
 * two of them are the same type if sql_type_equal says so. What is not here (NUMERIC, DATETIME,
 * JSON, …) Bigtable does not have; INTERVAL is syntax only (see ast.h).
 *
 * Source of the rules: docs/reference/sql.md. */
#ifndef TRESTLE_SQL_TYPE_H
#define TRESTLE_SQL_TYPE_H

#include "base/arena.h"
#include "base/status.h"

enum sql_kind {
    SQL_BOOL,
    SQL_INT64,
    SQL_FLOAT32,
    SQL_FLOAT64,
    SQL_STRING,
    SQL_BYTES,
    SQL_DATE,
    SQL_TIMESTAMP,
    SQL_ENUM,
    SQL_PROTO,
    SQL_ARRAY,
    SQL_STRUCT,
    SQL_MAP,
};

struct sql_field {
    const char *name; /* "": none */
    const struct sql_type *type;
};

struct sql_type {
    enum sql_kind kind;
    const struct sql_type *key;     /* of a map */
    const struct sql_type *element; /* of an array; the values of a map */
    const struct sql_field *fields; /* of a struct */
    size_t field_count;
    const struct sql_named_type *named; /* of a proto or an enum: see catalog.h */
};

extern const struct sql_type sql_bool;
extern const struct sql_type sql_int64;
extern const struct sql_type sql_float32;
extern const struct sql_type sql_float64;
extern const struct sql_type sql_string;
extern const struct sql_type sql_bytes;
extern const struct sql_type sql_date;
extern const struct sql_type sql_timestamp;

/* A type made of parts that outlive the arena; NULL without memory. `fields` are not copied. */
const struct sql_type *sql_array_of(struct arena *arena, const struct sql_type *element);
const struct sql_type *sql_map_of(struct arena *arena, const struct sql_type *key,
                                  const struct sql_type *value);
const struct sql_type *sql_struct_of(struct arena *arena, const struct sql_field *fields,
                                     size_t count);

/* A proto or enum of a schema bundle: what catalog.h says of it. */
struct sql_named_type;
const char *sql_named_type_name(const struct sql_named_type *named); /* "bundle.pkg.Message" */

/* The type with that name, in any case, and its aliases: "INT64", "integer"; NULL for what is no
 * simple type. */
const struct sql_type *sql_type_named(bytes name);

/* Structs are equal with equal names (in any case) and types, in order. */
bool sql_type_equal(const struct sql_type *a, const struct sql_type *b);

/* As messages have it: "ARRAY<STRUCT<a INT64, STRING>>". */
void sql_type_append(struct buffer *out, const struct sql_type *type);

static inline bool sql_is_text(const struct sql_type *type)
{
    return type->kind == SQL_STRING || type->kind == SQL_BYTES;
}

static inline bool sql_is_float(const struct sql_type *type)
{
    return type->kind == SQL_FLOAT32 || type->kind == SQL_FLOAT64;
}

static inline bool sql_is_number(const struct sql_type *type)
{
    return type->kind == SQL_INT64 || sql_is_float(type);
}

/* Whether values may be compared by = (all but protos and maps, and what holds them), by < (what
 * has no parts, and no proto), by ORDER BY (those, and arrays of them), or grouped. */
bool sql_type_has_equality(const struct sql_type *type);
bool sql_type_has_order(const struct sql_type *type);
bool sql_type_is_orderable(const struct sql_type *type);
bool sql_type_is_groupable(const struct sql_type *type);

#endif
