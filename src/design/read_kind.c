/* See kind.h: kinds of a description. */
#include "design/kind.h"

#include "design/read_private.h"

#include <stdio.h>

enum kind_field {
    KIND_NAME,
    KIND_PARENT,
    KIND_KEY,
    KIND_ENTITIES,
    KIND_HISTORY,
    KIND_PROPERTIES,
    KIND_INDEXES,
    KIND_ACCESS,
    KIND_FIELDS,
};

/* Names and what stands in them are texts of at most so many bytes. */
static status read_name(const struct yaml_value *value, const char **out)
{
    enum { NAME_BYTES_MOST = 1500 };
    TRY(field_text(value, out));
    size_t size = strlen(*out);
    return size > 0 && size <= NAME_BYTES_MOST
               ? status_ok()
               : yaml_error(value, "a name has 1 to %d bytes", NAME_BYTES_MOST);
}

/* Nothing else is there that it could be made of. */
static status read_value(const struct yaml_value *value, const char *what, struct arena *arena,
                         struct design_part *out)
{
    for (size_t i = 0; value->kind == YAML_MAP && i < value->count; i++)
        if (strcmp(value->keys[i]->text, "of") == 0)
            return yaml_error(value->keys[i], "%s is made of no other part", what);
    return read_part(value, what, arena, out);
}

/* --- properties --- */

static status read_property(const struct yaml_value *value, struct arena *arena,
                            struct design_property *out)
{
    enum { NAME, VALUE, INDEXED, COUNT, SIZE, FIELDS };
    const uint64_t values_most = 20 * 1000, size_most = 1 << 20;
    struct field fields[FIELDS] = {[NAME] = {.name = "name", .is_required = true},
                                   [VALUE] = {.name = "value"},
                                   [INDEXED] = {.name = "indexed"},
                                   [COUNT] = {.name = "count"},
                                   [SIZE] = {.name = "size"}};
    TRY(fields_take(value, "a property", fields, FIELDS));
    *out = (struct design_property){
        .line = value->line,
        .value = {.line = value->line, .kind = PART_WORD, .of = PART_OF_NONE},
        .is_indexed = true,
        .count = 1};
    TRY(read_name(fields[NAME].value, &out->name));
    if (fields[VALUE].value != NULL)
        TRY(read_value(fields[VALUE].value, "the value of a property", arena, &out->value));
    TRY(field_flag(fields[INDEXED].value, &out->is_indexed));
    TRY(field_number(fields[COUNT].value, 1, values_most, &out->count));
    return field_size(fields[SIZE].value, size_most, &out->size);
}

/* The place of the property with this name; property_count: there is none. */
static size_t find_property(const struct design_kind *kind, const char *name)
{
    size_t at = 0;
    while (at < kind->property_count && strcmp(kind->properties[at].name, name) != 0)
        at++;
    return at;
}

static status read_properties(const struct yaml_value *value, struct arena *arena,
                              struct design_kind *out)
{
    TRY(field_is_list(value, 1));
    if (value->count > DESIGN_PROPERTIES_MOST)
        return yaml_error(value, "more than %d properties", DESIGN_PROPERTIES_MOST);
    out->properties = arena_zalloc(arena, value->count * sizeof *out->properties);
    if (out->properties == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < value->count; i++) {
        struct design_property *property = &out->properties[i];
        TRY(read_property(value->items[i], arena, property));
        if (find_property(out, property->name) < i)
            return yaml_error(value->items[i], "a property with the name %s is there already",
                              property->name);
        out->property_count++;
    }
    return status_ok();
}

/* Names of properties, perhaps with a hyphen in front, which puts the greatest first. */
static status read_names(const struct yaml_value *list, const struct design_kind *kind,
                         bool *properties)
{
    if (list == NULL)
        return status_ok();
    TRY(field_is_list(list, 1));
    for (size_t i = 0; i < list->count; i++) {
        const char *text = NULL;
        TRY(field_text(list->items[i], &text));
        size_t at = find_property(kind, text[0] == '-' ? text + 1 : text);
        if (at == kind->property_count)
            return yaml_error(list->items[i], "the kind has no property %s", text);
        if (!kind->properties[at].is_indexed)
            return yaml_error(list->items[i], "%s is not indexed", kind->properties[at].name);
        properties[at] = true;
    }
    return status_ok();
}

/* --- indexes --- */

static status index_words(const struct yaml_value *list, struct arena *arena, const char **out)
{
    struct buffer text = {0};
    for (size_t i = 0; i < list->count; i++)
        buffer_append_format(&text, "%s%s", i == 0 ? "(" : ", ", list->items[i]->text);
    buffer_append_byte(&text, ')');
    *out = text.failed ? NULL : arena_string(arena, buffer_bytes(&text));
    buffer_free(&text);
    return *out == NULL ? status_out_of_memory() : status_ok();
}

static status read_index(const struct yaml_value *value, struct arena *arena,
                         const struct design_kind *kind, struct design_index *out)
{
    bool *properties = arena_zalloc(arena, kind->property_count * sizeof *properties);
    if (properties == NULL)
        return status_out_of_memory();
    TRY(field_is_list(value, 2));
    TRY(read_names(value, kind, properties));
    *out = (struct design_index){.line = value->line, .properties = properties};
    return index_words(value, arena, &out->words);
}

static status read_indexes(const struct yaml_value *value, struct arena *arena,
                           struct design_kind *out)
{
    if (value == NULL)
        return status_ok();
    TRY(field_is_list(value, 0));
    if (value->count > DESIGN_INDEXES_MOST)
        return yaml_error(value, "more than %d indexes", DESIGN_INDEXES_MOST);
    out->indexes = arena_zalloc(arena, (value->count + 1) * sizeof *out->indexes);
    if (out->indexes == NULL)
        return status_out_of_memory();
    for (; out->index_count < value->count; out->index_count++)
        TRY(read_index(value->items[out->index_count], arena, out,
                       &out->indexes[out->index_count]));
    return status_ok();
}

/* --- what will be asked for --- */

enum call_field {
    CALL_WRITE,
    CALL_READ,
    CALL_RATE,
    CALL_BY,
    CALL_ORDER,
    CALL_OFFSET,
    CALL_RESULTS,
    CALL_HOT,
    CALL_RAMP,
    CALL_FIELDS,
};

/* Refuses fields that make sense for other calls only. */
static status check_fields(const struct field *fields, const struct design_call *call)
{
    static const enum call_field of_queries[] = {CALL_BY, CALL_ORDER, CALL_OFFSET, CALL_RESULTS};
    for (size_t i = 0; i < sizeof of_queries / sizeof *of_queries; i++)
        if (fields[of_queries[i]].value != NULL && call->kind != ACCESS_READ_RANGE)
            return yaml_error(fields[of_queries[i]].value, "%s is of a query alone",
                              fields[of_queries[i]].name);
    bool is_of_entities = call->kind == ACCESS_WRITE_EXISTING || call->kind == ACCESS_READ_ROW;
    if (fields[CALL_HOT].value != NULL && !is_of_entities)
        return yaml_error(fields[CALL_HOT].value, "hot is of entities that are there already, and "
                                                  "are read or written one by one");
    return status_ok();
}

static status read_call_kind(const struct yaml_value *value, const struct field *fields,
                             enum design_access_kind *out)
{
    static const char *const writes[] = {"new", "existing", NULL};
    static const char *const reads[] = {"entity", "query", "kind", NULL};
    const struct yaml_value *write = fields[CALL_WRITE].value, *read = fields[CALL_READ].value;
    int kind = 0;
    if ((write == NULL) == (read == NULL))
        return yaml_error(value, "an access is either a write (new, existing) or a read (entity, "
                                 "query, kind)");
    TRY(field_choice(write, writes, &kind));
    TRY(field_choice(read, reads, &kind));
    *out = (enum design_access_kind)(kind + (read == NULL ? ACCESS_WRITE_NEW : ACCESS_READ_ROW));
    return status_ok();
}

static status read_call(const struct yaml_value *value, struct arena *arena,
                        const struct design_kind *kind, struct design_call *out)
{
    struct field fields[CALL_FIELDS] = {[CALL_WRITE] = {.name = "write"},
                                        [CALL_READ] = {.name = "read"},
                                        [CALL_RATE] = {.name = "rate", .is_required = true},
                                        [CALL_BY] = {.name = "by"},
                                        [CALL_ORDER] = {.name = "order"},
                                        [CALL_OFFSET] = {.name = "offset"},
                                        [CALL_RESULTS] = {.name = "results"},
                                        [CALL_HOT] = {.name = "hot"},
                                        [CALL_RAMP] = {.name = "ramp"}};
    bool *properties = arena_zalloc(arena, kind->property_count * sizeof *properties);
    if (properties == NULL)
        return status_out_of_memory();
    TRY(fields_take(value, "an access", fields, CALL_FIELDS));
    *out = (struct design_call){.line = value->line, .ramp_us = -1, .properties = properties};
    TRY(read_call_kind(value, fields, &out->kind));
    TRY(check_fields(fields, out));
    TRY(field_rate(fields[CALL_RATE].value, &out->rate));
    out->rate_text = fields[CALL_RATE].value->text;
    TRY(read_names(fields[CALL_BY].value, kind, properties));
    TRY(read_names(fields[CALL_ORDER].value, kind, properties));
    TRY(field_number(fields[CALL_OFFSET].value, 0, INT32_MAX, &out->offset));
    TRY(field_number(fields[CALL_RESULTS].value, 1, INT32_MAX, &out->results));
    TRY(read_hot(fields[CALL_HOT].value, &out->hot));
    return field_duration(fields[CALL_RAMP].value, &out->ramp_us);
}

static status read_calls(const struct yaml_value *value, struct arena *arena,
                         struct design_kind *out)
{
    if (value == NULL)
        return status_ok();
    TRY(field_is_list(value, 1));
    if (value->count > DESIGN_ACCESSES_MOST)
        return yaml_error(value, "more than %d kinds of access", DESIGN_ACCESSES_MOST);
    out->calls = arena_zalloc(arena, value->count * sizeof *out->calls);
    if (out->calls == NULL)
        return status_out_of_memory();
    for (; out->call_count < value->count; out->call_count++)
        TRY(read_call(value->items[out->call_count], arena, out, &out->calls[out->call_count]));
    return status_ok();
}

/* --- all of a kind --- */

static status read_parent(const struct yaml_value *value, struct design_kind *out)
{
    struct field fields[] = {{.name = "kind", .is_required = true},
                             {.name = "count", .is_required = true}};
    if (value == NULL)
        return status_ok();
    TRY(fields_take(value, "a parent", fields, sizeof fields / sizeof *fields));
    TRY(read_name(fields[0].value, &out->parent));
    return field_number(fields[1].value, 1, INT64_MAX, &out->parents);
}

static status read_key_of_kind(const struct field *field, struct arena *arena,
                               struct design_kind *out)
{
    out->key_line = field->value != NULL ? field->line : out->line;
    out->has_key = field->value != NULL;
    return out->has_key ? read_value(field->value, "a key", arena, &out->key) : status_ok();
}

static status read_kind(const struct yaml_value *value, struct arena *arena,
                        struct design_kind *out)
{
    struct field fields[KIND_FIELDS] = {
        [KIND_NAME] = {.name = "name", .is_required = true},
        [KIND_PARENT] = {.name = "parent"},
        [KIND_KEY] = {.name = "key"},
        [KIND_ENTITIES] = {.name = "entities"},
        [KIND_HISTORY] = {.name = "history"},
        [KIND_PROPERTIES] = {.name = "properties", .is_required = true},
        [KIND_INDEXES] = {.name = "indexes"},
        [KIND_ACCESS] = {.name = "access"},
    };
    TRY(fields_take(value, "a kind", fields, KIND_FIELDS));
    *out = (struct design_kind){.line = value->line,
                                .properties_line = fields[KIND_PROPERTIES].line,
                                .indexes_line = fields[KIND_INDEXES].line,
                                .calls_line = fields[KIND_ACCESS].line};
    TRY(read_name(fields[KIND_NAME].value, &out->name));
    TRY(read_parent(fields[KIND_PARENT].value, out));
    TRY(read_key_of_kind(&fields[KIND_KEY], arena, out));
    TRY(read_amount(fields[KIND_ENTITIES].value, fields[KIND_HISTORY].value, &out->entities,
                    &out->history_us));
    TRY(read_properties(fields[KIND_PROPERTIES].value, arena, out));
    TRY(read_indexes(fields[KIND_INDEXES].value, arena, out));
    return read_calls(fields[KIND_ACCESS].value, arena, out);
}

static bool is_there(const struct design *design, const char *name)
{
    for (size_t i = 0; i < design->kind_count; i++)
        if (strcmp(design->kinds[i].name, name) == 0)
            return true;
    return false;
}

status read_kinds(const struct yaml_value *value, struct arena *arena, struct design *out)
{
    if (value == NULL)
        return status_ok();
    TRY(field_is_list(value, 1));
    if (value->count > DESIGN_TABLES_MOST)
        return yaml_error(value, "more than %d kinds", DESIGN_TABLES_MOST);
    out->kinds = arena_zalloc(arena, value->count * sizeof *out->kinds);
    if (out->kinds == NULL)
        return status_out_of_memory();
    for (; out->kind_count < value->count; out->kind_count++) {
        struct design_kind *kind = &out->kinds[out->kind_count];
        TRY(read_kind(value->items[out->kind_count], arena, kind));
        if (is_there(out, kind->name))
            return yaml_error(value->items[out->kind_count],
                              "a kind with the name %s is there already", kind->name);
    }
    return status_ok();
}
