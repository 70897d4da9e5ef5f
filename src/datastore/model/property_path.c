/* Paths of properties: see property_path.h. */
#include "datastore/model/property_path.h"

#include "wire/proto.h"

/* --- reading them --- */

static status refuse(const char *text)
{
    return status_make(STATUS_INVALID_ARGUMENT, "Invalid property path \"%s\".", text);
}

/* At least as many as there are names. */
static size_t count_dots(const char *text)
{
    size_t count = 1;
    for (; *text != '\0'; text++)
        count += *text == '.';
    return count;
}

/* The name at `*at`, which moves to the dot or the end behind it; NULL if it is none. `to` has room
 * for it. */
static const char *read_name(const char **at, char *to)
{
    const char *name = to;
    for (; **at != '\0' && **at != '.'; (*at)++) {
        if (**at == '\\') {
            (*at)++;
            if (**at != '.' && **at != '\\')
                return NULL;
        }
        *to++ = **at;
    }
    *to = '\0';
    return to == name ? NULL : name;
}

status ds_property_path_parse(const char *text, struct arena *arena, struct ds_property_path *out)
{
    char *names = arena_alloc(arena, strlen(text) + 1);
    const char *at = text;
    out->names = arena_alloc(arena, count_dots(text) * sizeof *out->names);
    out->count = 0;
    if (names == NULL || out->names == NULL)
        return status_out_of_memory();
    for (;;) {
        const char *name = read_name(&at, names + (at - text));
        if (name == NULL)
            return refuse(text);
        out->names[out->count++] = name;
        if (*at == '\0')
            return status_ok();
        at++;
    }
}

int ds_property_path_compare(const struct ds_property_path *a, const struct ds_property_path *b)
{
    for (size_t i = 0; i < a->count && i < b->count; i++) {
        int order = strcmp(a->names[i], b->names[i]);
        if (order != 0)
            return order;
    }
    return (a->count > b->count) - (a->count < b->count);
}

/* --- following them --- */

/* The place of a property of this name, or where it would be. */
static size_t place_of(const Ds__Entity *entity, const char *name)
{
    size_t low = 0, high = entity->n_properties;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(entity->properties[middle]->key, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

Ds__Value *ds_property_find(const Ds__Entity *entity, const char *name)
{
    size_t place = place_of(entity, name);
    bool is_there =
        place < entity->n_properties && strcmp(entity->properties[place]->key, name) == 0;
    return is_there ? entity->properties[place]->value : NULL;
}

static bool is_entity(const Ds__Value *value)
{
    return value != NULL && value->value_type_case == DS__VALUE__VALUE_TYPE_ENTITY_VALUE;
}

Ds__Value *ds_property_get(const Ds__Entity *entity, const struct ds_property_path *path)
{
    for (size_t i = 0; i < path->count - 1; i++) {
        const Ds__Value *value = ds_property_find(entity, path->names[i]);
        if (!is_entity(value))
            return NULL;
        entity = value->entity_value;
    }
    return ds_property_find(entity, path->names[path->count - 1]);
}

/* --- changing --- */

status ds_property_append(Ds__Entity *entity, const char *name, Ds__Value *value,
                          struct arena *arena)
{
    Ds__Entity__PropertiesEntry *property;
    PROTO_NEW(arena, property, DS__ENTITY__PROPERTIES_ENTRY__INIT);
    property->key = name;
    property->value = value;
    entity->properties[entity->n_properties++] = property;
    return status_ok();
}

status ds_entity_like(const Ds__Entity *like, size_t properties, struct arena *arena,
                      Ds__Entity **out)
{
    Ds__Entity *entity;
    PROTO_NEW(arena, entity, DS__ENTITY__INIT);
    entity->key = like == NULL ? NULL : like->key;
    entity->properties = arena_alloc(arena, properties * sizeof(Ds__Entity__PropertiesEntry *));
    *out = entity;
    return entity->properties == NULL ? status_out_of_memory() : status_ok();
}

status ds_entity_value_like(const Ds__Value *like, Ds__Entity *entity, struct arena *arena,
                            Ds__Value **out)
{
    Ds__Value *value;
    PROTO_NEW(arena, value, DS__VALUE__INIT);
    if (like != NULL)
        value->exclude_from_indexes = like->exclude_from_indexes;
    if (is_entity(like))
        value->meaning = like->meaning;
    value->value_type_case = DS__VALUE__VALUE_TYPE_ENTITY_VALUE;
    value->entity_value = entity;
    *out = value;
    return status_ok();
}

/* A copy of the entity with the property set. */
static status set_one(const Ds__Entity *entity, const char *name, Ds__Value *value,
                      struct arena *arena, Ds__Entity **out)
{
    size_t place = place_of(entity, name), count = entity->n_properties;
    bool is_there = place < count && strcmp(entity->properties[place]->key, name) == 0;
    TRY(ds_entity_like(entity, count + 1, arena, out));
    for (size_t i = 0; i < count; i++) {
        if (i == place)
            TRY(ds_property_append(*out, name, value, arena));
        if (i != place || !is_there)
            (*out)->properties[(*out)->n_properties++] = entity->properties[i];
    }
    return place == count ? ds_property_append(*out, name, value, arena) : status_ok();
}

status ds_property_set(const Ds__Entity *entity, const struct ds_property_path *path,
                       Ds__Value *value, struct arena *arena, Ds__Entity **out)
{
    static const Ds__Entity empty = DS__ENTITY__INIT;
    const char *name = path->names[0];
    if (path->count > 1) {
        const struct ds_property_path rest = {.names = path->names + 1, .count = path->count - 1};
        const Ds__Value *outer = ds_property_find(entity, name);
        const Ds__Entity *within = is_entity(outer) ? outer->entity_value : &empty;
        Ds__Entity *changed;
        TRY(ds_property_set(within, &rest, value, arena, &changed));
        TRY(ds_entity_value_like(outer, changed, arena, &value));
    }
    return set_one(entity, name, value, arena, out);
}
