/* See ttl.h. */
#include "datastore/admin/ttl.h"

#include "datastore/model/value.h"

bool ds_ttl_has_expired(const struct ds_field_name *field, const Ds__Entity *entity, int64_t now_us)
{
    const Ds__Value *value = ds_property_get(entity, &field->path);
    return value != NULL && value->value_type_case == DS__VALUE__VALUE_TYPE_TIMESTAMP_VALUE &&
           ds_timestamp_us(value->timestamp_value) <= now_us;
}

struct listing {
    struct arena *arena;
    struct vector *out;
    status result;
};

static bool add(void *context, struct resource *resource)
{
    struct listing *listing = context;
    struct ds_field_name field;
    listing->result = ds_field_parse(resource->name, listing->arena, &field);
    if (status_is_ok(listing->result))
        listing->result = vector_add(listing->out, listing->arena, &field, sizeof field);
    return status_is_ok(listing->result);
}

status ds_ttl_list(struct control *control, const struct ds_database *database, struct arena *arena,
                   struct vector *out)
{
    struct listing listing = {.arena = arena, .out = out};
    struct buffer parent = {0};
    buffer_append_format(&parent, "projects/%s/databases/%s/collectionGroups/-", database->project,
                         database->id[0] == '\0' ? "(default)" : database->id);
    buffer_append_byte(&parent, '\0');
    status s = parent.failed ? status_out_of_memory()
                             : control_list(control, RESOURCE_FIELD, (const char *)parent.data, "",
                                            add, &listing);
    buffer_free(&parent);
    if (status_is_ok(s))
        return listing.result;
    status_free(listing.result);
    return s;
}
