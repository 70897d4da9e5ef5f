/* The types of GoogleSQL for Bigtable: see type.h. */
#include "sql/type.h"

#include <strings.h>

const struct sql_type sql_bool = {.kind = SQL_BOOL};
const struct sql_type sql_int64 = {.kind = SQL_INT64};
const struct sql_type sql_float32 = {.kind = SQL_FLOAT32};
const struct sql_type sql_float64 = {.kind = SQL_FLOAT64};
const struct sql_type sql_string = {.kind = SQL_STRING};
const struct sql_type sql_bytes = {.kind = SQL_BYTES};
const struct sql_type sql_date = {.kind = SQL_DATE};
const struct sql_type sql_timestamp = {.kind = SQL_TIMESTAMP};

static const struct type_name {
    const char *name;
    const struct sql_type *type;
} type_names[] = {
    {"BOOL", &sql_bool},       {"INT64", &sql_int64},         {"FLOAT32", &sql_float32},
    {"FLOAT64", &sql_float64}, {"STRING", &sql_string},       {"BYTES", &sql_bytes},
    {"DATE", &sql_date},       {"TIMESTAMP", &sql_timestamp}, {"BOOLEAN", &sql_bool},
    {"INT", &sql_int64},       {"INTEGER", &sql_int64},       {"BIGINT", &sql_int64},
    {"SMALLINT", &sql_int64},  {"TINYINT", &sql_int64},       {"BYTEINT", &sql_int64},
};

static const struct sql_type *new_type(struct arena *arena, struct sql_type type)
{
    struct sql_type *copy = arena_alloc(arena, sizeof *copy);
    if (copy != NULL)
        *copy = type;
    return copy;
}

const struct sql_type *sql_array_of(struct arena *arena, const struct sql_type *element)
{
    return new_type(arena, (struct sql_type){.kind = SQL_ARRAY, .element = element});
}

const struct sql_type *sql_map_of(struct arena *arena, const struct sql_type *key,
                                  const struct sql_type *value)
{
    return new_type(arena, (struct sql_type){.kind = SQL_MAP, .key = key, .element = value});
}

const struct sql_type *sql_struct_of(struct arena *arena, const struct sql_field *fields,
                                     size_t count)
{
    return new_type(arena,
                    (struct sql_type){.kind = SQL_STRUCT, .fields = fields, .field_count = count});
}

const struct sql_type *sql_type_named(bytes name)
{
    for (size_t i = 0; i < sizeof type_names / sizeof *type_names; i++)
        if (strlen(type_names[i].name) == name.size &&
            strncasecmp(type_names[i].name, (const char *)name.data, name.size) == 0)
            return type_names[i].type;
    return NULL;
}

static bool fields_equal(const struct sql_type *a, const struct sql_type *b)
{
    if (a->field_count != b->field_count)
        return false;
    for (size_t i = 0; i < a->field_count; i++)
        if (strcasecmp(a->fields[i].name, b->fields[i].name) != 0 ||
            !sql_type_equal(a->fields[i].type, b->fields[i].type))
            return false;
    return true;
}

bool sql_type_equal(const struct sql_type *a, const struct sql_type *b)
{
    if (a == b)
        return true;
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case SQL_ARRAY:
        return sql_type_equal(a->element, b->element);
    case SQL_MAP:
        return sql_type_equal(a->key, b->key) && sql_type_equal(a->element, b->element);
    case SQL_STRUCT:
        return fields_equal(a, b);
    case SQL_PROTO:
    case SQL_ENUM:
        return strcmp(sql_named_type_name(a->named), sql_named_type_name(b->named)) == 0;
    default:
        return true;
    }
}

static void append_fields(struct buffer *out, const struct sql_type *type)
{
    buffer_append_format(out, "STRUCT<");
    for (size_t i = 0; i < type->field_count; i++) {
        const struct sql_field *field = &type->fields[i];
        buffer_append_format(out, "%s%s%s", i == 0 ? "" : ", ", field->name,
                             *field->name == '\0' ? "" : " ");
        sql_type_append(out, field->type);
    }
    buffer_append_format(out, ">");
}

void sql_type_append(struct buffer *out, const struct sql_type *type)
{
    switch (type->kind) {
    case SQL_ARRAY:
        buffer_append_format(out, "ARRAY<");
        sql_type_append(out, type->element);
        buffer_append_format(out, ">");
        break;
    case SQL_MAP:
        buffer_append_format(out, "MAP<");
        sql_type_append(out, type->key);
        buffer_append_format(out, ", ");
        sql_type_append(out, type->element);
        buffer_append_format(out, ">");
        break;
    case SQL_STRUCT:
        append_fields(out, type);
        break;
    case SQL_PROTO:
    case SQL_ENUM:
        buffer_append_format(out, "%s", sql_named_type_name(type->named));
        break;
    default:
        buffer_append_format(out, "%s", type_names[type->kind].name);
    }
}

/* --- what may be done with values --- */

/* Whether all that the type is made of passes. */
static bool parts_pass(const struct sql_type *type, bool (*passes)(const struct sql_type *))
{
    if (type->kind == SQL_ARRAY)
        return passes(type->element);
    for (size_t i = 0; i < type->field_count; i++)
        if (!passes(type->fields[i].type))
            return false;
    return true;
}

bool sql_type_has_equality(const struct sql_type *type)
{
    return type->kind != SQL_PROTO && type->kind != SQL_MAP &&
           parts_pass(type, sql_type_has_equality);
}

bool sql_type_has_order(const struct sql_type *type)
{
    return type->kind <= SQL_ENUM;
}

bool sql_type_is_orderable(const struct sql_type *type)
{
    return sql_type_has_order(type) ||
           (type->kind == SQL_ARRAY && sql_type_is_orderable(type->element));
}

bool sql_type_is_groupable(const struct sql_type *type)
{
    return sql_type_has_equality(type);
}
