/* See storage_size.h. */
#include "datastore/model/storage_size.h"

enum { KEY = 16, ID = 8, NUMBER = 8, POINT = 16, SMALL = 1 };

size_t ds_key_storage(const Ds__Key *key)
{
    size_t space = ds_key_namespace(key).size;
    size_t size = KEY + (space > 0 ? ds_text_storage(space) : 0);
    for (size_t i = 0; i < key->n_path; i++) {
        const Ds__Key__PathElement *element = key->path[i];
        bool has_name = element->id_type_case == DS__KEY__PATH_ELEMENT__ID_TYPE_NAME;
        size += ds_text_storage(strlen(element->kind)) +
                (has_name ? ds_text_storage(strlen(element->name)) : ID);
    }
    return size;
}

static size_t properties_storage(const Ds__Entity *entity)
{
    size_t size = 0;
    for (size_t i = 0; i < entity->n_properties; i++)
        size += ds_text_storage(strlen(entity->properties[i]->key)) +
                ds_value_storage(entity->properties[i]->value);
    return size;
}

static size_t array_storage(const Ds__ArrayValue *array)
{
    size_t size = 0;
    for (size_t i = 0; i < array->n_values; i++)
        size += ds_value_storage(array->values[i]);
    return size;
}

size_t ds_value_storage(const Ds__Value *value)
{
    switch (value->value_type_case) {
    case DS__VALUE__VALUE_TYPE_INTEGER_VALUE:
    case DS__VALUE__VALUE_TYPE_DOUBLE_VALUE:
    case DS__VALUE__VALUE_TYPE_TIMESTAMP_VALUE:
        return NUMBER;
    case DS__VALUE__VALUE_TYPE_GEO_POINT_VALUE:
        return POINT;
    case DS__VALUE__VALUE_TYPE_STRING_VALUE:
        return ds_text_storage(strlen(value->string_value));
    case DS__VALUE__VALUE_TYPE_BLOB_VALUE:
        return value->blob_value.len;
    case DS__VALUE__VALUE_TYPE_KEY_VALUE:
        return ds_key_storage(value->key_value);
    case DS__VALUE__VALUE_TYPE_ENTITY_VALUE:
        return properties_storage(value->entity_value);
    case DS__VALUE__VALUE_TYPE_ARRAY_VALUE:
        return array_storage(value->array_value);
    default: /* null and boolean */
        return SMALL;
    }
}

size_t ds_entity_storage(const Ds__Entity *entity)
{
    return ds_key_storage(entity->key) + properties_storage(entity) + DS_STORAGE_OVERHEAD;
}
