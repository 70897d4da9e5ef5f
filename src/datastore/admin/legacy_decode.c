/* Reading entities in their first form: see legacy_entity.h.
 *
 * The bytes may be anything: nothing is read past their end, groups and entities in one another are
 * followed to a depth, and texts are checked. */
#include "datastore/admin/legacy_private.h"

#include "base/utf8.h"
#include "base/varint.h"
#include "base/vector.h"
#include "datastore/index/index_rows.h"
#include "datastore/model/value.h"
#include "wire/proto.h"

#include <stdlib.h>

enum { MOST_GROUPS = 8, MOST_ENTITIES = 32 /* in one another */ };

struct decoding {
    struct arena *arena;
    const struct ds_database *database;
    bytes app; /* of the entity, and its database */
    bytes app_database;
    unsigned depth; /* entities around this one */
};

static status refuse(const char *what)
{
    return status_make(STATUS_INVALID_ARGUMENT, "An exported entity that does not parse: %s", what);
}

/* --- fields --- */

struct field {
    unsigned number;
    enum legacy_wire wire;
    uint64_t value; /* of numbers */
    bytes content;  /* of bytes and groups */
};

struct reader {
    const uint8_t *at;
    const uint8_t *end;
    bool is_bad;
};

static struct reader reader_of(bytes content)
{
    return (struct reader){.at = content.data, .end = content.data + content.size};
}

static bool read_number(struct reader *reader, uint64_t *out)
{
    const uint8_t *after = varint_read(reader->at, reader->end, out);
    if (after != NULL)
        reader->at = after;
    return after != NULL;
}

static bool read_bytes(struct reader *reader, size_t size, bytes *out)
{
    if (size > (size_t)(reader->end - reader->at))
        return false;
    *out = bytes_make(reader->at, size);
    reader->at += size;
    return true;
}

static bool read_field(struct reader *reader, unsigned depth, struct field *out);

/* To behind the end of the group; its content without that. */
static bool read_group(struct reader *reader, unsigned number, unsigned depth, bytes *out)
{
    const uint8_t *start = reader->at;
    struct field field;
    if (depth == MOST_GROUPS)
        return false;
    for (;;) {
        const uint8_t *end = reader->at;
        if (!read_field(reader, depth + 1, &field))
            return false;
        if (field.wire == LEGACY_END) {
            *out = bytes_make(start, (size_t)(end - start));
            return field.number == number;
        }
    }
}

static bool read_fixed(struct reader *reader, size_t size, uint64_t *out)
{
    bytes content;
    *out = 0;
    if (!read_bytes(reader, size, &content))
        return false;
    for (size_t i = 0; i < size; i++)
        *out |= (uint64_t)content.data[i] << 8 * i;
    return true;
}

static bool read_content(struct reader *reader, unsigned depth, struct field *out)
{
    uint64_t size;
    switch (out->wire) {
    case LEGACY_NUMBER:
        return read_number(reader, &out->value);
    case LEGACY_FIXED64:
        return read_fixed(reader, 8, &out->value);
    case LEGACY_FIXED32:
        return read_fixed(reader, 4, &out->value);
    case LEGACY_BYTES:
        return read_number(reader, &size) && size <= SIZE_MAX &&
               read_bytes(reader, size, &out->content);
    case LEGACY_GROUP:
        return read_group(reader, out->number, depth, &out->content);
    default:
        return out->wire == LEGACY_END;
    }
}

/* Also the end of a group. */
static bool read_field(struct reader *reader, unsigned depth, struct field *out)
{
    uint64_t tag;
    if (!read_number(reader, &tag) || tag >> 3 == 0 || tag >> 3 >= 1 << 29)
        return false;
    *out = (struct field){.number = (unsigned)(tag >> 3), .wire = (enum legacy_wire)(tag & 7)};
    return read_content(reader, depth, out);
}

/* False at the end, and, with is_bad set, where it does not parse. */
static bool next_field(struct reader *reader, struct field *out)
{
    if (reader->at == reader->end || reader->is_bad)
        return false;
    reader->is_bad = !read_field(reader, 0, out) || out->wire == LEGACY_END;
    return !reader->is_bad;
}

static bool is_field(const struct field *field, unsigned number, enum legacy_wire wire)
{
    return field->number == number && field->wire == wire;
}

static status check(const struct reader *reader)
{
    return reader->is_bad ? refuse("its bytes are torn") : status_ok();
}

static status to_text(const struct decoding *decoding, bytes content, const char **out)
{
    if (!utf8_is_valid(content) ||
        (content.size > 0 && memchr(content.data, '\0', content.size) != NULL))
        return refuse("a text that is not UTF-8, or has a zero byte in it");
    *out = arena_string(decoding->arena, content);
    return *out == NULL ? status_out_of_memory() : status_ok();
}

static double to_double(uint64_t bits)
{
    double number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

/* --- keys --- */

static status decode_element(const struct decoding *decoding, bytes content, unsigned kind_field,
                             struct vector *path)
{
    struct reader reader = reader_of(content);
    struct field field;
    Ds__Key__PathElement *element;
    PROTO_NEW(decoding->arena, element, DS__KEY__PATH_ELEMENT__INIT);
    while (next_field(&reader, &field)) {
        if (is_field(&field, kind_field, LEGACY_BYTES)) {
            TRY(to_text(decoding, field.content, &element->kind));
        } else if (is_field(&field, kind_field + 1, LEGACY_NUMBER)) {
            element->id_type_case = DS__KEY__PATH_ELEMENT__ID_TYPE_ID;
            element->id = (int64_t)field.value;
        } else if (is_field(&field, kind_field + 2, LEGACY_BYTES)) {
            element->id_type_case = DS__KEY__PATH_ELEMENT__ID_TYPE_NAME;
            TRY(to_text(decoding, field.content, &element->name));
        }
    }
    TRY(check(&reader));
    return vector_add(path, decoding->arena, &element, sizeof element);
}

static status decode_path(const struct decoding *decoding, bytes content, struct vector *path)
{
    struct reader reader = reader_of(content);
    struct field field;
    while (next_field(&reader, &field))
        if (is_field(&field, PATH_ELEMENT, LEGACY_GROUP))
            TRY(decode_element(decoding, field.content, ELEMENT_KIND, path));
    return check(&reader);
}

/* App Engine wrote its partition before the project, as in "s~project". */
static bytes project_of(bytes app)
{
    const uint8_t *mark = app.size == 0 ? NULL : memchr(app.data, '~', app.size);
    return mark == NULL ? app : bytes_from(app, (size_t)(mark - app.data) + 1);
}

/* A reference within the entity's own database becomes one within the database that it comes to. */
static status set_database(const struct decoding *decoding, bytes app, bytes database,
                           Ds__PartitionId *partition)
{
    bool is_own = app.size == 0 || (bytes_equal(app, decoding->app) &&
                                    bytes_equal(database, decoding->app_database));
    if (is_own) {
        partition->project_id = decoding->database->project;
        partition->database_id = decoding->database->id;
        return status_ok();
    }
    TRY(to_text(decoding, project_of(app), &partition->project_id));
    return to_text(decoding, database, &partition->database_id);
}

/* A Reference, by itself or in a value; `*out` NULL if it has no path. */
static status decode_reference(const struct decoding *decoding, bytes content, Ds__Key **out)
{
    struct reader reader = reader_of(content);
    struct field field;
    struct vector path = {0};
    bytes app = bytes_of(""), database = bytes_of("");
    Ds__Key *key;
    *out = NULL;
    PROTO_NEW(decoding->arena, key, DS__KEY__INIT);
    PROTO_NEW(decoding->arena, key->partition_id, DS__PARTITION_ID__INIT);
    while (next_field(&reader, &field)) {
        if (is_field(&field, REFERENCE_APP, LEGACY_BYTES))
            app = field.content;
        else if (is_field(&field, REFERENCE_DATABASE, LEGACY_BYTES))
            database = field.content;
        else if (is_field(&field, REFERENCE_NAMESPACE, LEGACY_BYTES))
            TRY(to_text(decoding, field.content, &key->partition_id->namespace_id));
        else if (is_field(&field, REFERENCE_PATH, LEGACY_BYTES))
            TRY(decode_path(decoding, field.content, &path));
        else if (is_field(&field, REFERENCE_PATH, LEGACY_GROUP))
            TRY(decode_element(decoding, field.content, REFERENCE_KIND, &path));
    }
    TRY(check(&reader));
    key->path = path.items;
    key->n_path = path.count;
    if (path.count > 0)
        *out = key;
    return set_database(decoding, app, database, key->partition_id);
}

/* --- values --- */

static status decode_entity(const struct decoding *decoding, bytes wire, Ds__Entity **out);

static status decode_point(const struct decoding *decoding, bytes content, Ds__Value *value)
{
    struct reader reader = reader_of(content);
    struct field field;
    Type__LatLng *point;
    PROTO_NEW(decoding->arena, point, TYPE__LAT_LNG__INIT);
    while (next_field(&reader, &field)) {
        if (is_field(&field, POINT_X, LEGACY_FIXED64))
            point->latitude = to_double(field.value);
        else if (is_field(&field, POINT_Y, LEGACY_FIXED64))
            point->longitude = to_double(field.value);
    }
    value->value_type_case = DS__VALUE__VALUE_TYPE_GEO_POINT_VALUE;
    value->geo_point_value = point;
    return check(&reader);
}

static status add_property(const struct decoding *decoding, const char *name, Ds__Value *value,
                           struct vector *properties)
{
    Ds__Entity__PropertiesEntry *property;
    PROTO_NEW(decoding->arena, property, DS__ENTITY__PROPERTIES_ENTRY__INIT);
    property->key = name;
    property->value = value;
    return vector_add(properties, decoding->arena, &property, sizeof property);
}

static status add_user_text(const struct decoding *decoding, const struct field *field,
                            struct vector *properties)
{
    Ds__Value *value;
    for (size_t i = 0; i < LEGACY_USER_TEXTS; i++) {
        if (!is_field(field, legacy_user_texts[i].field, LEGACY_BYTES))
            continue;
        PROTO_NEW(decoding->arena, value, DS__VALUE__INIT);
        value->value_type_case = DS__VALUE__VALUE_TYPE_STRING_VALUE;
        value->exclude_from_indexes = true;
        TRY(to_text(decoding, field->content, &value->string_value));
        return add_property(decoding, legacy_user_texts[i].name, value, properties);
    }
    return status_ok();
}

static status decode_user(const struct decoding *decoding, bytes content, Ds__Value *value)
{
    struct reader reader = reader_of(content);
    struct field field;
    struct vector properties = {0};
    Ds__Entity *user;
    PROTO_NEW(decoding->arena, user, DS__ENTITY__INIT);
    while (next_field(&reader, &field))
        TRY(add_user_text(decoding, &field, &properties));
    user->properties = properties.items;
    user->n_properties = properties.count;
    value->value_type_case = DS__VALUE__VALUE_TYPE_ENTITY_VALUE;
    value->entity_value = user;
    return check(&reader);
}

static status decode_bytes(const struct decoding *decoding, bytes content, unsigned meaning,
                           Ds__Value *value)
{
    struct decoding inner = *decoding;
    switch (meaning) {
    case MEANING_ENTITY:
        if (++inner.depth == MOST_ENTITIES)
            return refuse("too many entities in one another");
        value->value_type_case = DS__VALUE__VALUE_TYPE_ENTITY_VALUE;
        return decode_entity(&inner, content, &value->entity_value);
    case MEANING_BLOB:
    case MEANING_BYTE_STRING:
        value->value_type_case = DS__VALUE__VALUE_TYPE_BLOB_VALUE;
        value->blob_value = proto_data(content);
        return status_ok();
    default:
        value->value_type_case = DS__VALUE__VALUE_TYPE_STRING_VALUE;
        return to_text(decoding, content, &value->string_value);
    }
}

/* A moment that is none of a timestamp's years stays a number. */
static status decode_integer(const struct decoding *decoding, int64_t number, unsigned meaning,
                             Ds__Value *value)
{
    const int64_t second = 1000000, first = -62135596800, last = 253402300799;
    int64_t seconds = number / second - (number % second < 0);
    if (meaning != MEANING_TIMESTAMP || seconds < first || seconds > last) {
        value->value_type_case = DS__VALUE__VALUE_TYPE_INTEGER_VALUE;
        value->integer_value = number;
        return status_ok();
    }
    PROTO_NEW(decoding->arena, value->timestamp_value, PB__TIMESTAMP__INIT);
    value->value_type_case = DS__VALUE__VALUE_TYPE_TIMESTAMP_VALUE;
    value->timestamp_value->seconds = seconds;
    value->timestamp_value->nanos = (int32_t)((number - seconds * second) * 1000);
    return status_ok();
}

static status decode_held(const struct decoding *decoding, const struct field *field,
                          unsigned meaning, Ds__Value *value)
{
    if (is_field(field, VALUE_INTEGER, LEGACY_NUMBER))
        return decode_integer(decoding, (int64_t)field->value, meaning, value);
    if (is_field(field, VALUE_TEXT, LEGACY_BYTES))
        return decode_bytes(decoding, field->content, meaning, value);
    if (is_field(field, VALUE_POINT, LEGACY_GROUP))
        return decode_point(decoding, field->content, value);
    if (is_field(field, VALUE_USER, LEGACY_GROUP))
        return decode_user(decoding, field->content, value);
    if (is_field(field, VALUE_BOOLEAN, LEGACY_NUMBER)) {
        value->value_type_case = DS__VALUE__VALUE_TYPE_BOOLEAN_VALUE;
        value->boolean_value = field->value != 0;
    } else if (is_field(field, VALUE_DOUBLE, LEGACY_FIXED64)) {
        value->value_type_case = DS__VALUE__VALUE_TYPE_DOUBLE_VALUE;
        value->double_value = to_double(field->value);
    } else if (is_field(field, VALUE_REFERENCE, LEGACY_GROUP)) {
        value->value_type_case = DS__VALUE__VALUE_TYPE_KEY_VALUE;
        TRY(decode_reference(decoding, field->content, &value->key_value));
        return value->key_value == NULL ? refuse("a key without a path") : status_ok();
    }
    return status_ok();
}

/* --- properties --- */

/* A Property, with where it stood among those of its entity. */
struct property {
    bytes name;
    size_t place;
    bool is_excluded;
    bool is_of_several;
    unsigned meaning;
    bool is_compressed;
    bytes held;
};

static status decode_property(bytes content, struct property *out)
{
    struct reader reader = reader_of(content);
    struct field field;
    while (next_field(&reader, &field)) {
        if (is_field(&field, PROPERTY_NAME, LEGACY_BYTES))
            out->name = field.content;
        else if (is_field(&field, PROPERTY_VALUE, LEGACY_BYTES))
            out->held = field.content;
        else if (is_field(&field, PROPERTY_MEANING, LEGACY_NUMBER))
            out->meaning = (unsigned)field.value;
        else if (is_field(&field, PROPERTY_IS_OF_SEVERAL, LEGACY_NUMBER))
            out->is_of_several = field.value != 0;
        else if (is_field(&field, PROPERTY_MEANING_URI, LEGACY_BYTES))
            out->is_compressed = bytes_equal(field.content, bytes_of(LEGACY_ZLIB));
    }
    return check(&reader);
}

/* The meaning that the value keeps, beside its type. */
static int32_t kept_meaning(const struct property *property, const Ds__Value *value)
{
    switch (value->value_type_case) {
    case DS__VALUE__VALUE_TYPE_BLOB_VALUE:
        if (property->is_compressed)
            return MEANING_ZLIB;
        return property->is_excluded && property->meaning == MEANING_BYTE_STRING
                   ? MEANING_BYTE_STRING
                   : 0;
    case DS__VALUE__VALUE_TYPE_GEO_POINT_VALUE:
        return property->meaning == MEANING_GEO_POINT ? 0 : MEANING_POINT_ALONE;
    case DS__VALUE__VALUE_TYPE_ENTITY_VALUE:
        return property->meaning == MEANING_ENTITY ? 0 : MEANING_USER;
    case DS__VALUE__VALUE_TYPE_TIMESTAMP_VALUE:
        return 0;
    default:
        return legacy_meaning_is_free(property->meaning) ? (int32_t)property->meaning : 0;
    }
}

/* Without anything in it, it is a null. */
static status decode_value(const struct decoding *decoding, const struct property *property,
                           Ds__Value **out)
{
    struct reader reader = reader_of(property->held);
    struct field field;
    Ds__Value *value;
    PROTO_NEW(decoding->arena, value, DS__VALUE__INIT);
    value->value_type_case = DS__VALUE__VALUE_TYPE_NULL_VALUE;
    while (next_field(&reader, &field))
        TRY(decode_held(decoding, &field, property->meaning, value));
    TRY(check(&reader));
    value->exclude_from_indexes = property->is_excluded;
    value->meaning = kept_meaning(property, value);
    *out = value;
    return status_ok();
}

static status new_array(const struct decoding *decoding, Ds__Value **out)
{
    PROTO_NEW(decoding->arena, *out, DS__VALUE__INIT);
    PROTO_NEW(decoding->arena, (*out)->array_value, DS__ARRAY_VALUE__INIT);
    (*out)->value_type_case = DS__VALUE__VALUE_TYPE_ARRAY_VALUE;
    return status_ok();
}

/* The properties of one name, which are several values. */
static status make_array(const struct decoding *decoding, const struct property *properties,
                         size_t count, Ds__Value **out)
{
    bool is_vector = true;
    TRY(new_array(decoding, out));
    Ds__ArrayValue *array = (*out)->array_value;
    array->values = arena_alloc(decoding->arena, count * sizeof(Ds__Value *));
    if (array->values == NULL)
        return status_out_of_memory();
    for (; array->n_values < count; array->n_values++) {
        TRY(decode_value(decoding, &properties[array->n_values], &array->values[array->n_values]));
        is_vector = is_vector && properties[array->n_values].meaning == DS_MEANING_VECTOR;
    }
    (*out)->meaning = is_vector ? DS_MEANING_VECTOR : 0;
    return status_ok();
}

/* The properties of one name: of those that are not one of several the last counts. */
static status make_value(const struct decoding *decoding, const struct property *properties,
                         size_t count, Ds__Value **out)
{
    const struct property *last = &properties[count - 1];
    if (last->is_of_several) {
        while (!properties->is_of_several)
            properties++;
        return make_array(decoding, properties, (size_t)(last - properties) + 1, out);
    }
    if (last->meaning != MEANING_EMPTY_ARRAY)
        return decode_value(decoding, last, out);
    TRY(new_array(decoding, out));
    (*out)->exclude_from_indexes = last->is_excluded;
    return status_ok();
}

static int compare_properties(const void *a, const void *b)
{
    const struct property *first = a, *second = b;
    int order = bytes_compare(first->name, second->name);
    return order != 0 ? order : (first->place > second->place) - (first->place < second->place);
}

static size_t count_of_name(const struct property *properties, size_t most)
{
    size_t count = 1;
    while (count < most && bytes_equal(properties[count].name, properties[0].name))
        count++;
    return count;
}

static status make_properties(const struct decoding *decoding, struct vector *found,
                              Ds__Entity *entity)
{
    struct property *properties = found->items;
    struct vector made = {0};
    if (found->count > 0)
        qsort(properties, found->count, sizeof *properties, compare_properties);
    for (size_t i = 0; i < found->count;) {
        size_t count = count_of_name(properties + i, found->count - i);
        Ds__Value *value;
        const char *name;
        TRY(to_text(decoding, properties[i].name, &name));
        TRY(make_value(decoding, properties + i, count, &value));
        TRY(add_property(decoding, name, value, &made));
        i += count;
    }
    entity->properties = made.items;
    entity->n_properties = made.count;
    return status_ok();
}

/* --- entities --- */

static status decode_entity(const struct decoding *decoding, bytes wire, Ds__Entity **out)
{
    struct reader reader = reader_of(wire);
    struct vector found = {0};
    struct field field;
    PROTO_NEW(decoding->arena, *out, DS__ENTITY__INIT);
    while (next_field(&reader, &field)) {
        struct property property = {.name = bytes_of(""), .held = bytes_of("")};
        if (is_field(&field, ENTITY_KEY, LEGACY_BYTES))
            TRY(decode_reference(decoding, field.content, &(*out)->key));
        if (!is_field(&field, ENTITY_PROPERTY, LEGACY_BYTES) &&
            !is_field(&field, ENTITY_EXCLUDED, LEGACY_BYTES))
            continue;
        property.place = found.count;
        property.is_excluded = field.number == ENTITY_EXCLUDED;
        TRY(decode_property(field.content, &property));
        TRY(vector_add(&found, decoding->arena, &property, sizeof property));
    }
    TRY(check(&reader));
    return make_properties(decoding, &found, *out);
}

/* The app of the entity's own key, which is wanted before the first key is read. */
static status find_app(bytes wire, struct decoding *decoding)
{
    struct reader reader = reader_of(wire);
    struct field field;
    bytes reference = bytes_of("");
    while (next_field(&reader, &field))
        if (is_field(&field, ENTITY_KEY, LEGACY_BYTES))
            reference = field.content;
    TRY(check(&reader));
    reader = reader_of(reference);
    while (next_field(&reader, &field)) {
        if (is_field(&field, REFERENCE_APP, LEGACY_BYTES))
            decoding->app = field.content;
        if (is_field(&field, REFERENCE_DATABASE, LEGACY_BYTES))
            decoding->app_database = field.content;
    }
    return check(&reader);
}

status ds_legacy_decode(bytes wire, const struct ds_database *database, struct arena *arena,
                        Ds__Entity **out)
{
    struct decoding decoding = {
        .arena = arena, .database = database, .app = bytes_of(""), .app_database = bytes_of("")};
    TRY(find_app(wire, &decoding));
    TRY(decode_entity(&decoding, wire, out));
    return (*out)->key == NULL ? refuse("it has no key") : status_ok();
}
