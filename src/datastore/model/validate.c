/* Checks of what may be stored: see validate.h. */
#include "datastore/model/validate.h"

#include "base/limits.h"
#include "datastore/model/meaning.h"
#include "datastore/model/storage_size.h"
#include "datastore/model/value.h"
#include "wire/proto.h"

#include <ctype.h>
#include <stdlib.h>

#define INVALID(...) status_make(STATUS_INVALID_ARGUMENT, __VA_ARGS__)

/* --- names --- */

bool ds_name_is_reserved(const char *name)
{
    size_t size = strlen(name);
    return size >= 4 && memcmp(name, "__", 2) == 0 && memcmp(name + size - 2, "__", 2) == 0;
}

/* `what` is what the name is called. */
static status check_size(const char *name, const char *what, size_t most)
{
    if (strlen(name) > most)
        return INVALID("The %s is longer than %zu bytes.", what, most);
    return status_ok();
}

static status check_name(const char *name, const char *what, bool may_be_reserved)
{
    if (name[0] == '\0')
        return INVALID("The %s is the empty string.", what);
    TRY(check_size(name, what, LIMIT_DS_NAME_BYTES));
    if (!may_be_reserved && ds_name_is_reserved(name))
        return INVALID("The %s \"%s\" is reserved.", what, name);
    return status_ok();
}

status ds_kind_check(const char *kind)
{
    return check_name(kind, "kind", true);
}

status ds_property_check(const char *name)
{
    return check_name(name, "property.name", true);
}

status ds_property_name_check(const char *name)
{
    return check_name(name, "property.name", false);
}

/* --- partitions --- */

/* A part of a partition: of letters, digits and a few signs. */
static status check_dimension(const char *name, const char *what, const char *signs)
{
    bool is_legal = strlen(name) <= LIMIT_DS_PARTITION_BYTES;
    for (const char *at = name; *at != '\0' && is_legal; at++)
        is_legal = isascii(*at) && (isalnum(*at) || strchr(signs, *at) != NULL);
    return is_legal ? status_ok() : INVALID("Illegal string \"%.200s\" in %s.", name, what);
}

static const char *separator_of(const char *database)
{
    return database[0] == '\0' ? "" : "#";
}

static status check_database(const Ds__PartitionId *partition, const struct ds_database *database)
{
    if (strcmp(partition->project_id, database->project) == 0 &&
        strcmp(partition->database_id, database->id) == 0)
        return status_ok();
    return INVALID("mismatched databases within request: %s%s%s vs. %s%s%s", database->project,
                   separator_of(database->id), database->id, partition->project_id,
                   separator_of(partition->database_id), partition->database_id);
}

static status check_namespace(const char *name, bool may_be_reserved)
{
    if (!may_be_reserved && ds_name_is_reserved(name))
        return INVALID("The namespace id \"%s\" is reserved.", name);
    return check_dimension(name, "namespace id", "._-");
}

status ds_partition_check(const Ds__PartitionId *partition, const struct ds_database *database)
{
    if (partition == NULL)
        return status_ok();
    if (partition->project_id[0] != '\0')
        TRY(check_database(partition, database));
    return check_namespace(partition->namespace_id, true);
}

/* --- keys --- */

static bool may_be_reserved(enum ds_key_use use)
{
    return use == DS_KEY_READ || use == DS_KEY_VALUE || use == DS_KEY_NESTED;
}

static bool may_be_incomplete(enum ds_key_use use)
{
    return use == DS_KEY_INSERT || use == DS_KEY_ALLOCATE || use == DS_KEY_NESTED;
}

static bool is_of_any_database(enum ds_key_use use)
{
    return use == DS_KEY_VALUE || use == DS_KEY_NESTED;
}

static void describe_element(struct buffer *out, const Ds__Key__PathElement *element)
{
    buffer_append_format(out, "%s: ", element->kind);
    if (!ds_element_is_complete(element))
        return;
    if (element->id_type_case == DS__KEY__PATH_ELEMENT__ID_TYPE_NAME)
        buffer_append_format(out, "%s", element->name);
    else
        buffer_append_format(out, "%lld", (long long)element->id);
}

/* "…: [User: , Post: x]." */
static status refuse_path(const char *cause, const Ds__Key *key)
{
    struct buffer text = {0};
    for (size_t i = 0; i < key->n_path; i++) {
        buffer_append_format(&text, i == 0 ? "[" : ", ");
        describe_element(&text, key->path[i]);
    }
    status s = text.failed ? status_out_of_memory()
                           : INVALID("%s: %.*s]", cause, (int)text.size, (const char *)text.data);
    buffer_free(&text);
    return s;
}

static status check_element(const Ds__Key__PathElement *element, enum ds_key_use use)
{
    TRY(check_name(element->kind, "kind", may_be_reserved(use)));
    if (element->id_type_case != DS__KEY__PATH_ELEMENT__ID_TYPE_NAME)
        return status_ok();
    return check_name(element->name, "key path element name", may_be_reserved(use));
}

static status check_completeness(const Ds__Key *key, enum ds_key_use use)
{
    for (size_t i = 0; i < key->n_path; i++) {
        bool is_last = i == key->n_path - 1;
        if (!ds_element_is_complete(key->path[i]) && !(is_last && may_be_incomplete(use)))
            return refuse_path("Key path element must not be incomplete", key);
    }
    if (use == DS_KEY_ALLOCATE && ds_key_is_complete(key))
        return refuse_path("Key path element must not be complete", key);
    return status_ok();
}

static status check_path(const Ds__Key *key, enum ds_key_use use)
{
    if (key->n_path > LIMIT_DS_PATH_ELEMENTS)
        return INVALID("Key path is too long. Cannot exceed %d elements.", LIMIT_DS_PATH_ELEMENTS);
    for (size_t i = 0; i < key->n_path; i++)
        TRY(check_element(key->path[i], use));
    TRY(check_completeness(key, use));
    if (ds_key_storage(key) > LIMIT_DS_KEY_BYTES)
        return INVALID("The key is longer than %d bytes.", LIMIT_DS_KEY_BYTES);
    return status_ok();
}

status ds_key_check(const Ds__Key *key, const struct ds_database *database, enum ds_key_use use)
{
    const Ds__PartitionId *partition = key->partition_id;
    if (key->n_path == 0)
        return INVALID("Key path is empty.");
    if (partition == NULL || partition->project_id[0] == '\0')
        return INVALID("The project id is the empty string.");
    if (is_of_any_database(use)) {
        TRY(check_dimension(partition->project_id, "project id", "._-:"));
        TRY(check_dimension(partition->database_id, "database id", "._-"));
    } else {
        TRY(check_database(partition, database));
    }
    TRY(check_namespace(partition->namespace_id, may_be_reserved(use)));
    return check_path(key, use);
}

/* --- values --- */

/* The place of a value. */
struct place {
    const char *name; /* of the property */
    bool is_excluded; /* from indexes, by itself: what it is in does not count for limits */
    bool is_in_array;
    bool is_stored; /* not only compared with */
    int entities;   /* that it is in, besides the one that is stored */
};

static status check_entity_in_value(const Ds__Entity *entity, struct place place);
static status check_value(const Ds__Value *value, struct place place);

static status check_timestamp(const Pb__Timestamp *timestamp, const char *name)
{
    const int64_t first = -62135596800, last = 253402300799;
    if (timestamp->seconds < first || timestamp->seconds > last || timestamp->nanos < 0 ||
        timestamp->nanos > 999999999)
        return INVALID("The timestamp of property \"%s\" is not within the years 1 to 9999.", name);
    return status_ok();
}

static status check_geo_point(const Type__LatLng *point)
{
    if (!(point->latitude >= -90 && point->latitude <= 90))
        return INVALID("Geo point latitude outside permitted range -90.0 to 90.0.");
    if (!(point->longitude >= -180 && point->longitude <= 180))
        return INVALID("Geo point longitude outside permitted range -180.0 to 180.0.");
    return status_ok();
}

static status check_bytes(size_t size, struct place place)
{
    size_t most = place.is_excluded ? LIMIT_DS_VALUE_BYTES : LIMIT_DS_INDEXED_BYTES;
    if (size > most)
        return INVALID("The value of property \"%s\" is longer than %zu bytes.", place.name, most);
    return status_ok();
}

static status check_vector(const Ds__ArrayValue *vector)
{
    if (vector->n_values == 0)
        return INVALID("Cannot have a zero length vector.");
    if (vector->n_values > LIMIT_DS_VECTOR_DIMENSIONS)
        return INVALID("Vectors must be at most %d dimensions.", LIMIT_DS_VECTOR_DIMENSIONS);
    return status_ok();
}

static status check_array(const Ds__ArrayValue *array, struct place place)
{
    if (place.is_in_array)
        return INVALID("list_value cannot contain a Value containing another list_value.");
    place.is_in_array = true;
    for (size_t i = 0; i < array->n_values; i++)
        TRY(check_value(array->values[i], place));
    return status_ok();
}

static status check_value(const Ds__Value *value, struct place place)
{
    place.is_excluded = value->exclude_from_indexes;
    if (place.is_stored)
        TRY(ds_meaning_check(value, place.name));
    switch (value->value_type_case) {
    case DS__VALUE__VALUE_TYPE_STRING_VALUE:
        return check_bytes(strlen(value->string_value), place);
    case DS__VALUE__VALUE_TYPE_BLOB_VALUE:
        return check_bytes(value->blob_value.len, place);
    case DS__VALUE__VALUE_TYPE_TIMESTAMP_VALUE:
        return check_timestamp(value->timestamp_value, place.name);
    case DS__VALUE__VALUE_TYPE_GEO_POINT_VALUE:
        return check_geo_point(value->geo_point_value);
    case DS__VALUE__VALUE_TYPE_KEY_VALUE:
        return ds_key_check(value->key_value, NULL, DS_KEY_VALUE);
    case DS__VALUE__VALUE_TYPE_ARRAY_VALUE:
        if (value->meaning == DS_MEANING_VECTOR)
            TRY(check_vector(value->array_value));
        return check_array(value->array_value, place);
    case DS__VALUE__VALUE_TYPE_ENTITY_VALUE:
        place.is_in_array = false;
        return check_entity_in_value(value->entity_value, place);
    case DS__VALUE__VALUE_TYPE__NOT_SET:
        return INVALID("The value \"%s\" does not contain a value.", place.name);
    default:
        return status_ok();
    }
}

status ds_value_check(const Ds__Value *value, const char *name)
{
    return check_value(value, (struct place){.name = name});
}

/* --- entities --- */

static status check_properties(const Ds__Entity *entity, struct place place)
{
    for (size_t i = 0; i < entity->n_properties; i++) {
        const Ds__Entity__PropertiesEntry *property = entity->properties[i];
        TRY(ds_property_name_check(property->key));
        place.name = property->key;
        if (property->value == NULL)
            return INVALID("The value \"%s\" does not contain a value.", property->key);
        TRY(check_value(property->value, place));
    }
    return status_ok();
}

/* A key without a path is none. */
static bool has_key(const Ds__Entity *entity)
{
    return entity->key != NULL && entity->key->n_path > 0;
}

static status check_entity_in_value(const Ds__Entity *entity, struct place place)
{
    if (++place.entities > LIMIT_DS_NESTED_ENTITIES)
        return INVALID("At most %d nested entity values are supported.", LIMIT_DS_NESTED_ENTITIES);
    if (has_key(entity))
        TRY(ds_key_check(entity->key, NULL, DS_KEY_NESTED));
    return check_properties(entity, place);
}

static status check_entity(const Ds__Entity *entity, const struct ds_database *database,
                           enum ds_key_use use)
{
    if (entity->key == NULL)
        return INVALID("Entity is missing key.");
    TRY(ds_key_check(entity->key, database, use));
    return check_properties(entity, (struct place){.is_stored = true});
}

static status check_entity_size(size_t size)
{
    return size > LIMIT_DS_ENTITY_BYTES ? INVALID("entity is too big") : status_ok();
}

status ds_entity_check(const Ds__Entity *entity, const struct ds_database *database,
                       enum ds_key_use use)
{
    TRY(check_entity(entity, database, use));
    return check_entity_size(protobuf_c_message_get_packed_size(&entity->base));
}

status ds_entity_encode(const Ds__Entity *entity, const struct ds_database *database,
                        enum ds_key_use use, struct arena *arena, bytes *stored)
{
    *stored = bytes_make(NULL, 0);
    TRY(check_entity(entity, database, use));
    *stored = proto_encode_in(arena, &entity->base);
    return stored->data == NULL ? status_out_of_memory() : check_entity_size(stored->size);
}

/* --- normalising --- */

enum { NS_A_US = 1000 };

status ds_value_normalise(Ds__Value *value, const struct ds_database *database, struct arena *arena)
{
    switch (value->value_type_case) {
    case DS__VALUE__VALUE_TYPE_TIMESTAMP_VALUE:
        value->timestamp_value->nanos -= value->timestamp_value->nanos % NS_A_US;
        return status_ok();
    case DS__VALUE__VALUE_TYPE_KEY_VALUE:
        return ds_key_fill(value->key_value, database, arena);
    case DS__VALUE__VALUE_TYPE_ENTITY_VALUE:
        return ds_entity_normalise(value->entity_value, database, arena);
    case DS__VALUE__VALUE_TYPE_ARRAY_VALUE:
        for (size_t i = 0; i < value->array_value->n_values; i++)
            TRY(ds_value_normalise(value->array_value->values[i], database, arena));
        return status_ok();
    default:
        return status_ok();
    }
}

/* A property, and where among all it came. */
struct placed {
    Ds__Entity__PropertiesEntry *property;
    size_t place;
};

static int compare_placed(const void *a, const void *b)
{
    const struct placed *first = a, *second = b;
    int order = strcmp(first->property->key, second->property->key);
    return order != 0 ? order : (first->place > second->place) - (first->place < second->place);
}

static status sort_properties(Ds__Entity *entity, struct arena *arena)
{
    size_t count = entity->n_properties;
    struct placed *placed = arena_alloc(arena, count * sizeof *placed);
    if (placed == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < count; i++)
        placed[i] = (struct placed){.property = entity->properties[i], .place = i};
    qsort(placed, count, sizeof *placed, compare_placed);
    entity->n_properties = 0;
    for (size_t i = 0; i < count; i++) {
        bool is_last =
            i + 1 == count || strcmp(placed[i].property->key, placed[i + 1].property->key) != 0;
        if (is_last)
            entity->properties[entity->n_properties++] = placed[i].property;
    }
    return status_ok();
}

status ds_entity_normalise(Ds__Entity *entity, const struct ds_database *database,
                           struct arena *arena)
{
    if (has_key(entity))
        TRY(ds_key_fill(entity->key, database, arena));
    if (entity->n_properties > 1)
        TRY(sort_properties(entity, arena));
    for (size_t i = 0; i < entity->n_properties; i++)
        if (entity->properties[i]->value != NULL)
            TRY(ds_value_normalise(entity->properties[i]->value, database, arena));
    return status_ok();
}
