/* Queries about what there is: see query_metadata.h. */
#include "datastore/query/query_metadata.h"

#include "base/check.h"
#include "datastore/index/index_rows.h"
#include "datastore/model/property_path.h"
#include "row/key_text.h"
#include "row/row_key.h"

#define NAMESPACE "__namespace__"
#define KIND      "__kind__"
#define PROPERTY  "__property__"

struct ds_metadata {
    const struct ds_query *query;
    struct ds_reading *reading;
    struct ds_rows_reader *reader;
    size_t texts;         /* of a row key that make an entity: its namespace, its kind, … */
    size_t skipped;       /* of those the first are the query's */
    struct buffer prefix; /* of the rows of the last entity */
    struct buffer path;
    bytes to;
    bool is_at_end;
};

static bool is_kind(const struct ds_query *query, const char *kind)
{
    return query->kind != NULL && strcmp(query->kind, kind) == 0;
}

bool ds_is_metadata(const struct ds_query *query)
{
    return is_kind(query, NAMESPACE) || is_kind(query, KIND) || is_kind(query, PROPERTY);
}

status ds_metadata_check(const struct ds_query *query)
{
    const struct ds_conjunction *conjunction = query->conjunctions;
    if (query->conjunction_count == 1 && conjunction->equality_count == 0 &&
        query->order_count == 0 && query->key_flip == DS_ASCENDING)
        return status_ok();
    return status_make(STATUS_INVALID_ARGUMENT,
                       "Queries of the kind %s can have only filters on __key__, all of them true, "
                       "and be in its ascending order",
                       query->kind);
}

/* --- opening --- */

static status open_rows(struct ds_metadata *metadata, struct arena *arena)
{
    const struct ds_query *query = metadata->query;
    struct buffer from = {0}, to = {0};
    metadata->texts = is_kind(query, PROPERTY) ? 3 : is_kind(query, KIND) ? 2 : 1;
    metadata->skipped = is_kind(query, NAMESPACE) ? 0 : 1;
    buffer_append_byte(&from, is_kind(query, NAMESPACE) ? DS_ENTITY_ROW
                              : is_kind(query, KIND)    ? DS_KIND_ROW
                                                        : DS_ASCENDING_ROW);
    if (metadata->skipped > 0)
        key_text_append(&from, bytes_of(query->name_space));
    bool has_end = key_after_prefix(&to, buffer_bytes(&from));
    metadata->to = arena_copy(arena, has_end ? buffer_bytes(&to) : bytes_make(NULL, 0));
    bytes start = arena_copy(arena, buffer_bytes(&from));
    bool failed = from.failed || to.failed || metadata->to.data == NULL || start.data == NULL;
    buffer_free(&from);
    buffer_free(&to);
    if (failed)
        return status_out_of_memory();
    TRY(ds_reading_note_range(metadata->reading, start, metadata->to));
    return ds_rows_open(&metadata->reading->snapshot, DS_FORWARDS, start, metadata->to, arena,
                        &metadata->reader);
}

status ds_metadata_open(const struct ds_query *query, struct ds_reading *reading,
                        struct arena *arena, struct ds_metadata **out)
{
    struct ds_metadata *metadata = arena_zalloc(arena, sizeof *metadata);
    if (metadata == NULL)
        return status_out_of_memory();
    metadata->query = query;
    metadata->reading = reading;
    *out = metadata;
    return open_rows(metadata, arena);
}

void ds_metadata_close(struct ds_metadata *metadata)
{
    if (metadata == NULL)
        return;
    ds_rows_close(metadata->reader);
    buffer_free(&metadata->prefix);
    buffer_free(&metadata->path);
}

/* --- from row to row --- */

/* The first row that does not begin with `prefix`, which is cleared. */
static status go_behind(struct ds_metadata *metadata, struct buffer *prefix)
{
    struct buffer next = {0};
    metadata->is_at_end = !key_after_prefix(&next, buffer_bytes(prefix));
    status s = next.failed           ? status_out_of_memory()
               : metadata->is_at_end ? status_ok()
                                     : ds_rows_seek(metadata->reader, buffer_bytes(&next));
    buffer_free(&next);
    buffer_clear(prefix);
    return s;
}

/* On to the first row of the next entity, whose texts are then the prefix. */
static status next_row(struct ds_metadata *metadata, bool *found)
{
    struct ds_row_found row;
    if (metadata->prefix.size > 0)
        TRY(go_behind(metadata, &metadata->prefix));
    *found = false;
    if (metadata->is_at_end)
        return status_ok();
    TRY(ds_rows_next(metadata->reader, &row, found));
    if (!*found)
        return status_ok();
    size_t size = 1;
    for (size_t i = 0; i < metadata->texts; i++) {
        size_t text = key_text_size(bytes_from(row.key, size), DS_ASCENDING);
        if (text == 0)
            return ds_damaged("a row without its texts");
        size += text;
    }
    buffer_append(&metadata->prefix, row.key.data, size);
    return metadata->prefix.failed ? status_out_of_memory() : status_ok();
}

/* --- entities --- */

static status add_element(Ds__Key *key, const char *kind, const char *name, struct arena *arena)
{
    Ds__Key__PathElement *element;
    PROTO_NEW(arena, element, DS__KEY__PATH_ELEMENT__INIT);
    element->kind = kind;
    if (name[0] == '\0') {
        element->id_type_case = DS__KEY__PATH_ELEMENT__ID_TYPE_ID;
        element->id = 1;
    } else {
        element->id_type_case = DS__KEY__PATH_ELEMENT__ID_TYPE_NAME;
        element->name = name;
    }
    key->path[key->n_path++] = element;
    return status_ok();
}

/* From the texts of the prefix. */
static status make_key(struct ds_metadata *metadata, struct arena *arena, Ds__Key **out)
{
    static const char *const kinds[] = {NAMESPACE, KIND, PROPERTY};
    const struct ds_query *query = metadata->query;
    bytes rest = bytes_from(buffer_bytes(&metadata->prefix), 1);
    Ds__PartitionId *partition;
    PROTO_NEW(arena, *out, DS__KEY__INIT);
    PROTO_NEW(arena, partition, DS__PARTITION_ID__INIT);
    partition->project_id = query->database.project;
    partition->database_id = query->database.id;
    partition->namespace_id = query->name_space;
    (*out)->partition_id = partition;
    CHECK(metadata->texts <= sizeof kinds / sizeof *kinds);
    (*out)->path = arena_alloc(arena, metadata->texts * sizeof(Ds__Key__PathElement *));
    if ((*out)->path == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < metadata->texts; i++) {
        const char *name = "";
        TRY(ds_text_read(&rest, DS_ASCENDING, arena, &name));
        if (i >= metadata->skipped)
            TRY(add_element(*out, kinds[i], name, arena));
    }
    return status_ok();
}

/* No entity has this property, whatever the index says. */
static bool is_hidden(const struct ds_metadata *metadata, const Ds__Key *key)
{
    return is_kind(metadata->query, PROPERTY) &&
           strcmp(key->path[key->n_path - 1]->name, DS_SCATTER_PROPERTY) == 0;
}

/* Whether the query wants it; sets its path. */
static status is_wanted(struct ds_metadata *metadata, const Ds__Key *key, bool *out)
{
    const struct ds_query *query = metadata->query;
    const struct ds_conjunction *conjunction = query->conjunctions;
    buffer_clear(&metadata->path);
    ds_path_append(&metadata->path, key);
    bytes path = buffer_bytes(&metadata->path);
    *out = bytes_start_with(path, conjunction->ancestor) &&
           ds_range_compare(&conjunction->keys, path) == 0 &&
           !ds_range_excludes(&conjunction->keys, path) && bytes_compare(path, query->start) > 0;
    return metadata->path.failed ? status_out_of_memory() : status_ok();
}

/* The name of a type, by the byte with which its values begin (datastore-layout.md). */
static const char *type_name(uint8_t type)
{
    switch (type) {
    case 0x05:
        return "NULL";
    case 0x10:
        return "INT64";
    case 0x20:
        return "BOOLEAN";
    case 0x30:
        return "STRING";
    case 0x40:
        return "DOUBLE";
    case 0x50:
        return "POINT";
    case 0x60:
        return "REFERENCE";
    default:
        return NULL;
    }
}

static status add_type(Ds__ArrayValue *types, uint8_t type, struct arena *arena)
{
    Ds__Value *value;
    const char *name = type_name(type);
    if (name == NULL)
        return ds_damaged("a value of no type");
    PROTO_NEW(arena, value, DS__VALUE__INIT);
    value->value_type_case = DS__VALUE__VALUE_TYPE_STRING_VALUE;
    value->string_value = name;
    types->values[types->n_values++] = value;
    return status_ok();
}

/* Goes from each type of the property's values to the next. */
static status find_types(struct ds_metadata *metadata, struct arena *arena, Ds__ArrayValue *types)
{
    enum { TYPES = 7 };
    struct buffer from = {0};
    bool found = true;
    types->values = arena_alloc(arena, TYPES * sizeof(Ds__Value *));
    if (types->values == NULL)
        return status_out_of_memory();
    buffer_append_bytes(&from, buffer_bytes(&metadata->prefix));
    struct ds_rows_reader *reader = NULL;
    status s = from.failed ? status_out_of_memory()
                           : ds_rows_open(&metadata->reading->snapshot, DS_FORWARDS,
                                          buffer_bytes(&from), metadata->to, arena, &reader);
    while (status_is_ok(s) && found && types->n_values < TYPES) {
        struct ds_row_found row;
        size_t size = metadata->prefix.size;
        s = ds_rows_next(reader, &row, &found);
        if (!status_is_ok(s) || !found || row.key.size <= size ||
            !bytes_start_with(row.key, buffer_bytes(&metadata->prefix)))
            break;
        s = add_type(types, row.key.data[size], arena);
        from.size = size;
        buffer_append_byte(&from, (uint8_t)(row.key.data[size] + 1));
        if (status_is_ok(s))
            s = from.failed ? status_out_of_memory() : ds_rows_seek(reader, buffer_bytes(&from));
    }
    ds_rows_close(reader);
    buffer_free(&from);
    return s;
}

static status make_entity(struct ds_metadata *metadata, Ds__Key *key, struct arena *arena,
                          Ds__Entity **out)
{
    Ds__Value *value;
    TRY(ds_entity_like(NULL, 1, arena, out));
    (*out)->key = key;
    if (!is_kind(metadata->query, PROPERTY) ||
        metadata->query->result_type != DS__ENTITY_RESULT__RESULT_TYPE__FULL)
        return status_ok();
    PROTO_NEW(arena, value, DS__VALUE__INIT);
    PROTO_NEW(arena, value->array_value, DS__ARRAY_VALUE__INIT);
    value->value_type_case = DS__VALUE__VALUE_TYPE_ARRAY_VALUE;
    TRY(find_types(metadata, arena, value->array_value));
    return ds_property_append(*out, "property_representation", value, arena);
}

status ds_metadata_next(struct ds_metadata *metadata, struct arena *arena, Ds__Entity **entity,
                        bytes *path, bool *found)
{
    Ds__Key *key = NULL;
    bool wanted = false;
    do {
        TRY(next_row(metadata, found));
        if (!*found)
            return status_ok();
        TRY(make_key(metadata, arena, &key));
        TRY(is_wanted(metadata, key, &wanted));
    } while (!wanted || is_hidden(metadata, key));
    *path = buffer_bytes(&metadata->path);
    return make_entity(metadata, key, arena, entity);
}
