/* See index_definition.h. */
#include "datastore/index/index_definition.h"

#include "base/limits.h"
#include "datastore/model/validate.h"
#include "wire/proto.h"

#include <inttypes.h>
#include <stdio.h>

#define KEY "__key__"

static bool is_key(const char *name)
{
    return strcmp(name, KEY) == 0;
}

/* --- what a client wants --- */

static status check_property(const DsAdmin__Index__IndexedProperty *property)
{
    if (property->direction != DS_ADMIN__INDEX__DIRECTION__ASCENDING &&
        property->direction != DS_ADMIN__INDEX__DIRECTION__DESCENDING)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "The property \"%s\" of the index has no direction.", property->name);
    return is_key(property->name) ? status_ok() : ds_property_check(property->name);
}

static status check_properties(const DsAdmin__Index *asked)
{
    size_t count = asked->n_properties;
    if (count == 0 || count > LIMIT_DS_INDEX_PROPERTIES)
        return status_make(STATUS_INVALID_ARGUMENT, "An index has 1 to %d properties, not %zu.",
                           LIMIT_DS_INDEX_PROPERTIES, count);
    for (size_t i = 0; i < count; i++) {
        const char *name = asked->properties[i]->name;
        TRY(check_property(asked->properties[i]));
        if (is_key(name) && i + 1 < count)
            return status_make(STATUS_INVALID_ARGUMENT,
                               "Only the last property of an index can be __key__.");
        for (size_t j = 0; j < i; j++)
            if (strcmp(asked->properties[j]->name, name) == 0)
                return status_make(STATUS_INVALID_ARGUMENT,
                                   "The property \"%s\" is in the index twice.", name);
    }
    return status_ok();
}

/* Refuses an index that the built-in ones make needless. */
static status check_use(const Datastore__CompositeIndex *definition)
{
    bool has_ancestors = definition->ancestor == DS_ADMIN__INDEX__ANCESTOR_MODE__ALL_ANCESTORS;
    bool is_simple =
        definition->n_properties == 1 && !has_ancestors && !is_key(definition->properties[0]->name);
    if (definition->n_properties > 0 && !is_simple)
        return status_ok();
    return status_make(STATUS_INVALID_ARGUMENT, "Indexes with a single property cannot be created: "
                                                "it is indexed in both directions as it is.");
}

static status copy_properties(const DsAdmin__Index *asked, struct arena *arena,
                              Datastore__CompositeIndex *out)
{
    out->properties = arena_alloc(arena, asked->n_properties * sizeof *out->properties);
    if (out->properties == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < asked->n_properties; i++) {
        Datastore__CompositeIndex__Property *property;
        bool is_descending =
            asked->properties[i]->direction == DS_ADMIN__INDEX__DIRECTION__DESCENDING;
        if (is_key(asked->properties[i]->name) && !is_descending)
            continue;
        PROTO_NEW(arena, property, DATASTORE__COMPOSITE_INDEX__PROPERTY__INIT);
        property->name = asked->properties[i]->name;
        property->is_descending = is_descending;
        out->properties[out->n_properties++] = property;
    }
    return status_ok();
}

status ds_definition_make(const DsAdmin__Index *asked, const char *project, struct arena *arena,
                          Datastore__CompositeIndex **out)
{
    if (asked == NULL)
        return status_make(STATUS_INVALID_ARGUMENT, "The request has no index.");
    if (asked->project_id[0] != '\0' && strcmp(asked->project_id, project) != 0)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "The index is of the project \"%s\", but the request of \"%s\".",
                           asked->project_id, project);
    if (asked->ancestor != DS_ADMIN__INDEX__ANCESTOR_MODE__NONE &&
        asked->ancestor != DS_ADMIN__INDEX__ANCESTOR_MODE__ALL_ANCESTORS)
        return status_make(STATUS_INVALID_ARGUMENT, "The index has no ancestor mode.");
    TRY(ds_kind_check(asked->kind));
    TRY(check_properties(asked));
    PROTO_NEW(arena, *out, DATASTORE__COMPOSITE_INDEX__INIT);
    (*out)->kind = asked->kind;
    (*out)->ancestor = (uint32_t)asked->ancestor;
    (*out)->state = DS_ADMIN__INDEX__STATE__CREATING;
    TRY(copy_properties(asked, arena, *out));
    return check_use(*out);
}

bool ds_definition_is_same(const Datastore__CompositeIndex *a, const Datastore__CompositeIndex *b)
{
    if (strcmp(a->kind, b->kind) != 0 || a->ancestor != b->ancestor ||
        a->n_properties != b->n_properties)
        return false;
    for (size_t i = 0; i < a->n_properties; i++)
        if (strcmp(a->properties[i]->name, b->properties[i]->name) != 0 ||
            a->properties[i]->is_descending != b->properties[i]->is_descending)
            return false;
    return true;
}

/* --- as clients see it --- */

static status show_properties(const Datastore__CompositeIndex *definition, struct arena *arena,
                              DsAdmin__Index *out)
{
    out->properties = arena_alloc(arena, definition->n_properties * sizeof *out->properties);
    if (out->properties == NULL)
        return status_out_of_memory();
    for (; out->n_properties < definition->n_properties; out->n_properties++) {
        const Datastore__CompositeIndex__Property *kept = definition->properties[out->n_properties];
        DsAdmin__Index__IndexedProperty *property;
        PROTO_NEW(arena, property, DS_ADMIN__INDEX__INDEXED_PROPERTY__INIT);
        property->name = kept->name;
        property->direction = kept->is_descending ? DS_ADMIN__INDEX__DIRECTION__DESCENDING
                                                  : DS_ADMIN__INDEX__DIRECTION__ASCENDING;
        out->properties[out->n_properties] = property;
    }
    return status_ok();
}

status ds_definition_show(const Datastore__CompositeIndex *definition, const char *project,
                          struct arena *arena, DsAdmin__Index **out)
{
    enum { MOST = 24 };
    char *id = arena_alloc(arena, MOST);
    if (id == NULL)
        return status_out_of_memory();
    snprintf(id, MOST, "%" PRIu64, (uint64_t)definition->id);
    PROTO_NEW(arena, *out, DS_ADMIN__INDEX__INIT);
    (*out)->project_id = project;
    (*out)->index_id = id;
    (*out)->kind = definition->kind;
    (*out)->ancestor = (DsAdmin__Index__AncestorMode)definition->ancestor;
    (*out)->state = (DsAdmin__Index__State)definition->state;
    return show_properties(definition, arena, *out);
}

/* --- as rows are made by it --- */

status ds_definition_index(const Datastore__CompositeIndex *definition, struct arena *arena,
                           struct ds_index *out)
{
    size_t count = definition->n_properties;
    const char **properties = arena_alloc(arena, count * sizeof *properties);
    enum ds_flip *flips = arena_alloc(arena, count * sizeof *flips);
    if (properties == NULL || flips == NULL)
        return status_out_of_memory();
    *out = (struct ds_index){.id = (uint64_t)definition->id,
                             .kind = definition->kind,
                             .properties = properties,
                             .shape = {.flips = flips, .key_flip = DS_ASCENDING}};
    out->shape.has_ancestors =
        definition->ancestor == DS_ADMIN__INDEX__ANCESTOR_MODE__ALL_ANCESTORS;
    for (size_t i = 0; i < count; i++) {
        const Datastore__CompositeIndex__Property *property = definition->properties[i];
        enum ds_flip flip = property->is_descending ? DS_DESCENDING : DS_ASCENDING;
        if (is_key(property->name)) {
            out->shape.key_flip = flip;
            continue;
        }
        properties[out->shape.values] = property->name;
        flips[out->shape.values++] = flip;
    }
    return status_ok();
}

/* --- as it is kept --- */

status ds_definition_encode(const Datastore__CompositeIndex *definition, struct arena *arena,
                            bytes *out)
{
    struct buffer encoded = {0};
    proto_encode(&definition->base, &encoded);
    *out = arena_copy(arena, buffer_bytes(&encoded));
    bool failed = encoded.failed || out->data == NULL;
    buffer_free(&encoded);
    return failed ? status_out_of_memory() : status_ok();
}

status ds_definition_decode(bytes value, struct arena *arena, Datastore__CompositeIndex **out)
{
    ProtobufCMessage *message;
    status s = proto_decode(&datastore__composite_index__descriptor, value, arena, &message);
    if (s.code == STATUS_INVALID_ARGUMENT) {
        status_free(s);
        return ds_damaged("the definition of an index");
    }
    TRY(s);
    *out = (Datastore__CompositeIndex *)message;
    return status_ok();
}
