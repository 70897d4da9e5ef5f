/* Avro schemas, which are JSON. See avro.h. */
#include "formats/avro.h"

#include <jansson.h>

#define INVALID(...) status_make(STATUS_INVALID_ARGUMENT, __VA_ARGS__)

struct schema {
    struct arena *arena;
    struct avro_type **named; /* those that may be meant by name */
    size_t named_count;
    size_t named_capacity;
    unsigned depth;
};

static const char *const kinds[] = {
    [AVRO_NULL] = "null",   [AVRO_BOOLEAN] = "boolean", [AVRO_INT] = "int",
    [AVRO_LONG] = "long",   [AVRO_FLOAT] = "float",     [AVRO_DOUBLE] = "double",
    [AVRO_BYTES] = "bytes", [AVRO_STRING] = "string",   [AVRO_RECORD] = "record",
    [AVRO_ENUM] = "enum",   [AVRO_ARRAY] = "array",     [AVRO_MAP] = "map",
    [AVRO_UNION] = "union", [AVRO_FIXED] = "fixed",
};

enum { LAST_PRIMITIVE = AVRO_STRING };

static status read_type(struct schema *schema, const json_t *json, const char *space,
                        struct avro_type **out);

static bool find_kind(const char *name, enum avro_kind *out)
{
    for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        *out = (enum avro_kind)i;
        if (strcmp(name, kinds[i]) == 0)
            return true;
    }
    return false;
}

static struct avro_type *new_type(struct schema *schema, enum avro_kind kind)
{
    struct avro_type *type = arena_zalloc(schema->arena, sizeof *type);
    if (type != NULL)
        type->kind = kind;
    return type;
}

/* --- names --- */

/* With its namespace: its own, that which is said beside it, or that around it. */
static status full_name(struct schema *schema, const char *name, const char *space, bytes *out)
{
    struct buffer text = {0};
    if (strchr(name, '.') == NULL && space[0] != '\0')
        buffer_append_format(&text, "%s.", space);
    buffer_append_bytes(&text, bytes_of(name));
    if (!text.failed)
        *out = arena_copy(schema->arena, buffer_bytes(&text));
    bool failed = text.failed || out->data == NULL;
    buffer_free(&text);
    return failed ? status_out_of_memory() : status_ok();
}

static struct avro_type *find_named(const struct schema *schema, bytes name)
{
    for (size_t i = 0; i < schema->named_count; i++)
        if (bytes_equal(schema->named[i]->name, name))
            return schema->named[i];
    return NULL;
}

static status add_named(struct schema *schema, struct avro_type *type)
{
    if (find_named(schema, type->name) != NULL)
        return INVALID("the schema defines %.*s twice", (int)type->name.size,
                       (const char *)type->name.data);
    if (schema->named_count == schema->named_capacity) {
        size_t capacity = schema->named_capacity == 0 ? 8 : 2 * schema->named_capacity;
        struct avro_type **more = arena_alloc(schema->arena, capacity * sizeof(struct avro_type *));
        if (more == NULL)
            return status_out_of_memory();
        for (size_t i = 0; i < schema->named_count; i++)
            more[i] = schema->named[i];
        schema->named = more;
        schema->named_capacity = capacity;
    }
    schema->named[schema->named_count++] = type;
    return status_ok();
}

/* The namespace of what is within a named type: what is before the last point of its name. */
static status space_of(struct schema *schema, bytes name, const char **out)
{
    size_t size = name.size;
    while (size > 0 && name.data[size - 1] != '.')
        size--;
    *out = arena_string(schema->arena, bytes_make(name.data, size == 0 ? 0 : size - 1));
    return *out == NULL ? status_out_of_memory() : status_ok();
}

/* Names the type; `*space` becomes that of what is within it. */
static status take_name(struct schema *schema, const json_t *json, const char **space,
                        struct avro_type *type)
{
    const char *name = json_string_value(json_object_get(json, "name"));
    const char *said = json_string_value(json_object_get(json, "namespace"));
    if (name == NULL || name[0] == '\0')
        return INVALID("the schema has a %s without a name", kinds[type->kind]);
    TRY(full_name(schema, name, said != NULL ? said : *space, &type->name));
    TRY(add_named(schema, type));
    return space_of(schema, type->name, space);
}

static status read_name(struct schema *schema, const char *name, const char *space,
                        struct avro_type **out)
{
    enum avro_kind kind;
    bytes full;
    if (find_kind(name, &kind) && kind <= LAST_PRIMITIVE) {
        *out = new_type(schema, kind);
        return *out == NULL ? status_out_of_memory() : status_ok();
    }
    TRY(full_name(schema, name, space, &full));
    *out = find_named(schema, full);
    if (*out == NULL)
        *out = find_named(schema, bytes_of(name));
    return *out == NULL ? INVALID("the schema has no type %s", name) : status_ok();
}

/* --- types that have others --- */

static status make_lists(struct schema *schema, size_t count, struct avro_type *type)
{
    type->types = arena_zalloc(schema->arena, count * sizeof(struct avro_type *));
    type->names = arena_zalloc(schema->arena, count * sizeof *type->names);
    bool failed = type->types == NULL || type->names == NULL;
    return failed ? status_out_of_memory() : status_ok();
}

static status copy_name(struct schema *schema, const json_t *json, struct avro_type *type)
{
    const char *name = json_string_value(json);
    if (name == NULL)
        return INVALID("the schema has a name that is no string");
    type->names[type->count] = arena_copy(schema->arena, bytes_of(name));
    return type->names[type->count].data == NULL ? status_out_of_memory() : status_ok();
}

static status read_record(struct schema *schema, const json_t *json, const char *space,
                          struct avro_type *type)
{
    const json_t *fields = json_object_get(json, "fields");
    TRY(take_name(schema, json, &space, type));
    if (!json_is_array(fields))
        return INVALID("the schema has a record without fields");
    size_t count = json_array_size(fields);
    TRY(make_lists(schema, count, type));
    for (; type->count < count; type->count++) {
        const json_t *field = json_array_get(fields, type->count);
        TRY(copy_name(schema, json_object_get(field, "name"), type));
        TRY(read_type(schema, json_object_get(field, "type"), space, &type->types[type->count]));
    }
    return status_ok();
}

static status read_enum(struct schema *schema, const json_t *json, const char *space,
                        struct avro_type *type)
{
    const json_t *symbols = json_object_get(json, "symbols");
    TRY(take_name(schema, json, &space, type));
    if (!json_is_array(symbols))
        return INVALID("the schema has an enum without symbols");
    size_t count = json_array_size(symbols);
    TRY(make_lists(schema, count, type));
    for (; type->count < count; type->count++)
        TRY(copy_name(schema, json_array_get(symbols, type->count), type));
    return status_ok();
}

static status read_fixed(struct schema *schema, const json_t *json, const char *space,
                         struct avro_type *type)
{
    const json_t *size = json_object_get(json, "size");
    TRY(take_name(schema, json, &space, type));
    if (!json_is_integer(size) || json_integer_value(size) < 0)
        return INVALID("the schema has a fixed without a size");
    type->size = (size_t)json_integer_value(size);
    return status_ok();
}

static status read_inner(struct schema *schema, const json_t *json, const char *member,
                         const char *space, struct avro_type *type)
{
    TRY(make_lists(schema, 1, type));
    type->count = 1;
    return read_type(schema, json_object_get(json, member), space, &type->types[0]);
}

static status read_union(struct schema *schema, const json_t *json, const char *space,
                         struct avro_type **out)
{
    size_t count = json_array_size(json);
    struct avro_type *type = new_type(schema, AVRO_UNION);
    *out = type;
    if (type == NULL)
        return status_out_of_memory();
    TRY(make_lists(schema, count, type));
    for (; type->count < count; type->count++)
        TRY(read_type(schema, json_array_get(json, type->count), space, &type->types[type->count]));
    return count > 0 ? status_ok() : INVALID("the schema has a union of nothing");
}

/* --- any type --- */

/* {"type":…}: the type's name, or another schema in its place. */
static status read_object(struct schema *schema, const json_t *json, const char *space,
                          struct avro_type **out)
{
    const json_t *inner = json_object_get(json, "type");
    const char *name = json_string_value(inner);
    enum avro_kind kind;
    if (name == NULL || !find_kind(name, &kind) || kind <= LAST_PRIMITIVE)
        return read_type(schema, inner, space, out);
    *out = new_type(schema, kind);
    if (*out == NULL)
        return status_out_of_memory();
    switch (kind) {
    case AVRO_RECORD:
        return read_record(schema, json, space, *out);
    case AVRO_ENUM:
        return read_enum(schema, json, space, *out);
    case AVRO_FIXED:
        return read_fixed(schema, json, space, *out);
    case AVRO_ARRAY:
        return read_inner(schema, json, "items", space, *out);
    case AVRO_MAP:
        return read_inner(schema, json, "values", space, *out);
    default:
        return INVALID("a union is a list in a schema");
    }
}

static status read_type(struct schema *schema, const json_t *json, const char *space,
                        struct avro_type **out)
{
    if (schema->depth == AVRO_MOST_DEPTH)
        return INVALID("the schema has more than %d levels", AVRO_MOST_DEPTH);
    schema->depth++;
    status s = json_is_string(json)   ? read_name(schema, json_string_value(json), space, out)
               : json_is_object(json) ? read_object(schema, json, space, out)
               : json_is_array(json)  ? read_union(schema, json, space, out)
                                      : INVALID("the schema lacks a type");
    schema->depth--;
    return s;
}

status avro_schema_read(bytes json, struct arena *arena, struct avro_type **out)
{
    json_error_t error;
    struct schema schema = {.arena = arena};
    json_t *parsed = json_loadb((const char *)json.data, json.size, JSON_DECODE_ANY, &error);
    *out = NULL;
    if (parsed == NULL)
        return INVALID("the schema is no JSON: %s", error.text);
    status s = read_type(&schema, parsed, "", out);
    json_decref(parsed);
    return s;
}
