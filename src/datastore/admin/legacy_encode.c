/* Writing entities in their first form: see legacy_entity.h. */
#include "datastore/admin/legacy_private.h"

#include "base/varint.h"
#include "datastore/index/index_rows.h"
#include "datastore/model/value.h"

/* --- fields --- */

static void put_tag(struct buffer *out, unsigned field, enum legacy_wire wire)
{
    buffer_append_varint(out, (uint64_t)field << 3 | wire);
}

static void put_number(struct buffer *out, unsigned field, uint64_t number)
{
    put_tag(out, field, LEGACY_NUMBER);
    buffer_append_varint(out, number);
}

static void put_double(struct buffer *out, unsigned field, double number)
{
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    put_tag(out, field, LEGACY_FIXED64);
    for (unsigned i = 0; i < sizeof bits; i++)
        buffer_append_byte(out, (uint8_t)(bits >> 8 * i));
}

static void put_bytes(struct buffer *out, unsigned field, bytes value)
{
    put_tag(out, field, LEGACY_BYTES);
    buffer_append_varint(out, value.size);
    buffer_append_bytes(out, value);
}

static void put_text(struct buffer *out, unsigned field, const char *text)
{
    put_bytes(out, field, bytes_of(text));
}

/* Takes the message. */
static void put_message(struct buffer *out, unsigned field, struct buffer *message)
{
    put_bytes(out, field, buffer_bytes(message));
    out->failed = out->failed || message->failed;
    buffer_free(message);
}

/* --- keys --- */

/* Kind, id and name have numbers that follow each other, in both forms of an element. */
static void put_element(struct buffer *out, unsigned group, unsigned kind_field,
                        const Ds__Key__PathElement *element)
{
    put_tag(out, group, LEGACY_GROUP);
    put_text(out, kind_field, element->kind);
    if (element->id_type_case == DS__KEY__PATH_ELEMENT__ID_TYPE_ID && element->id != 0)
        put_number(out, kind_field + 1, (uint64_t)element->id);
    else if (element->id_type_case == DS__KEY__PATH_ELEMENT__ID_TYPE_NAME)
        put_text(out, kind_field + 2, element->name);
    put_tag(out, group, LEGACY_END);
}

static void put_path(struct buffer *out, unsigned field, const Ds__Key *key, size_t count)
{
    struct buffer path = {0};
    for (size_t i = 0; i < count; i++)
        put_element(&path, PATH_ELEMENT, ELEMENT_KIND, key->path[i]);
    put_message(out, field, &path);
}

static void put_partition(struct buffer *out, const Ds__Key *key)
{
    const Ds__PartitionId *partition = key->partition_id;
    if (partition != NULL && *partition->namespace_id != '\0')
        put_text(out, REFERENCE_NAMESPACE, partition->namespace_id);
    if (partition != NULL && *partition->database_id != '\0')
        put_text(out, REFERENCE_DATABASE, partition->database_id);
}

static const char *app_of(const Ds__Key *key)
{
    return key->partition_id == NULL ? "" : key->partition_id->project_id;
}

/* An entity in a value may have no key. */
static void put_key(struct buffer *out, const Ds__Key *key)
{
    static const Ds__Key none = DS__KEY__INIT;
    struct buffer reference = {0};
    if (key == NULL)
        key = &none;
    put_text(&reference, REFERENCE_APP, app_of(key));
    put_path(&reference, REFERENCE_PATH, key, key->n_path);
    put_partition(&reference, key);
    put_message(out, ENTITY_KEY, &reference);
}

static void put_reference(struct buffer *out, const Ds__Key *key)
{
    put_tag(out, VALUE_REFERENCE, LEGACY_GROUP);
    put_text(out, REFERENCE_APP, app_of(key));
    for (size_t i = 0; i < key->n_path; i++)
        put_element(out, REFERENCE_PATH, REFERENCE_KIND, key->path[i]);
    put_partition(out, key);
    put_tag(out, VALUE_REFERENCE, LEGACY_END);
}

/* --- values --- */

static void put_point(struct buffer *out, const Type__LatLng *point)
{
    put_tag(out, VALUE_POINT, LEGACY_GROUP);
    put_double(out, POINT_X, point->latitude);
    put_double(out, POINT_Y, point->longitude);
    put_tag(out, VALUE_POINT, LEGACY_END);
}

/* NULL if the entity has no such text. */
static const char *text_in(const Ds__Entity *entity, const char *name)
{
    for (size_t i = 0; i < entity->n_properties; i++) {
        const Ds__Value *value = entity->properties[i]->value;
        if (strcmp(entity->properties[i]->key, name) == 0 &&
            value->value_type_case == DS__VALUE__VALUE_TYPE_STRING_VALUE)
            return value->string_value;
    }
    return NULL;
}

static void put_user(struct buffer *out, const Ds__Entity *user)
{
    put_tag(out, VALUE_USER, LEGACY_GROUP);
    for (size_t i = 0; i < LEGACY_USER_TEXTS; i++) {
        const char *text = text_in(user, legacy_user_texts[i].name);
        if (legacy_user_texts[i].field == USER_ID)
            put_number(out, USER_NUMBER, 0);
        if (text != NULL)
            put_text(out, legacy_user_texts[i].field, text);
    }
    put_tag(out, VALUE_USER, LEGACY_END);
}

static bool is_text_of_user(const Ds__Entity__PropertiesEntry *property)
{
    if (property->value->value_type_case != DS__VALUE__VALUE_TYPE_STRING_VALUE ||
        property->value->meaning != 0)
        return false;
    for (size_t i = 0; i < LEGACY_USER_TEXTS; i++)
        if (strcmp(property->key, legacy_user_texts[i].name) == 0)
            return true;
    return false;
}

/* Whether it says no more than a User can: else it stays an entity, and the meaning is lost. */
static bool is_user(const Ds__Value *value)
{
    const Ds__Entity *entity = value->entity_value;
    bool is = value->meaning == MEANING_USER && entity->key == NULL;
    for (size_t i = 0; is && i < entity->n_properties; i++)
        is = is_text_of_user(entity->properties[i]) &&
             entity->properties[i]->value->exclude_from_indexes;
    return is && text_in(entity, legacy_user_texts[0].name) != NULL &&
           text_in(entity, legacy_user_texts[1].name) != NULL;
}

static void put_entity(struct buffer *out, const Ds__Entity *entity)
{
    struct buffer encoded = {0};
    ds_legacy_encode(entity, &encoded);
    put_message(out, VALUE_TEXT, &encoded);
}

/* Nothing for a null. */
static void put_value(struct buffer *out, const Ds__Value *value)
{
    switch (value->value_type_case) {
    case DS__VALUE__VALUE_TYPE_INTEGER_VALUE:
        put_number(out, VALUE_INTEGER, (uint64_t)value->integer_value);
        break;
    case DS__VALUE__VALUE_TYPE_TIMESTAMP_VALUE:
        put_number(out, VALUE_INTEGER, (uint64_t)ds_timestamp_us(value->timestamp_value));
        break;
    case DS__VALUE__VALUE_TYPE_BOOLEAN_VALUE:
        put_number(out, VALUE_BOOLEAN, (uint64_t)value->boolean_value);
        break;
    case DS__VALUE__VALUE_TYPE_STRING_VALUE:
        put_text(out, VALUE_TEXT, value->string_value);
        break;
    case DS__VALUE__VALUE_TYPE_BLOB_VALUE:
        put_bytes(out, VALUE_TEXT, bytes_make(value->blob_value.data, value->blob_value.len));
        break;
    case DS__VALUE__VALUE_TYPE_DOUBLE_VALUE:
        put_double(out, VALUE_DOUBLE, value->double_value);
        break;
    case DS__VALUE__VALUE_TYPE_GEO_POINT_VALUE:
        put_point(out, value->geo_point_value);
        break;
    case DS__VALUE__VALUE_TYPE_KEY_VALUE:
        put_reference(out, value->key_value);
        break;
    case DS__VALUE__VALUE_TYPE_ENTITY_VALUE:
        if (is_user(value))
            put_user(out, value->entity_value);
        else
            put_entity(out, value->entity_value);
        break;
    default:
        break;
    }
}

/* --- properties --- */

static unsigned meaning_of_blob(const Ds__Value *value, bool is_excluded)
{
    if (value->meaning == MEANING_ZLIB)
        return MEANING_BLOB;
    if (value->meaning == MEANING_BYTE_STRING)
        return MEANING_BYTE_STRING;
    return is_excluded ? MEANING_BLOB : MEANING_BYTE_STRING;
}

/* 0: none. Meanings that say a type are for that type alone. */
static unsigned meaning_of(const Ds__Value *value, bool is_excluded)
{
    switch (value->value_type_case) {
    case DS__VALUE__VALUE_TYPE_TIMESTAMP_VALUE:
        return MEANING_TIMESTAMP;
    case DS__VALUE__VALUE_TYPE_GEO_POINT_VALUE:
        return value->meaning == MEANING_POINT_ALONE ? 0 : MEANING_GEO_POINT;
    case DS__VALUE__VALUE_TYPE_BLOB_VALUE:
        return meaning_of_blob(value, is_excluded);
    case DS__VALUE__VALUE_TYPE_ENTITY_VALUE:
        return is_user(value) ? 0 : MEANING_ENTITY;
    default:
        return legacy_meaning_is_free(value->meaning) ? (unsigned)value->meaning : 0;
    }
}

struct legacy_property {
    const char *name;
    bool is_excluded;
    bool is_of_several;
    unsigned meaning;
    bool is_compressed;
};

/* `value` NULL: none. */
static void put_property(struct buffer *out, const struct legacy_property *property,
                         const Ds__Value *value)
{
    struct buffer message = {0}, held = {0};
    if (property->meaning != 0)
        put_number(&message, PROPERTY_MEANING, property->meaning);
    if (property->is_compressed)
        put_text(&message, PROPERTY_MEANING_URI, LEGACY_ZLIB);
    put_text(&message, PROPERTY_NAME, property->name);
    put_number(&message, PROPERTY_IS_OF_SEVERAL, property->is_of_several);
    if (value != NULL)
        put_value(&held, value);
    put_message(&message, PROPERTY_VALUE, &held);
    put_message(out, property->is_excluded ? ENTITY_EXCLUDED : ENTITY_PROPERTY, &message);
}

static bool is_number(const Ds__Value *value)
{
    return value->value_type_case == DS__VALUE__VALUE_TYPE_DOUBLE_VALUE ||
           value->value_type_case == DS__VALUE__VALUE_TYPE_INTEGER_VALUE;
}

static void put_one(struct buffer *out, struct legacy_property property, const Ds__Value *value)
{
    property.is_excluded = property.is_excluded || value->exclude_from_indexes;
    if (property.meaning == 0 || !is_number(value))
        property.meaning = meaning_of(value, property.is_excluded);
    property.is_compressed = value->value_type_case == DS__VALUE__VALUE_TYPE_BLOB_VALUE &&
                             value->meaning == MEANING_ZLIB;
    put_property(out, &property, value);
}

/* In the order of its values, whether they are indexed or not: so they come back in it. */
static void put_array(struct buffer *out, struct legacy_property property, const Ds__Value *value)
{
    const Ds__ArrayValue *array = value->array_value;
    property.is_excluded = value->exclude_from_indexes;
    property.is_of_several = array->n_values > 0;
    property.meaning = value->meaning == DS_MEANING_VECTOR ? DS_MEANING_VECTOR : 0;
    for (size_t i = 0; i < array->n_values; i++)
        put_one(out, property, array->values[i]);
    if (array->n_values > 0)
        return;
    property.meaning = MEANING_EMPTY_ARRAY;
    put_property(out, &property, NULL);
}

void ds_legacy_encode(const Ds__Entity *entity, struct buffer *out)
{
    const Ds__Key *key = entity->key;
    put_key(out, key);
    for (size_t i = 0; i < entity->n_properties; i++) {
        const Ds__Value *value = entity->properties[i]->value;
        struct legacy_property property = {.name = entity->properties[i]->key};
        if (value->value_type_case == DS__VALUE__VALUE_TYPE_ARRAY_VALUE)
            put_array(out, property, value);
        else
            put_one(out, property, value);
    }
    if (key == NULL)
        put_bytes(out, ENTITY_ROOT, bytes_make(NULL, 0));
    else
        put_path(out, ENTITY_ROOT, key, key->n_path > 0);
}
