/* Property masks: see mask.h.
 *
 * A mask is a sorted list of paths, so that old entity, new entity and mask are gone through side
 * by side, name after name: the time is that of sorting, however long the mask. */
#include "datastore/model/mask.h"

#include "datastore/model/property_path.h"
#include "datastore/model/validate.h"

#include <stdlib.h>

/* Sorted paths that are the same in their first `depth` names. */
struct paths {
    const struct ds_property_path *paths;
    size_t count;
    size_t depth;
};

static int compare_paths(const void *a, const void *b)
{
    return ds_property_path_compare(a, b);
}

static bool is_key(const struct ds_property_path *path)
{
    return path->count == 1 && strcmp(path->names[0], "__key__") == 0;
}

static status parse_mask(const Ds__PropertyMask *mask, struct arena *arena, struct paths *out)
{
    struct ds_property_path *paths = arena_alloc(arena, mask->n_paths * sizeof *paths);
    size_t count = 0;
    if (paths == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < mask->n_paths; i++) {
        TRY(ds_property_path_parse(mask->paths[i], arena, &paths[count]));
        count += !is_key(&paths[count]);
    }
    if (count > 1)
        qsort(paths, count, sizeof *paths, compare_paths);
    *out = (struct paths){.paths = paths, .count = count};
    return status_ok();
}

status ds_mask_check(const Ds__PropertyMask *mask, enum ds_mask_use use, struct arena *arena)
{
    struct paths paths;
    TRY(parse_mask(mask, arena, &paths));
    for (size_t i = 0; i < paths.count; i++) {
        const char *name = paths.paths[i].names[0];
        if (ds_name_is_reserved(name))
            return use == DS_MASK_READ
                       ? status_make(STATUS_INVALID_ARGUMENT, "the name %s is reserved", name)
                       : status_make(STATUS_INVALID_ARGUMENT,
                                     "The property_mask.property.name \"%s\" is reserved.", name);
    }
    return status_ok();
}

/* Takes the paths with the same next name from the front. */
static struct paths take_group(struct paths *paths)
{
    const char *name = paths->paths[0].names[paths->depth];
    struct paths group = {.paths = paths->paths, .count = 0, .depth = paths->depth + 1};
    while (group.count < paths->count &&
           strcmp(paths->paths[group.count].names[paths->depth], name) == 0)
        group.count++;
    paths->paths += group.count;
    paths->count -= group.count;
    return group;
}

static status merge(const Ds__Entity *old, const Ds__Entity *new_one, struct paths paths,
                    struct arena *arena, Ds__Entity **out);

static bool has_entity(const Ds__Value *value)
{
    return value != NULL && value->value_type_case == DS__VALUE__VALUE_TYPE_ENTITY_VALUE;
}

/* The entity that is the value; an empty one if it is something else. */
static const Ds__Entity *entity_in(const Ds__Value *value)
{
    static const Ds__Entity empty = DS__ENTITY__INIT;
    if (value == NULL || value->value_type_case != DS__VALUE__VALUE_TYPE_ENTITY_VALUE)
        return &empty;
    return value->entity_value;
}

/* Merges a value of which `group` names parts, or, with its first path, all. */
static status merge_values(Ds__Value *old, Ds__Value *new_one, struct paths group,
                           struct arena *arena, Ds__Value **out)
{
    Ds__Entity *merged;
    bool is_whole = group.paths[0].count == group.depth;
    *out = is_whole ? new_one : old;
    if (is_whole || (!has_entity(old) && !has_entity(new_one)))
        return status_ok();
    TRY(merge(entity_in(old), entity_in(new_one), group, arena, &merged));
    if (merged->n_properties == 0 && !has_entity(old))
        return status_ok();
    return ds_entity_value_like(has_entity(old) ? old : new_one, merged, arena, out);
}

/* Merges the property that the first paths name, which are taken; `old` is its value. */
static status merge_property(Ds__Value *old, const Ds__Entity *new_one, struct paths *paths,
                             struct arena *arena, Ds__Entity *out)
{
    const char *name = paths->paths[0].names[paths->depth];
    Ds__Value *value;
    struct paths group = take_group(paths);
    TRY(merge_values(old, ds_property_find(new_one, name), group, arena, &value));
    return value == NULL ? status_ok() : ds_property_append(out, name, value, arena);
}

static status merge(const Ds__Entity *old, const Ds__Entity *new_one, struct paths paths,
                    struct arena *arena, Ds__Entity **out)
{
    TRY(ds_entity_like(old, old->n_properties + paths.count, arena, out));
    for (size_t at = 0; at < old->n_properties || paths.count > 0;) {
        int order = paths.count == 0 ? -1
                    : at == old->n_properties
                        ? 1
                        : strcmp(old->properties[at]->key, paths.paths[0].names[paths.depth]);
        if (order < 0) {
            (*out)->properties[(*out)->n_properties++] = old->properties[at++];
            continue;
        }
        Ds__Value *value = order == 0 ? old->properties[at++]->value : NULL;
        TRY(merge_property(value, new_one, &paths, arena, *out));
    }
    return status_ok();
}

status ds_mask_write(const Ds__Entity *old, const Ds__Entity *new_one, const Ds__PropertyMask *mask,
                     struct arena *arena, Ds__Entity **out)
{
    struct paths paths;
    TRY(parse_mask(mask, arena, &paths));
    TRY(merge(old == NULL ? entity_in(NULL) : old, new_one, paths, arena, out));
    (*out)->key = new_one->key;
    return status_ok();
}

status ds_mask_read(const Ds__Entity *entity, const Ds__PropertyMask *mask, struct arena *arena,
                    Ds__Entity **out)
{
    return ds_mask_write(NULL, entity, mask, arena, out);
}
